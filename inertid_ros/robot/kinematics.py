"""Kinematic tree of a robot, and its forward kinematics for many samples at once.

Placements, joint screws, velocities and accelerations are in the root frame: the world for a fixed base, the base frame
for a free base. Spatial vectors are (linear, angular) or (force, torque), about the root origin. With array arithmetic
over samples, a few hundred poses cost little more than one pose.
:class:`~inertid_ros.robot.dynamics.BodyRecursion` uses the same joints in the frames of the bodies, for regressors of
whole recordings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array, cross, skew
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, transform

from .urdf.joints import Mimic

if TYPE_CHECKING:
    from .model import RobotModel

BATCH = 4096  # samples in one computation: arrays of a body fit the cache, and calls cost little per sample


def batches(count: int, size: int = BATCH) -> Iterator[slice]:
    """Slices of ``count`` samples, batch after batch."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


@dataclass(frozen=True)
class TreeJoint:
    """One joint and the body behind it; the body frame is the joint frame, rotated so that z is the joint axis.

    Attributes
    ----------
    parent : index of the parent body; -1 at the root.
    prismatic : whether the joint slides along z; if not, it turns about z.
    ancestors : indices of the velocities that move the body, from root to body: six for a free base, one per joint.
        A velocity that moves mimic joints, too, can appear several times.
    rotation : (3, 3), body frame in the joint frame.
    placement_rotation, placement_translation : (3, 3), (3,), body frame at zero position in the parent's body frame.
    free : whether a free base takes the place of the joint; only for the first body.
    multiplier, offset : position of the joint is ``multiplier q + offset`` with the position ``q`` of the joint that
        drives it [rad or m]; 1 and 0 except for mimic joints.
    """

    parent: int
    prismatic: bool
    ancestors: tuple[int, ...]
    rotation: Array
    placement_rotation: Array
    placement_translation: Array
    free: bool = False
    multiplier: float = 1.0
    offset: float = 0.0

    @cached_property
    def axis(self) -> Array:
        """``(6,)`` motion subspace (linear, angular) in the joint frame; zero for a free base."""
        out = np.zeros(6)
        if not self.free:
            out[slice(0, 3) if self.prismatic else slice(3, 6)] = self.rotation[:, 2]
        return out

    @cached_property
    def motion_transform(self) -> Array:
        """``(6, 6)`` map of motions (linear, angular) from the parent's to this body frame, at zero position."""
        R, p = self.placement_rotation, self.placement_translation
        return np.block([[R.T, -R.T @ skew(p)], [np.zeros((3, 3)), R.T]])

    @cached_property
    def turned_parameters(self) -> Array:
        """``(10, 10)`` map of body parameters from the joint frame to the body frame."""
        return transform(np.eye(BODY_PARAMETERS), self.rotation.T, np.zeros(3)).T

    @cached_property
    def parent_parameters(self) -> Array:
        """``(10, 10)`` map of body parameters from the body frame at zero position to the parent's body frame."""
        return transform(np.eye(BODY_PARAMETERS), self.placement_rotation, self.placement_translation).T


def tree_joints(kinematics: pin.Model, axes: Array, mimics: Mapping[str, Mimic]) -> tuple[TreeJoint, ...]:
    """Joints of a Pinocchio model with motion subspaces ``axes (nb, 6)`` (linear, angular), zero for a free base.

    ``mimics`` are those joints that have no velocity of their own.
    """
    names = list(kinematics.names)[1:]
    before_joints = kinematics.nv - len(names)  # a free base has six velocities
    velocities = {name: k + before_joints for k, name in enumerate(name for name in names if name not in mimics)}
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
        mimic = mimics.get(names[index], Mimic(names[index]))
        ancestors = (*(joints[parent].ancestors if parent >= 0 else ()), velocities[mimic.leader])
        turned, translation = before.T @ placement.rotation @ rotation, before.T @ placement.translation
        joints.append(TreeJoint(parent, prismatic, ancestors, rotation, turned, translation,
            multiplier=mimic.multiplier, offset=mimic.offset))
    return tuple(joints)


def path(joints: Sequence[TreeJoint], body: int) -> list[int]:
    """Indices of the bodies from the root to a body."""
    bodies: list[int] = []
    while body >= 0:
        bodies.append(body)
        body = joints[body].parent
    return bodies[::-1]


def subtree(joints: Sequence[TreeJoint], bodies: Sequence[int]) -> tuple[TreeJoint, ...]:
    """Tree of a subset of bodies, ascending and with all parents; ``ancestors`` stay indices in the whole tree."""
    index = {body: place for place, body in enumerate(bodies)}
    return tuple(replace(joints[body], parent=index.get(joints[body].parent, -1)) for body in bodies)


