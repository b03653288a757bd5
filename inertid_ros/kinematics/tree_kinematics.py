"""Forward kinematics of a tree for many samples at once: placements, joint screws, velocities, accelerations.

All is seen in the root frame: the world of a fixed base, the frame of a base that moves freely. Spatial vectors are
(linear, angular) about the root origin. Plain array arithmetic over samples, so that a few hundred poses cost little
more than one. :mod:`~inertid_ros.kinematics.body_recursion` walks the same joints in the frames of the bodies, for
regressors of whole recordings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross, skew
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import TreeJoint, path

from .spatial import motion_cross

BATCH = 4096  # samples worked out together: the arrays of one body fit the cache, and calls cost little per sample


def batches(count: int, size: int = BATCH) -> Iterator[slice]:
    """Rows of ``count`` samples, batch after batch."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


@dataclass(frozen=True)
class TreeState:
    """A tree at N samples; all in the root frame.

    Attributes
    ----------
    placements : ndarray, shape (N, nb, 4, 4)
        Of the bodies' joint frames.
    screws : ndarray, shape (N, nb, 6)
        Of the joints before the bodies; zero for a base that moves freely.
    velocity : ndarray, shape (N, nb, 6)
        Of the bodies.
    acceleration : ndarray, shape (N, nb, 6)
        Spatial acceleration of the bodies, gravity subtracted.
    root_velocity, root_acceleration : ndarray, shape (N, 6)
        Of what the first joints are mounted on, the same way.
    """

    placements: Array
    screws: Array
    velocity: Array
    acceleration: Array
    root_velocity: Array
    root_acceleration: Array


@dataclass(frozen=True)
class RootMotion:
    """Known motion of what a robot is mounted on, or of its free base, in a frame that stands still.

    Attributes
    ----------
    placement : ndarray, shape (N, 4, 4)
    velocity, acceleration : ndarray, shape (N, 6)
        Spatial (linear, angular) about the origin of the frame that stands still; gravity is not in it.
    """

    placement: Array
    velocity: Array
    acceleration: Array

    @classmethod
    def of_twist(cls, twist: Array) -> "RootMotion":
        """A free base with a twist ``(N, 6)`` in its own frame, in which the motion is then seen."""
        return cls(np.broadcast_to(np.eye(4), (len(twist), 4, 4)), twist, np.zeros_like(twist))


class TreeKinematics:
    """Forward kinematics of a tree for samples of its ``n`` joints.

    Parameters
    ----------
    joints : sequence of TreeJoint
        Where the first body is a free base, it moves as the root does.
    gravity : ndarray, shape (3,)
        m/s^2 in the root frame.

    Attributes
    ----------
    parents : tuple of int
        Index of the parent body of each body, -1 for the root.
    axes : ndarray, shape (nb, 6)
        Joint screws in the joint frames.
    ancestry : ndarray of bool, shape (nb, nb)
        Whether joint r moves body b.
    """

    def __init__(self, joints: Sequence[TreeJoint], gravity: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        self.parents = tuple(joint.parent for joint in joints)
        self.axes = np.array([joint.axis for joint in joints]).reshape(-1, 6)
        self.gravity = np.concatenate([np.array(gravity, dtype=float), np.zeros(3)])
        self._free = int(any(joint.free for joint in joints[:1]))
        self._joints = joints
        self._steps = [_step(joint, joints) for joint in joints]
        n = len(self.parents)
        self.ancestry = np.zeros((n, n), dtype=bool)
        for body in range(n):
            self.ancestry[path(joints, body), body] = True
        self._root = np.array([parent < 0 for parent in self.parents], dtype=bool)
        self._moves = self.ancestry.astype(float)

    @classmethod
    def of(cls, model: RobotModel) -> "TreeKinematics":
        """Kinematics of a robot."""
        return cls(model.tree, model.options.gravity)

    def placements(self, q: Array, root: RootMotion | None = None) -> Array:
        """``(N, nb, 4, 4)`` placements of the bodies' joint frames, from joint positions ``(N, n)``."""
        start = np.tile(np.eye(4), (len(q), 1, 1)) if root is None else root.placement
        before = start[:, :3, :3].reshape(-1, 3), start[:, :3, 3]
        done: list[tuple[Array, Array]] = []
        out = np.zeros((len(q), len(self.parents), 4, 4))
        out[..., 3, 3] = 1.0
        for body, (joint, step) in enumerate(zip(self._joints, self._steps, strict=True)):
            rotation, origin = done[joint.parent] if joint.parent >= 0 else before
            if not joint.free:
                position = q[:, body - self._free, None]
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

    def motion(self, q: Array, v: Array, root: RootMotion | None = None) -> tuple[Array, Array, Array]:
        """Placements, screws and velocities as in :class:`TreeState`, from ``(N, n)`` positions and velocities."""
        placements = self.placements(q, root)
        screws = self.screws(placements)
        velocity = self._moves.T @ (screws * self._per_body(v)[..., None])
        return placements, screws, velocity if root is None else root.velocity[:, None] + velocity

    def state(self, q: Array, v: Array, a: Array, root: RootMotion | None = None) -> TreeState:
        """Placements, screws, velocities and accelerations.

        Parameters
        ----------
        q, v, a : ndarray, shape (N, n)
            Position [rad or m], velocity, acceleration of the joints.
        root : RootMotion, optional
            The root stands still without it.
        """
        placements, screws, velocity = self.motion(q, v, root)
        still = np.zeros((len(q), 6))
        start, lifted = (still, still) if root is None else (root.velocity, root.acceleration)
        lifted = lifted - self.gravity
        v, a = self._per_body(v), self._per_body(a)
        before = np.where(self._root[:, None], start[:, None], velocity[:, list(self.parents)])
        changes = screws * a[..., None] + motion_cross(before, screws * v[..., None])
        return TreeState(placements, screws, velocity, lifted[:, None] + self._moves.T @ changes, start, lifted)

    def _per_body(self, rates: Array) -> Array:
        """``(N, nb)`` from ``(N, n)``; a free base has no joint of its own."""
        return np.hstack([np.zeros((len(rates), 1)), rates]) if self._free else rates

    def parent_motion(self, state: TreeState) -> tuple[Array, Array]:
        """``(N, nb, 6)`` velocity and acceleration of the body, or root, that each joint is mounted on."""
        parents, root = list(self.parents), self._root[:, None]
        return (
            np.where(root, state.root_velocity[:, None], state.velocity[:, parents]),
            np.where(root, state.root_acceleration[:, None], state.acceleration[:, parents]),
        )

    def subtree_sums(self, bodies: Array) -> Array:
        """Sums ``(..., nb, k)`` of quantities of bodies over all that each joint moves."""
        return self._moves @ bodies


def _step(joint: TreeJoint, joints: Sequence[TreeJoint]) -> Array:
    """``(3, k)`` translation to the joint frame, its rotation at zero position, and what the position adds to them.

    A prismatic joint adds a multiple of the axis to the translation; the rotation of a revolute one about its axis adds
    ``sin q`` and ``1 - cos q`` times two matrices (Rodrigues).
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
