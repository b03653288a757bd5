"""Kinematic trees without the rounding of URDF files, and the transforms of their joints.

The velocity and the parameters of the body behind a joint depend on the joint position only by a few independent
functions, ``X(q) = sum_k phi_k(q) X_k``: 1, cos q, sin q, cos 2q, sin 2q behind a revolute joint; 1, q, q^2 behind a
prismatic joint.
"""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array, skew
from inertid_ros.core.inertial_parameters import PSEUDO_INERTIA_BASIS, from_pseudo_inertia
from inertid_ros.robot.dynamics import WRENCH_TABLE
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.rotors import with_rotors

_ROUNDING_RAD = 2e-5  # right angles written with five digits (1.5708, 3.1416) and their sums
_ROUNDING_LENGTH_SHARE = 1e-5  # of the robot's typical link length
SPATIAL_INERTIA_BASIS = WRENCH_TABLE[..., :6].swapaxes(0, 1)
"""``(10, 6, 6)``: spatial inertia (linear, then angular) of each unit parameter."""


@dataclass(frozen=True)
class KinematicTree:
    """A tree of links and rotors, each behind one revolute or prismatic joint.

    Attributes
    ----------
    parents : tuple of int
        ``(nb,)`` index of the parent body, -1 for the world; parents come before children; rotors have no children and
        come last.
    rotations, translations : ndarray, shape (nb, 3, 3) and (nb, 3)
        Pose of the joint frame in the parent's frame at q = 0 [m].
    axes : ndarray, shape (nb, 6)
        Motion subspace in the joint frame, linear then angular: one part is a unit vector and the other part zero. A
        body with a zero axis is a base that moves freely.
    gravity : ndarray, shape (3,)
        In the world's frame [m/s^2]; zero without gravity.
    """

    parents: tuple[int, ...]
    rotations: Array
    translations: Array
    axes: Array
    gravity: Array

    @property
    def free(self) -> np.ndarray:
        """Mask ``(nb,)`` of bodies that move freely."""
        return np.logical_not(np.any(self.axes, axis=1))

    @property
    def length(self) -> float:
        """Typical distance [m] between joints; 1 if all joints meet in one point."""
        distances = np.linalg.norm(self.translations, axis=1)
        apart = distances[distances > 1e-9 * distances.max(initial=0.0)]
        return float(np.sqrt(np.mean(apart**2))) if apart.size else 1.0


def kinematic_tree(model: RobotModel) -> KinematicTree:
    """Kinematic tree of a robot, with the rounding of its URDF."""
    layout = model.layout
    kinematics = with_rotors(model.pinocchio, layout.rotors)
    placements = list(kinematics.jointPlacements)[1:]
    axes = [np.concatenate([np.zeros(3), rotor.unit_axis]) for rotor in layout.rotors]
    return KinematicTree(
        tuple(parent - 1 for parent in list(kinematics.parents)[1:]),
        np.array([placement.rotation for placement in placements]),
        np.array([placement.translation for placement in placements]),
        np.vstack([model.axes, *axes]), np.array(kinematics.gravity.linear))


def tidy(tree: KinematicTree) -> KinematicTree:
    """Set nearly zero angles and offsets of a tree to zero.

    With 1.5708 for a right angle in a file, axes meet, cross or run in parallel only up to some microradians. The
    rounding thus adds base parameters that cannot be measured. All other angles stay as they are.
    """
    axes = np.where(np.abs(tree.axes) < _ROUNDING_RAD, 0.0, tree.axes)
    rounding = _ROUNDING_LENGTH_SHARE * tree.length
    return replace(
        tree, rotations=np.array([_tidy_rotation(rotation) for rotation in tree.rotations]),
        translations=np.where(np.abs(tree.translations) < rounding, 0.0, tree.translations),
        axes=axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), 1e-300))


def tidied(model: RobotModel) -> RobotModel:
    """Robot with the kinematics of :func:`tidy`; its URDF text stays as it is."""
    tree, old, layout = tidy(kinematic_tree(model)), model.pinocchio, model.layout
    new = pin.Model()
    new.gravity = old.gravity
    for body in range(len(layout.links)):
        linear, angular = tree.axes[body, :3], tree.axes[body, 3:]
        if tree.free[body]:
            joint = pin.JointModelFreeFlyer()
        elif angular.any():
            joint = pin.JointModelRevoluteUnaligned(angular)
        else:
            joint = pin.JointModelPrismaticUnaligned(linear)
        placement = pin.SE3(tree.rotations[body], tree.translations[body])
        new.addJoint(tree.parents[body] + 1, joint, placement, old.names[body + 1])
        new.inertias[body + 1] = old.inertias[body + 1]
    for frame in list(old.frames)[1:]:
        if frame.type == pin.FrameType.BODY:
            new.addFrame(frame)
    rotors = []
    for body, rotor in enumerate(layout.rotors, start=len(layout.links)):
        link = new.frames[new.getFrameId(rotor.link, pin.FrameType.BODY)]
        placement = link.placement.actInv(pin.SE3(tree.rotations[body], tree.translations[body]))
        angles, axis = pin.rpy.matrixToRpy(placement.rotation), tree.axes[body, 3:]
        rotors.append(replace(rotor, xyz=tuple(placement.translation), rpy=tuple(angles), axis=tuple(axis)))
    return replace(model, pinocchio=new, layout=replace(layout, rotors=tuple(rotors)))


def _tidy_rotation(rotation: Array) -> Array:
    """Set small elements to zero if the result is still a rotation."""
    sparse = np.where(np.abs(rotation) < _ROUNDING_RAD, 0.0, rotation)
    if np.abs(sparse @ sparse.T - np.eye(3)).max() > 3 * _ROUNDING_RAD**2:
        return rotation
    left, _, right = np.linalg.svd(sparse)
    nearest = left @ right
    return np.where(np.abs(nearest) < 1e-15, 0.0, nearest)


@dataclass(frozen=True)
class JointMotion:
    """Coefficients ``X_k`` of the functions of q for every body of a tree; ``k`` is axis 1, and 0 is the constant.

    Attributes
    ----------
    velocity : ndarray, shape (nb, 3, 6, 6)
        Transforms of the parent's velocity (linear, angular, at the parent's origin) to the body's frame.
    parameters : ndarray, shape (nb, 5, 10, 10)
        Transforms of the body's parameters to the parent's frame.
    """

    velocity: Array
    parameters: Array
    parameters_at_zero: Array


def joint_motion(tree: KinematicTree) -> JointMotion:
    """Split the transforms of velocity and parameters for every joint of a tree."""
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
    average, half = np.where(prismatic, 0.0, 0.5 * (cos2 + sin2)), np.where(prismatic, cos2, 0.5 * (cos2 - sin2))
    parameters = np.stack([_congruence(constant, constant) + average, 2.0 * _congruence(constant, first),
        2.0 * _congruence(constant, second), half, _congruence(first, second)], axis=1)

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
