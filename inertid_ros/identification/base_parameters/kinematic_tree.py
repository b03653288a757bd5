"""Kinematic trees without the rounding of URDF files."""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.rotors import with_rotors

_ROUNDING_RAD = 2e-5  # right angles written with five digits (1.5708, 3.1416) and their sums
_ROUNDING_LENGTH_SHARE = 1e-5  # of the robot's typical link length


@dataclass(frozen=True)
class KinematicTree:
    """A tree of bodies, each behind one revolute or prismatic joint: links, then rotors as bodies.

    Attributes
    ----------
    parents : tuple of int
        ``(nb,)`` index of the parent body, -1 for the world; parents come before children.
    rotations, translations : ndarray, shape (nb, 3, 3) and (nb, 3)
        Pose of the joint frame in the parent's frame at q = 0 [m].
    axes : ndarray, shape (nb, 6)
        Motion subspace in the joint frame, linear then angular, one of them a unit vector and the other zero. A body
        whose axis is all zero is a base that moves freely.
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
        """``(nb,)`` bodies that move freely."""
        return np.logical_not(np.any(self.axes, axis=1))

    @property
    def length(self) -> float:
        """Typical distance [m] between joints; 1 where all joints meet in one point."""
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
        np.vstack([model.axes, *axes]),
        np.array(kinematics.gravity.linear),
    )


def tidy(tree: KinematicTree) -> KinematicTree:
    """Set nearly zero angles and offsets of a tree to zero.

    A file with 1.5708 for a right angle makes axes meet, cross or run in parallel up to some microradians only, and so
    adds base parameters that no measurement can ever show. Angles in between stay as they are.
    """
    axes = np.where(np.abs(tree.axes) < _ROUNDING_RAD, 0.0, tree.axes)
    rounding = _ROUNDING_LENGTH_SHARE * tree.length
    return replace(
        tree,
        rotations=np.array([_tidy_rotation(rotation) for rotation in tree.rotations]),
        translations=np.where(np.abs(tree.translations) < rounding, 0.0, tree.translations),
        axes=axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), 1e-300),
    )


def tidied(model: RobotModel) -> RobotModel:
    """Robot with the kinematics of :func:`tidy`; its URDF text stays as it is."""
    tree, old, layout = tidy(kinematic_tree(model)), model.pinocchio, model.layout
    new, links = pin.Model(), len(layout.links)
    new.gravity = old.gravity
    for body in range(links):
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
    for body, rotor in enumerate(layout.rotors, start=links):
        link = new.frames[new.getFrameId(rotor.link, pin.FrameType.BODY)]
        placement = link.placement.actInv(pin.SE3(tree.rotations[body], tree.translations[body]))
        angles, axis = pin.rpy.matrixToRpy(placement.rotation), tree.axes[body, 3:]
        rotors.append(replace(rotor, xyz=tuple(placement.translation), rpy=tuple(angles), axis=tuple(axis)))
    return replace(model, pinocchio=new, layout=replace(layout, rotors=tuple(rotors)))


def _tidy_rotation(rotation: Array) -> Array:
    """Set small elements to zero if that leaves a rotation."""
    sparse = np.where(np.abs(rotation) < _ROUNDING_RAD, 0.0, rotation)
    if np.abs(sparse @ sparse.T - np.eye(3)).max() > 3 * _ROUNDING_RAD**2:
        return rotation
    left, _, right = np.linalg.svd(sparse)
    nearest = left @ right
    return np.where(np.abs(nearest) < 1e-15, 0.0, nearest)
