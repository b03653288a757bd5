"""Collision objects: links and obstacles, each as a set of capsules and of exact shapes."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.config.collision import OBSTACLE_SHAPES, ObstacleOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.log_once import log_once
from inertid_ros.kinematics.lever_arms import lever_arm_bounds
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
from inertid_ros.robot.geometry.capsules import Capsule, shape_capsules
from inertid_ros.robot.geometry.collision_shapes import CollisionShape
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class CollisionObject:
    """A link or an obstacle.

    Attributes
    ----------
    name : str
        Name of the link or obstacle.
    body : int
        Index of the moving body that it is fixed to; -1 for the root.
    capsules : tuple of Capsule
        Capsules that contain it, in the frame of that body.
    shapes : tuple of CollisionShape
        Its exact shapes; empty where the URDF has no usable geometry and the capsules are lines between its joints.
    """

    name: str
    body: int
    capsules: tuple[Capsule, ...]
    shapes: tuple[CollisionShape, ...] = ()


def robot_objects(model: RobotModel, folders: Sequence[str]) -> tuple[CollisionObject, ...]:
    """The links of a robot. A moving body without usable geometry is represented by lines between its joints.

    A warning names what is not represented in full.
    """
    shapes, problems = collision_shapes(model, folders)
    links: dict[str, CollisionObject] = {}
    for shape in shapes:
        before = links.get(shape.link, CollisionObject(shape.link, shape.body, ()))
        links[shape.link] = CollisionObject(
            shape.link, shape.body, (*before.capsules, *shape_capsules(shape)), (*before.shapes, shape)
        )
    bare = [body for body in range(model.joints) if all(item.body != body for item in links.values())]
    if problems or bare:
        log_once(logging.WARNING, _message(model, problems, bare))
    return (*links.values(), *(_joint_lines(model, body) for body in bare))


def _message(model: RobotModel, problems: dict[str, str], bare: list[int]) -> str:
    sentences = []
    if problems:
        link = next(iter(problems))
        others = f", nor can that of {', '.join(list(problems)[1:])}" if len(problems) > 1 else ""
        sentences.append(f"collision geometry cannot be used: {problems[link]}{others}")
    if bare:
        names = ", ".join(model.link_names[body] for body in bare)
        sentences.append(
            f"no collision geometry for {names}: of these only the lines between joints keep clear of floor and"
            " obstacles, and nothing of each other"
        )
    return "; ".join(sentences)


def _joint_lines(model: RobotModel, body: int) -> CollisionObject:
    """Lines of no width from a body's joint to the joints and frames fixed to it."""
    robot, joint = model.pinocchio, body + 1
    ends = [robot.jointPlacements[child].translation for child in robot.children[joint]]
    ends += [
        frame.placement.translation
        for frame in robot.frames
        if frame.parentJoint == joint and frame.type == pin.FrameType.BODY
    ]
    origin = np.zeros(3)
    return CollisionObject(model.link_names[body], body, tuple(Capsule(origin, np.array(end), 0.0) for end in ends))


def obstacle_objects(obstacles: Mapping[str, ObstacleOptions]) -> tuple[CollisionObject, ...]:
    """Obstacles by name, fixed to the root."""
    objects = []
    for name, options in obstacles.items():
        sizes = [np.atleast_1d(getattr(options, field)) for field in OBSTACLE_SHAPES[options.shape]]
        placement = pin.SE3(pin.rpy.rpyToMatrix(np.array(options.rpy)), np.array(options.xyz))
        shape = CollisionShape(name, -1, placement.homogeneous, options.shape, tuple(np.concatenate(sizes)))
        objects.append(CollisionObject(name, -1, shape_capsules(shape), (shape,)))
    return tuple(objects)


def object_lever_arms(model: RobotModel, item: CollisionObject) -> Array:
    """``(n,)`` bound [m] of how far a point of an object moves per radian (metre) of each joint, in any pose."""
    farthest = [
        np.linalg.norm(end) + capsule.radius for capsule in item.capsules for end in (capsule.start, capsule.end)
    ]
    return lever_arm_bounds(model, item.body, float(max(farthest)))


class CapsuleSet:
    """The capsules of many objects as arrays, and where they are in given poses.

    Attributes
    ----------
    owner : ndarray of int, shape (C,)
        Index of the object that each belongs to; capsules of one object are adjacent. The last capsule is a point that
        belongs to none and represents the floor.
    radius, half : ndarray, shape (C,)
        Radius, and half the length of the axis [m].
    """

    def __init__(self, objects: Sequence[CollisionObject]) -> None:
        capsules = [(index, item.body, capsule) for index, item in enumerate(objects) for capsule in item.capsules]
        capsules.append((len(objects), -1, Capsule(np.zeros(3), np.zeros(3), 0.0)))
        self.owner = np.array([index for index, _, _ in capsules])
        self._body = np.array([body for _, body, _ in capsules])
        self._start = np.array([capsule.start for _, _, capsule in capsules]).reshape(-1, 3)
        self._end = np.array([capsule.end for _, _, capsule in capsules]).reshape(-1, 3)
        self.radius = np.array([capsule.radius for _, _, capsule in capsules])
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


def moving_joints(chain: TreeKinematics) -> Array:
    """``(n + 1, n)`` bool: which joints move each body; the root, which none moves, is last."""
    return np.vstack([chain.ancestry.T, np.zeros((1, len(chain.parents)), dtype=bool)])
