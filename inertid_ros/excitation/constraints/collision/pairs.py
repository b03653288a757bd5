"""Pairs of collision objects that can touch one another and are kept apart."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lxml import etree
from numpy.typing import NDArray

from inertid_ros.core.errors import ExcitationError
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing

from .collision_objects import CollisionObject

_log = logging.getLogger(__name__)
_MAX_BYTES = 16 * 1024 * 1024
FLOOR = "floor"
Pair = tuple[int, int]
Indices = NDArray[Any]  # whole numbers


def candidate_pairs(
    model: RobotModel, objects: Sequence[CollisionObject], obstacles: int, between_links: bool
) -> list[Pair]:
    """Pairs of objects that move relative to one another and are not adjacent at a joint; obstacles come last.

    Links without collision shapes are kept apart from obstacles, and not from each other.
    """
    links = len(objects) - obstacles
    root = parsing.parse_description(model.urdf)
    groups = _rigid_groups(root)
    joined = _joined_groups(root, groups)
    pairs = []
    for first in range(links):
        for second in range(first + 1, len(objects)):
            a, b = objects[first], objects[second]
            if a.body == b.body:
                continue
            if second < links:
                near = groups[a.name] == groups[b.name] or frozenset((groups[a.name], groups[b.name])) in joined
                if near or not between_links or not a.shapes or not b.shapes:
                    continue
            pairs.append((first, second))
    return pairs


def _rigid_groups(root: etree._Element) -> dict[str, str]:
    """For each link one name for all links that fixed joints connect it to."""
    parent_of = {
        str(joint.find("child").get("link")): str(joint.find("parent").get("link"))
        for joint in root.findall("joint")
        if joint.get("type") == "fixed"
    }

    def first(link: str) -> str:
        while link in parent_of:
            link = parent_of[link]
        return link

    return {str(link.get("name")): first(str(link.get("name"))) for link in root.findall("link")}


def _joined_groups(root: etree._Element, groups: dict[str, str]) -> set[frozenset[str]]:
    """Pairs of groups with a joint between them."""
    return {
        frozenset(groups[str(joint.find(end).get("link"))] for end in ("parent", "child"))
        for joint in root.findall("joint")
        if joint.get("type") != "fixed"
    }


def srdf_pairs(path: str) -> set[frozenset[str]]:
    """Pairs of links for which an SRDF disables collision checks.

    Raises
    ------
    ExcitationError
        No such file, or not an SRDF.
    """
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise ExcitationError(f"{path}: larger than {_MAX_BYTES // 2**20} MiB; this is not an SRDF")
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
        root = etree.fromstring(Path(path).read_bytes(), parser)
    except OSError as error:
        raise ExcitationError(f"{path}: SRDF cannot be read ({error.strerror}); correct collision.srdf") from None
    except etree.XMLSyntaxError as error:
        raise ExcitationError(f"{path}: SRDF is not XML ({error}); correct the file") from None
    if root.tag != "robot":
        raise ExcitationError(f"{path}: root element is <{root.tag}>, expected <robot>; give an SRDF file")
    disabled = root.iter("disable_collisions")
    return {frozenset((str(element.get("link1")), str(element.get("link2")))) for element in disabled}


def named_pairs(ignored: Mapping[str, Sequence[str]], objects: Sequence[CollisionObject]) -> set[frozenset[str]]:
    """Pairs of each link or obstacle with each of those given for it.

    Raises
    ------
    ExcitationError
        A name that is neither link nor obstacle.
    """
    available = {item.name for item in objects} | {FLOOR}
    pairs = set()
    for names in ((first, second) for first, others in ignored.items() for second in others):
        for name in names:
            if name not in available:
                raise ExcitationError(
                    f"collision.ignored: '{name}' is no link with collision shapes and no obstacle; there are"
                    f" {', '.join(sorted(available))}"
                )
        pairs.add(frozenset(names))
    return pairs
