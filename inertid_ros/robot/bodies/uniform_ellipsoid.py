"""The solid ellipsoid of even density that has a body's mass, centre of mass and second moments."""

import numpy as np

from inertid_ros.core.arrays import Array

from .inertial_parameters import pseudo_inertia


def uniform_ellipsoid(pi: Array) -> tuple[Array, Array, Array]:
    """Centre (3,) [m], rotation (3, 3) of the axes, semi-axes (3,) [m] of a body ``(10,)``.

    A solid ellipsoid of even density with semi-axes ``r`` has second moments ``m r^2 / 5`` about its centre.
    """
    matrix = pseudo_inertia(pi)
    centre = matrix[:3, 3] / matrix[3, 3]
    second = matrix[:3, :3] / matrix[3, 3] - np.outer(centre, centre)
    moments, axes = np.linalg.eigh(second)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return centre, axes, np.sqrt(5.0 * np.maximum(moments, 0.0))
