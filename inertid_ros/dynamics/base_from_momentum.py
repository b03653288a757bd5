"""How a free base moves when joints and wheels do: from momentum, without torque or acceleration (B §6.4).

All is expressed in the base frame at its origin, where momentum is ``M(q) twist + h(q, v)``.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.floating import BodyMotion, body_motions, cross
from inertid_ros.robot.bodies.inertial_parameters import inertia_about_origin, skew
from inertid_ros.robot.tree import TreeJoint
from inertid_ros.robot.wheels import MountedWheels


class BaseMotion:
    """Motion of the base of one robot.

    Parameters
    ----------
    tree: whose first body is the base.
    bodies: ``(nb, 10)`` inertial parameters; they need not be physically consistent.
    wheels: on the robot.
    """

    def __init__(self, tree: Sequence[TreeJoint], bodies: Array, wheels: MountedWheels | None = None) -> None:
        self._tree, self._bodies = tuple(tree), np.asarray(bodies, dtype=float)
        self._wheels = wheels or MountedWheels((), (), np.zeros((0, 3)))

    def momentum(self, q: Array, v: Array, speeds: Array) -> tuple[Array, Array]:
        """Inertia of the robot with its joints held, and momentum where the base stands still.

        Parameters
        ----------
        q, v: ``(N, n)`` of the joints.
        speeds: ``(N, w)`` of the wheels [rad/s].

        Returns
        -------
        ``(N, 6, 6)`` and ``(N, 6)``.
        """
        still = body_motions(self._tree, np.zeros((6, len(q))), q.T, v.T)
        inertia, momentum = np.zeros((len(q), 6, 6)), np.zeros((len(q), 6))
        for motion, parameters in zip(still, self._bodies, strict=True):
            own = _spatial_inertia(motion, parameters)
            inertia += own
            at_base = np.concatenate([motion.linear + cross(motion.position, motion.angular), motion.angular])
            momentum += np.einsum("kij,jk->ki", own, at_base)
        momentum[:, 3:] += self._spin(still, speeds)
        return inertia, momentum

    def wheel_momentum(self, q: Array, speeds: Array) -> Array:
        """``(N, 3)`` angular momentum of the wheels relative to their links [N m s], the same about any point."""
        still = body_motions(self._tree, np.zeros((6, len(q))), q.T, np.zeros_like(q).T)
        return self._spin(still, speeds)

    def twist(self, q: Array, v: Array, speeds: Array, total: Array | float = 0.0) -> Array:
        """``(N, 6)`` twist of the base in its own frame, where robot and wheels have the momentum ``total`` ``(N, 6)``
        about the base's origin, in base coordinates."""
        inertia, momentum = self.momentum(q, v, speeds)
        return np.asarray(np.linalg.solve(inertia, (total - momentum)[..., None])[..., 0])

    def _spin(self, motions: Sequence[BodyMotion], speeds: Array) -> Array:
        total = np.zeros((motions[0].position.shape[1], 3))
        for body, axis, speed in zip(self._wheels.bodies, self._wheels.axes, speeds.T, strict=True):
            total += np.einsum("ijk,j,k->ki", motions[body].rotation, axis, speed)
        return total


def _spatial_inertia(motion: BodyMotion, parameters: Array) -> Array:
    """``(k, 6, 6)`` of a body about the base's origin, linear then angular."""
    rotation, position = motion.rotation.transpose(2, 0, 1), motion.position.T
    mass, first = parameters[0], rotation @ parameters[1:4]
    lever, moment = skew(position), skew(first)
    turned = rotation @ inertia_about_origin(parameters) @ rotation.transpose(0, 2, 1)
    out = np.zeros((len(position), 6, 6))
    out[:, :3, :3] = mass * np.eye(3)
    out[:, 3:, :3] = moment + mass * lever
    out[:, :3, 3:] = -out[:, 3:, :3]
    out[:, 3:, 3:] = turned - lever @ moment - moment @ lever - mass * (lever @ lever)
    return out
