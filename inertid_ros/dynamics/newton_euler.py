"""Newton-Euler: the wrench that a body's motion takes, and the inverse dynamics of many samples at once."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import skew
from inertid_ros.kinematics.body_recursion import PRODUCTS, BodyRecursion
from inertid_ros.kinematics.tree_kinematics import batches
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, INERTIA_ELEMENTS
from inertid_ros.robot.model import RobotModel

_SQUARES = {(0, 0): 6, (0, 1): 7, (0, 2): 8, (1, 1): 9, (1, 2): 10, (2, 2): 11}  # places of w w^T in the products


def _wrench_table() -> Array:
    """``(6, 10, 12)``, see :data:`WRENCH_TABLE`."""
    table = np.zeros((6, BODY_PARAMETERS, PRODUCTS))
    cross = -skew(np.eye(3))  # its elements are antisymmetric in all three axes
    outer = np.zeros((3, 3, PRODUCTS))  # w w^T
    for (x, y), column in _SQUARES.items():
        outer[x, y, column] = outer[y, x, column] = 1.0
    force, torque = table[:3], table[3:]
    force[:, 0, :3] = np.eye(3)
    force[:, 1:4, 3:6] = np.swapaxes(cross, 1, 2)
    force[:, 1:4] += outer - np.eye(3)[:, :, None] * np.trace(outer)
    torque[:, 1:4, :3] = cross
    for column, (x, y) in enumerate(INERTIA_ELEMENTS, start=4):
        unit = np.zeros((3, 3))
        unit[x, y] = unit[y, x] = 1.0
        torque[:, column, 3:6] = unit
        torque[:, column] += np.einsum("ijk,kl,jlz->iz", cross, unit, outer)
    table.flags.writeable = False
    return table


WRENCH_TABLE = _wrench_table()
"""``(6, 10, 12)``; the wrench (force, torque) at a body's origin is ``sum table[:, c, z] pi_c products_z``
([Lee2019]_ eq. 3.2.4).

Force ``m d + (alpha x + w x w x) h``, torque ``h x d + I alpha + w x I w``, for the acceleration ``d`` of the origin
less gravity, the angular velocity ``w`` and acceleration ``alpha``; see :func:`wrench_products`. With the velocity in
place of the acceleration and without ``w w^T``, its first six products give the momentum.
"""


def wrench_products(acceleration: Array, angular_acceleration: Array, angular_velocity: Array) -> Array:
    """What a body's wrench is linear in.

    Parameters
    ----------
    acceleration, angular_acceleration, angular_velocity : ndarray, shape (..., 3)
        Of a body's origin less gravity [m/s^2], and of the body [rad/s^2], [rad/s], in its frame.

    Returns
    -------
    ndarray, shape (..., 12)
        The first two, and xx, xy, xz, yy, yz, zz of ``w w^T``.
    """
    w = angular_velocity
    products = np.empty((*w.shape[:-1], PRODUCTS))
    products[..., :3], products[..., 3:6] = acceleration, angular_acceleration
    products[..., 6:9] = w[..., :1] * w
    products[..., 9:11] = w[..., 1:2] * w[..., 1:]
    products[..., 11] = w[..., 2] ** 2
    return products


def rigid_torque(model: RobotModel, bodies: Array, q: Array, v: Array, a: Array) -> Array:
    """Generalized force of the rigid bodies alone, by the recursive Newton-Euler algorithm.

    Parameters
    ----------
    model : RobotModel
    bodies : ndarray, shape (nb, 10)
        Inertial parameters; they need not be physically consistent.
    q, v, a : ndarray, shapes (N, nq), (N, nv), (N, nv)
        Position, velocity, acceleration in the model's order.

    Returns
    -------
    ndarray, shape (N, nv)
        N m or N.
    """
    recursion = BodyRecursion(model.tree, model.pinocchio.gravity.linear, screws=0)
    turned = [joint.turned_parameters @ body for joint, body in zip(model.tree, bodies, strict=True)]
    tables = np.einsum("rcz,bc->brz", WRENCH_TABLE, np.array(turned))
    out = np.empty(np.shape(v))
    for rows in batches(len(out)):
        out[rows] = _torque(recursion, tables, *(np.ascontiguousarray(channel[rows].T) for channel in (q, v, a))).T
    return out


def _torque(recursion: BodyRecursion, tables: Array, q: Array, v: Array, a: Array) -> Array:
    recursion.start(q, v, a)
    wrenches = np.empty((len(tables), 6, v.shape[1]))
    for body, table in enumerate(tables):
        np.matmul(table, recursion.products(recursion.advance(body)), out=wrenches[body])
    torque = np.empty(v.shape)
    for body in reversed(range(len(tables))):
        joint = recursion.joints[body]
        if joint.free:
            torque[:6] = wrenches[body]
            continue
        torque[joint.ancestors[-1]] = wrenches[body, 2 if joint.prismatic else 5]
        if joint.parent >= 0:
            wrenches[joint.parent] += recursion.to_parent(body, wrenches[body])
    return torque
