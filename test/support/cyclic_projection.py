"""Geodesic least squares by cycles of projections and Karcher mean ([Lee2019]_ sec. 3.4.2), as a reference."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, karcher_mean, pseudo_inertia
from inertid_ros.identification.solvers.geodesic import Hyperplanes, Projections, matrix_function, project


def nearest_points(S: Array, projections: Projections) -> Array:
    """Nearest points ``(m, nb, 4, 4)`` of all hyperplanes ([Lee2019]_ eq. 3.4.41)."""
    root = matrix_function(S, np.sqrt)
    along = (projections.vectors * np.exp(-projections.w)[..., None, :]) @ np.swapaxes(projections.vectors, -1, -2)
    return root @ along @ root


def cyclic_step(S: Array, planes: Hyperplanes, weight: float) -> Array:
    """One cycle of projections and Karcher mean ([Lee2019]_ sec. 3.4.2); it never increases the objective.

    The mean moves by a small share of the way, so that many thousands of cycles may be needed.
    ``geodesic_least_squares`` comes to the same point in a dozen steps.
    """
    points = np.concatenate([nearest_points(S, project(S, planes)), np.tile(np.eye(4), (1, len(S), 1, 1))])
    return pseudo_inertia(karcher_mean(from_pseudo_inertia(points), np.append(planes.weights, 2 * weight)))
