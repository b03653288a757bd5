"""Generalized force of every single inertial parameter, along a whole motion at once."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.body_recursion import BodyRecursion
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.model import RobotModel

from .newton_euler import WRENCH_TABLE


def body_torques(
    model: RobotModel, gravity: Array, motion: tuple[Array, Array, Array], count: int = BODY_PARAMETERS
) -> Array:
    """Generalized force that one unit of each parameter of each body takes.

    Parameters
    ----------
    model : RobotModel
    gravity : ndarray, shape (3,)
        In place of the model's [m/s^2].
    motion : tuple of ndarray, shapes (N, nq), (N, nv), (N, nv)
        Position, velocity and acceleration in the model's order.
    count : int
        How many parameters of every body, in their order: four are mass and first moments.

    Returns
    -------
    ndarray, shape (nv, N, nb, count)
        N m or N per unit of the parameter.
    """
    rows, bodies = len(motion[0]), len(model.tree)
    recursion = BodyRecursion(model.tree, gravity, screws=0)
    recursion.start(*(np.ascontiguousarray(np.tile(channel, (count, 1)).T) for channel in motion))
    products = [recursion.products(recursion.advance(body))[:, :rows].copy() for body in range(bodies)]
    out = np.zeros((model.velocities, rows, bodies, count))
    for body, values in enumerate(products):
        table = np.einsum("rcz,cp->rpz", WRENCH_TABLE, model.tree[body].turned_parameters[:, :count])
        wrench = (table @ values).reshape(6, -1)
        at = body
        while True:
            joint = model.tree[at]
            if joint.free:
                out[:6, :, body] = np.swapaxes(wrench.reshape(6, count, rows), 1, 2)
                break
            out[joint.ancestors[-1], :, body] = wrench[2 if joint.prismatic else 5].reshape(count, rows).T
            if joint.parent < 0:
                break
            wrench = recursion.to_parent(at, wrench)
            at = joint.parent
    return out
