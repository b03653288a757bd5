"""Positions of elements in XML text, to change a few of them and leave every other byte as it is; text of a body."""

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import mass_com_inertia

_START_TAG = re.compile(rb"""<[^\s/>]+(?:[^"'>]|"[^"]*"|'[^']*')*>""")


@dataclass
class Element:
    """An element and its position in the encoded text.

    Attributes
    ----------
    start, end : int
        Bytes of the whole element, end exclusive.
    inside : int
        Where its content starts; equal to ``end`` for an empty tag ``<a/>``.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    inside: int
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    @property
    def is_empty_tag(self) -> bool:
        """Whether it is written as ``<a/>``."""
        return self.inside == self.end

    def all(self, tag: str) -> list["Element"]:
        """Direct children of one tag."""
        return [child for child in self.children if child.tag == tag]


@dataclass(frozen=True)
class Edit:
    """Replace ``text[start:end]``."""

    start: int
    end: int
    replacement: bytes


def locate(text: bytes) -> Element:
    """Root element of well-formed UTF-8 XML, with all below it.

    Raises
    ------
    xml.parsers.expat.ExpatError
        The text is not well-formed.
    """
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


def apply(text: bytes, edits: list[Edit]) -> bytes:
    """Text with all edits, which must not overlap."""
    pieces, position = [], 0
    for edit in sorted(edits, key=lambda e: e.start):
        pieces += [text[position : edit.start], edit.replacement]
        position = edit.end
    return b"".join([*pieces, text[position:]])


def indentation(text: bytes, position: int) -> bytes:
    """Blanks between the last line break and ``position``; empty where something else stands there."""
    line = text[text.rfind(b"\n", 0, position) + 1 : position]
    return line if not line.strip() else b""


def remove(text: bytes, element: Element) -> Edit:
    """Edit that takes an element out, with the blanks before it."""
    start = element.start
    while start > 0 and text[start - 1 : start].isspace():
        start -= 1
    return Edit(start, element.end, b"")


def insert_first(text: bytes, parent: Element, content: bytes) -> Edit:
    """Edit that puts an element on a line of its own as the first child of ``parent``."""
    margin = indentation(text, parent.start)
    line = b"\n" + margin + b"  " + content
    if not parent.is_empty_tag:
        return Edit(parent.inside, parent.inside, line)
    opening = text[parent.start : parent.inside - 2].rstrip() + b">"
    closing = b"\n" + margin + b"</" + parent.tag.encode() + b">"
    return Edit(parent.start, parent.end, opening + line + closing)


def inertial_lines(pi: Array) -> list[str]:
    """``<inertial>`` of a body ``(10,)``, in numbers that read back exactly."""
    mass, com, inertia = mass_com_inertia(pi)
    moments = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    attributes = " ".join(f'{key}="{float(inertia[place])!r}"' for key, place in moments.items())
    xyz = " ".join(repr(float(value)) for value in com)
    return [
        "<inertial>",
        f'  <origin xyz="{xyz}" rpy="0 0 0"/>',
        f'  <mass value="{float(mass)!r}"/>',
        f"  <inertia {attributes}/>",
        "</inertial>",
    ]
