"""Kinematic trees as base parameters see them: placements and axes, with the rounding of URDF files taken out."""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from ...robot.model import RobotModel
from ...robot.parameters import Array

ROUNDING_RAD = 2e-5  # right angles written with five digits (1.5708, 3.1416) and their sums
ROUNDING_LENGTH = 1e-5  # of the robot's typical link length


@dataclass(frozen=True)
class KinematicTree:
    """A tree of bodies, each behind one revolute or prismatic joint; parents come before children.

    Attributes
    ----------
    parents: ``(nb,)`` index of the parent body, -1 for the world.
    rotations, translations: ``(nb, 3, 3)`` and ``(nb, 3)`` [m]: pose of the joint frame in the parent's frame at q = 0.
    axes: ``(nb, 6)`` motion subspace in the joint frame, linear then angular, one of them a unit vector and the
        other zero. A body whose axis is all zero is a base that moves freely.
    gravity: ``(3,)`` m/s^2 in the world's frame; zero where there is none, or where it shows nothing.
    """

    parents: tuple[int, ...]
    rotations: Array
    translations: Array
    axes: Array
    gravity: Array

    def __post_init__(self) -> None:
        count = len(self.parents)
        shapes = {"rotations": (count, 3, 3), "translations": (count, 3), "axes": (count, 6), "gravity": (3,)}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name}: shape {np.shape(getattr(self, name))} found, {shape} expected")
        if any(not -1 <= parent < body for body, parent in enumerate(self.parents)):
            raise ValueError("parents: every parent must come before its children, -1 is the world")
        if np.any(self.free & (np.array(self.parents) >= 0)):
            raise ValueError("axes: only a body whose parent is the world can move freely; give an axis")
        both = self.axes[:, :3].any(axis=1) & self.axes[:, 3:].any(axis=1)
        if np.any(both) or np.any(np.abs(np.linalg.norm(self.axes[~self.free], axis=1) - 1) > 1e-9):
            raise ValueError("axes: linear or angular part must be a unit vector and the other zero")

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
    """Tree of a fixed-base robot, as its URDF gives it."""
    kinematics = model.pinocchio
    placements = list(kinematics.jointPlacements)[1:]
    return KinematicTree(
        tuple(parent - 1 for parent in list(kinematics.parents)[1:]),
        np.array([placement.rotation for placement in placements]),
        np.array([placement.translation for placement in placements]),
        model.axes,
        np.array(kinematics.gravity.linear),
    )


def tidy(tree: KinematicTree, angle: float = ROUNDING_RAD, length: float = ROUNDING_LENGTH) -> KinematicTree:
    """Tree whose nearly zero angles and offsets are zero.

    A file that says 1.5708 for a right angle makes axes meet, cross or run in parallel up to some microradians only,
    and so adds base parameters that no measurement can ever show. Angles in between stay as they are.

    Parameters
    ----------
    angle: [rad] and length: as a share of the typical link length, below which a deviation counts as rounding.
    """
    return replace(
        tree,
        rotations=np.array([_tidy_rotation(rotation, angle) for rotation in tree.rotations]),
        translations=np.where(np.abs(tree.translations) < length * tree.length, 0.0, tree.translations),
        axes=np.array([_tidy_axis(axis, angle) for axis in tree.axes]),
    )


def tidied(model: RobotModel) -> RobotModel:
    """The robot with the kinematics of :func:`tidy`; its URDF text stays as it is."""
    tree, old, new = tidy(kinematic_tree(model)), model.pinocchio, pin.Model()
    new.gravity = old.gravity
    for body, parent in enumerate(tree.parents):
        linear, angular = tree.axes[body, :3], tree.axes[body, 3:]
        joint = pin.JointModelRevoluteUnaligned(angular) if angular.any() else pin.JointModelPrismaticUnaligned(linear)
        placement = pin.SE3(tree.rotations[body], tree.translations[body])
        new.addJoint(parent + 1, joint, placement, old.names[body + 1])
        new.inertias[body + 1] = old.inertias[body + 1]
    return replace(model, pinocchio=new)


def _tidy_rotation(rotation: Array, angle: float) -> Array:
    """The rotation with small entries set to zero, where that leaves a rotation; else unchanged."""
    sparse = np.where(np.abs(rotation) < angle, 0.0, rotation)
    if np.abs(sparse @ sparse.T - np.eye(3)).max() > 3 * angle**2:
        return rotation
    left, _, right = np.linalg.svd(sparse)
    nearest = left @ right
    return np.where(np.abs(nearest) < 1e-15, 0.0, nearest)


def _tidy_axis(axis: Array, angle: float) -> Array:
    sparse = np.where(np.abs(axis) < angle, 0.0, axis)
    return sparse / max(float(np.linalg.norm(sparse)), 1e-300)
