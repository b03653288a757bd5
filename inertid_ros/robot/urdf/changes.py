"""Differences between two URDFs of one robot, attribute by attribute."""

from dataclasses import dataclass

import numpy as np
from lxml import etree

from .parsing import parse_description

# What calibration writes: elements of links and of joints, and their attributes.
_OF_LINK = {
    "inertial/mass": ("value",),
    "inertial/origin": ("xyz", "rpy"),
    "inertial/inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
}
_OF_JOINT = {"dynamics": ("damping", "friction")}
_SAME = 1e-9  # of the larger value; less is how a number is written


@dataclass(frozen=True)
class UrdfChange:
    """One attribute that is another in a second URDF.

    Attributes
    ----------
    element : str
        ``link`` or ``joint``.
    name : str
        Of the link or joint.
    attribute : str
        Path and attribute, such as ``inertial/mass value``.
    before, after : str
        Its values as written; empty where it is absent.
    """

    element: str
    name: str
    attribute: str
    before: str
    after: str


def urdf_changes(before: str, after: str) -> tuple[UrdfChange, ...]:
    """Attributes of inertia and joint dynamics that differ between two URDF texts, in the order of the second.

    Raises
    ------
    ModelError
        One of them is not a URDF.
    """
    first, second = (parse_description(text) for text in (before, after))
    changes = []
    for element, parts in (("link", _OF_LINK), ("joint", _OF_JOINT)):
        given = {each.get("name"): each for each in first.findall(element)}
        for each in second.findall(element):
            name = each.get("name", "")
            for part, attributes in parts.items():
                for attribute in attributes:
                    values = [_value(given.get(name), part, attribute), _value(each, part, attribute)]
                    if not _equal(*values):
                        changes.append(UrdfChange(element, name, f"{part} {attribute}", *values))
    return tuple(changes)


def _value(element: etree._Element | None, part: str, attribute: str) -> str:
    found = None if element is None else element.find(part)
    return "" if found is None else str(found.get(attribute, ""))


def _equal(before: str, after: str) -> bool:
    """Whether both are written the same or are the same numbers; an absent number is zero, as URDF has it."""
    if before == after:
        return True
    numbers = [np.array(text.split() or ["0"], dtype=float) for text in (before, after)]
    size = max(float(np.abs(each).max()) for each in numbers)
    try:
        return bool(np.all(np.abs(numbers[0] - numbers[1]) <= _SAME * size))
    except ValueError:
        return False
