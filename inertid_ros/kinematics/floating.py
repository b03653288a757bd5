"""Kinematics of a tree on a base that moves freely, many samples at a time, seen from the base.

Nothing here depends on the pose of the base: frames, velocities and momentum are expressed in the base frame at its
origin. Arrays hold the samples along the last axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.tree import TreeJoint


@dataclass(frozen=True)
class BodyMotion:
    """One body at k samples, in base coordinates.

    Attributes
    ----------
    rotation, position: ``(3, 3, k)`` and ``(3, k)`` [m] of the body's joint frame.
    linear, angular: ``(3, k)`` velocity of that frame's origin [m/s] and of the body [rad/s].
    """

    rotation: Array
    position: Array
    linear: Array
    angular: Array


def body_motions(tree: Sequence[TreeJoint], twist: Array, q: Array, v: Array) -> list[BodyMotion]:
    """Motion of the base and of the body behind every joint (B 14-17).

    Parameters
    ----------
    tree: whose first body is the base.
    twist: ``(6, k)`` of the base in its own frame, linear then angular.
    q, v: ``(n, k)`` joint positions and velocities.
    """
    count = twist.shape[1]
    eye = np.repeat(np.eye(3)[:, :, None], count, axis=2)
    base = BodyMotion(eye, np.zeros((3, count)), twist[:3], twist[3:])
    aligned, out = [base], [base]  # with the joint along z, and in the joint frame of the URDF
    for joint, position, rate in zip(tree[1:], q, v, strict=True):
        parent = aligned[joint.parent]
        rotation = np.einsum("ijk,jl->ilk", parent.rotation, joint.placement_rotation)
        offset = np.einsum("ijk,j->ik", parent.rotation, joint.placement_translation)
        axis = rotation[:, 2]
        linear, angular = parent.linear, parent.angular
        if joint.prismatic:
            offset = offset + axis * position
            linear = linear + axis * rate
        else:
            sin, cos = np.sin(position), np.cos(position)
            x, y = rotation[:, 0], rotation[:, 1]
            rotation = np.stack([cos * x + sin * y, cos * y - sin * x, axis], axis=1)
            angular = angular + axis * rate
        linear = linear + cross(parent.angular, offset)
        moved = BodyMotion(rotation, parent.position + offset, linear, angular)
        aligned.append(moved)
        turned = np.einsum("ijk,lj->ilk", rotation, joint.rotation)
        out.append(BodyMotion(turned, moved.position, linear, angular))
    return out


def cross(a: Array, b: Array) -> Array:
    """Cross product over the first axis."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rotations(quaternions: Array) -> Array:
    """``(3, 3, k)`` rotation matrices of ``(k, 4)`` quaternions (x, y, z, w), normalised here."""
    x, y, z, w = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
