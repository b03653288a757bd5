"""Text entries of configuration lists, such as ``finger_joint1=0.02``, to what they mean.

Lists of text are what YAML, ROS parameters and the command line all have; nested tables are not.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from .options import ConfigurationError
from .robot.layout import Coupling

T = TypeVar("T")


def positions(entries: Sequence[str], key: str = "robot.locked_joints") -> dict[str, float]:
    """``JOINT=POSITION`` [rad or m] each."""
    return dict(_parse(entries, key, "JOINT=POSITION", "finger_joint1=0.02", _name_and_number))


def couplings(entries: Sequence[str], key: str = "robot.couplings") -> tuple[Coupling, ...]:
    """``NAME=JOINT:RATIO,JOINT:RATIO`` each."""
    return tuple(_parse(entries, key, "NAME=JOINT:RATIO,JOINT:RATIO", "wrist=joint_5:1,joint_6:1", _coupling))


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
        except ValueError:
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


def _coupling(name: str, text: str) -> Coupling:
    parts = [part.split(":") for part in text.split(",")]
    joints, ratios = tuple(joint.strip() for joint, _ in parts), tuple(float(ratio) for _, ratio in parts)
    if len(joints) < 2 or not all(joints) or len(set(joints)) != len(joints):
        raise ValueError
    return Coupling(name, joints, ratios)
