"""Regularizers: distances to the prior, added to the data's equations as one convex program.

All regularizers use normalised coordinates, in which every body's prior is the identity. So the geometric regularizers
do not depend on units and frames; the Euclidean regularizer does, and serves as a comparison.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array, Mask, inverse_root, semidefinite_root
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.layout import ParameterLayout

from . import coordinates as distances
from .convex_program import ConvexProgram, LinearConstraints, MatrixInequalities, Solution
from .third_party import PointMasses

_DRIVE_BARRIER_SHARE = 0.05
# Shares of a parameter's natural size: a prior below the first counts as zero, and its deviation is then the second.
_ZERO_PRIOR_SHARE, _MIN_SIZE_SHARE = 1e-3, 0.1
OWN_SPREADS = ("entropic", "pullback")  # regularizers that allow a separate prior spread of single links
_HYPERPRIOR_COUNT = 10.0  # weight of the typical prior spread, in directions of parameters: one body has ten
_MIN_PRIOR_SPREAD, _MAX_PRIOR_SPREAD = 0.05, 5.0


@dataclass(frozen=True)
class Regularization:
    """A regularizer and its weights, the logarithm of the prior density.

    Attributes
    ----------
    regularizer : str
        One of :data:`~inertid_ros.config.identification.REGULARIZERS`:

        - entropic: log-det divergence ([Lee2019]_ eq. 3.5.44), smooth and convex, which keeps bodies physically
          consistent;
        - pullback: constant pullback metric ([Lee2019]_ eq. 3.5.50), quadratic;
        - riemannian: squared geodesic distance ([Lee2019]_ eq. 3.5.53), not convex, solved from the entropic solution;
        - euclidean: distance of parameters in SI units ([Lee2019]_ eq. 3.2.16), common in the field; it depends on
          frames and units;
        - relative: distance of parameters relative to their prior ([vanDerGaag2024]_ sec. III-C), for a prior with
          errors of a few per cent in every parameter; an inconsistent prior is not repaired, but the estimate stays in
          the cone;
        - point_mass: Euclidean distance of point masses that make up the bodies ([Lee2019]_ eq. 3.5.54), by CVXPY;
        - geodesic: geodesic distance to the prior and to the hyperplane of every sample's equation ([Lee2019]_ eq.
          3.4.37). Gross errors hardly move its minimum, but noise of the size of the torque makes many minima.
    drive_weight : float
        Weight of drive parameters that cannot be negative: an exponential density per normalised unit, so that a
        parameter stays near zero unless the data require it. A weak log barrier ([Lee2019]_ eq. 5.3.30) keeps the
        parameter above zero.
    offset_deviation : float
        Standard deviation of normalised offsets and user terms around zero.
    own_prior_spreads : ndarray or None, shape (nb,)
        Prior spreads of single bodies, NaN for ``prior_spread``; only for "entropic" and "pullback".
    metric : ndarray or None, shape (nb, 10, 10)
        Metric of the squared distance, only for "euclidean", "relative" and "point_mass".
    centre : ndarray or None, shape (nb, 10)
        Prior in normalised coordinates, only for "relative"; the identity otherwise.
    rotors : tuple of int
        Columns of rotor inertias with a prior, which is 1 in normalised coordinates. They have the distance of positive
        numbers ([Lee2019]_ remark 3.13, eq. 3.6.60) with the weight of bodies, in place of the drive weight: the
        divergence ``x - log x - 1`` if the regularizer is geometric, else ``(x - 1)^2 / 2``, its second order.
    """

    regularizer: str
    prior_spread: float
    drive_weight: float
    offset_deviation: float = 1 / distances.ENERGY_SHARE
    own_prior_spreads: Array | None = None
    metric: Array | None = None
    points: PointMasses | None = None
    centre: Array | None = None
    rotors: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.own_prior_spreads is not None and self.regularizer not in OWN_SPREADS:
            raise IdentificationError(
                f"identify.spread: regularizer '{self.regularizer}' has one prior spread for all links; choose entropic"
                " or pullback")

    @property
    def weight(self) -> float:
        """Weight of the squared distance: ``exp(-weight d^2)`` is a normal density with the prior spread."""
        return 0.5 / self.prior_spread**2

    def spreads(self, bodies: int) -> Array:
        """Prior spread ``(nb,)`` of every body."""
        return distances.body_spreads(self.prior_spread, self.own_prior_spreads, bodies)

    @property
    def rotors_diverge(self) -> bool:
        """True if the distance of rotor inertias is the divergence, not its second order."""
        return self.regularizer in ("entropic", "riemannian", "geodesic") and self.points is None

    @property
    def distance(self) -> distances.Distance:
        if self.regularizer == "entropic":
            return distances.Entropic()
        if self.regularizer in ("riemannian", "geodesic"):
            return distances.Riemannian()
        metric = distances.PULLBACK if self.metric is None else self.metric
        return distances.Quadratic(metric, distances.IDENTITY if self.centre is None else self.centre)


def euclidean_metric(coordinates: distances.Coordinates, masses: Array) -> Array:
    """``(nb, 10, 10)`` metric of ``1/2 |d pi|^2 / s^2`` over all ten SI numbers of a body.

    All bodies share one factor ``s``, the RMS of the prior masses ``(nb,)`` [kg]: a typical mass is then as uncertain
    as under the geometric distances. The units determine how uncertain all other parameters are.
    """
    return np.array([0.5 * block.T @ block for block in coordinates.blocks]) / np.mean(np.square(masses))


def relative_metric(coordinates: distances.Coordinates, bodies: Array) -> Array:
    """``(nb, 10, 10)`` metric of ``sum (d pi / s)^2`` with the sizes ``s`` of the prior's parameters ``(nb, 10)``.

    If a parameter is zero in the prior, as for symmetric bodies, its size is a share of its natural size, the
    deviation under the pullback metric of unit spread.
    """
    blocks, bodies = coordinates.blocks, np.abs(bodies)
    natural = np.linalg.norm(blocks @ np.linalg.inv(np.linalg.cholesky(distances.PULLBACK)).T, axis=2)
    scaled = blocks / np.where(bodies > _ZERO_PRIOR_SHARE * natural, bodies, _MIN_SIZE_SHARE * natural)[..., None]
    return np.array([block.T @ block for block in scaled])


def regularized(R: Array, z: Array, layout: ParameterLayout, regularization: Regularization) -> ConvexProgram:
    """Convex program of whitened equations ``R x = z`` in normalised coordinates with a regularization.

    Quadratic distances become rows, and the log-det divergence becomes a barrier. For other distances, the program has
    only the terms of the drives and the cone of the bodies; their solvers add the distance.
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
    # A quadratic program has no barriers, so point masses have plain bounds.
    barrier = 0.0 if regularization.regularizer == "point_mass" else _DRIVE_BARRIER_SHARE * regularization.drive_weight
    rotors, weight, diverge = list(regularization.rotors), regularization.weight, regularization.rotors_diverge
    barriers = np.where(np.isin(positive, rotors) & diverge, weight, barrier)
    linear[rotors] = weight if diverge else 0.0
    constant -= weight * len(rotors) if diverge else 0.0
    if not diverge:
        rows.append(np.sqrt(weight) * np.eye(size)[rotors])
        targets.append(np.full(len(rotors), np.sqrt(weight)))
    return ConvexProgram(R=np.vstack(rows), z=np.concatenate(targets), linear=linear, body_weights=body_weights,
        positive=positive, positive_weights=barriers, inequalities=LinearConstraints.none(size),
        equalities=LinearConstraints.none(size), blocks=MatrixInequalities.none(size), constant=constant)


