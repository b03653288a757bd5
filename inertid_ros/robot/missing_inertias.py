"""Inertias for links that a URDF gives none: those of their shapes at a stated density."""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.log_once import log_once
from inertid_ros.robot.geometry.capsules import corners
from inertid_ros.robot.geometry.collision_shapes import CollisionShape, collision_shape, with_surfaces
from inertid_ros.robot.geometry.solids import convex_hull
from inertid_ros.robot.urdf import parsing, xml_edits

DENSITY = 1200.0  # kg/m^3; median of mass over volume of convex hulls of 946 links of example-robot-data is 1190
_WIDTH = 0.2  # of a bar in place of a link without shape, as a share of its length
_LEAST = 0.04  # m; width and length of such a bar at least


def with_inertias(
    text: str,
    root: etree._Element,
    bodies: Sequence[str],
    held: Mapping[str, float],
    folder: Path | None,
    shapes: bool = True,
) -> str:
    """The URDF with inertias for moving links that have none, nor anything fixed to them.

    A link of the body that has shapes, ``<collision>`` or else ``<visual>``, gets that of their convex hulls. Where
    none has, the moving link gets that of a bar to each joint behind it.

    Parameters
    ----------
    text : str
        The URDF.
    root : etree._Element
        The same, parsed.
    bodies : sequence of str
        The moving links.
    held : mapping of str to float
        Locked joints, through which links belong to a body too.
    folder : Path or None
        Folder of the URDF, from which meshes are looked for.
    shapes : bool
        Whether shapes are looked at; without, all links are bars.
    """
    joined = {body: _rigidly_joined(root, body, held) for body in bodies}
    names = {name for own in joined.values() for name in own} if shapes else set[str]()
    points = _shape_points(root, names, folder)
    edits: list[xml_edits.Edit] = []
    content = text.encode()
    elements = {link.attributes["name"]: link for link in xml_edits.locate(content).all("link")}
    for body in bodies:
        found = {
            name: sum((convex_hull(shape, DENSITY) for shape in points[name]), np.zeros(10))
            for name in joined[body]
            if name in points
        }
        for name, parameters in (found or {body: _bars(root, body)}).items():
            lines = "\n".join(xml_edits.inertial_lines(parameters)).encode()
            given = elements[name].all("inertial")
            edits += [xml_edits.Edit(element.start, element.end, lines) for element in given[:1]]
            edits += [xml_edits.remove(content, element) for element in given[1:]]
            if not given:
                edits.append(xml_edits.insert_first(content, elements[name], lines))
    return xml_edits.apply(content, edits).decode()


def _rigidly_joined(root: etree._Element, body: str, held: Mapping[str, float]) -> list[str]:
    """A link and those that fixed or locked joints connect to it."""
    found = [body]
    for link in found:
        found += [
            str(joint.find("child").get("link"))
            for joint in root.findall("joint")
            if joint.find("parent").get("link") == link and (joint.get("type") == "fixed" or joint.get("name") in held)
        ]
    return found


def _shape_points(root: etree._Element, names: Collection[str], folder: Path | None) -> dict[str, list[Array]]:
    """Points whose hulls are the shapes of links, in their frames [m]; of ``<visual>`` without ``<collision>``."""
    placed: list[CollisionShape] = []
    for link in root.findall("link"):
        name = str(link.get("name"))
        for element in (link.findall("collision") or link.findall("visual")) if name in names else ():
            with suppress(ModelError):  # planning and identification tell it where they use the shape
                placed.append(collision_shape(element, name, (0, pin.SE3.Identity()), ((), folder)))
    shapes, problems = with_surfaces(placed)
    for problem in problems.values():
        log_once(logging.WARNING, problem)
    out: dict[str, list[Array]] = {}
    for shape in shapes:
        points = corners(shape) @ shape.placement[:3, :3].T + shape.placement[:3, 3]
        out.setdefault(shape.link, []).append(points)
    return out


def _bars(root: etree._Element, link: str) -> Array:
    """``(10,)`` parameters of bars from a link's joint to those behind it, or of a cube where there are none."""
    ends = [
        parsing.origin(joint, "joint")[0]
        for joint in root.findall("joint")
        if joint.find("parent").get("link") == link
    ]  # fmt: skip
    cube = 0.5 * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    far = [end for end in ends if np.linalg.norm(end) > _LEAST] or [np.zeros(3)]
    bodies = []
    for end in far:
        around = max(_WIDTH * float(np.linalg.norm(end)), _LEAST) * cube
        bodies.append(convex_hull(np.vstack([around, around + end]), DENSITY))
    return np.sum(bodies, axis=0)
