"""URDF of the same robot with another root, such as the foot that a legged robot stands on."""

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from . import parsing

_GROUND, _STANDING = "ground", "standing"  # link, and the joint to the foot
_PLACED = ("inertial", "visual", "collision")  # elements of a link with an <origin> in its frame


def standing_on(text: str, link: str, rotation: Array) -> str:
    """URDF text with ``link`` fixed to a new root; joints keep their names, positions, limits and efforts.

    The new root is the link ``ground``, with the origin of ``link``; ``rotation`` (3, 3) is that of ``link`` in it.
    Links between the old root and ``link`` change their frames: a URDF link has the frame of the joint to its parent.

    Raises
    ------
    ModelError
        The URDF is broken, has no such link, or has a link or joint ``ground`` or ``standing``.
    """
    root = parsing.parse_description(text)
    links = parsing.by_name(root, "link")
    if link not in links:
        raise ModelError(f"URDF: no link '{link}' to stand on; it has {', '.join(links)}")
    if taken := {_GROUND, _STANDING} & {*links, *parsing.by_name(root, "joint")}:
        raise ModelError(f"URDF: '{min(taken)}' names a link or joint, but also the ground under a foot; rename it")
    above = {parsing.ends(joint)[1]: joint for joint in root.findall("joint")}
    etree.SubElement(root, "link", name=_GROUND)
    fixed = etree.SubElement(root, "joint", name=_STANDING, type="fixed")
    _set(fixed, "parent", link=_GROUND)
    _set(fixed, "child", link=link)
    _place(fixed, pin.SE3(rotation, np.zeros(3)))
    frame = pin.SE3.Identity()  # of the link before the change, in its new frame
    while (joint := above.get(link)) is not None:
        parent, _ = parsing.ends(joint)
        before = parsing.placement(joint)
        _place(joint, frame)
        _set(joint, "parent", link=link)
        _set(joint, "child", link=parent)
        if joint.get("type") != "fixed":
            _set(joint, "axis", xyz=_text(-parsing.axis(joint)))
        frame, link = before.inverse(), parent
        own = [element for tag in _PLACED for element in links[link].findall(tag)]
        for element in own + [other for other in root.findall("joint") if parsing.ends(other)[0] == link]:
            _place(element, frame * parsing.placement(element))
    return etree.tostring(root, encoding="unicode")


def _place(element: etree._Element, placement: pin.SE3) -> None:
    rpy = pin.rpy.matrixToRpy(placement.rotation)
    _set(element, "origin", xyz=_text(placement.translation), rpy=_text(rpy))


def _set(element: etree._Element, tag: str, **attributes: str) -> None:
    child = element.find(tag)
    if child is None:
        child = etree.Element(tag)
        element.insert(0, child)
    for key, value in attributes.items():
        child.set(key, value)


def _text(values: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in values)
