"""Geodesic least squares by cycles of projections and Karcher mean ([Lee2019]_ sec. 3.4.2), as a reference."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.solvers.geodesic import Hyperplanes, Projections, matrix_function, project

_MEAN_STEPS = 100


def nearest_points(S: Array, projections: Projections) -> Array:
    """Nearest points ``(m, nb, 4, 4)`` of all hyperplanes ([Lee2019]_ eq. 3.4.41)."""
    root = matrix_function(S, np.sqrt)
    along = (projections.vectors * np.exp(-projections.w)[..., None, :]) @ np.swapaxes(projections.vectors, -1, -2)
    return root @ along @ root


def karcher_mean(points: Array, weights: Array, tolerance: float = 1e-12) -> Array:
    """Point of the least weighted sum of squared geodesic distances to given points ([Lee2019]_ eq. 3.4.42).

    Parameters
    ----------
    points : ndarray, shape (m, nb, 4, 4)
        Positive definite.
    weights : ndarray, shape (m,)
        Not negative.
    tolerance : float, optional
        On the length of the step.

    Returns
    -------
    ndarray, shape (nb, 4, 4)

    Raises
    ------
    IdentificationError
        The iteration does not settle.
    """
    shares = weights / weights.sum()
    mean = np.einsum("m,mbij->bij", shares, points)
    length, before = 1.0, np.inf
    for _ in range(_MEAN_STEPS):
        root = matrix_function(mean, np.sqrt)
        inverse = np.linalg.inv(root)
        tangent = np.einsum("m,mbij->bij", shares, matrix_function(inverse @ points @ inverse, np.log))
        size = float(np.linalg.norm(tangent))
        if size <= tolerance:
            return mean
        length = length if size < before else 0.5 * length  # points far apart want shorter steps
        before = size
        mean = root @ matrix_function(length * tangent, np.exp) @ root
    raise IdentificationError("geodesic mean: does not settle; the points are too far apart")


def cyclic_step(S: Array, planes: Hyperplanes, weight: float) -> Array:
    """One cycle of projections and Karcher mean ([Lee2019]_ sec. 3.4.2); it never increases the objective.

    The mean moves by a small share of the way, so that many thousands of cycles may be needed.
    ``geodesic_least_squares`` comes to the same point in a dozen steps.
    """
    points = np.concatenate([nearest_points(S, project(S, planes)), np.tile(np.eye(4), (1, len(S), 1, 1))])
    return karcher_mean(points, np.append(planes.weights, 2 * weight))
