"""Regularizers: distances to the prior, added to the data's equations as one convex program.

All are written in normalised coordinates, where every body's prior is the identity; so units and frames do not matter
to any of them but the Euclidean one, which is there to be compared with.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, Ellipsoid, from_pseudo_inertia, pseudo_inertia
from inertid_ros.core.qr import inverse_root, semidefinite_root
from inertid_ros.robot.layout import ParameterLayout

from . import coordinates as distances
from .convex_program import ConvexProgram, Solution
from .coordinates import ENERGY_SHARE, TYPICAL_PRIOR_SPREAD, Coordinates, Distance

POINTS_PER_BODY = 100  # random ones per body
_REGION_EXTENT = 1.5  # of a body without a region: this multiple of the solid ellipsoid with its own second moments
_EXACTNESS_WEIGHT = 1e4  # weight of the prior's ten parameters against an even distribution of its mass
_REALIZED_ERROR = 1e-6  # relative error of a prior that the points make up
_HADAMARD = 0.5 * np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
_log = logging.getLogger(__name__)
_DRIVE_BARRIER_SHARE = 0.05
# Of a parameter's natural size: what counts as zero in a prior, and how far the parameter may then be off.
_ZERO_PRIOR_SHARE, _MIN_SIZE_SHARE = 1e-3, 0.1
OWN_SPREADS = ("entropic", "pullback")  # regularizers under which single links may have a prior spread of their own
_HYPERPRIOR_COUNT = 10.0  # weight of the typical prior spread in directions: as much as one body has
_MIN_PRIOR_SPREAD, _MAX_PRIOR_SPREAD = 0.05, 5.0


@dataclass(frozen=True)
class PointMasses:
    """Positions and prior masses of the points of all bodies.

    Attributes
    ----------
    matrix : (10 nb, N), map from masses to parameters of the bodies, in normalised coordinates
    prior : (N,), masses [kg] that make up the prior, as even as possible
    """

    matrix: Array
    prior: Array
    positions: tuple[Array, ...]

    @property
    def scale(self) -> float:
        """Factor on ``|mu - mu0|^2`` for agreement with geodesic distances if all masses grow alike."""
        return 2 * len(self.positions) / float(self.prior @ self.prior)

    @property
    def metric(self) -> Array:
        """``(nb, 10, 10)`` metric of the least ``|mu - mu0|^2`` that gives a change of the parameters."""
        starts = np.cumsum([0, *(len(positions) for positions in self.positions)])
        blocks = [self.matrix[10 * b : 10 * b + 10, starts[b] : starts[b + 1]] for b in range(len(self.positions))]
        return self.scale * np.array([np.linalg.inv(block @ block.T) for block in blocks])


def point_masses(
        bodies: Array, normalise: Array, regions: Sequence[tuple[str, tuple[Ellipsoid, ...]]], rng: np.random.Generator,
        count: int = POINTS_PER_BODY) -> PointMasses:
    """Draw points for all bodies, which are made of point masses: ``pi = R mu`` with ``mu >= 0`` ([Lee2019]_ sec.
    3.5.1).

    Uniform in the regions, and some that make up the prior exactly if it is realizable there.

    Parameters
    ----------
    bodies : (nb, 10), priors, physically consistent
    normalise : (nb, 10, 10), map from normalised to physical parameters of each body
    regions : name of each body and the ellipsoids whose union holds its mass; none for a region of its own shape
    """
    columns, masses, positions = [], [], []
    for pi, matrix, (name, region) in zip(bodies, normalise, regions, strict=True):
        shapes = region or (Ellipsoid.from_body(pi, _REGION_EXTENT),)
        points = np.vstack([_uniform(shapes, rng, count), _exact(pi, shapes)])
        lifted = np.column_stack([points, np.ones(len(points))])
        made = from_pseudo_inertia(lifted[:, :, None] * lifted[:, None, :])
        columns.append(np.linalg.solve(matrix, made.T))
        masses.append(_even_masses(pi, made, matrix, name))
        positions.append(points)
    return PointMasses(block_diag(*columns), np.concatenate(masses), tuple(positions))


def _uniform(shapes: Sequence[Ellipsoid], rng: np.random.Generator, count: int) -> Array:
    """Draw points ``(count, 3)`` in proportion to volume."""
    volume = np.array([np.sqrt(np.linalg.det(shape.shape)) for shape in shapes])
    shares = rng.multinomial(count, volume / volume.sum())
    return np.vstack([shape.uniform(rng, share) for shape, share in zip(shapes, shares, strict=True)])


def _exact(pi: Array, shapes: Sequence[Ellipsoid]) -> Array:
    """Points in the ellipsoid that suits the body best, any four of a set making it up exactly.

    ``J = C C^T`` for any ``C = L U`` with U orthogonal, and the columns of C are points with their masses. Those of ``U
    = V H``, with V the eigenvectors of ``L^T Q L`` and H a Hadamard matrix, all have the same value of the ellipsoid's
    form, a quarter of ``tr(J Q)``: all lie inside if the body is realizable there at all ([Wensing2018]_ Thm. 4).
    """
    best = max(shapes, key=lambda shape: float(shape.row @ pi))
    if best.row @ pi < 0:
        return np.zeros((0, 3))
    lower = np.linalg.cholesky(pseudo_inertia(pi))
    vectors = np.linalg.eigh(lower.T @ best.quadric @ lower)[1]
    points = []
    for signs in ((1, 1, 1, 1), (1, 1, 1, -1), (1, 1, -1, 1), (1, -1, 1, 1)):
        columns = lower @ (vectors * np.array(signs)) @ _HADAMARD
        kept = np.abs(columns[3]) > 1e-6 * np.sqrt(pi[0])
        points.append((columns[:3, kept] / columns[3, kept]).T)
    return np.vstack(points)


def _even_masses(pi: Array, made: Array, matrix: Array, name: str) -> Array:
    """Masses ``(k,)``, not negative and as even as possible, that make up the body."""
    units = pi[0] * np.linalg.solve(matrix, made.T)
    target = np.linalg.solve(matrix, pi)
    even = np.full(len(made), 1 / len(made))
    rows = np.vstack([_EXACTNESS_WEIGHT * units, np.eye(len(made))])
    shares, _ = scipy.optimize.nnls(rows, np.concatenate([_EXACTNESS_WEIGHT * target, even]))
    error = np.linalg.norm(units @ shares - target) / np.linalg.norm(target)
    if error > _REALIZED_ERROR:
        _log.warning(
            "point masses: the prior of '%s' does not fit into the ellipsoids given for it (relative error %.1g);"
            " the nearest that does is taken instead",
            name,
            error)
    return np.asarray(pi[0] * shares)


@dataclass(frozen=True)
class Regularization:
    """A regularizer and its weights, the logarithm of the prior density.

    Attributes
    ----------
    regularizer : str
        One of :data:`~inertid_ros.config.identification.REGULARIZERS`:

        - entropic: log-det divergence ([Lee2019]_ eq. 3.5.44), a smooth convex one that keeps bodies physically
          consistent;
        - pullback: constant pullback metric ([Lee2019]_ eq. 3.5.50), quadratic;
        - riemannian: squared geodesic distance ([Lee2019]_ eq. 3.5.53), not convex, found from the entropic solution;
        - euclidean: of parameters in SI units ([Lee2019]_ eq. 3.2.16), as is common in the field; neither frames nor
          units may change;
        - relative: of parameters by the size of their prior ([vanDerGaag2024]_ sec. III-C), for a prior that is right
          up to some per cent of every single parameter; inconsistent bodies are not
          repaired before, but kept in the cone;
        - point_mass: Euclidean distance of point masses that make up the bodies ([Lee2019]_ eq. 3.5.54), by OSQP;
        - geodesic: geodesic distance to the prior and to the hyperplane of every equation ([Lee2019]_ eq. 3.4.37).
    drive_weight : float
        Weight of drive parameters that cannot be negative: an exponential density per normalised unit, so that a term
        stays near zero unless the data ask for it. A weak log barrier ([Lee2019]_ eq. 5.3.30) keeps it above zero.
    offset_deviation : float
        Standard deviation of normalised offsets and user terms around zero.
    own_prior_spreads : ndarray or None, shape (nb,)
        Prior spreads of single bodies, NaN for ``prior_spread``; of "entropic" and "pullback" only.
    metric : ndarray or None, shape (nb, 10, 10)
        Metric of the squared distance, of "euclidean", "relative" and "point_mass" only.
    centre : ndarray or None, shape (nb, 10)
        Prior in normalised coordinates, of "relative" only; otherwise it is the identity.
    """

    regularizer: str
    prior_spread: float
    drive_weight: float
    offset_deviation: float = 1 / ENERGY_SHARE
    own_prior_spreads: Array | None = None
    metric: Array | None = None
    points: PointMasses | None = None
    centre: Array | None = None

    def __post_init__(self) -> None:
        if self.own_prior_spreads is not None and self.regularizer not in OWN_SPREADS:
            raise IdentificationError(
                f"identify.spread: regularizer '{self.regularizer}' has one prior spread for all links; choose entropic"
                " or pullback")

    @property
    def weight(self) -> float:
        """Weight of the squared distance: ``exp(-weight d^2)`` is a normal density of the prior spread."""
        return 0.5 / self.prior_spread**2

    def spreads(self, bodies: int, of_all: float | None = None) -> Array:
        """Prior spread ``(nb,)`` of every body; ``of_all``, if given, for bodies without their own."""
        of_all = self.prior_spread if of_all is None else of_all
        single = np.full(bodies, np.nan) if self.own_prior_spreads is None else self.own_prior_spreads
        return np.where(np.isnan(single), of_all, single)

    @property
    def distance(self) -> Distance:
        if self.regularizer == "entropic":
            return distances.Entropic()
        if self.regularizer in ("riemannian", "geodesic"):
            return distances.Riemannian()
        metric = distances.PULLBACK if self.metric is None else self.metric
        return distances.Quadratic(metric, distances.IDENTITY if self.centre is None else self.centre)


def euclidean_metric(coordinates: Coordinates, masses: Array) -> Array:
    """``(nb, 10, 10)`` metric of ``1/2 |d pi|^2 / s^2`` over all ten SI numbers of a body.

    One factor serves all bodies: with ``s`` the RMS of the prior masses ``(nb,)`` [kg] a typical mass is as uncertain
    as under the geometric distances. All else follows from the units.
    """
    return np.array([0.5 * block.T @ block for block in coordinates.blocks]) / np.mean(np.square(masses))


def relative_metric(coordinates: Coordinates, bodies: Array) -> Array:
    """``(nb, 10, 10)`` metric of ``sum (d pi / s)^2`` with the sizes ``s`` of the prior's parameters ``(nb, 10)``.

    A parameter that is zero in the prior, as of symmetric bodies, counts as a share of its natural size.
    """
    blocks, bodies = coordinates.blocks, np.abs(bodies)
    natural = np.linalg.norm(blocks @ np.linalg.inv(np.linalg.cholesky(distances.PULLBACK)).T, axis=2)
    scaled = blocks / np.where(bodies > _ZERO_PRIOR_SHARE * natural, bodies, _MIN_SIZE_SHARE * natural)[..., None]
    return np.array([block.T @ block for block in scaled])


def regularized(R: Array, z: Array, layout: ParameterLayout, regularization: Regularization) -> ConvexProgram:
    """Convex program of whitened equations ``R x = z`` in normalised coordinates with a regularization.

    Quadratic distances become rows, the log-det divergence a barrier. With any other distance only the terms of the
    drives are added; bodies are held in the cone.
    """
    bodies, size, inertial = len(layout.body_names), layout.size, layout.inertial_size
    positive, free = layout.non_negative, layout.of_any_size
    rows = [R, np.eye(size)[free] / regularization.offset_deviation]
    targets = [z, np.zeros(len(free))]
    linear, constant = np.zeros(size), 0.0
    linear[positive] = regularization.drive_weight
    body_weights, weights = np.zeros(bodies), 0.5 / regularization.spreads(bodies) ** 2
    if regularization.regularizer == "entropic":
        linear[:inertial] = np.outer(weights, distances.TRACE).ravel()
        constant -= 4 * float(weights.sum())
        body_weights += weights
    elif isinstance(regularization.distance, distances.Quadratic):
        centre = np.broadcast_to(regularization.distance.centre, (bodies, BODY_PARAMETERS))
        factors = np.linalg.cholesky(weights[:, None, None] * regularization.distance.hessian(centre))
        root = np.pad(block_diag(*factors.swapaxes(1, 2)), ((0, 0), (0, size - inertial)))
        rows.append(root)
        targets.append(root[:, :inertial] @ centre.ravel())
    return ConvexProgram(
        R=np.vstack(rows), z=np.concatenate(targets), linear=linear, body_weights=body_weights, positive=positive,
        positive_weights=np.full(len(positive), _DRIVE_BARRIER_SHARE * regularization.drive_weight),
        constant=constant)


def prior_spread_of_largest_evidence(
    R: Array, solution: Solution, layout: ParameterLayout, regularization: Regularization, held: NDArray[np.bool_]
) -> float:
    """Prior spread of the largest evidence, by the fixed point of [MacKay1992]_.

    The data determines ``nu`` directions of the body parameters; over these the divergence ``D`` from the prior has the
    expectation ``nu * prior_spread^2``. A weak hyperprior around the typical prior spread decides if the data
    determines nothing. Bodies with a prior spread of their own do not count.

    Parameters
    ----------
    held : bool (p,), parameters that are held at a value; those of bodies count as free
    """
    bodies = slice(0, layout.inertial_size)
    free = np.isnan(regularization.spreads(len(layout.body_names), of_all=np.nan))
    columns = np.repeat(free, BODY_PARAMETERS)
    root = covariance_root(R, solution, ~held | (np.arange(layout.size) < layout.inertial_size))
    curvature = _prior_curvature(R, solution)[bodies, bodies][columns]
    covariance = (root @ root.T)[bodies, bodies][columns]
    determined = np.clip(columns.sum() - np.sum(covariance * curvature), 0.0, columns.sum())
    distance = regularization.distance.value(layout.all_bodies(solution.x)[free])
    variance = (distance + _HYPERPRIOR_COUNT * TYPICAL_PRIOR_SPREAD**2) / (determined + _HYPERPRIOR_COUNT)
    return float(np.clip(np.sqrt(variance), _MIN_PRIOR_SPREAD, _MAX_PRIOR_SPREAD))


def covariance_root(R: Array, solution: Solution, free: NDArray[np.bool_]) -> Array:
    """Root of the inverse Hessian of a solution in the free columns ``(p,)``, in normalised coordinates."""
    try:
        prior = semidefinite_root(_prior_curvature(R, solution)[np.ix_(free, free)])
        return inverse_root(np.vstack([R[:, free], prior]))
    except np.linalg.LinAlgError:
        raise IdentificationError("bodies are all but massless; check units of effort and masses") from None


def _prior_curvature(R: Array, solution: Solution) -> Array:
    return solution.hessian - R.T @ R if solution.curvature is None else solution.curvature
