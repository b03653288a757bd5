"""Acceleration errors that torque errors cause under a controller."""

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel


def expected_squares(model: RobotModel, q: Array, torque: Array) -> Array:
    """Mean squared acceleration errors ``(N, n)`` at poses ``q (N, nq)``.

    Parameters
    ----------
    torque : ndarray, shape (N, n, k)
        Root of the covariance of the torque's errors.
    """
    data = model.pinocchio.createData()
    mass = np.array([pin.crba(model.pinocchio, data, pose) for pose in q])
    mass = np.triu(mass) + np.swapaxes(np.triu(mass, 1), 1, 2)
    return np.asarray(np.sum(np.linalg.solve(mass, torque) ** 2, axis=2))
