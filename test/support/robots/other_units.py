"""URDFs in units of CAD exporters: degrees, millimetres, grams."""

from collections.abc import Collection

import numpy as np
from lxml import etree


def _scale(elements, keys, factor):
    for element in elements:
        for key in keys:
            if key in element.attrib:
                element.set(key, " ".join(f"{factor * float(number):.9g}" for number in element.get(key).split()))


def in_degrees(text: str, joints: Collection[str] = (), keys: tuple[str, ...] = ("lower", "upper")) -> str:
    """Limits of some revolute joints, or of all, in degrees, or degrees per second."""
    root = etree.fromstring(text.encode())
    turning = [joint for joint in root.findall("joint") if joint.get("type") in ("revolute", "continuous")]
    chosen = [joint.find("limit") for joint in turning if not joints or joint.get("name") in joints]
    _scale([limit for limit in chosen if limit is not None], keys, np.degrees(1.0))
    return etree.tostring(root, encoding="unicode")


def in_length(text: str, factor: float) -> str:
    """All lengths of a robot in another unit; inertias, too."""
    root = etree.fromstring(text.encode())
    _scale(root.iter("origin"), ("xyz",), factor)
    _scale(root.iter("box", "cylinder", "sphere", "capsule"), ("size", "radius", "length"), factor)
    _scale(root.iter("inertia"), ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), factor**2)
    for mesh in root.iter("mesh"):
        mesh.set("scale", mesh.get("scale", "1 1 1"))
    _scale(root.iter("mesh"), ("scale",), factor)
    return etree.tostring(root, encoding="unicode")


def in_mass(text: str, factor: float) -> str:
    """All masses in another unit; inertias, too."""
    root = etree.fromstring(text.encode())
    _scale(root.iter("mass"), ("value",), factor)
    _scale(root.iter("inertia"), ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), factor)
    return etree.tostring(root, encoding="unicode")
