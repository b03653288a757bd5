"""URDF text of the robot in an SDF file: one model of links, joints and frames, with poses in any of its frames."""

import contextlib
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.core.inertial_parameters import URDF_INERTIA

from .text import add_inertia, add_joint, add_shape

_UNLIMITED = 1e16  # rad or m, and other units
_CIRCLE = "poses refer to one another in a circle"
_LIMITS = {"lower": "-1e16", "upper": "1e16", "effort": "0", "velocity": "0"}  # and defaults; zero: not stated


def as_urdf(path: Path, root: etree._Element) -> str:
    """URDF text of an SDF file with one model; lines about lost content are logged. ModelError if it is broken."""
    models = [*root.findall("model"), *root.findall("world/model")]
    if len(models) != 1 or any(models[0].find(tag) is not None for tag in ("model", "include")):
        raise ModelError(
            f"{path}: has {len(models)} models, or a model in a model; give an SDF of the robot alone, with includes"
            " expanded: gz sdf -p FILE > robot.sdf")
    try:
        return _Model(path.name, models[0]).urdf()
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"{path}: {_CIRCLE if isinstance(error, RecursionError) else error}; fix the SDF") from None


class _Model:
    def __init__(self, file: str, model: etree._Element) -> None:
        self.file, self.model, self.joints = file, model, model.findall("joint")
        self.frames = {str(child.get("name")): child for child in model.iterchildren("link", "joint", "frame")}
        self.above = {_end(joint, "child"): str(joint.get("name")) for joint in self.joints}

    def urdf(self) -> str:
        """URDF text, with the links in the frames of their joints."""
        root = etree.Element("robot", name=self.model.get("name") or "robot")
        if any(_end(joint, "parent") == "world" for joint in self.joints):
            etree.SubElement(root, "link", name="world")
        for link in self.model.findall("link"):
            self._add_link(etree.SubElement(root, "link", name=link.get("name", "")), link)
        for joint in self.joints:
            self._add_joint(root, joint)
        content = {child.tag for part in (self.model, self.model.getparent()) for child in part.iterchildren("*")}
        if lost := content - {"model", "link", "joint", "frame", "pose", "static"}:
            log_once(f"{self.file}: content that a URDF cannot hold is left out: {', '.join(sorted(lost))}")
        return str(etree.tostring(root, encoding="unicode", pretty_print=True))

    def _pose(self, name: str) -> pin.SE3:
        """Pose of a link, joint or frame in the model."""
        if name in ("__model__", "world"):
            return pin.SE3.Identity() if name == "__model__" else _own_pose(self.model).inverse()
        if (element := self.frames.get(name)) is None:
            raise ValueError(f"'{name}' is no link, joint or frame")
        return self._placed(element, _end(element, "child") or element.get("attached_to") or "__model__")

    def _placed(self, element: etree._Element, default: str) -> pin.SE3:
        """Pose of an element in the model; ``default`` is the frame of its ``<pose>``."""
        return self._pose(element.xpath("string(pose/@relative_to)") or default) * _own_pose(element)

    def _frame(self, link: str) -> pin.SE3:
        """Pose of the frame that a link has in a URDF, which is that of the joint above it."""
        return self._pose(self.above.get(link, link))

    def _add_link(self, link: etree._Element, given: etree._Element) -> None:
        name = given.get("name", "")
        to_link = self._frame(name).inverse()
        if (inertial := given.find("inertial")) is not None:
            xx, xy, xz, yy, yz, zz = (_values(inertial, f"inertia/{key}", "0") for key in URDF_INERTIA)
            inertia = np.reshape([xx, xy, xz, xy, yy, yz, xz, yz, zz], (3, 3))
            body = pin.Inertia(float(_values(inertial, "mass", "1")[0]), np.zeros(3), inertia)
            add_inertia(link, (to_link * self._placed(inertial, name)).act(body).toDynamicParameters())
        for shape in given.findall("collision"):
            for kind in shape.iterfind("geometry/*"):
                texts = {child.tag.replace("uri", "filename"): str(child.text).strip() for child in kind.iterfind("*")}
                add_shape(link, to_link * self._placed(shape, name), kind.tag, texts)

    def _add_joint(self, root: etree._Element, given: etree._Element) -> None:
        name, kind, axis = given.get("name", ""), given.get("type", ""), given.find("axis")
        parent, child = _end(given, "parent"), _end(given, "child")
        pose, elements = self._pose(name), dict[str, dict[str, Array]]()
        if axis is not None and kind != "fixed":
            limits = {key: _values(axis, f"limit/{key}", default) for key, default in _LIMITS.items()}
            limits |= {key: np.zeros(1) for key in ("effort", "velocity") if not 0 <= limits[key] < _UNLIMITED}
            if kind == "revolute" and max(-limits["lower"], limits["upper"]) >= _UNLIMITED:
                kind = "continuous"
            frame = self._pose(axis.xpath("string(xyz/@expressed_in)") or name)
            elements = {"axis": {"xyz": (pose.inverse() * frame).rotation @ _values(axis, "xyz", "0 0 1")},
                "limit": limits, "dynamics": {
                    key: _values(axis, f"dynamics/{key}", "0") for key in ("damping", "friction")}}
        add_joint(root, (name, parent, child), kind, self._frame(parent).inverse() * pose, **elements)


def _end(joint: etree._Element, tag: str) -> str:
    return (joint.findtext(tag) or "").strip()


def _own_pose(element: etree._Element) -> pin.SE3:
    xyz, rpy = _values(element, "pose", "0 0 0 0 0 0").reshape(2, 3)
    degrees = element.xpath("string(pose/@degrees)") == "true"
    return pin.SE3(pin.rpy.rpyToMatrix(np.radians(rpy) if degrees else rpy), xyz)


def _values(element: etree._Element, path: str, default: str) -> Array:
    """As many numbers as ``default`` has; ValueError for other text."""
    text, count = (element.findtext(path) or "").strip() or default, len(default.split())
    with contextlib.suppress(ValueError):
        values = np.clip(np.array(text.split(), dtype=float), -_UNLIMITED, _UNLIMITED)
        if len(values) == count and not np.isnan(values).any():
            return values
    raise ValueError(f"<{path}> of {element.tag} '{element.get('name') or ''}' is '{text}', not {count} numbers")
