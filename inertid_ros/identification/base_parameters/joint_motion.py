"""What the motion of a joint does to the velocity and to the parameters of the body behind it.

Both depend on the joint position through a few independent functions only, ``X(q) = sum_k phi_k(q) X_k``:
1, cos q, sin q, cos 2q, sin 2q behind a revolute joint, 1, q, q^2 behind a prismatic one.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import skew
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE
from inertid_ros.robot.bodies.inertial_parameters import PSEUDO_INERTIA_BASIS, from_pseudo_inertia

from .kinematic_tree import KinematicTree

SPATIAL_INERTIA_BASIS = WRENCH_TABLE[..., :6].swapaxes(0, 1)
"""``(10, 6, 6)``: spatial inertia (linear, then angular) of each unit parameter."""


@dataclass(frozen=True)
class JointMotion:
    """Coefficients of the functions of q, for every body of a tree; index 0 of axis 1 belongs to the constant.

    Attributes
    ----------
    velocity : ndarray, shape (nb, 3, 6, 6)
        A velocity of the parent (linear, angular, at its origin) seen at the body's origin.
    parameters : ndarray, shape (nb, 5, 10, 10)
        Parameters of the body seen in its parent's frame.
    parameters_at_zero : ndarray, shape (nb, 10, 10)
        The same at q = 0.
    """

    velocity: Array
    parameters: Array
    parameters_at_zero: Array


def joint_motion(tree: KinematicTree) -> JointMotion:
    """Split of both transforms for every joint of a tree."""
    count = len(tree.parents)
    linear, angular = tree.axes[:, :3], tree.axes[:, 3:]
    outer = angular[:, :, None] * angular[:, None, :]
    revolute = np.any(angular, axis=1, keepdims=True)[..., None]
    turns = np.zeros((count, 3, 3, 3))  # R(q) = turns_0 + cos q turns_1 + sin q turns_2
    turns[:, 0] = np.where(revolute, outer, np.eye(3))
    turns[:, 1] = np.where(revolute, np.eye(3) - outer, 0.0)
    turns[:, 2] = skew(angular)

    pose = np.zeros((count, 3, 4, 4))
    placement = np.zeros((count, 4, 4))
    placement[:, :3, :3], placement[:, :3, 3], placement[:, 3, 3] = tree.rotations, tree.translations, 1.0
    pose[:, :, :3, :3] = turns
    pose[:, 0, 3, 3] = 1.0
    pose[:, 1, :3, 3] += linear  # of a prismatic joint; its turns_1 is zero
    pose = placement[:, None] @ pose
    constant, first, second = pose[:, 0], pose[:, 1], pose[:, 2]

    cos2, sin2 = _congruence(first, first), _congruence(second, second)
    prismatic = np.any(linear, axis=1, keepdims=True)[..., None]
    parameters = np.stack(
        [
            _congruence(constant, constant) + np.where(prismatic, 0.0, 0.5 * (cos2 + sin2)),
            2.0 * _congruence(constant, first),
            2.0 * _congruence(constant, second),
            np.where(prismatic, cos2, 0.5 * (cos2 - sin2)),
            _congruence(first, second),
        ],
        axis=1,
    )

    to_joint = np.zeros((count, 6, 6))
    inverse = np.swapaxes(tree.rotations, 1, 2)
    to_joint[:, :3, :3] = to_joint[:, 3:, 3:] = inverse
    to_joint[:, :3, 3:] = -inverse @ skew(tree.translations)
    velocity = np.zeros((count, 3, 6, 6))
    velocity[:, :, :3, :3] = velocity[:, :, 3:, 3:] = np.swapaxes(turns, 2, 3)
    velocity[:, 1, :3, 3:] -= skew(linear)
    return JointMotion(velocity @ to_joint[:, None], parameters, _congruence(placement, placement))


def _congruence(left: Array, right: Array) -> Array:
    """``(..., 10, 10)`` matrices of ``J -> (left J right^T + right J left^T) / 2`` on parameters."""
    image = left[..., None, :, :] @ PSEUDO_INERTIA_BASIS @ np.swapaxes(right, -1, -2)[..., None, :, :]
    return np.swapaxes(from_pseudo_inertia(0.5 * (image + np.swapaxes(image, -1, -2))), -1, -2)
