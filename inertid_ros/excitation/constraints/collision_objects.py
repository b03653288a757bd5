"""Collision objects (links and obstacles), and the pairs of objects to keep apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.excitation import OBSTACLE_SHAPES, ObstacleOptions
from inertid_ros.core.errors import ExcitationError, FormatError, log_once
from inertid_ros.core.formats import read_bytes
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf.shapes import Capsule, CollisionShape, shape_capsules

_MAX_SRDF_BYTES = 16 * 1024 * 1024
FLOOR = "floor"

Pair = tuple[int, int]


@dataclass(frozen=True)
class CollisionObject:
    """Link or obstacle, fixed to a moving ``body``; -1 is the root.

    A link without usable geometry has ``lines``: rods of zero width between joints.
    """

    name: str
    body: int
    shapes: tuple[CollisionShape, ...]
    lines: bool = False

    @cached_property
    def capsules(self) -> tuple[Capsule, ...]:
        """Capsules that contain the object, in the frame of its body."""
        return tuple(capsule for shape in self.shapes for capsule in shape_capsules(shape))


def robot_objects(model: RobotModel, folders: Sequence[str]) -> tuple[CollisionObject, ...]:
    """Links of a robot; lines between joints replace a moving body without usable geometry, with a warning."""
    shapes, problems = collision_shapes(model, folders)
    solid, links = {shape.body for shape in shapes}, dict[str, list[CollisionShape]]()
    bare = [body for body in range(model.joints) if body not in solid]
    if problems or bare:
        log_once(_message(model, problems, bare))
    for shape in shapes:
        links.setdefault(shape.link, []).append(shape)
    objects = (CollisionObject(name, own[0].body, tuple(own)) for name, own in links.items())
    return (*objects, *(CollisionObject(model.link_names[body], body, _rods(model, body), True) for body in bare))


def _message(model: RobotModel, problems: dict[str, str], bare: list[int]) -> str:
    sentences = []
    if problems:
        link = next(iter(problems))
        others = f"; also of {', '.join(list(problems)[1:])}" if len(problems) > 1 else ""
        sentences.append(f"collision geometry cannot be used: {problems[link]}{others}")
    if bare:
        names = ", ".join(model.link_names[body] for body in bare)
        sentences.append(
            f"no collision geometry for {names}: only lines between their joints keep clear of floor and obstacles,"
            " without checks against other links")
    return "; ".join(sentences)


def _rods(model: RobotModel, body: int) -> tuple[CollisionShape, ...]:
    """Capsules of zero width from a body's joint to the joints and frames fixed to the body."""
    robot, joint = model.pinocchio, body + 1
    ends = [np.array(robot.jointPlacements[child].translation) for child in robot.children[joint]]
    fixed = (frame for frame in robot.frames if frame.parentJoint == joint and frame.type == pin.FrameType.BODY)
    ends += [np.array(frame.placement.translation) for frame in fixed]
    along = pin.Quaternion.FromTwoVectors
    turns = [along(np.array([0.0, 0.0, 1.0]), end).matrix() if end.any() else np.eye(3) for end in ends]
    placements = (pin.SE3(turn, 0.5 * end).homogeneous for turn, end in zip(turns, ends, strict=True))
    sizes, name = ((0.0, float(np.linalg.norm(end))) for end in ends), model.link_names[body]
    return tuple(CollisionShape(name, body, at, "capsule", size) for at, size in zip(placements, sizes, strict=True))


def obstacle_objects(obstacles: Mapping[str, ObstacleOptions]) -> tuple[CollisionObject, ...]:
    """Obstacles by name, fixed to the root."""
    objects = []
    for name, options in obstacles.items():
        sizes = [np.atleast_1d(getattr(options, field)) for field in OBSTACLE_SHAPES[options.shape]]
        placement = pin.SE3(pin.rpy.rpyToMatrix(np.array(options.rpy)), np.array(options.xyz))
        shape = CollisionShape(name, -1, placement.homogeneous, options.shape, tuple(np.concatenate(sizes)))
        objects.append(CollisionObject(name, -1, (shape,)))
    return tuple(objects)


def candidate_pairs(
        model: RobotModel, objects: Sequence[CollisionObject], obstacles: int, between_links: bool) -> list[Pair]:
    """Pairs of objects that move relative to each other and are not adjacent at a joint.

    The last ``obstacles`` objects are obstacles. Links with ``lines`` are kept apart from obstacles only.
    """
    links = len(objects) - obstacles
    groups, adjacent = _rigid_groups(parsing.parse_description(model.urdf))

    def may_meet(first: int, second: int) -> bool:
        a, b = objects[first], objects[second]
        if first >= links or a.body == b.body:
            return False
        if second >= links:
            return True
        near = frozenset((groups[a.name], groups[b.name])) in adjacent
        return between_links and not (near or a.lines or b.lines)

    return [pair for pair in combinations(range(len(objects)), 2) if may_meet(*pair)]


def _rigid_groups(root: etree._Element) -> tuple[dict[str, str], set[frozenset[str]]]:
    """Name of the rigid group of each link (links connected by fixed joints); pairs of equal or adjacent groups."""
    joints = [(*parsing.ends(joint), joint.get("type") == "fixed") for joint in root.findall("joint")]
    parent_of = {child: parent for parent, child, fixed in joints if fixed}

    def first(link: str) -> str:
        while link in parent_of:
            link = parent_of[link]
        return link

    groups = {name: first(name) for name in parsing.by_name(root, "link")}
    adjacent = {frozenset((groups[parent], groups[child])) for parent, child, fixed in joints if not fixed}
    return groups, adjacent | {frozenset((group,)) for group in groups.values()}


def srdf_pairs(path: str) -> set[frozenset[str]]:
    """Pairs of links for which an SRDF disables collision checks."""
    try:
        root = parsing.parse_xml(read_bytes(path, _MAX_SRDF_BYTES))
    except FormatError as error:
        raise ExcitationError(f"{path}: {error}; this is not an SRDF") from None
    except OSError as error:
        raise ExcitationError(f"{path}: SRDF cannot be read ({error.strerror}); correct collision.srdf") from None
    except etree.XMLSyntaxError as error:
        raise ExcitationError(f"{path}: SRDF is not XML ({error}); correct the file") from None
    if root.tag != "robot":
        raise ExcitationError(f"{path}: root element is <{root.tag}>, expected <robot>; give an SRDF file")
    disabled = root.iter("disable_collisions")
    return {frozenset((str(element.get("link1")), str(element.get("link2")))) for element in disabled}


def named_pairs(ignored: Mapping[str, Sequence[str]], objects: Sequence[CollisionObject]) -> set[frozenset[str]]:
    """Pairs of each link or obstacle in ``ignored`` with each object in its list; unknown names are refused."""
    available = {item.name for item in objects} | {FLOOR}
    pairs = set()
    for names in ((first, second) for first, others in ignored.items() for second in others):
        for name in names:
            if name not in available:
                raise ExcitationError(
                    f"collision.ignored: '{name}' is neither a link with collision shapes nor an obstacle; give some of"
                    f" {', '.join(sorted(available))}")
        pairs.add(frozenset(names))
    return pairs