def _frame_of(axis: Array) -> Array:
    """Rotation whose third column is ``axis``; exact (a signed permutation) if ``axis`` is x, y or z."""
    axis = np.where(np.abs(axis) < 1e-15, 0.0, axis)
    axis = axis / np.linalg.norm(axis)
    helper = np.eye(3)[np.argmin(np.abs(axis))]
    first = np.cross(helper, axis)
    first /= np.linalg.norm(first)
    return np.column_stack([first, np.cross(axis, first), axis])


def motion_cross(V: Array, M: Array) -> Array:
    """``V x M`` of spatial motions ``(..., 6)``."""
    v, w, m, k = V[..., :3], V[..., 3:], M[..., :3], M[..., 3:]
    return np.concatenate([cross(w, m) + cross(v, k), cross(w, k)], axis=-1)


def force_cross(V: Array, F: Array) -> Array:
    """``V x* F`` of a spatial motion and a spatial force ``(..., 6)``."""
    v, w, f, n = V[..., :3], V[..., 3:], F[..., :3], F[..., 3:]
    return np.concatenate([cross(w, f), cross(w, n) + cross(v, f)], axis=-1)


def turned_forces(placements: Array, forces: Array) -> Array:
    """``(..., 6, k)`` spatial forces about the root origin, in the root frame.

    ``forces`` are ``k`` forces (force, torque) in each frame of ``placements (..., 4, 4)``, about the frame's origin.
    """
    R, x = placements[..., :3, :3], placements[..., :3, 3]
    split = forces.reshape(*forces.shape[:-2], 2, 3, forces.shape[-1])
    out = R[..., None, :, :] @ split
    out[..., 1, :, :] += cross(x[..., None, :], out[..., 0, :, :].swapaxes(-1, -2)).swapaxes(-1, -2)
    return np.asarray(out.reshape(forces.shape))


@dataclass(frozen=True)
class TreeState:
    """State of a tree at N samples, in the root frame.

    Attributes
    ----------
    placements : (N, nb, 4, 4), placements of the bodies' joint frames.
    screws : (N, nb, 6), screw of the joint before each body; zero for a free base.
    velocity : (N, nb, 6), spatial velocity of the bodies.
    acceleration : (N, nb, 6), spatial acceleration of the bodies, gravity subtracted.
    """

    placements: Array
    screws: Array
    velocity: Array
    acceleration: Array


