"""Parse and check URDF text, before Pinocchio reads it; expand xacro.

Pinocchio turns a NaN mass silently into zero, loads negative masses, and crashes on a chain of thousands of links. This
module refuses input that Pinocchio accepts silently, and names the element.
"""

import contextlib
import importlib
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.errors import FormatError, ModelError, one_line
from inertid_ros.core.formats import foreign_content, read_bytes

MOVABLE = ("revolute", "continuous", "prismatic")
XACRO_SUFFIX = ".xacro"
_CONVERTERS = {"mujoco": "mjcf", "sdf": "sdf"}  # modules by root elements
DRAKE = "http://drake.mit.edu"  # namespace of rotor inertias
_MAX_URDF_BYTES = 16 * 1024 * 1024
_MAX_LINKS = 1000
_MAX_CHAIN_LENGTH = 200  # joints from the root
_MAX_PATH_LENGTH = 4096
_MAX_NUMBER = 1e30  # of any quantity; powers of larger numbers overflow
_MAX_COORDINATE_M = 1e6  # m; no part of a robot is that far
_INERTIA_ROUNDING = 1e-9  # a diagonal of -1e-20 is a computed zero
_HINT = "fix the URDF"
_XACRO = "http://www.ros.org/wiki/xacro"


def read_description(source: str | Path) -> str:
    """URDF text of a URDF, MJCF or SDF file, or ``source`` if it starts with ``<``; ModelError if it cannot be read."""
    text = str(source)
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return text
    if len(text) > _MAX_PATH_LENGTH or "\0" in text or "\n" in text:
        raise ModelError("URDF: is neither a file name nor XML; give a URDF file (xacro must be expanded first)")
    path = Path(text)
    try:
        content = read_bytes(path, _MAX_URDF_BYTES)
        if foreign := foreign_content(content):
            raise ModelError(f"{path}: {foreign}")
        return _as_urdf(path, content) or content.decode("utf-8")
    except FormatError as error:
        raise ModelError(f"{path}: {error}; this is not a URDF") from None
    except FileNotFoundError:
        raise ModelError(f"{path}: no such URDF file; check the path") from None
    except IsADirectoryError:
        raise ModelError(f"{path}: is a directory; give the URDF file in it") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ModelError(f"{path}: cannot be read as URDF text ({reason}); give a URDF file") from None


def _as_urdf(path: Path, content: bytes) -> str:
    """URDF text of an MJCF or SDF file; empty for other content."""
    with contextlib.suppress(etree.XMLSyntaxError):
        if module := _CONVERTERS.get(str((root := parse_xml(content)).tag)):
            return str(importlib.import_module(f"inertid_ros.robot.urdf.{module}").as_urdf(path, root))
    return ""


def parse_xml(content: bytes) -> etree._Element:
    """Root of untrusted XML: without entities, without network, of bounded size."""
    return etree.fromstring(
        content, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False))


def parse_description(text: str) -> etree._Element:
    """Root element of a URDF that passes every check; comments are kept.

    Raises
    ------
    ModelError
        Not XML, not a robot, too large, not one tree, or a link or joint with impossible numbers.
    """
    if len(text) > _MAX_URDF_BYTES:
        raise ModelError(f"URDF: larger than {_MAX_URDF_BYTES // 2**20} MiB; this is not a robot description")
    try:
        root = parse_xml(text.encode("utf-8"))
    except etree.XMLSyntaxError as error:
        line = str(error).splitlines()[0]
        raise ModelError(f"URDF: not XML ({line}); give a URDF file (xacro must be expanded first)") from None
    if root.tag != "robot":
        raise ModelError(f"URDF: root element is <{root.tag}>, expected <robot>; give a URDF file")
    _check_expanded(root)
    if root.getroottree().docinfo.internalDTD is not None:
        raise ModelError("URDF: has a document type with entities; remove the DOCTYPE")
    _check_name(root.get("name", ""), "robot")
    _check_links(root)
    _check_joints(root)
    _check_tree(root)
    return root


