"""Kinematic trees without the rounding of URDF files, and the transforms of their joints.

The velocity and the parameters of the body behind a joint depend on the joint position only by a few independent
functions, ``X(q) = sum_k phi_k(q) X_k``: 1, cos q, sin q, cos 2q, sin 2q behind a revolute joint; 1, q, q^2 behind a
prismatic joint.
"""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, transform
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


def joint_motion(tree: KinematicTree) -> tuple[Array, Array]:
    """Split the transforms of velocity and parameters for every joint of a tree by the functions of q.

    Five functions make both transforms, so their values at five positions give the coefficients.

    Returns
    -------
    velocity : ndarray, shape (nb, 5, 6, 6)
        Coefficients of the transforms of the parent's velocity (linear, angular, at the parent's origin) to the body's
        frame; axis 1 is the function, the constant first.
    parameters : ndarray, shape (nb, 5, 10, 10)
        Coefficients of the transforms of the body's parameters to the parent's frame.
    """
    velocity, parameters, angles = [], [], 0.4 * np.pi * np.arange(5)
    harmonics = [np.ones(5), np.cos(angles), np.sin(angles), np.cos(2 * angles), np.sin(2 * angles)]
    for rotation, translation, axis in zip(tree.rotations, tree.translations, tree.axes, strict=True):
        revolute, steps = axis[3:].any(), np.linspace(-1.0, 1.0, 5)
        q, functions = (angles, np.transpose(harmonics)) if revolute else (steps, np.vander(steps, increasing=True))
        poses = [pin.SE3(rotation, translation) * pin.exp6(pin.Motion(axis * position)) for position in q]
        moved = [transform(np.eye(BODY_PARAMETERS), pose.rotation, pose.translation).T for pose in poses]
        weights = np.linalg.inv(functions)
        velocity.append(np.tensordot(weights, [pose.actionInverse for pose in poses], 1))
        parameters.append(np.tensordot(weights, moved, 1))
    return np.array(velocity), np.array(parameters)
