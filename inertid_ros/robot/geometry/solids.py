"""Inertial parameters of homogeneous solids."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.inertial_parameters import from_pseudo_inertia

_THINNEST = 1e-3  # m; flat shapes, such as an image of a plate, are this thick


def convex_hull(points: Array, density: float) -> Array:
    """``(10,)`` parameters of the convex hull of points ``(V, 3)`` [m] in their frame, of a density [kg/m^3].

    The hull is cut into tetrahedra from its middle to its triangles, whose second moments are exact.

    Raises
    ------
    ModelError
        The points are too far apart, or too far away for their size.
    """
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:
        thick = _THINNEST * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 1, 8).T
        points = (points + thick).reshape(-1, 3)
        try:
            hull = scipy.spatial.ConvexHull(points)
        except scipy.spatial.QhullError:
            raise ModelError("URDF: a shape has no volume that can be computed; fix its size and origin") from None
    middle = points[hull.vertices].mean(axis=0)
    corners = points[hull.simplices]  # (T, 3, 3)
    volumes = np.abs(np.linalg.det(corners - middle)) / 6
    ends = np.concatenate([corners, np.broadcast_to(middle, (len(corners), 1, 3))], axis=1)
    total = ends.sum(axis=1)
    first = density * volumes @ total / 4
    # The integral of x x^T over a tetrahedron is V / 20 (sum of v v^T over its corners + s s^T), s their sum.
    second = density / 20 * (
        np.einsum("t,tki,tkj->ij", volumes, ends, ends) + np.einsum("t,ti,tj->ij", volumes, total, total)
    )
    pseudo_inertia = np.block([[second, first[:, None]], [first[None], np.array([[density * volumes.sum()]])]])
    return from_pseudo_inertia(pseudo_inertia)
