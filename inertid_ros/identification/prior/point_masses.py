"""Bodies made of point masses at fixed positions: ``pi = R mu`` with ``mu >= 0`` ([Lee2019]_ sec. 3.5.1)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.ellipsoids import Ellipsoid
from inertid_ros.robot.bodies.inertial_parameters import from_pseudo_inertia, pseudo_inertia

POINTS = 100  # random ones per body
_EXTENT = 1.5  # of a body without a region: this multiple of the solid ellipsoid with its own second moments
_EXACTNESS = 1e4  # weight of the prior's ten parameters against an even distribution of its mass
_REALIZED = 1e-6  # relative error of a prior that the points make up
_HADAMARD = 0.5 * np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PointMasses:
    """Positions and prior masses of the points of all bodies.

    Attributes
    ----------
    matrix : ndarray, shape (10 nb, N)
        Masses to parameters of the bodies, in normalised coordinates.
    prior : ndarray, shape (N,)
        Masses [kg] that make up the prior, as even as they can be.
    positions : tuple of ndarray
        For each body ``(k, 3)`` [m] in its frame.
    """

    matrix: Array
    prior: Array
    positions: tuple[Array, ...]

    @property
    def scale(self) -> float:
        """Factor on ``|mu - mu0|^2`` that makes it agree with geodesic distances where all masses grow alike."""
        return 2 * len(self.positions) / float(self.prior @ self.prior)

    @property
    def metric(self) -> Array:
        """``(nb, 10, 10)`` metric of the least ``|mu - mu0|^2`` that gives a change of the parameters."""
        starts = np.cumsum([0, *(len(positions) for positions in self.positions)])
        blocks = [self.matrix[10 * b : 10 * b + 10, starts[b] : starts[b + 1]] for b in range(len(self.positions))]
        return self.scale * np.array([np.linalg.inv(block @ block.T) for block in blocks])


def point_masses(
    bodies: Array,
    normalise: Array,
    regions: Sequence[tuple[str, tuple[Ellipsoid, ...]]],
    rng: np.random.Generator,
    count: int = POINTS,
) -> PointMasses:
    """Points for all bodies.

    Uniform in the regions, and some that make up the prior exactly wherever it is realizable there.

    Parameters
    ----------
    bodies : ndarray, shape (nb, 10)
        Priors, physically consistent.
    normalise : ndarray, shape (nb, 10, 10)
        For each body the map from normalised to physical parameters.
    regions : sequence of (str, tuple of Ellipsoid)
        For each body its name and the ellipsoids whose union holds its mass; none for a region of its own shape.
    count : int, optional
        Random points per body.
    """
    columns, masses, positions = [], [], []
    for pi, matrix, (name, region) in zip(bodies, normalise, regions, strict=True):
        shapes = region or (Ellipsoid.of_body(pi, _EXTENT),)
        points = np.vstack([_uniform(shapes, rng, count), _exact(pi, shapes)])
        made = _homogeneous(points)
        columns.append(np.linalg.solve(matrix, made.T))
        masses.append(_even_masses(pi, made, matrix, name))
        positions.append(points)
    return PointMasses(block_diag(*columns), np.concatenate(masses), tuple(positions))


def _homogeneous(points: Array) -> Array:
    """``(k, 10)`` parameters of unit masses."""
    lifted = np.column_stack([points, np.ones(len(points))])
    return from_pseudo_inertia(lifted[:, :, None] * lifted[:, None, :])


def _uniform(shapes: Sequence[Ellipsoid], rng: np.random.Generator, count: int) -> Array:
    """Points ``(count, 3)`` shared out by volume."""
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
    """``(k,)`` masses, not negative, that make up the body and are as even as they can be."""
    units = pi[0] * np.linalg.solve(matrix, made.T)
    target = np.linalg.solve(matrix, pi)
    even = np.full(len(made), 1 / len(made))
    rows = np.vstack([_EXACTNESS * units, np.eye(len(made))])
    shares, _ = scipy.optimize.nnls(rows, np.concatenate([_EXACTNESS * target, even]))
    error = np.linalg.norm(units @ shares - target) / np.linalg.norm(target)
    if error > _REALIZED:
        _log.warning(
            "point masses: the prior of '%s' does not fit into the ellipsoids given for it (relative error %.1g);"
            " the nearest that does is taken instead",
            name,
            error,
        )
    return np.asarray(pi[0] * shares)
