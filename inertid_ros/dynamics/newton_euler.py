"""Wrench regressor of one body: the wrench that a motion takes, linear in parameters and in products of motion."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.sweep import PRODUCTS
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # of the inertia, in the order of the parameters
_PRODUCTS = {(0, 0): 6, (0, 1): 7, (0, 2): 8, (1, 1): 9, (1, 2): 10, (2, 2): 11}


def _wrench_table() -> Array:
    """``(6, 10, 12)``; the wrench (force, torque) at the origin is ``sum table[:, c, z] pi_c products_z`` (C 3.2.4).

    Force ``m d + (alpha x + w x w x) h``, torque ``h x d + I alpha + w x I w``, for the acceleration ``d`` of the
    origin less gravity, the angular velocity ``w`` and acceleration ``alpha``.
    """
    table = np.zeros((6, BODY_PARAMETERS, PRODUCTS))
    cross = np.zeros((3, 3, 3))
    for x, y, z in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        cross[x, y, z], cross[x, z, y] = 1.0, -1.0
    outer = np.zeros((3, 3, PRODUCTS))  # w w^T
    for (x, y), column in _PRODUCTS.items():
        outer[x, y, column] = outer[y, x, column] = 1.0
    force, torque = table[:3], table[3:]
    force[:, 0, :3] = np.eye(3)
    force[:, 1:4, 3:6] = np.swapaxes(cross, 1, 2)
    force[:, 1:4] += outer - np.eye(3)[:, :, None] * np.trace(outer)
    torque[:, 1:4, :3] = cross
    for column, (x, y) in enumerate(_PAIRS, start=4):
        unit = np.zeros((3, 3))
        unit[x, y] = unit[y, x] = 1.0
        torque[:, column, 3:6] = unit
        torque[:, column] += np.einsum("ijk,kl,jlz->iz", cross, unit, outer)
    table.flags.writeable = False
    return table


WRENCH_TABLE = _wrench_table()
