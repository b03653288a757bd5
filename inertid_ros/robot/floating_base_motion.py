"""Motion of a floating base when joints and reaction wheels move, and torques of the joints ([Naveen2019]_ sec. 6.4).

All quantities are in the base frame, about its origin; momentum is ``M(q) twist + h(q, v)``. Joints and wheels follow a
given motion, without external wrenches. All parameter vectors with the same base parameters give the same motion of the
base and the same torques.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array, cross, skew
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia

from .dynamics import WRENCH_TABLE, rigid_torque
from .kinematics import TreeJoint, TreeKinematics, path
from .model import RobotModel
from .rotors import MountedWheels

REST_POSE = np.array([0.0, 0, 0, 0, 0, 0, 1.0])


class BaseMotion:
    """Motion of a robot's base, computed from momentum alone.

    Parameters
    ----------
    tree : joints of the robot; the first body is the base.
    bodies : (nb, 10), inertial parameters; they need not be physically consistent.
    """

    def __init__(self, tree: Sequence[TreeJoint], bodies: Array, wheels: MountedWheels | None = None) -> None:
        self._kinematics = TreeKinematics(tree)
        self._pseudo_inertias = pseudo_inertia(bodies)
        self._wheels = wheels or MountedWheels()

    def momentum(self, q: Array, v: Array, speeds: Array) -> tuple[Array, Array]:
        """Inertia ``(N, 6, 6)`` with locked joints, and momentum ``(N, 6)`` [N s, N m s] for zero twist of the base.

        Arguments are positions and velocities of the joints ``(N, n)``, and speeds of the wheels ``(N, w)`` [rad/s].
        """
        placements, _, velocity = self._kinematics.motion(q, v)
        # Placement P turns pseudo-inertia J into P J P^T; dP/dt J P^T integrates velocity times position over the mass.
        placed = placements @ self._pseudo_inertias
        rates = np.concatenate([skew(velocity[..., 3:]), velocity[..., :3, None]], axis=-1)
        whole = _summed(placed, placements)
        moving = _summed(rates @ placements, placed)
        turning = moving[:, [2, 0, 1], [1, 2, 0]] - moving[:, [1, 2, 0], [2, 0, 1]]
        momentum = np.hstack([moving[:, :3, 3], turning])
        momentum[:, 3:] += self._wheel_momentum(placements, speeds)
        return np.einsum("rcz,kc->krz", WRENCH_TABLE[..., :6], from_pseudo_inertia(whole)), momentum

    def wheel_momentum(self, q: Array, speeds: Array) -> Array:
        """``(N, 3)`` angular momentum of the wheels relative to their links [N m s], about any point."""
        return self._wheel_momentum(self._kinematics.placements(q), speeds)

    def twist(self, q: Array, v: Array, speeds: Array, total: Array | float = 0.0) -> Array:
        """``(N, 6)`` twist of the base in its own frame.

        ``total`` is the momentum of robot and wheels, ``(N, 6)`` about the origin of the base, in base coordinates.
        """
        inertia, momentum = self.momentum(q, v, speeds)
        return np.asarray(np.linalg.solve(inertia, (total - momentum)[..., None])[..., 0])

    def _wheel_momentum(self, placements: Array, speeds: Array) -> Array:
        rotations = placements[:, list(self._wheels.bodies), :3, :3]
        return np.asarray(np.einsum("kwij,wj,kw->ki", rotations, self._wheels.axes, speeds))


def _summed(left: Array, right: Array) -> Array:
    """``(N, i, j)`` sum over bodies of ``L R^T``, from ``(N, nb, i, 4)`` and ``(N, nb, j, 4)``."""
    left, right = (np.ascontiguousarray(x.swapaxes(1, 2)).reshape(len(x), x.shape[2], -1) for x in (left, right))
    return np.asarray(left @ right.swapaxes(1, 2))


@dataclass(frozen=True)
class FloatingPrediction:
    """Motion of the base and torques of the joints along ``N`` samples.

    Twist and acceleration ``(N, 6)`` are in the frame of the base, linear then angular; the acceleration is the
    derivative of the twist. Under gravity the robot falls freely. Torque ``(N, n)`` [N m or N] excludes the drives.
    """

    twist: Array
    acceleration: Array
    torque: Array


def predict_floating(model: RobotModel, bodies: Array, q: Array, v: Array, a: Array) -> FloatingPrediction:
    """Motion of the base and torques of the joints, for zero total momentum of robot and wheels.

    ``q, v, a (N, n + w)`` hold the joints, then the wheels.
    """
    if not model.free:
        raise ModelError(f"robot '{model.name}': its base is fixed and cannot float; load it with robot.base: free")
    count = model.joints
    twist = BaseMotion(model.tree, bodies, model.wheels).twist(q[:, :count], v[:, :count], v[:, count:])
    state = np.hstack([np.tile(REST_POSE, (len(q), 1)), q[:, :count]]), np.hstack([twist, v[:, :count]])
    acceleration = np.hstack([np.zeros((len(q), 6)), a[:, :count]])
    wheels = wheel_force(model, q[:, :count], state[1], v[:, count:], a[:, count:])
    force = rigid_torque(model, bodies, *state, acceleration) + wheels
    inertia, _ = BaseMotion(model.tree, bodies).momentum(state[0][:, 7:], 0 * v[:, :count], np.zeros((len(q), 0)))
    acceleration[:, :6] = -np.linalg.solve(inertia, force[:, :6, None])[..., 0]
    torque = rigid_torque(model, bodies, *state, acceleration) + wheels
    return FloatingPrediction(twist, acceleration[:, :6], torque[:, 6:])


def wheel_force(model: RobotModel, q: Array, v: Array, speeds: Array, rates: Array) -> Array:
    """Generalized force ``(N, 6 + n)`` that changes the momentum of the wheels.

    Parameters
    ----------
    q, v : (N, n) and (N, 6 + n), positions of the joints; twist of the base, and velocities of the joints.
    speeds, rates : (N, w), speeds and accelerations of the wheels [rad/s], [rad/s^2].
    """
    placements, screws, velocity = TreeKinematics(model.tree).motion(q, v[:, 6:])
    velocity += v[:, None, :6]  # relative to the world, in a frame at rest that coincides with the base frame
    out = np.zeros((len(q), model.velocities))
    for index, body in enumerate(model.wheels.bodies):
        axis = placements[:, body, :3, :3] @ model.wheels.axes[index]
        torque = axis * rates[:, index, None] + cross(velocity[:, body, 3:], axis * speeds[:, index, None])
        out[:, 3:6] += torque
        joints = path(model.tree, body)[1:]
        out[:, [5 + joint for joint in joints]] += (screws[:, joints, 3:] @ torque[..., None])[..., 0]
    return out
