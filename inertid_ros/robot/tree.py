"""The kinematic tree with every joint along the z axis of a frame of its own, for batched recursions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import skew
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, transform


@dataclass(frozen=True)
class TreeJoint:
    """One joint and the body behind it; the body's frame here is its joint frame turned until z is the axis.

    Attributes
    ----------
    parent : int
        Index of the body before it; -1 at the root.
    prismatic : bool
        It slides along z, else it turns about z.
    ancestors : tuple of int
        The velocities that move the body, root first, its own last: six of a free base, one of every joint.
    rotation : ndarray, shape (3, 3)
        This frame in the joint frame.
    placement_rotation, placement_translation : ndarray
        This frame at zero position in that of the parent, ``(3, 3)``, ``(3,)``.
    free : bool
        No joint at all, but a base that moves freely; only the first body can be.
    """

    parent: int
    prismatic: bool
    ancestors: tuple[int, ...]
    rotation: Array
    placement_rotation: Array
    placement_translation: Array
    free: bool = False

    @cached_property
    def axis(self) -> Array:
        """``(6,)`` motion subspace (linear, angular) in the joint frame; zero for a free base."""
        out = np.zeros(6)
        if not self.free:
            out[slice(0, 3) if self.prismatic else slice(3, 6)] = self.rotation[:, 2]
        return out

    @cached_property
    def motion_transform(self) -> Array:
        """``(6, 6)``: a motion (linear, angular) of the parent seen in this frame at zero position."""
        R, p = self.placement_rotation, self.placement_translation
        return np.block([[R.T, -R.T @ skew(p)], [np.zeros((3, 3)), R.T]])

    @cached_property
    def turned_parameters(self) -> Array:
        """``(10, 10)``: body parameters in the joint frame to those in this frame."""
        return transform(np.eye(BODY_PARAMETERS), self.rotation.T, np.zeros(3)).T

    @cached_property
    def parent_parameters(self) -> Array:
        """``(10, 10)``: body parameters in this frame at zero position to those in the parent's."""
        return transform(np.eye(BODY_PARAMETERS), self.placement_rotation, self.placement_translation).T


def tree_joints(kinematics: pin.Model, axes: Array) -> tuple[TreeJoint, ...]:
    """Joints of a Pinocchio model whose motion subspaces, (linear, angular), are ``axes (nb, 6)``, zero for a free
    base."""
    joints: list[TreeJoint] = []
    for index, axis in enumerate(axes):
        if not axis.any():
            joints.append(TreeJoint(-1, False, tuple(range(6)), np.eye(3), np.eye(3), np.zeros(3), free=True))
            continue
        prismatic = not axis[3:].any()
        rotation = _frame_of(axis[:3] if prismatic else axis[3:])
        parent = int(kinematics.parents[index + 1]) - 1
        before = joints[parent].rotation if parent >= 0 else np.eye(3)
        placement = kinematics.jointPlacements[index + 1]
        joints.append(
            TreeJoint(
                parent=parent,
                prismatic=prismatic,
                ancestors=(*(joints[parent].ancestors if parent >= 0 else ()), kinematics.joints[index + 1].idx_v),
                rotation=rotation,
                placement_rotation=before.T @ placement.rotation @ rotation,
                placement_translation=before.T @ placement.translation,
            )
        )
    return tuple(joints)


def path(joints: Sequence[TreeJoint], body: int) -> list[int]:
    """Bodies from the root to a body."""
    found: list[int] = []
    while body >= 0:
        found.append(body)
        body = joints[body].parent
    return found[::-1]


def subtree(joints: Sequence[TreeJoint], bodies: Sequence[int]) -> tuple[TreeJoint, ...]:
    """Joints before some bodies in ascending order, among which are the parents of all of them, as a tree of its own.

    ``ancestors`` are velocities of the whole tree as before.
    """
    index = {body: place for place, body in enumerate(bodies)}
    return tuple(replace(joints[body], parent=index.get(joints[body].parent, -1)) for body in bodies)


def _frame_of(axis: Array) -> Array:
    """Rotation whose third column is ``axis``; a signed permutation, without rounding, where the axis is x, y or z."""
    axis = np.where(np.abs(axis) < 1e-15, 0.0, axis)
    axis = axis / np.linalg.norm(axis)
    helper = np.eye(3)[np.argmin(np.abs(axis))]
    first = np.cross(helper, axis)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])
