"""Everything that can touch or be touched: links and obstacles, each a set of capsules and of exact shapes."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.kinematics.chain import Chain
from inertid_ros.kinematics.lever_arms import reaches
from inertid_ros.robot.geometry.capsules import Capsule, shape_capsules
from inertid_ros.robot.geometry.collision_shapes import CollisionShape, collision_shapes
from inertid_ros.robot.model import RobotModel

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Thing:
    """A link or an obstacle.

    Attributes
    ----------
    name : str
        Of the link or obstacle.
    body : int
        Index of the moving body that carries it; -1 for what does not move.
    capsules : tuple of Capsule
        That contain it, in the frame of that body.
    shapes : tuple of CollisionShape
        What it is; empty where the URDF has no usable geometry and the capsules are lines between its joints.
    """

    name: str
    body: int
    capsules: tuple[Capsule, ...]
    shapes: tuple[CollisionShape, ...] = ()


def robot_things(model: RobotModel, folders: Sequence[str]) -> tuple[Thing, ...]:
    """The links of a robot. A moving body without usable geometry is represented by lines between its joints.

    What is not represented in full is told in a warning.
    """
    shapes, problems = collision_shapes(model, folders)
    problems = dict(problems)
    found: dict[str, Thing] = {}
    for shape in shapes:
        try:
            capsules = shape_capsules(shape)
        except ModelError as error:
            problems.setdefault(shape.link, str(error))
            continue
        before = found.get(shape.link, Thing(shape.link, shape.body, ()))
        found[shape.link] = Thing(
            shape.link, shape.body, (*before.capsules, *capsules), (*before.shapes, shape)
        )
    bare = [body for body in range(model.joints) if all(thing.body != body for thing in found.values())]
    if problems or bare:
        _notice(_words(model, problems, bare))
    return (*found.values(), *(_bones(model, body) for body in bare))


def _words(model: RobotModel, problems: dict[str, str], bare: list[int]) -> str:
    words = []
    if problems:
        link = next(iter(problems))
        others = f", nor can that of {', '.join(list(problems)[1:])}" if len(problems) > 1 else ""
        words.append(f"collision geometry cannot be used: {problems[link]}{others}")
    if bare:
        names = ", ".join(model.link_names[body] for body in bare)
        words.append(
            f"no collision geometry for {names}: of these only the lines between joints keep clear of floor and"
            " obstacles, and nothing of each other"
        )
    return "; ".join(words)


@lru_cache(maxsize=64)
def _notice(words: str) -> None:
    """Once for each robot, however often it is looked at."""
    _log.warning("%s", words)


def _bones(model: RobotModel, body: int) -> Thing:
    """Lines of no width from a body's joint to the joints and frames that it carries."""
    robot, joint = model.pinocchio, body + 1
    ends = [robot.jointPlacements[child].translation for child in robot.children[joint]]
    ends += [
        frame.placement.translation
        for frame in robot.frames
        if frame.parentJoint == joint and frame.type == pin.FrameType.BODY
    ]
    origin = np.zeros(3)
    return Thing(model.link_names[body], body, tuple(Capsule(origin, np.array(end), 0.0) for end in ends))


def obstacle_thing(shape: CollisionShape) -> Thing:
    """An obstacle."""
    return Thing(shape.link, shape.body, shape_capsules(shape), (shape,))


def thing_reaches(model: RobotModel, thing: Thing) -> Array:
    """``(n,)`` bound [m] of how far a point of a thing moves per radian (metre) of each joint, in any pose."""
    farthest = [
        np.linalg.norm(end) + capsule.radius for capsule in thing.capsules for end in (capsule.start, capsule.end)
    ]
    return reaches(model, thing.body, float(max(farthest)))


class CapsuleSet:
    """The capsules of many things as arrays, and where they are in given poses.

    Attributes
    ----------
    thing : ndarray, shape (C,)
        Index of the thing that each belongs to; capsules of one thing are neighbours. The last capsule is a point that
        belongs to none and stands for the floor.
    radius, half : ndarray, shape (C,)
        Half the length of the axis [m].
    """

    def __init__(self, things: Sequence[Thing]) -> None:
        entries = [(index, thing.body, capsule) for index, thing in enumerate(things) for capsule in thing.capsules]
        entries.append((len(things), -1, Capsule(np.zeros(3), np.zeros(3), 0.0)))
        self.thing = np.array([index for index, _, _ in entries])
        self._body = np.array([body for _, body, _ in entries])
        self._start = np.array([capsule.start for _, _, capsule in entries]).reshape(-1, 3)
        self._end = np.array([capsule.end for _, _, capsule in entries]).reshape(-1, 3)
        self.radius = np.array([capsule.radius for _, _, capsule in entries])
        self.half = 0.5 * np.linalg.norm(self._end - self._start, axis=1)

    def ends(self, placements: Array) -> tuple[Array, Array]:
        """``(3, N, C)`` both ends in the root frame, from ``(N, n, 4, 4)`` placements of the bodies."""
        whole = with_root(placements)[:, self._body]
        points = np.stack([self._start, self._end], axis=-1)  # (C, 3, 2)
        moved = whole[..., :3, :3] @ points + whole[..., :3, 3, None]
        start, end = np.ascontiguousarray(moved.transpose(3, 2, 0, 1))
        return start, end


def with_root(placements: Array) -> Array:
    """``(N, n + 1, 4, 4)``: the root itself behind the bodies, so that index -1 finds it."""
    root = np.broadcast_to(np.eye(4), (len(placements), 1, 4, 4))
    return np.concatenate([placements, root], axis=1)


def carried(chain: Chain) -> Array:
    """``(n + 1, n)`` which joints move a body, the root (none) last."""
    return np.vstack([chain.ancestry.T, np.zeros((1, len(chain.parents)), dtype=bool)])
