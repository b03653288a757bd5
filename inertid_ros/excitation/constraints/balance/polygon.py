"""Convex areas on the ground."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.config.balance import AreaOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError

_LEAST = 1e-4  # m; an area narrower than this is empty


@dataclass(frozen=True)
class Polygon:
    """Points with ``normals @ p >= offsets``.

    Attributes
    ----------
    normals : ndarray, shape (E, 2)
        Unit normals of the edges, inward.
    offsets : ndarray, shape (E,)
        Offsets of the edges [m].
    width : float
        Radius of the largest circle inside [m].
    """

    normals: Array
    offsets: Array
    width: float

    def distances(self, points: Array) -> Array:
        """``(N, E)`` of points ``(N, 2)`` from the edges [m], positive inside."""
        return np.asarray(points @ self.normals.T - self.offsets, dtype=float)


def polygon(area: AreaOptions, key: str, margin: float = 0.0) -> Polygon:
    """Hull of the corners of an area, less a margin [m].

    Raises
    ------
    ExcitationError
        Fewer than three corners, or nothing is left of the area.
    """
    corners = np.column_stack([area.x, area.y])
    if len(corners) < 3:
        raise ExcitationError(f"{key}: the area has {len(corners)} corners and is empty; give three or more")
    try:
        hull = scipy.spatial.ConvexHull(corners)
    except scipy.spatial.QhullError:
        raise ExcitationError(f"{key}: the area is empty, its corners lie on a line; correct them") from None
    # Edges of the same line, as of collinear corners, are one.
    edges = np.unique(np.round(hull.equations, 12), axis=0)
    normals, offsets = -edges[:, :2], edges[:, 2]
    width = _width(normals, offsets)
    if width - margin < _LEAST:
        raise ExcitationError(
            f"{key}: the area is empty: nowhere is farther than {width:.4g} m from its edges, and the margin is"
            f" {margin:.4g} m; widen the area or lower the margin"
        )
    return Polygon(normals, offsets + margin, width - margin)


def _width(normals: Array, offsets: Array) -> float:
    """Radius of the largest circle inside, by linear programming."""
    rows = np.column_stack([-normals, np.ones(len(normals))])
    bounds = [(None, None), (None, None), (0, None)]
    result = scipy.optimize.linprog([0, 0, -1], A_ub=rows, b_ub=-offsets, bounds=bounds)
    return float(result.x[2]) if result.success else 0.0
