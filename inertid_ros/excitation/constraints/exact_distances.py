"""Exact distances of collision objects by Coal: first of convex hulls, then of meshes if their hulls are too close."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array, Indices
from inertid_ros.excitation.constraints.collision_objects import CollisionObject
from inertid_ros.robot.urdf.meshes import Mesh, collision_library
from inertid_ros.robot.urdf.shapes import CollisionShape

_LIBRARY_TOLERANCES = (1e-8, 1e-6, 1e-4)  # tried in this order until the library converges
_NOT_CONVERGED_M = -1e6  # the library returns its smallest number, below this, if it does not converge
_ASSUMED_OVERLAP_M = 1e-3  # overlap of shapes if the library does not converge with any tolerance


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

        ``rows`` ``(K,)`` select each pair's pose from placements ``(N, n + 1, 4, 4)`` of bodies and root. Distances are
        those of convex hulls; if ``exact``, those of the meshes where hulls are closer than ``enough`` ``(K,)`` [m].
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
