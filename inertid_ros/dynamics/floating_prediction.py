"""What parameters predict of a robot that floats: how its base moves, and what its joints take (B §6.4).

Joints and wheels follow a given motion; no wrench acts from outside. Base parameters decide both, so that any parameter
vector with the same base parameters predicts the same.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.kinematics.floating import body_motions, cross
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import path

from .base_from_momentum import BaseMotion
from .inverse_dynamics import rigid_torque


@dataclass(frozen=True)
class Prediction:
    """Along ``N`` samples.

    Attributes
    ----------
    twist, acceleration: ``(N, 6)`` of the base in its own frame, linear then angular; the acceleration is the
        derivative of the twist, and where the model has gravity the robot falls freely.
    torque: ``(N, n)`` of the joints [N m or N], of rigid bodies and wheels alone.
    """

    twist: Array
    acceleration: Array
    torque: Array


def predict_floating(model: RobotModel, bodies: Array, q: Array, v: Array, a: Array) -> Prediction:
    """Motion of the base and torques of the joints where robot and wheels have no momentum.

    Parameters
    ----------
    bodies: ``(nb, 10)`` inertial parameters.
    q, v, a: ``(N, n + w)`` of joints, then wheels.

    Raises
    ------
    ModelError: the base is fixed.
    """
    if not model.free:
        raise ModelError(f"robot '{model.name}': its base is fixed and cannot float; load it with robot.base: free")
    count = model.joints
    twist = BaseMotion(model.tree, bodies, model.wheels).twist(q[:, :count], v[:, :count], v[:, count:])
    pose = np.tile([0.0, 0, 0, 0, 0, 0, 1], (len(q), 1))
    state = np.hstack([pose, q[:, :count]]), np.hstack([twist, v[:, :count]])
    acceleration = np.hstack([np.zeros((len(q), 6)), a[:, :count]])
    wheels = _wheel_force(model, q[:, :count], state[1], v[:, count:], a[:, count:])
    force = rigid_torque(model, bodies, *state, acceleration) + wheels
    inertia, _ = BaseMotion(model.tree, bodies).momentum(state[0][:, 7:], 0 * v[:, :count], np.zeros((len(q), 0)))
    acceleration[:, :6] = -np.linalg.solve(inertia, force[:, :6, None])[..., 0]
    torque = rigid_torque(model, bodies, *state, acceleration) + wheels
    return Prediction(twist, acceleration[:, :6], torque[:, 6:])


def _wheel_force(model: RobotModel, q: Array, v: Array, speeds: Array, rates: Array) -> Array:
    """``(N, 6 + n)`` generalized force that it takes to change the momentum of the wheels."""
    motions = body_motions(model.tree, v[:, :6].T, q.T, v[:, 6:].T)
    out = np.zeros((len(q), model.velocities))
    for index, body in enumerate(model.wheels.bodies):
        motion = motions[body]
        axis = np.einsum("ijk,j->ik", motion.rotation, model.wheels.axes[index])
        couple = axis * rates[:, index] + cross(motion.angular, axis * speeds[:, index])
        out[:, 3:6] += couple.T
        for carrier in path(model.tree, body)[1:]:
            turning = np.einsum("ijk,j->ik", motions[carrier].rotation, model.axes[carrier, 3:])
            out[:, 5 + carrier] += np.einsum("ik,ik->k", turning, couple)
    return out
