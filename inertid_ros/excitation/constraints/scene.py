"""Distances of collision objects of a robot among obstacles, and their gradient with respect to the pose.

Distances of capsules come first. Coal computes exact distances of close objects: first of convex hulls, then of meshes
if their hulls are too close.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array, Indices
from inertid_ros.excitation.constraints.collision_objects import FLOOR, CollisionObject, Pair
from inertid_ros.robot.kinematics import TreeKinematics, lever_arm_bounds
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf.meshes import Mesh, collision_library
from inertid_ros.robot.urdf.shapes import CollisionShape

_LIBRARY_TOLERANCES = (1e-8, 1e-6, 1e-4)  # tried in this order until the library converges
_NOT_CONVERGED_M = -1e6  # the library returns its smallest number, below this, if it does not converge
_ASSUMED_OVERLAP_M = 1e-3  # overlap of shapes if the library does not converge with any tolerance
_DISTANCES_AT_ONCE = 20_000  # keeps arrays in the processor's cache
_AVOID_ZERO = 1e-12  # smallest divisor, for segments that are points

Ends = tuple[Array, Array]


@dataclass(frozen=True)
class Closest:
    """Distances ``(K,)`` [m] of pairs of shapes, negative for an overlap, and their closest (or deepest) points.

    ``points`` are ``(2, 3, K)``; ``normal`` ``(3, K)`` is the unit vector from the second shape to the first. Points
    and normals are NaN for pairs at the requested distance or beyond.
    """

    distance: Array
    points: Array
    normal: Array

    def __getitem__(self, index: Any) -> "Closest":
        return Closest(self.distance[index], self.points[..., index], self.normal[:, index])


class ExactDistances:
    """Distances between the shapes of objects; object -1 is the floor at a height [m].

    Pickling leaves out the geometry objects of Coal.
    """

    def __init__(self, objects: Sequence[CollisionObject], height: float = -np.inf) -> None:
        self._objects, self._height = tuple(objects), height

    def __getstate__(self) -> dict[str, Any]:
        return {"_objects": self._objects, "_height": self._height}

    @cached_property
    def _geometry(self) -> list[list[tuple[Any, Any, Any]]]:
        """Per object and shape: convex hull, mesh (or the hull again), placement in its body."""
        floor = collision_library().Halfspace(np.array([0.0, 0.0, 1.0]), self._height)
        geometry = [[(*_model(shape), _transform(shape.placement)) for shape in item.shapes] for item in self._objects]
        return [*geometry, [(floor, floor, _transform(np.eye(4)))]]

    @cached_property
    def _query(self) -> tuple[Any, Any, Any]:
        coal = collision_library()
        return coal.distance, coal.DistanceRequest(), coal.DistanceResult()

    def _measure(self, first: Any, at_1: Any, second: Any, at_2: Any) -> float:
        distance, request, result = self._query
        for tolerance in _LIBRARY_TOLERANCES:
            request.gjk_tolerance = request.epa_tolerance = tolerance
            result.clear()
            value = float(distance(first, at_1, second, at_2, request, result))
            if value > _NOT_CONVERGED_M:
                return value
        return -_ASSUMED_OVERLAP_M

    def closest(
        self, pairs: Indices, rows: Indices, bodies: Indices, placements: Array, enough: Array, exact: bool = False
    ) -> Closest:
        """Distances and closest points, in the root frame, of ``pairs`` ``(K, 2)`` of objects on ``bodies`` ``(K, 2)``.

        ``rows`` ``(K,)`` select each pair's pose from placements ``(N, n + 1, 4, 4)`` of bodies and root. Distances
        are between convex hulls; if ``exact``, between meshes whose hulls are closer than ``enough`` ``(K,)`` [m].
        Points are valid only for distances below ``enough``, and not if ``exact``.
        """

        @cache
        def shapes_of(item: int, row: int, body: int) -> list[Any]:
            at = _transform(placements[row, body])
            return [(hull, mesh, at * shape) for hull, mesh, shape in self._geometry[item]]

        measure, result = self._measure, self._query[2]
        distance, vectors = np.full(len(pairs), np.inf), np.full((len(pairs), 3, 3), np.nan)
        queries = zip(pairs.tolist(), rows.tolist(), bodies.tolist(), enough.tolist(), strict=True)
        for index, ((first, second), row, (body, other), far) in enumerate(queries):
            against = shapes_of(second, row, other)
            smallest = np.inf
            for hull_1, mesh_1, at_1 in shapes_of(first, row, body):
                for hull_2, mesh_2, at_2 in against:
                    value = measure(hull_1, at_1, hull_2, at_2)
                    if exact and value < far and second >= 0 and (mesh_1 is not hull_1 or mesh_2 is not hull_2):
                        # The distance of mesh surfaces is zero or less if they overlap. A hull and its mesh have the
                        # same lowest point, so the floor needs only the hull.
                        value = max(value, measure(mesh_1, at_1, mesh_2, at_2))
                    if value >= smallest:
                        continue
                    smallest = value
                    if value < far:
                        vectors[index] = result.getNearestPoint1(), result.getNearestPoint2(), result.normal
            distance[index] = smallest
        unusable = ~(np.abs(vectors) < -_NOT_CONVERGED_M).all(axis=(1, 2))
        vectors[unusable & (distance < enough)] = 0.0
        return Closest(distance, vectors[:, :2].transpose(1, 2, 0), -vectors[:, 2].T)


def _model(shape: CollisionShape) -> tuple[Any, Any]:
    if shape.surface is not None:
        return surface_models(shape.surface)
    coal = collision_library()
    primitives = {"box": coal.Box, "sphere": coal.Sphere, "cylinder": coal.Cylinder, "capsule": coal.Capsule}
    solid = primitives[shape.geometry](*shape.size)
    return solid, solid


@lru_cache(maxsize=512)
def surface_models(mesh: Mesh) -> tuple[Any, Any]:
    """Coal's models of a mesh: convex hull and whole mesh."""
    coal = collision_library()
    whole, points, triangles = coal.BVHModelOBBRSS(), coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    whole.beginModel(len(mesh.triangles), len(mesh.vertices))
    whole.addVertices(mesh.vertices)
    whole.addTriangles(mesh.triangles)
    whole.endModel()
    points.extend(list(mesh.hull_vertices))
    triangles.extend([coal.Triangle(*corners) for corners in mesh.hull_triangles.tolist()])
    return coal.Convex(points, triangles), whole


