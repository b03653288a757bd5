"""Inverse dynamics of many samples at once, by the recursive Newton-Euler algorithm."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.sweep import BATCH, Sweep
from inertid_ros.robot.model import RobotModel

from .newton_euler import WRENCH_TABLE


def rigid_torque(model: RobotModel, bodies: Array, q: Array, v: Array, a: Array) -> Array:
    """``(N, nv)`` generalized force of the rigid bodies alone.

    Parameters
    ----------
    bodies: ``(nb, 10)`` inertial parameters; they need not be physically consistent.
    q, v, a: ``(N, nq)``, ``(N, nv)`` position, velocity, acceleration in the model's order.
    """
    sweep = Sweep(model.tree, np.array(model.pinocchio.gravity.linear), screws=False)
    turned = [joint.turned_parameters @ body for joint, body in zip(model.tree, bodies, strict=True)]
    tables = np.einsum("rcz,bc->brz", WRENCH_TABLE, np.array(turned))
    out = np.empty(np.shape(v))
    for start in range(0, len(out), BATCH):
        rows = slice(start, start + BATCH)
        out[rows] = _torque(sweep, tables, *(np.ascontiguousarray(channel[rows].T) for channel in (q, v, a))).T
    return out


def _torque(sweep: Sweep, tables: Array, q: Array, v: Array, a: Array) -> Array:
    sweep.start(q, v, a)
    wrenches = np.empty((len(tables), 6, v.shape[1]))
    for body, table in enumerate(tables):
        np.matmul(table, sweep.products(sweep.advance(body)), out=wrenches[body])
    torque = np.empty(v.shape)
    for body in reversed(range(len(tables))):
        joint = sweep.joints[body]
        if joint.free:
            torque[:6] = wrenches[body]
            continue
        torque[joint.ancestors[-1]] = wrenches[body, 2 if joint.prismatic else 5]
        if joint.parent >= 0:
            wrenches[joint.parent] += sweep.pull(body, wrenches[body])
    return torque
