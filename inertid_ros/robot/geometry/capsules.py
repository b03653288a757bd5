"""Capsules around convex shapes, for fast and smooth distances between links ([Ayusawa2017]_ eq. 53)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from inertid_ros.core.arrays import Array

from .collision_shapes import CollisionShape

_RIM = 16  # corners of the polygon around a cylinder
_EXCESS = 0.006  # m; a shape whose capsule lies farther out than this on average is cut in two
_CUTS = 3  # at most two to the power of this many capsules for one shape
_CENTRING = 12


@dataclass(frozen=True)
class Capsule:
    """All points within ``radius`` of a segment.

    Attributes
    ----------
    start, end : ndarray, shape (3,)
        m; the same for a ball.
    """

    start: Array
    end: Array
    radius: float

    @property
    def volume(self) -> float:
        """m^3."""
        length = float(np.linalg.norm(self.end - self.start))
        return np.pi * self.radius**2 * (length + 4 / 3 * self.radius)

    @property
    def surface(self) -> float:
        """m^2."""
        return float(2 * np.pi * self.radius * (np.linalg.norm(self.end - self.start) + 2 * self.radius))

    def placed(self, placement: Array) -> "Capsule":
        """The same, moved by ``(4, 4)``."""
        R, p = placement[:3, :3], placement[:3, 3]
        return Capsule(R @ self.start + p, R @ self.end + p, self.radius)


def shape_capsules(shape: CollisionShape) -> tuple[Capsule, ...]:
    """Capsules whose union contains a shape, in the frame of its body.

    Balls and capsules are exact; of anything else the convex hull is enclosed, by several capsules where one would lie
    far outside.
    """
    own: tuple[Capsule, ...]
    if shape.geometry == "sphere":
        own = (Capsule(np.zeros(3), np.zeros(3), shape.size[0]),)
    elif shape.geometry == "capsule":
        half = np.array([0.0, 0.0, 0.5 * shape.size[1]])
        own = (Capsule(-half, half, shape.size[0]),)
    else:
        points = np.ascontiguousarray(corners(shape))
        own = _around(points.tobytes())
    return tuple(capsule.placed(shape.placement) for capsule in own)


def corners(shape: CollisionShape) -> Array:
    """``(V, 3)`` points [m] in the frame of the shape whose convex hull contains it (of its hull, for a mesh)."""
    if shape.surface is not None:
        return shape.surface.hull_vertices
    if shape.geometry == "box":
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
        return 0.5 * signs * np.array(shape.size)
    radius, length = shape.size[0], shape.size[-1]
    half = 0.5 * length + (radius if shape.geometry == "capsule" else 0.0)
    if shape.geometry == "sphere":
        half = radius
    angles = 2 * np.pi * np.arange(_RIM) / _RIM
    wide = radius / np.cos(np.pi / _RIM)
    rim = np.column_stack([wide * np.cos(angles), wide * np.sin(angles), np.zeros(_RIM)])
    return np.vstack([rim + [0, 0, half], rim - [0, 0, half]])


@lru_cache(maxsize=1024)
def _around(content: bytes) -> tuple[Capsule, ...]:
    return tuple(_cover(np.frombuffer(content).reshape(-1, 3), _CUTS))


def _cover(points: Array, cuts: int) -> list[Capsule]:
    """Capsules around the convex hull of points, cut where that makes them closer."""
    capsule = enclosing_capsule(points)
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:  # flat: nothing to gain
        return [capsule]
    if not cuts or (capsule.volume - hull.volume) / capsule.surface < _EXCESS:
        return [capsule]
    best, halves = capsule.volume, None
    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    for axis in _axes(points)[3:]:
        candidate = _cut(points, hull.simplices, axis, float(axis @ middle))
        if not all(map(len, candidate)):  # a hull far thinner than long, at an angle to the axes of the frame
            continue
        volume = sum(enclosing_capsule(_outermost(half)).volume for half in candidate)
        if volume < best:
            best, halves = volume, candidate
    return [capsule] if halves is None else [piece for half in halves for piece in _cover(half, cuts - 1)]


def _cut(points: Array, triangles: Array, axis: Array, at: float) -> tuple[Array, Array]:
    """Points whose hulls are the two parts of a hull on either side of the plane ``axis @ x = at``."""
    height = points @ axis - at
    ends = np.vstack([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
    crossing = ends[height[ends[:, 0]] * height[ends[:, 1]] < 0]
    low, high = height[crossing[:, 0]], height[crossing[:, 1]]
    share = (low / (low - high))[:, None]
    on = (1 - share) * points[crossing[:, 0]] + share * points[crossing[:, 1]]
    return np.vstack([points[height <= 0], on]), np.vstack([points[height >= 0], on])


def _axes(points: Array) -> Sequence[Array]:
    """Candidate directions: the axes of the frame, along which parts are drawn, and the principal axes."""
    centred = points - points.mean(axis=0)
    return [*np.eye(3), *np.linalg.eigh(centred.T @ centred)[1].T]


def enclosing_capsule(points: Array) -> Capsule:
    """A small capsule that contains all points ``(V, 3)``: the smallest of those along likely axes."""
    return min((_along(points, axis) for axis in _axes(points)), key=lambda capsule: capsule.volume)


def _outermost(points: Array) -> Array:
    """The points that are farthest out in many directions."""
    return points[np.unique(np.argmax(points @ _directions(128).T, axis=0))]


@lru_cache
def _directions(count: int) -> Array:
    """``(count, 3)`` unit vectors, evenly distributed (on a Fibonacci spiral)."""
    steps = np.arange(count) + 0.5
    height, turn = 1 - 2 * steps / count, np.pi * (1 + np.sqrt(5)) * steps
    around = np.sqrt(1 - height**2)
    return np.column_stack([around * np.cos(turn), around * np.sin(turn), height])


def _along(points: Array, axis: Array) -> Capsule:
    heights = points @ axis
    flat = points - np.outer(heights, axis)
    centre = flat.mean(axis=0)
    few = flat[np.unique(np.argmax(flat @ _directions(64).T, axis=0))]
    for step in range(1, _CENTRING):  # towards the centre of the smallest circle around them
        away = few - centre
        centre = centre + away[int(np.argmax((away**2).sum(axis=1)))] / (step + 1)
    squares = ((flat - centre) ** 2).sum(axis=1)
    radius = float(np.sqrt(squares.max())) * (1 + 1e-12) + 1e-12
    bulge = np.sqrt(np.maximum(radius**2 - squares, 0.0))
    low, high = float((heights + bulge).min()), float((heights - bulge).max())
    if low > high:
        low = high = 0.5 * (low + high)
    return Capsule(centre + low * axis, centre + high * axis, radius)