def _check_expanded(root: etree._Element) -> None:
    element = next(root.iter(f"{{{_XACRO}}}*"), None)
    what = "" if element is None else f"<xacro:{etree.QName(element).localname}>"
    if element is None:
        parts = (element for part in root.iterchildren("link", "joint") for element in part.iter(etree.Element))
        unexpanded = (part for part in parts if any(f"${mark}" in str(part.attrib.values()) for mark in "{("))
        element, what = next(unexpanded, None), "an expression of xacro"
    if element is not None:
        raise ModelError(f"URDF: has {what} in line {element.sourceline}; expand it first: inertid init FILE --xacro")


def by_name(root: etree._Element, tag: str) -> dict[str, etree._Element]:
    """Links or joints by name."""
    return {str(element.get("name")): element for element in root.iterchildren(tag)}


def ends(joint: etree._Element) -> tuple[str, str]:
    """Parent and child link of a joint."""
    return str(joint.find("parent").get("link")), str(joint.find("child").get("link"))


def _check_links(root: etree._Element) -> None:
    links = root.findall("link")
    if not links:
        raise ModelError(f"URDF: has no <link>; {_HINT} (xacro must be expanded first: inertid init FILE --xacro)")
    if len(links) > _MAX_LINKS:
        raise ModelError(f"URDF: has {len(links)} links, more than {_MAX_LINKS}; {_HINT}")
    _check_unique(links, "link")
    for link in links:
        inertial = link.find("inertial")
        if inertial is None:
            continue
        mass = number(inertial, "mass", "value")
        if mass < 0:
            raise ModelError(f"{place(link)}: mass is {mass:g} kg; {_HINT}")
        values = [number(inertial, "inertia", key) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")]
        if min(values[:3]) < -_INERTIA_ROUNDING * max(1e-6, *np.abs(values)):
            raise ModelError(f"{place(link)}: inertia has a negative diagonal ({min(values[:3]):g} kg m^2); {_HINT}")
        if mass > 0 and max(values) > mass * _MAX_COORDINATE_M**2:
            raise ModelError(f"{place(link)}: inertia {max(values):g} kg m^2 is impossible for {mass:g} kg; {_HINT}")
        origin(inertial)


def _check_joints(root: etree._Element) -> None:
    joints = root.findall("joint")
    _check_unique(joints, "joint")
    for joint in joints:
        origin(joint)
        if joint.get("type") in MOVABLE:
            axis(joint)
        lower, upper, *_ = (number(joint, "limit", key, 0.0) for key in ("lower", "upper", "velocity", "effort"))
        if lower > upper:
            raise ModelError(f"{place(joint)}: limit lower {lower:g} is above upper {upper:g}; {_HINT}")


def _check_tree(root: etree._Element) -> None:
    links, parent_of = by_name(root, "link"), dict[str, str]()
    for joint in root.findall("joint"):
        for tag in ("parent", "child"):
            element = joint.find(tag)
            name = str(element.get("link")) if element is not None else "(none)"
            if name not in links:
                raise ModelError(f"{place(joint)}: {tag} link '{name}' does not exist; {_HINT}")
        parent, child = ends(joint)
        if child in parent_of:
            problem = f"link '{child}' already has a parent; closed loops are not supported"
            raise ModelError(f"{place(joint)}: {problem}; {_HINT}")
        parent_of[child] = parent
    roots = sorted(links.keys() - parent_of)
    if len(roots) != 1:
        raise ModelError(f"URDF: has {len(roots)} root links {roots[:4]}, expected one tree; {_HINT}")
    for name in sorted(links):
        depth, link = 0, name
        while link in parent_of:
            link, depth = parent_of[link], depth + 1
            if depth > _MAX_CHAIN_LENGTH:
                raise ModelError(f"URDF: link '{name}' is more than {_MAX_CHAIN_LENGTH} joints from the root; {_HINT}")


def _check_unique(elements: list[etree._Element], tag: str) -> None:
    seen: set[str] = set()
    for element in elements:
        name = element.get("name")
        if not name:
            raise ModelError(f"URDF: a <{tag}> in line {element.sourceline} has no name; {_HINT}")
        _check_name(name, tag)
        if name in seen:
            raise ModelError(f"URDF {tag} '{name}': defined twice; {_HINT}")
        seen.add(name)


def _check_name(name: str, tag: str) -> None:
    """Refuse names that would break the lines of logs, tables and files."""
    if one_line(name) != name:
        raise ModelError(f"URDF {tag} '{name}': its name is too long, or has control characters; {_HINT}")


def place(element: etree._Element) -> str:
    """Text for messages that names the link or joint of an element, such as ``URDF joint 'elbow'``."""
    elements = [element, *element.iterancestors()]
    owner = next(element for element in elements if element.tag in ("link", "joint", "transmission"))
    part = " collision" if any(element.tag in ("collision", "visual") for element in elements) else ""
    return f"URDF {owner.tag} '{owner.get('name')}'{part}"


def number(parent: etree._Element, path: str, key: str, default: float | None = None) -> float:
    """Finite number in attribute ``key`` of the element at ``path``; if absent, ``default``, or ModelError for None."""
    element = parent.find(path)
    text = element.get(key) if element is not None else None
    if text is None:
        if default is not None:
            return default
        raise ModelError(f"{place(parent)}: {path} has no '{key}'; {_HINT}")
    try:
        value = _decimal(text)
    except ValueError:
        raise ModelError(f"{place(parent)}: {path} {key}='{text}' is not a number; {_HINT}") from None
    if not math.isfinite(value):
        raise ModelError(f"{place(parent)}: {path} {key}='{text}' is not finite; {_HINT}")
    if abs(value) > _MAX_NUMBER:
        raise ModelError(f"{place(parent)}: {path} {key}='{text}' is larger than {_MAX_NUMBER:g}; {_HINT}")
    return value


def _decimal(text: str) -> float:
    """Number that every URDF reader accepts; unlike ``float``, ValueError for underscores and non-ASCII digits."""
    if "_" in text or not text.isascii():
        raise ValueError
    return float(text)


def vector(parent: etree._Element, path: str, key: str, default: tuple[float, float, float]) -> np.ndarray:
    """Three finite numbers in attribute ``key`` of the element at ``path``; ``default`` if absent."""
    element = parent.find(path)
    text = element.get(key) if element is not None else None
    if text is None:
        return np.array(default, dtype=float)
    try:
        values = np.array([_decimal(number) for number in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ModelError(f"{place(parent)}: {key}='{text}' is not three finite numbers; {_HINT}")
    if np.abs(values).max() > _MAX_COORDINATE_M:
        raise ModelError(f"{place(parent)}: {key}='{text}' is larger than {_MAX_COORDINATE_M:g}; {_HINT}")
    return values


def origin(parent: etree._Element) -> tuple[np.ndarray, np.ndarray]:
    """``(xyz [m], rpy [rad])`` of an element's first ``<origin>``; default zero."""
    return vector(parent, "origin", "xyz", (0, 0, 0)), vector(parent, "origin", "rpy", (0, 0, 0))


def placement(element: etree._Element) -> pin.SE3:
    """Pose by an element's first ``<origin>``."""
    xyz, rpy = origin(element)
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)


def axis(joint: etree._Element) -> np.ndarray:
    """Unit axis of a movable joint; (1, 0, 0) without an ``<axis>``. An ``<axis>`` without numbers is zero."""
    value = vector(joint, "axis", "xyz", (1, 0, 0) if joint.find("axis") is None else (0, 0, 0))
    length = float(np.linalg.norm(value))
    if length < 1e-9:
        raise ModelError(f"{place(joint)}: axis is zero; {_HINT}")
    return value / length


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a trusted xacro file; the library of ROS 2 evaluates expressions in the file and reads its includes.

    ``arguments`` maps the name of each ``xacro:arg`` to its value.
    """
    try:
        import xacro
    except ModuleNotFoundError:
        raise ModelError(
            f"{path}: is xacro, whose library is not installed; install ros-$ROS_DISTRO-xacro, or pip install xacro"
        ) from None
    if not path.is_file():
        raise ModelError(f"{path}: no such xacro file; check the path")
    try:
        document = xacro.process_file(str(path), mappings=dict(arguments))
    except Exception as error:  # raised by the library, or by an expression in the file
        reason = one_line(str(error)) or error.__class__.__name__
        raise ModelError(f"{path}: xacro cannot expand this file ({reason}); correct it or its arguments") from None
    return str(document.toprettyxml(indent="  "))