def _transform(placement: Array) -> Any:
    return collision_library().Transform3s(placement[:3, :3], placement[:3, 3])


def _with_root(placements: Array) -> Array:
    """Append the root to placements of bodies, ``(N, n + 1, 4, 4)``; the root has index -1."""
    root = np.broadcast_to(np.eye(4), (len(placements), 1, 4, 4))
    return np.concatenate([placements, root], axis=1)


def segment_distances(start_1: Array, end_1: Array, start_2: Array, end_2: Array) -> Array:
    """Distances ``(K,)`` between two segments each, given by their ends ``(3, K)``; a segment may be a point.

    The squared distance is a convex quadratic of the two positions along the segments. If its minimum lies outside the
    unit square, one position is clipped and the other position is recomputed, twice.
    """
    d1, d2, r = end_1 - start_1, end_2 - start_2, start_1 - start_2
    a, e, b = _dot(d1, d1), _dot(d2, d2), _dot(d1, d2)
    c, f = _dot(d1, r), _dot(d2, r)
    determinant = a * e - b * b
    regular = determinant > 1e-9 * a * e
    s = np.clip(np.where(regular, b * f - c * e, 0.0) / np.where(regular, determinant, 1.0), 0.0, 1.0)
    t = np.clip((b * s + f) / np.maximum(e, _AVOID_ZERO), 0.0, 1.0)
    s = np.clip((b * t - c) / np.maximum(a, _AVOID_ZERO), 0.0, 1.0)
    t = np.clip((b * s + f) / np.maximum(e, _AVOID_ZERO), 0.0, 1.0)
    between = start_1 + s * d1 - (start_2 + t * d2)
    return np.asarray(np.sqrt(_dot(between, between)), dtype=float)