def prior_spread_of_largest_evidence(R: Array, solution: Solution, layout: ParameterLayout,
        regularization: Regularization, held: Mask) -> float:
    """Prior spread of the largest evidence, by the fixed point of [MacKay1992]_.

    The data determine ``nu`` directions of the body parameters; along these directions, the divergence ``D`` from the
    prior has the expectation ``nu * prior_spread^2``. If the data determine too little, a weak hyperprior around the
    typical prior spread decides. Bodies with a separate prior spread do not count.

    Parameters
    ----------
    held : bool (p,), fixed parameters; fixed body parameters count as free
    """
    bodies = slice(0, layout.inertial_size)
    free = np.isnan(distances.body_spreads(np.nan, regularization.own_prior_spreads, len(layout.body_names)))
    columns = np.repeat(free, BODY_PARAMETERS)
    root = covariance_root(R, solution, ~held | (np.arange(layout.size) < layout.inertial_size))
    curvature = _prior_curvature(R, solution)[bodies, bodies][columns]
    covariance = (root @ root.T)[bodies, bodies][columns]
    determined = np.clip(columns.sum() - np.sum(covariance * curvature), 0.0, columns.sum())
    distance = regularization.distance.value(layout.all_bodies(solution.x)[free])
    variance = (distance + _HYPERPRIOR_COUNT * distances.TYPICAL_PRIOR_SPREAD**2) / (determined + _HYPERPRIOR_COUNT)
    return float(np.clip(np.sqrt(variance), _MIN_PRIOR_SPREAD, _MAX_PRIOR_SPREAD))


def covariance_root(R: Array, solution: Solution, free: Mask) -> Array:
    """Root of the inverse Hessian of a solution in the free columns ``(p,)``, in normalised coordinates."""
    try:
        prior = semidefinite_root(_prior_curvature(R, solution)[np.ix_(free, free)])
        return inverse_root(np.vstack([R[:, free], prior]))
    except np.linalg.LinAlgError:
        raise IdentificationError("bodies are almost massless; check units of effort and masses") from None


def _prior_curvature(R: Array, solution: Solution) -> Array:
    return solution.hessian - R.T @ R if solution.curvature is None else solution.curvature