class TreeKinematics:
    """Forward kinematics of a tree whose root is at rest, for samples of its ``n`` joints.

    Parameters
    ----------
    joints : joints of the tree or of a :func:`subtree`; a free base, as the first body, is also at rest.
    gravity : (3,), m/s^2 in the root frame.

    Attributes
    ----------
    parents : index of the parent body of each body, -1 for the root.
    axes : (nb, 6), joint screws in the joint frames.
    ancestry : bool (nb, nb), element ``(r, b)``: whether the joint of body ``r`` moves body ``b``.
    """

    def __init__(self, joints: Sequence[TreeJoint], gravity: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        self.parents = tuple(joint.parent for joint in joints)
        self.axes = np.array([joint.axis for joint in joints]).reshape(-1, 6)
        self.gravity = np.concatenate([np.array(gravity, dtype=float), np.zeros(3)])
        self._free = int(any(joint.free for joint in joints[:1]))
        self._joints = joints
        self._drivers = [joint.ancestors[-1] - 6 * self._free for joint in joints if not joint.free]
        self._steps = [_step(joint, joints) for joint in joints]
        n = len(self.parents)
        self.ancestry = np.zeros((n, n), dtype=bool)
        for body in range(n):
            self.ancestry[path(joints, body), body] = True
        self._root = np.array([parent < 0 for parent in self.parents], dtype=bool)
        self._moves = self.ancestry.astype(float)

    @classmethod
    def of(cls, model: "RobotModel") -> "TreeKinematics":
        return cls(model.tree, model.options.gravity)

    def placements(self, q: Array) -> Array:
        """``(N, nb, 4, 4)`` placements of the bodies' joint frames, from joint positions ``(N, n)``."""
        before = np.tile(np.eye(3), (len(q), 1)), np.zeros((len(q), 3))
        done: list[tuple[Array, Array]] = []
        out = np.zeros((len(q), len(self.parents), 4, 4))
        out[..., 3, 3] = 1.0
        for body, (joint, step) in enumerate(zip(self._joints, self._steps, strict=True)):
            rotation, origin = done[joint.parent] if joint.parent >= 0 else before
            if not joint.free:
                position = joint.multiplier * q[:, self._drivers[body - self._free], None] + joint.offset
                moved = (rotation @ step).reshape(len(q), 3, step.shape[1])
                origin = origin + moved[..., 0]
                turned = moved[..., 1:4]
                if joint.prismatic:
                    origin = origin + moved[..., 4] * position
                else:
                    sin, cos = np.sin(position)[..., None], np.cos(position)[..., None]
                    turned = turned + sin * moved[..., 4:7] + (1 - cos) * moved[..., 7:]
                rotation = turned.reshape(-1, 3)
            done.append((rotation, origin))
            out[:, body, :3, :3], out[:, body, :3, 3] = rotation.reshape(-1, 3, 3), origin
        return out

    def screws(self, placements: Array) -> Array:
        """``(N, nb, 6)`` joint screws from the placements."""
        rotation, origin = placements[..., :3, :3], placements[..., :3, 3]
        angular = (rotation @ self.axes[:, 3:, None])[..., 0]
        linear = (rotation @ self.axes[:, :3, None])[..., 0] + cross(origin, angular)
        return np.concatenate([linear, angular], axis=-1)

    def motion(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Placements, screws and velocities as in :class:`TreeState`, from ``(N, n)`` positions and velocities."""
        placements = self.placements(q)
        screws = self.screws(placements)
        return placements, screws, self._moves.T @ (screws * self._per_body(v)[..., None])

    def state(self, q: Array, v: Array, a: Array) -> TreeState:
        """State of the tree, from ``(N, n)`` positions [rad or m], velocities and accelerations of the joints."""
        placements, screws, velocity = self.motion(q, v)
        v, a = self._per_body(v), self._per_body(a)
        changes = screws * a[..., None] + motion_cross(self._of_parents(velocity, 0.0), screws * v[..., None])
        return TreeState(placements, screws, velocity, -self.gravity + self._moves.T @ changes)

    def _per_body(self, rates: Array) -> Array:
        """Rates of the joint before each body ``(N, nb)`` from rates of joints ``(N, n)``; zero for a free base."""
        rates = rates[:, self._drivers] * [joint.multiplier for joint in self._joints if not joint.free]
        return np.hstack([np.zeros((len(rates), 1)), rates]) if self._free else rates

    def parent_motion(self, state: TreeState) -> tuple[Array, Array]:
        """``(N, nb, 6)`` velocity and acceleration of the body (or root) that carries each joint."""
        return self._of_parents(state.velocity, 0.0), self._of_parents(state.acceleration, -self.gravity)

    def _of_parents(self, bodies: Array, root: Array | float) -> Array:
        return np.where(self._root[:, None], root, bodies[:, list(self.parents)])

    def subtree_sums(self, bodies: Array) -> Array:
        """Sums ``(..., nb, k)`` of body quantities: for each joint, over all bodies that the joint moves."""
        return self._moves @ bodies


def _step(joint: TreeJoint, joints: Sequence[TreeJoint]) -> Array:
    """``(3, k)``: translation to the joint frame, rotation at zero position, and their changes with the joint position.

    A prismatic joint adds ``q`` times the axis to the translation; a revolute joint adds ``sin q`` and ``1 - cos q``
    times a matrix each to the rotation (Rodrigues).
    """
    if joint.free:
        return np.zeros((3, 0))
    before = joints[joint.parent].rotation if joint.parent >= 0 else np.eye(3)
    turned = before @ joint.placement_rotation @ joint.rotation.T
    translation = (before @ joint.placement_translation)[:, None]
    if joint.prismatic:
        return np.hstack([translation, turned, turned @ joint.axis[:3, None]])
    generator = skew(joint.axis[3:])
    return np.hstack([translation, turned, turned @ generator, turned @ generator @ generator])


def lever_arm_bounds(model: "RobotModel", body: int, distance: float) -> Array:
    """``(n,)`` bound on the motion of a point per radian or metre of each joint [m], for any pose within the limits.

    A prismatic joint moves all points by one metre per metre; its stroke lengthens the lever arms of earlier joints.

    Parameters
    ----------
    body : moving body that carries the point; -1 for the root, which does not move.
    distance : distance of the point from the joint of ``body`` [m].
    """
    out, arm, limits = np.zeros(model.joints), distance, model.limits
    while body >= 0:
        joint = model.tree[body]
        out[body] = 1.0 if joint.prismatic else arm
        if joint.prismatic:
            stroke = max(abs(limits.lower[body]), abs(limits.upper[body]))
            arm += stroke if np.isfinite(stroke) else 0.0
        arm += float(np.linalg.norm(joint.placement_translation))
        body = joint.parent
    return out
