"""Closest points of segments, for many pairs and poses at once."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

_TINY = 1e-12


@dataclass(frozen=True)
class ClosestPoints:
    """Of two segments each.

    Attributes
    ----------
    first, second : ndarray, shape (3, ...)
        Points.
    gap : ndarray, shape (...)
        Their distance.
    normal : ndarray, shape (3, ...)
        Unit vector from the second to the first; zero where they coincide.
    """

    first: Array
    second: Array
    gap: Array
    normal: Array


def closest_points(start_1: Array, end_1: Array, start_2: Array, end_2: Array) -> ClosestPoints:
    """Closest points of segments given by their ends, ``(3, ...)`` each; a segment may be a point.

    The square of the distance is a convex quadratic of the two positions along the segments: where its minimum lies
    outside the unit square, one is clipped and the other follows, twice.
    """
    d1, d2, r = end_1 - start_1, end_2 - start_2, start_1 - start_2
    a, e, b = _dot(d1, d1), _dot(d2, d2), _dot(d1, d2)
    c, f = _dot(d1, r), _dot(d2, r)
    determinant = a * e - b * b
    regular = determinant > 1e-9 * a * e
    s = np.clip(np.where(regular, b * f - c * e, 0.0) / np.where(regular, determinant, 1.0), 0.0, 1.0)
    t = np.clip((b * s + f) / np.maximum(e, _TINY), 0.0, 1.0)
    s = np.clip((b * t - c) / np.maximum(a, _TINY), 0.0, 1.0)
    t = np.clip((b * s + f) / np.maximum(e, _TINY), 0.0, 1.0)
    first, second = start_1 + s * d1, start_2 + t * d2
    between = first - second
    gap = np.sqrt(_dot(between, between))
    return ClosestPoints(first, second, gap, between / np.maximum(gap, _TINY))


def _dot(a: Array, b: Array) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
