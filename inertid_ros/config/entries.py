"""Text entries of configuration lists, such as ``finger_joint1=0.02``, to what they mean.

Lists of text are what YAML, ROS parameters and the command line all have; nested tables are not.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.layout import Coupling
from inertid_ros.robot.bodies.rotors import Rotor
from inertid_ros.robot.contacts import Contact, Plate
from inertid_ros.robot.wheels import Wheel

from .options import ConfigurationError

T = TypeVar("T")


def positions(entries: Sequence[str], key: str = "robot.locked_joints") -> dict[str, float]:
    """``JOINT=POSITION`` [rad or m] each."""
    return dict(_parse(entries, key, "JOINT=POSITION", "finger_joint1=0.02", _name_and_number))


def couplings(entries: Sequence[str], key: str = "robot.couplings") -> tuple[Coupling, ...]:
    """``NAME=JOINT:RATIO,JOINT:RATIO`` each."""
    return tuple(_parse(entries, key, "NAME=JOINT:RATIO,JOINT:RATIO", "wrist=joint_5:1,joint_6:1", _coupling))


def rotors(entries: Sequence[str], key: str = "robot.rotors") -> tuple[Rotor, ...]:
    """``NAME=FIELD:VALUE,FIELD:VALUE`` each, fields of :class:`Rotor`; numbers of a vector part at blanks.

    Instead of ``inertia``, ``radius`` and ``length`` of a homogeneous cylinder along the axis.
    """
    form, example = "NAME=FIELD:VALUE,...", "motor3=joint:elbow,link:arm,ratio:50,mass:0.4,radius:0.03,length:0.05"
    return tuple(_parse(entries, key, form, example, lambda name, text: _rotor(name, text, key)))


def contacts(entries: Sequence[str], key: str = "robot.contacts") -> tuple[Contact, ...]:
    """``NAME=FRAME`` or ``FRAME`` each."""
    return tuple(_parse(entries, key, "NAME=FRAME", "left_sensor=left_foot", lambda n, text: Contact(n, text or n)))


def plates(entries: Sequence[str], key: str = "robot.plates") -> tuple[Contact, ...]:
    """``NAME=frame:FRAME,xyz:X Y Z,rpy:R P Y,measures:WHAT`` each; [m] and [rad] in the world, wrench or pressure."""
    form = "NAME=frame:FRAME,xyz:X Y Z,rpy:R P Y,measures:wrench|pressure"
    example = "left_plate=frame:left_foot,xyz:0 0.1 0"
    return tuple(_parse(entries, key, form, example, _plate))


def wheels(entries: Sequence[str], key: str = "robot.wheels") -> tuple[Wheel, ...]:
    """``NAME`` or ``NAME=inertia:VALUE,link:LINK,axis:X Y Z`` each, any of the fields."""
    form, example = "NAME=inertia:VALUE,link:LINK,axis:X Y Z", "wheel_x=inertia:0.05,link:base,axis:1 0 0"
    return tuple(_parse(entries, key, form, example, lambda name, text: _wheel(name, text, key)))


def bounds(entries: Sequence[str], key: str) -> dict[str, float]:
    """``PARAMETER=VALUE`` each, SI."""
    return dict(_parse(entries, key, "PARAMETER=VALUE", "joint1.coulomb=5", _name_and_number))


def ranges(entries: Sequence[str], key: str) -> dict[str, tuple[float, float]]:
    """``LINK=LOWEST:HIGHEST`` each, SI."""
    return dict(_parse(entries, key, "LINK=LOWEST:HIGHEST", "link3=1.5:2.5", _name_and_range))


def pairs(entries: Sequence[str], key: str) -> tuple[tuple[str, str], ...]:
    """``PARAMETER=PARAMETER`` each."""
    return tuple(_parse(entries, key, "PARAMETER=PARAMETER", "left_foot.m=right_foot.m", _pair))


def mirrors(entries: Sequence[str], key: str) -> tuple[tuple[str, str, str], ...]:
    """``LINK=LINK:AXIS`` each."""
    return tuple(_parse(entries, key, "LINK=LINK:AXIS", "left_foot=right_foot:y", _mirror))


def _parse(entries: Sequence[str], key: str, form: str, example: str, read: Callable[[str, str], T]) -> list[T]:
    found = []
    for entry in entries:
        name, _, text = (part.strip() for part in entry.partition("="))
        try:
            if not name:
                raise ValueError
            found.append(read(name, text))
        except (ValueError, KeyError):
            raise ConfigurationError(f"{key}: '{entry}' is not {form}; write for example {example}") from None
    return found


def _name_and_number(name: str, text: str) -> tuple[str, float]:
    return name, float(text)


def _name_and_range(name: str, text: str) -> tuple[str, tuple[float, float]]:
    lowest, highest = text.split(":")
    return name, (float(lowest), float(highest))


def _pair(name: str, text: str) -> tuple[str, str]:
    if not text:
        raise ValueError
    return name, text


def _mirror(name: str, text: str) -> tuple[str, str, str]:
    other, axis = text.split(":")
    if axis not in ("x", "y", "z"):
        raise ValueError
    return name, other, axis


_ROTOR_NAMES = ("joint", "link")
_ROTOR_NUMBERS = ("ratio", "mass", "radius", "length")
_ROTOR_VECTORS = ("inertia", "com", "xyz", "rpy", "axis")


def _fields(text: str) -> dict[str, str]:
    """``FIELD:VALUE,FIELD:VALUE``."""
    found: dict[str, str] = {}
    for part in text.split(","):
        field, _, value = (piece.strip() for piece in part.partition(":"))
        if field in found or not value:
            raise ValueError
        found[field] = value
    return found


def _plate(name: str, text: str) -> Contact:
    found = _fields(text)
    frame = found.pop("frame")
    measures = found.pop("measures", "wrench")
    if measures not in ("wrench", "pressure"):
        raise ValueError
    pose = {field: tuple(map(float, found.pop(field).split())) for field in ("xyz", "rpy") if field in found}
    if found or any(len(numbers) != 3 for numbers in pose.values()):
        raise ValueError
    return Contact(name, frame, Plate(partial=measures == "pressure", **pose))


def _wheel(name: str, text: str, key: str) -> Wheel:
    found = _fields(text) if text else {}
    inertia = float(found.pop("inertia", "nan"))
    axis = tuple(map(float, found.pop("axis", "").split()))
    link = found.pop("link", "")
    if found:
        raise ValueError
    try:
        return Wheel(name, inertia, link, axis)
    except ModelError as error:
        raise ConfigurationError(f"{key}: {error}") from None


def _rotor(name: str, text: str, key: str) -> Rotor:
    found = _fields(text)
    names = {field: found.pop(field) for field in _ROTOR_NAMES}
    numbers = {field: float(found.pop(field)) for field in _ROTOR_NUMBERS if field in found}
    vectors: dict[str, Any] = {
        field: tuple(map(float, found.pop(field).split())) for field in _ROTOR_VECTORS if field in found
    }
    size = [numbers.pop(field, None) for field in ("radius", "length")]
    if found or len(numbers) != 2 or (None in size) != ("inertia" in vectors):
        raise ValueError
    given = (name, names["joint"], names["link"], numbers["ratio"], numbers["mass"])
    try:
        if size[0] is not None and size[1] is not None:
            return Rotor.cylinder(*given, (size[0], size[1]), **vectors)
        return Rotor(*given, **vectors)
    except ModelError as error:
        raise ConfigurationError(f"{key}: {error}") from None


def _coupling(name: str, text: str) -> Coupling:
    parts = [part.split(":") for part in text.split(",")]
    joints, ratios = tuple(joint.strip() for joint, _ in parts), tuple(float(ratio) for _, ratio in parts)
    if len(joints) < 2 or not all(joints) or len(set(joints)) != len(joints):
        raise ValueError
    return Coupling(name, joints, ratios)