def _dot(a: Array, b: Array) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


class Scene:
    """Collision objects, and the P pairs of objects to keep apart.

    Balls around objects, and capsules around their shapes ([Ayusawa2017]_ eq. 53), give lower bounds on distances.

    Parameters
    ----------
    pairs : indices of objects; -1 is the floor, always the second.
    height : height of the floor in the root frame [m].

    Attributes
    ----------
    lever_arms : (P, n), bounds on the change of a distance per radian (metre) of each joint, in any pose [m].
    """

    def __init__(
            self, model: RobotModel, objects: Sequence[CollisionObject], pairs: Sequence[Pair], height: float) -> None:
        self.height, self.chain = height, TreeKinematics.of(model)
        self.pairs = np.array(pairs, dtype=int).reshape(-1, 2)
        self._names, self._exact = [*(item.name for item in objects), FLOOR], ExactDistances(objects, height)
        self._bodies = np.array([*(item.body for item in objects), -1])[self.pairs]
        capsules = [(index, capsule) for index, item in enumerate(objects) for capsule in item.capsules]
        self._owner = np.array([index for index, _ in capsules])
        self._ends_in_body = np.array([(capsule.start, capsule.end) for _, capsule in capsules]).swapaxes(1, 2)
        self._radius = np.array([capsule.radius for _, capsule in capsules])
        self._capsule_body = np.array([objects[index].body for index in self._owner])
        # Joints that move each body; the last row is the root, which does not move.
        self._moving_joints = np.vstack([self.chain.ancestry.T, np.zeros((1, model.joints), dtype=bool)])
        farthest = np.linalg.norm(self._ends_in_body, axis=1).max(axis=1) + self._radius
        reach = [float(farthest[self._owner == index].max()) for index in range(len(objects))]
        arms = [lever_arm_bounds(model, item.body, far) for item, far in zip(objects, reach, strict=True)]
        lever_arms = np.array([*arms, np.zeros(model.joints)])
        first, second = (self._moving_joints[bodies] for bodies in self._bodies.T)
        self.lever_arms = (first & ~second) * lever_arms[self.pairs[:, 0]]
        self.lever_arms += (second & ~first) * lever_arms[self.pairs[:, 1]]
        # All pairs of capsules ``(2, sum)``, grouped by pair of objects; -1 is the floor.
        of_object = [*(np.flatnonzero(self._owner == index) for index in range(len(objects))), np.array([-1])]
        blocks = [np.array(np.meshgrid(of_object[a], of_object[b])).reshape(2, -1) for a, b in self.pairs]
        self._first_capsule_pair = np.cumsum([0, *(block.shape[1] for block in blocks)])
        self._capsule_pairs = np.hstack([np.zeros((2, 0), dtype=int), *blocks])

    def names(self, pair: int) -> tuple[str, str]:
        first, second = self.pairs[pair]
        return self._names[first], self._names[second]

    def ball_distances(self, placements: Array) -> Array:
        """Lower bounds ``(N, P)`` on distances [m] from a ball around each object, for placements ``(N, n, 4, 4)``."""
        start, end = self._capsule_ends(placements)
        first = np.searchsorted(self._owner, np.arange(len(self._names) - 1))
        low = np.minimum.reduceat(np.minimum(start, end) - self._radius, first, axis=2)
        high = np.maximum.reduceat(np.maximum(start, end) + self._radius, first, axis=2)
        centre, around = 0.5 * (low + high), 0.5 * np.sqrt(((high - low) ** 2).sum(axis=0))
        a, b = self.pairs.T
        gap = np.sqrt(((centre[:, :, a] - centre[:, :, b]) ** 2).sum(axis=0)) - around[:, a] - around[:, b]
        return np.asarray(np.where(b < 0, low[2][:, a] - self.height, gap), dtype=float)

    def capsule_distances(self, placements: Array) -> Array:
        """Lower bounds ``(N, P)`` on the distance of each pair [m], computed from the capsules around its objects."""
        rows, pairs = np.indices((len(placements), len(self.pairs))).reshape(2, -1)
        return self.capsule_distances_of(placements, rows, pairs).reshape(len(placements), -1)

    def capsule_distances_of(self, placements: Array, rows: Indices, pairs: Indices) -> Array:
        """Lower bounds ``(K,)`` [m] of :meth:`capsule_distances` for ``pairs`` in the poses ``rows``, ``(K,)`` each."""
        out, ends = np.empty(len(rows)), self._capsule_ends(placements)
        for begin in range(0, len(rows), _DISTANCES_AT_ONCE):
            part = slice(begin, begin + _DISTANCES_AT_ONCE)
            counts = np.diff(self._first_capsule_pair)[pairs[part]]
            starts = np.cumsum(counts) - counts
            within = np.arange(counts.sum()) - np.repeat(starts, counts)
            chosen = np.repeat(self._first_capsule_pair[pairs[part]], counts) + within
            gaps = self._capsule_gaps(ends, np.repeat(rows[part], counts), *self._capsule_pairs[:, chosen])
            out[part] = np.minimum.reduceat(gaps, starts)
        return out

    def close_hulls(self, placements: Array, limit: Array) -> tuple[Indices, Indices, Closest]:
        """Poses and pairs ``(K,)`` with convex hulls closer than ``limit (P,)`` [m], and their closest points.

        Distances of hulls change smoothly with the pose, like distances of capsules, but hulls fit the shapes closer.
        """
        rows, pairs = np.nonzero(self.ball_distances(placements) < limit)
        near = self.capsule_distances_of(placements, rows, pairs) < limit[pairs]
        rows, pairs = rows[near], pairs[near]
        hulls = self._exact.closest(self.pairs[pairs], rows, self._bodies[pairs], _with_root(placements), limit[pairs])
        close = np.flatnonzero(hulls.distance < limit[pairs])
        return rows[close], pairs[close], hulls[close]

    def distances(self, placements: Array, pairs: Indices, enough: Array) -> Array:
        """Exact distances ``(K,)`` [m] of the shapes of ``pairs`` ``(K,)``, each in its own pose ``(K, n, 4, 4)``.

        A distance of at least ``enough`` ``(K,)`` may be a lower bound only.
        """
        rows, bodies = np.arange(len(pairs)), self._bodies[pairs]
        return self._exact.closest(self.pairs[pairs], rows, bodies, _with_root(placements), enough, True).distance

    def gradient(self, rows: Indices, pairs: Indices, closest: Closest, screws: Array, weights: Array) -> Array:
        """Derivative ``(N, n)`` of the sum of weighted distances ``(K,)`` with respect to the poses."""
        S, normal = screws[rows], closest.normal
        out = np.zeros(screws.shape[:2])
        for side, sign in ((0, 1.0), (1, -1.0)):
            # A point x moves by v + w x x with its joints; its component along n is n . v + w . (x x n).
            arm = np.cross(closest.points[side], normal, axis=0)
            along = np.einsum("kji,ik->kj", S[..., :3], normal) + np.einsum("kji,ik->kj", S[..., 3:], arm)
            moving = self._moving_joints[self._bodies[pairs, side]]
            np.add.at(out, rows, sign * weights[:, None] * along * moving)
        return out

    def _capsule_ends(self, placements: Array) -> Ends:
        """Both ends ``(3, N, C)`` of all capsules in the root frame."""
        bodies = _with_root(placements)[:, self._capsule_body]
        moved = bodies[..., :3, :3] @ self._ends_in_body + bodies[..., :3, 3, None]
        start, end = np.ascontiguousarray(moved.transpose(3, 2, 0, 1))
        return start, end

    def _capsule_gaps(self, ends: Ends, row: Indices, first: Indices, second: Indices) -> Array:
        """Gaps between the surfaces of capsules in poses ``row``, ``(K,)`` each; capsule -1 is the floor."""
        gap = segment_distances(*(points[:, row, capsule] for capsule in (first, second) for points in ends))
        height = np.minimum(*(points[2, row, first] for points in ends)) - self.height
        return np.asarray(np.where(second < 0, height, gap - self._radius[second]) - self._radius[first], dtype=float)
