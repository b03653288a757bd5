"""Joint torque regressor: ``tau = Y(q, v, a) pi`` for the inertial parameters of every moving body (C 3.2.13)."""

import numpy as np
import pinocchio as pin

from ..robot.model import RobotModel
from ..robot.parameters import Array


def joint_torque_regressor(model: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """Regressor of the rigid-body joint torques.

    Parameters
    ----------
    q, v, a: ``(N, n)`` position, velocity, acceleration in the model's joint order.

    Returns
    -------
    ``(N, n, 10 nb)``; row ``j`` of a sample is zero outside the bodies that joint ``j`` carries.
    """
    kinematics, data = model.pinocchio, model.pinocchio.createData()
    compute = pin.computeJointTorqueRegressor
    out = np.empty((len(q), model.joints, model.layout.body_size))
    for row, (position, velocity, acceleration) in enumerate(zip(q, v, a, strict=True)):
        out[row] = compute(kinematics, data, position, velocity, acceleration)
    return out


def carried_bodies(model: RobotModel) -> tuple[tuple[int, ...], ...]:
    """For each joint, the indices of the bodies in its subtree, in ascending order."""
    subtrees = model.pinocchio.subtrees
    return tuple(tuple(sorted(i - 1 for i in subtrees[joint])) for joint in range(1, model.pinocchio.njoints))
