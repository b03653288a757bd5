"""URDF text: edits of single elements that keep every other byte, differences between two URDFs, URDFs from
Denavit-Hartenberg tables, and the same robot with another root, such as the foot that it stands on."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import URDF_INERTIA, mass_com_inertia
from inertid_ros.robot.urdf import parsing

_START_TAG = re.compile(rb"""<[^\s/>]+(?:[^"'>]|"[^"]*"|'[^']*')*>""")
_WRITTEN = {  # paths and attributes of the elements that calibration writes
    "link": (
        ("inertial/mass", ("value",)), ("inertial/origin", ("xyz", "rpy")),
        ("inertial/inertia", URDF_INERTIA)),
    "joint": (("dynamics", ("damping", "friction")),)}
_MAX_RELATIVE_ROUNDING = 1e-9  # smaller changes of a number come from its notation
_GROUND, _STANDING = "ground", "standing"  # link, and the joint to the foot
_PLACED = ("inertial", "visual", "collision")  # elements of a link with an <origin> in its frame


@dataclass
class Element:
    """XML element and its position in the encoded text.

    Attributes
    ----------
    start, end : byte range of the whole element, end exclusive.
    inside : start of the content; equal to ``end`` for an empty tag ``<a/>``.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    inside: int
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    def all(self, tag: str) -> list["Element"]:
        """Direct children of one tag."""
        return [child for child in self.children if child.tag == tag]


def locate(text: bytes) -> Element:
    """Root element of well-formed UTF-8 XML, with all descendants; expat's ExpatError if it is not well-formed."""
    parser = expat.ParserCreate("utf-8")
    top = Element("", {}, 0, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        place = parser.CurrentByteIndex
        match = _START_TAG.match(text, place)
        element = Element(tag, attributes, place, match.end() if match else place)
        stack[-1].children.append(element)
        stack.append(element)

    def end(tag: str) -> None:
        element, place = stack.pop(), parser.CurrentByteIndex
        empty = text[element.inside - 2 : element.inside] == b"/>"
        element.end = element.inside if empty else text.index(b">", place) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(text, True)
    return top.children[0]


def with_children(text: str, children: Mapping[tuple[str, str, str], Sequence[str]]) -> str:
    """Replace or add child elements of links and joints in URDF text; all other bytes stay the same.

    ``children`` maps (``link`` or ``joint``, its name, tag of the child) to the lines of the child. Further children
    with this tag are removed.
    """
    content = text.encode()
    parents = {(element.tag, element.attributes.get("name")): element for element in locate(content).children}
    edits: list[tuple[int, int, bytes]] = []  # start, end, replacement
    for (tag, name, child), lines in children.items():
        parent = parents[tag, name]
        present = parent.all(child)
        edits += [(len(content[: other.start].rstrip()), other.end, b"") for other in present[1:]]
        if present:
            edits.append((present[0].start, present[0].end, _joined(lines, _margin(content, present[0].start))))
            continue
        margin = _margin(content, parent.start)
        first = b"\n" + margin + b"  " + _joined(lines, margin + b"  ")
        if parent.inside < parent.end:
            edits.append((parent.inside, parent.inside, first))
        else:  # <link name="a"/>
            opening = content[parent.start : parent.inside - 2].rstrip() + b">"
            edits.append((parent.start, parent.end, opening + first + b"\n" + margin + f"</{tag}>".encode()))
    pieces, position = [], 0
    for start, end, replacement in sorted(edits):
        pieces += [content[position:start], replacement]
        position = end
    return b"".join([*pieces, content[position:]]).decode()


def _joined(lines: Sequence[str], margin: bytes) -> bytes:
    return (b"\n" + margin).join(line.encode() for line in lines)


def _margin(content: bytes, position: int) -> bytes:
    """Blanks from the last line break to ``position``; empty if there is other text in between."""
    line = content[content.rfind(b"\n", 0, position) + 1 : position]
    return line if not line.strip() else b""


def inertial_lines(pi: Array) -> list[str]:
    """Lines of the ``<inertial>`` of a body ``(10,)``, with numbers that read back exactly."""
    mass, com, inertia = mass_com_inertia(pi)
    moments = zip(URDF_INERTIA, inertia[np.triu_indices(3)].tolist(), strict=True)
    attributes = " ".join(f'{key}="{value!r}"' for key, value in moments)
    xyz = " ".join(repr(float(value)) for value in com)
    return [
        "<inertial>", f'  <origin xyz="{xyz}" rpy="0 0 0"/>', f'  <mass value="{float(mass)!r}"/>',
        f"  <inertia {attributes}/>", "</inertial>"]


@dataclass(frozen=True)
class UrdfChange:
    """Attribute that differs in a second URDF.

    Attributes
    ----------
    element : ``link`` or ``joint``.
    attribute : path and attribute, such as ``inertial/mass value``.
    before, after : values as written; empty if absent.
    """

    element: str
    name: str
    attribute: str
    before: str
    after: str


def urdf_changes(before: str, after: str) -> tuple[UrdfChange, ...]:
    """Attributes of inertia and joint dynamics that differ between two URDF texts, in the order of the second."""
    first, second = (parsing.parse_description(text) for text in (before, after))
    changes = []
    for tag, written in _WRITTEN.items():
        earlier = {element.get("name"): element for element in first.findall(tag)}
        for element in second.findall(tag):
            name = element.get("name", "")
            for path, keys in written:
                children = [None if parent is None else parent.find(path) for parent in (earlier.get(name), element)]
                for key in keys:
                    values = ["" if child is None else str(child.get(key, "")) for child in children]
                    if not _equal(*values):
                        changes.append(UrdfChange(tag, name, f"{path} {key}", *values))
    return tuple(changes)


def _equal(before: str, after: str) -> bool:
    """True if texts or numbers are equal; an absent number is zero, as in URDF."""
    if before == after:
        return True
    try:
        numbers = [np.array(text.split() or ["0"], dtype=float) for text in (before, after)]
        size = max(float(np.abs(values).max()) for values in numbers)
        return bool(np.all(np.abs(numbers[0] - numbers[1]) <= _MAX_RELATIVE_ROUNDING * size))
    except ValueError:
        return False


@dataclass(frozen=True)
class DhJoint:
    """Row of a modified Denavit-Hartenberg table ([Naveen2019]_ sec. 7.2).

    The joint frame is ``Rot_x(alpha) Trans_x(a) Rot_z(theta) Trans_z(d)`` in the parent's frame shifted by ``mount``.

    Attributes
    ----------
    parent : link that carries the joint: 0 for the base, 1 for the link behind the first row, and so on.
    alpha, theta : rad. The position of a revolute joint adds to theta.
    a, d : m. The position of a prismatic joint adds to d.
    mount : ``(3,)`` m; shift in the parent's frame, for arms that do not begin at the base's origin.
    """

    parent: int
    alpha: float = 0.0
    a: float = 0.0
    d: float = 0.0
    theta: float = 0.0
    prismatic: bool = False
    mount: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def rotation(self) -> Array:
        """``(3, 3)`` joint frame in the parent frame at position zero; exact for right angles."""
        (ca, sa), (ct, st) = _cos_sin(self.alpha), _cos_sin(self.theta)
        return np.array([[ct, -st, 0.0], [st * ca, ct * ca, -sa], [st * sa, ct * sa, ca]])

    @property
    def translation(self) -> Array:
        """``(3,)`` origin of the joint frame in the parent frame [m]."""
        cosine, sine = _cos_sin(self.alpha)
        return np.array(self.mount) + np.array([self.a, -sine * self.d, cosine * self.d])


def dh_urdf(name: str, table: Sequence[DhJoint], bodies: Array, links: Sequence[str] = ()) -> str:
    """URDF text of a Denavit-Hartenberg table, with links ``L0``, ``L1``, ... and joints ``J1``, ``J2``, ...

    All joints have limits of +-pi [rad or m], 1 [rad/s or m/s] and 1000 [N m or N].

    Parameters
    ----------
    bodies : (1 + n, 10), inertial parameters, the base first.
    links : names in place of ``L0``, ``L1``, ...

    Raises
    ------
    ModelError
        A row's parent does not precede it, or the number of bodies or names is wrong.
    """
    names = tuple(links) or tuple(f"L{index}" for index in range(len(table) + 1))
    if len(bodies) != len(table) + 1 or len(names) != len(table) + 1:
        raise ModelError(
            f"Denavit-Hartenberg table: {len(table)} rows need {len(table) + 1} bodies and names, {len(bodies)} and"
            f" {len(names)} given; the base comes first")
    root = etree.Element("robot", name=name)
    for link, body in zip(names, bodies, strict=True):
        add_inertia(etree.SubElement(root, "link", name=link), body)
    limits = {"lower": -np.pi, "upper": np.pi, "velocity": 1.0, "effort": 1000.0}
    for index, row in enumerate(table, start=1):
        if not 0 <= row.parent < index:
            raise ModelError(f"Denavit-Hartenberg row {index}: parent {row.parent} does not come before it; reorder")
        add_joint(root, (f"J{index}", names[row.parent], names[index]), "prismatic" if row.prismatic else "revolute",
            pin.SE3(row.rotation, row.translation), axis={"xyz": np.array([0.0, 0.0, 1.0])}, limit=limits)
    return str(etree.tostring(root, encoding="unicode"))


def _cos_sin(angle: float) -> tuple[float, float]:
    quarters = angle / (np.pi / 2)
    if abs(quarters - round(quarters)) < 1e-12:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return float(np.cos(angle)), float(np.sin(angle))


def numbers(values: Array | Sequence[float] | float) -> str:
    """Numbers, separated by blanks, that read back exactly."""
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def add_joint(root: etree._Element, names: tuple[str, str, str], kind: str, pose: pin.SE3,
        **elements: Mapping[str, Array | float]) -> etree._Element:
    """Add a joint with its name, parent and child, its pose in the parent, and elements such as ``axis``."""
    joint = etree.SubElement(root, "joint", name=names[0], type=kind)
    place(joint, pose)
    for tag, link in zip(("parent", "child"), names[1:], strict=True):
        _set(joint, tag, link=link)
    for tag, attributes in elements.items():
        etree.SubElement(joint, tag, {key: numbers(value) for key, value in attributes.items()})
    return joint


def add_transmission(root: etree._Element, joint: str) -> etree._Element:
    """Add a transmission to a joint, and return its actuator."""
    transmission = etree.SubElement(root, "transmission", name=f"{joint}_transmission")
    etree.SubElement(transmission, "type").text = "transmission_interface/SimpleTransmission"
    etree.SubElement(transmission, "joint", name=joint)
    return etree.SubElement(transmission, "actuator", name=f"{joint}_motor")


def add_inertia(link: etree._Element, pi: Array) -> None:
    """Add the ``<inertial>`` of a body ``(10,)``."""
    link.append(etree.fromstring("".join(inertial_lines(pi))))


def add_shape(link: etree._Element, pose: pin.SE3, tag: str, attributes: Mapping[str, str]) -> None:
    """Add a ``<collision>`` with a geometry ``tag``, at a pose in the frame of the link."""
    collision = etree.SubElement(link, "collision")
    place(collision, pose)
    etree.SubElement(etree.SubElement(collision, "geometry"), tag, attributes)


def standing_on(text: str, link: str, rotation: Array) -> str:
    """URDF text with ``link`` fixed to a new root; joints keep their names, positions, limits and efforts.

    The new root is the link ``ground``, with the origin of ``link``; ``rotation`` (3, 3) turns ``link`` in ``ground``.
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
    add_joint(root, (_STANDING, _GROUND, link), "fixed", pin.SE3(rotation, np.zeros(3)))
    frame = pin.SE3.Identity()  # of the link before the change, in its new frame
    while (joint := above.get(link)) is not None:
        parent, _ = parsing.ends(joint)
        before = parsing.placement(joint)
        place(joint, frame)
        _set(joint, "parent", link=link)
        _set(joint, "child", link=parent)
        if joint.get("type") != "fixed":
            _set(joint, "axis", xyz=numbers(-parsing.axis(joint)))
        frame, link = before.inverse(), parent
        own = [element for tag in _PLACED for element in links[link].findall(tag)]
        for element in own + [other for other in root.findall("joint") if parsing.ends(other)[0] == link]:
            place(element, frame * parsing.placement(element))
    return etree.tostring(root, encoding="unicode")


def place(element: etree._Element, placement: pin.SE3) -> None:
    """Set the ``<origin>`` of an element."""
    rpy = pin.rpy.matrixToRpy(placement.rotation)
    _set(element, "origin", xyz=numbers(placement.translation), rpy=numbers(rpy))


def _set(element: etree._Element, tag: str, **attributes: str) -> None:
    child = element.find(tag)
    if child is None:
        child = etree.Element(tag)
        element.insert(0, child)
    for key, value in attributes.items():
        child.set(key, value)
