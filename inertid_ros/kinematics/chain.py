"""Kinematics of many samples at once, in the root frame: placements, joint screws, velocities, accelerations.

Spatial vectors are (linear, angular) about the root origin. Plain array arithmetic over samples, so that a few hundred
poses cost little more than one.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel


def motion_cross(V: Array, M: Array) -> Array:
    """``V x M`` of spatial motions ``(..., 6)``."""
    v, w, m, k = V[..., :3], V[..., 3:], M[..., :3], M[..., 3:]
    return np.concatenate([cross(w, m) + cross(v, k), cross(w, k)], axis=-1)


def force_cross(V: Array, F: Array) -> Array:
    """``V x* F`` of a spatial motion and a spatial force ``(..., 6)``."""
    v, w, f, n = V[..., :3], V[..., 3:], F[..., :3], F[..., 3:]
    return np.concatenate([cross(w, f), cross(w, n) + cross(v, f)], axis=-1)


def cross(a: Array, b: Array) -> Array:
    """Cross product over the last axis; several times faster than ``numpy.cross`` on small arrays."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


@dataclass(frozen=True)
class ChainState:
    """A robot at N samples; all in the root frame.

    Attributes
    ----------
    placements: ``(N, n, 4, 4)`` of the moving bodies.
    screws: ``(N, n, 6)`` joint screws.
    velocity: ``(N, n, 6)`` of the bodies.
    acceleration: ``(N, n, 6)`` spatial acceleration of the bodies, gravity subtracted.
    root_velocity, root_acceleration: ``(N, 6)`` of what the first joints are mounted on, the same way.
    """

    placements: Array
    screws: Array
    velocity: Array
    acceleration: Array
    root_velocity: Array
    root_acceleration: Array


@dataclass(frozen=True)
class RootMotion:
    """Known motion of what a robot is mounted on, seen from a frame that stands still; the chain then works in that.

    Attributes
    ----------
    placement: ``(N, 4, 4)``.
    velocity, acceleration: ``(N, 6)`` spatial (linear, angular) about the origin of the frame that stands still;
        gravity is not in it.
    """

    placement: Array
    velocity: Array
    acceleration: Array


class Chain:
    """Forward kinematics of a robot for ``(N, n)`` samples.

    Attributes
    ----------
    parents: index of the parent body of each body, -1 for the root.
    axes: ``(n, 6)`` joint screws in their own frames.
    ancestry: ``(n, n)``, whether joint r moves body b.
    """

    def __init__(self, model: RobotModel) -> None:
        kinematics = model.pinocchio
        self.parents = tuple(int(kinematics.parents[i]) - 1 for i in range(1, kinematics.njoints))
        self.axes = model.axes
        self._fixed = np.array([kinematics.jointPlacements[i].homogeneous for i in range(1, kinematics.njoints)])
        self.gravity = np.concatenate([np.array(model.options.gravity, dtype=float), np.zeros(3)])
        n = len(self.parents)
        self.ancestry = np.zeros((n, n), dtype=bool)
        for joint in range(n):
            at = joint
            while at >= 0:
                self.ancestry[at, joint] = True
                at = self.parents[at]
        self._root = np.array([parent < 0 for parent in self.parents])
        self._moves = self.ancestry.astype(float)

    def placements(self, q: Array, root: RootMotion | None = None) -> Array:
        """``(N, n)`` positions to ``(N, n, 4, 4)`` placements of the moving bodies."""
        out = np.empty((*q.shape, 4, 4))
        for joint, parent in enumerate(self.parents):
            local = self._fixed[joint] @ _moved(self.axes[joint], q[:, joint])
            if parent < 0:
                out[:, joint] = local if root is None else root.placement @ local
            else:
                out[:, joint] = out[:, parent] @ local
        return out

    def screws(self, placements: Array) -> Array:
        """``(N, n, 6)`` joint screws from the placements."""
        rotation, origin = placements[..., :3, :3], placements[..., :3, 3]
        angular = (rotation @ self.axes[:, 3:, None])[..., 0]
        linear = (rotation @ self.axes[:, :3, None])[..., 0] + cross(origin, angular)
        return np.concatenate([linear, angular], axis=-1)

    def state(self, q: Array, v: Array, a: Array, root: RootMotion | None = None) -> ChainState:
        """Placements, screws, velocities, accelerations of ``(N, n)`` samples; the root stands still if not given."""
        placements = self.placements(q, root)
        screws = self.screws(placements)
        still = np.zeros((len(q), 6))
        start, lifted = (still, still) if root is None else (root.velocity, root.acceleration)
        lifted = lifted - self.gravity
        own = screws * v[..., None]
        velocity = start[:, None] + self._moves.T @ own
        parents = list(self.parents)
        before = np.where(self._root[:, None], start[:, None], velocity[:, parents])
        acceleration = lifted[:, None] + self._moves.T @ (screws * a[..., None] + motion_cross(before, own))
        return ChainState(placements, screws, velocity, acceleration, start, lifted)

    def before(self, state: ChainState) -> tuple[Array, Array]:
        """``(N, n, 6)`` velocity and acceleration of the body, or root, that carries each joint."""
        parents, root = list(self.parents), self._root[:, None]
        return (
            np.where(root, state.root_velocity[:, None], state.velocity[:, parents]),
            np.where(root, state.root_acceleration[:, None], state.acceleration[:, parents]),
        )

    def beyond(self, bodies: Array) -> Array:
        """Sums ``(..., n, k)`` of quantities of bodies over all that each joint moves."""
        return self._moves @ bodies


def _moved(axis: Array, position: Array) -> Array:
    """``(N, 4, 4)`` motion of a joint along its axis (linear, angular) in its own frame; one of the two is unit."""
    out = np.tile(np.eye(4), (len(position), 1, 1))
    linear, w = axis[:3], axis[3:]
    if w.any():
        skew = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        sin, cos = np.sin(position)[:, None, None], np.cos(position)[:, None, None]
        out[:, :3, :3] += sin * skew + (1 - cos) * (skew @ skew)
    else:
        out[:, :3, 3] = position[:, None] * linear
    return out
