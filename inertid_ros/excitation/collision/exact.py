"""Exact distances of things by Coal: of convex hulls first, and of meshes where their hulls are too close."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import ModelError
from ...robot.collision_shapes import CollisionShape
from ...robot.meshes import collision_library, mesh
from ...robot.parameters import Array
from .bodies import Thing


def available() -> bool:
    """Whether there is a library of exact distances; else capsules stand for the shapes they contain."""
    try:
        collision_library()
    except ModelError:
        return False
    return True


class ExactDistances:
    """Distances between the shapes of things; pickles without what the library holds."""

    def __init__(self, things: tuple[Thing, ...]) -> None:
        self._things = things

    def __getstate__(self) -> dict[str, Any]:
        return {"_things": self._things}  # the library's own objects are made again

    @cached_property
    def _geometry(self) -> list[list[tuple[Any, Any, Any]]]:
        """Of every thing's shapes: convex hull, mesh (the same where there is none), placement in its body."""
        return [[(*_model(shape), _transform(shape.placement)) for shape in thing.shapes] for thing in self._things]

    @cached_property
    def _measure(self) -> Callable[..., float]:
        coal = collision_library()
        request, result, distance = coal.DistanceRequest(), coal.DistanceResult(), coal.distance

        def measure(first: Any, at_1: Any, second: Any, at_2: Any) -> float:
            result.clear()
            return float(distance(first, at_1, second, at_2, request, result))

        return measure

    def distance(self, first: int, second: int, placements: Array, enough: float) -> float:
        """Distance [m] of two things, negative where they overlap by that much; placements of both bodies (4, 4).

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

    def above(self, thing: int, placement: Array, height: float) -> float:
        """Height [m] of a thing's lowest point above a horizontal plane of the root frame."""
        floor = collision_library().Halfspace(np.array([0.0, 0.0, 1.0]), height)
        body, rest = _transform(placement), _transform(np.eye(4))
        return min(self._measure(hull, body * own, floor, rest) for hull, _, own in self._geometry[thing])


def _model(shape: CollisionShape) -> tuple[Any, Any]:
    coal = collision_library()
    if shape.kind == "mesh":
        whole = mesh(shape)
        return whole.convex, whole
    if shape.kind == "box":
        own = coal.Box(*shape.size)
    elif shape.kind == "sphere":
        own = coal.Sphere(*shape.size)
    else:
        own = (coal.Cylinder if shape.kind == "cylinder" else coal.Capsule)(*shape.size)
    return own, own


def _transform(placement: Array) -> Any:
    return collision_library().Transform3s(placement[:3, :3], placement[:3, 3])
