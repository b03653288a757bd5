"""Obstacles around the robot, as options name them."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.robot.geometry.collision_shapes import CollisionShape

FORM = "NAME=FIELD:VALUE,..."
EXAMPLE = "table=shape:box,size:1 0.6 0.04,xyz:0.6 0 0.4"
_FIELDS = {"box": {"size": 3}, "sphere": {"radius": 1}, "cylinder": {"radius": 1, "length": 1}}
_FIELDS["capsule"] = _FIELDS["cylinder"]


def obstacles(entries: Sequence[str]) -> tuple[CollisionShape, ...]:
    """``NAME=FIELD:VALUE,...`` each to a shape fixed to the root, named like a link.

    Fields are ``shape`` (box, sphere, cylinder or capsule; the last two along z), its ``size`` (full edges), ``radius``
    and ``length`` [m], and in the root frame ``xyz`` [m] and ``rpy`` [rad], zero if absent.

    Raises
    ------
    ExcitationError
        An entry cannot be read.
    """
    found = tuple(_obstacle(entry) for entry in entries)
    names = [shape.link for shape in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ExcitationError(f"collision.obstacles: '{twice[0]}' is named twice; give every obstacle its own name")
    return found


def _obstacle(entry: str) -> CollisionShape:
    name, _, text = (part.strip() for part in entry.partition("="))
    try:
        given = dict(_field(part) for part in text.split(","))
        kind = given.pop("shape")
        sizes = [_numbers(given.pop(field), count) for field, count in _FIELDS[kind].items()]
        xyz, rpy = (_numbers(given.pop(field, "0 0 0"), 3) for field in ("xyz", "rpy"))
        size = np.concatenate(sizes)
        if not name or given or (size <= 0).any():
            raise ValueError
    except (ValueError, KeyError):
        raise ExcitationError(f"collision.obstacles: '{entry}' is not {FORM}; write for example {EXAMPLE}") from None
    return CollisionShape(name, -1, pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz).homogeneous, kind, tuple(size))


def _field(part: str) -> tuple[str, str]:
    key, _, value = (piece.strip() for piece in part.partition(":"))
    return key, value


def _numbers(text: str, count: int) -> Array:
    numbers = np.array([float(word) for word in text.split()])
    if len(numbers) != count or not np.isfinite(numbers).all():
        raise ValueError
    return numbers
