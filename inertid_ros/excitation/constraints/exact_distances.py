"""Exact distances of collision objects by Coal: of convex hulls first, of meshes where their hulls are too close."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.excitation.constraints.collision_objects import CollisionObject, Indices
from inertid_ros.robot.urdf.meshes import Mesh, collision_library
from inertid_ros.robot.urdf.shapes import CollisionShape

_TOLERANCES = (1e-8, 1e-6, 1e-4)  # of the library; the first that it comes to an end with is taken
_FAILED = -1e6  # m; the library returns less, its smallest number, where it does not come to an end
_OVERLAP = 1e-3  # m; taken where shapes overlap and no tolerance says by how much


def available() -> bool:
    """Whether there is a library of exact distances; else capsules replace the shapes they contain."""
    try:
        collision_library()
    except ModelError:
        return False
    return True


@dataclass(frozen=True)
class Closest:
    """Of ``K`` pairs of convex shapes.

    Attributes
    ----------
    distance : ndarray, shape (K,)
        Distance, negative where they overlap by that much [m].
    points : ndarray, shape (2, 3, K)
        Closest (or deepest) points of the first and of the second in the root frame; NaN where they were not asked for.
    normal : ndarray, shape (3, K)
        Unit vector along which the first moves away from the second; NaN likewise.
    """

    distance: Array
    points: Array
    normal: Array


class ExactDistances:
    """Distances between the shapes of objects; pickled without the objects of the library."""

    def __init__(self, objects: tuple[CollisionObject, ...]) -> None:
        self._objects = objects

    def __getstate__(self) -> dict[str, Any]:
        return {"_objects": self._objects}  # the library's own objects are made again

    @cached_property
    def _geometry(self) -> list[list[tuple[Any, Any, Any]]]:
        """Of every object's shapes: convex hull, mesh (the same where there is none), placement in its body."""
        return [[(*_model(shape), _transform(shape.placement)) for shape in item.shapes] for item in self._objects]

    @cached_property
    def _result(self) -> Any:
        return collision_library().DistanceResult()

    @cached_property
    def _measure(self) -> Callable[..., float]:
        coal, result = collision_library(), self._result
        request, distance = coal.DistanceRequest(), coal.distance

        def measure(first: Any, at_1: Any, second: Any, at_2: Any) -> float:
            for tolerance in _TOLERANCES:
                request.gjk_tolerance = request.epa_tolerance = tolerance
                result.clear()
                value = float(distance(first, at_1, second, at_2, request, result))
                if value > _FAILED:
                    return value
            return -_OVERLAP

        return measure

    def _floor(self, height: float) -> list[tuple[Any, Any, Any]]:
        floor = collision_library().Halfspace(np.array([0.0, 0.0, 1.0]), height)
        return [(floor, floor, _transform(np.eye(4)))]

    def distance(self, first: int, second: int, placements: Array, enough: float) -> float:
        """Distance [m] of two objects, negative where they overlap by that much; placements of both bodies (4, 4).

        Convex hulls contain their meshes, so a distance of hulls of ``enough`` or more is taken as it is.
        """
        measure = self._measure
        bodies = [_transform(placement) for placement in placements]
        others = [(hull, whole, bodies[1] * own) for hull, whole, own in self._geometry[second]]
        smallest = np.inf
        for hull_1, whole_1, own in self._geometry[first]:
            at = bodies[0] * own
            for hull_2, whole_2, other in others:
                value = measure(hull_1, at, hull_2, other)
                if value < enough and (whole_1 is not hull_1 or whole_2 is not hull_2):
                    # The surfaces of meshes: they are at zero or less where they overlap.
                    value = max(value, measure(whole_1, at, whole_2, other))
                smallest = min(smallest, value)
        return smallest

    def closest(
        self, pairs: Indices, rows: Indices, bodies: Indices, placements: Array, height: float, enough: Array
    ) -> Closest:
        """Closest points of the convex hulls of two objects each, or of one and the floor where the second is -1.

        Parameters
        ----------
        pairs : ndarray of int, shape (K, 2)
            Objects.
        rows : ndarray of int, shape (K,)
            Poses.
        bodies : ndarray of int, shape (K, 2)
            Moving bodies of the objects.
        placements : ndarray, shape (N, n + 1, 4, 4)
            Placements of the bodies in the root frame.
        height : float
            Height of the floor in the root frame [m].
        enough : ndarray, shape (K,)
            Distances from which on the points do not matter [m].
        """
        placed_shapes: dict[tuple[int, int], list[Any]] = {}

        def shapes_of(item: int, row: int, body: int) -> list[Any]:
            placed = placed_shapes.get((item, row))
            if placed is None:
                at = _transform(placements[row, body])
                placed = placed_shapes[item, row] = [(hull, at * own) for hull, _, own in self._geometry[item]]
            return placed

        measure, result = self._measure, self._result
        floor = [(plane, rest) for plane, _, rest in self._floor(height)]
        distance, vectors = np.full(len(pairs), np.inf), np.full((len(pairs), 3, 3), np.nan)
        asked = zip(pairs.tolist(), rows.tolist(), bodies.tolist(), enough.tolist(), strict=True)
        for index, ((first, second), row, (body, other), far) in enumerate(asked):
            against = floor if second < 0 else shapes_of(second, row, other)
            smallest = np.inf
            for hull_1, at_1 in shapes_of(first, row, body):
                for hull_2, at_2 in against:
                    value = measure(hull_1, at_1, hull_2, at_2)
                    if value >= smallest:
                        continue
                    smallest = value
                    if value < far:
                        vectors[index] = result.getNearestPoint1(), result.getNearestPoint2(), result.normal
            distance[index] = smallest
        if not np.isfinite(distance).all():
            raise ModelError("a link without collision shapes has no distance; this is a defect of inertid_ros")
        unusable = ~(np.abs(vectors) < -_FAILED).all(axis=(1, 2))  # of the library, where it does not come to an end
        vectors[unusable & (distance < enough)] = 0.0
        return Closest(distance, vectors[:, :2].transpose(1, 2, 0), -vectors[:, 2].T)

    def above(self, item: int, placement: Array, height: float) -> float:
        """Height [m] of an object's lowest point above a horizontal plane of the root frame."""
        (floor, _, rest), = self._floor(height)
        body = _transform(placement)
        return min(self._measure(hull, body * own, floor, rest) for hull, _, own in self._geometry[item])


def _model(shape: CollisionShape) -> tuple[Any, Any]:
    coal = collision_library()
    if shape.surface is not None:
        return surface_models(shape.surface)
    if shape.geometry == "box":
        own = coal.Box(*shape.size)
    elif shape.geometry == "sphere":
        own = coal.Sphere(*shape.size)
    else:
        own = (coal.Cylinder if shape.geometry == "cylinder" else coal.Capsule)(*shape.size)
    return own, own


@lru_cache(maxsize=512)
def surface_models(mesh: Mesh) -> tuple[Any, Any]:
    """Coal's models of a mesh: its convex hull, and the whole of it."""
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
