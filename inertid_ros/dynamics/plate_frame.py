"""Forces on the base, told in the frame of a plate that measures only a part of them.

A balance board gives the force along its normal and the centre of pressure. In the frame of the base that is a mixture
of all six rows; in the frame of the board it is three of them whole, and the other three are not known.
"""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.floating import rotations
from inertid_ros.robot.contacts import Plate
from inertid_ros.robot.model import RobotModel

UNMEASURED = (0, 1, 5)  # of force and torque in the frame of a partial plate


def turn_base_rows(ground: Plate, q: Array, rows: Array) -> None:
    """Turn forces and torques on the base, about its origin and in its frame, into the frame of a plate, in place.

    Parameters
    ----------
    q: ``(nq, k)`` positions, the pose of the base first.
    rows: ``(>= 6, c, k)``, of which the first six are turned.
    """
    turn = np.einsum("ji,jmk->imk", ground.rotation, rotations(q[3:7].T))
    lever = ground.rotation.T @ (q[:3] - np.array(ground.xyz)[:, None])
    force = np.einsum("imk,mck->ick", turn, rows[:3])
    rows[3:6] = np.einsum("imk,mck->ick", turn, rows[3:6]) + np.cross(lever[:, None], force, axis=0)
    rows[:3] = force


def on_ground(model: RobotModel, q: Array, force: Array) -> Array:
    """``(N, nv)`` generalized force with its base rows in the frame of ``model.ground``, where there is one."""
    if model.ground is None:
        return force
    out = np.array(force)
    rows = np.ascontiguousarray(out[:, :6].T)[:, None]
    turn_base_rows(model.ground, q.T, rows)
    out[:, :6] = rows[:, 0].T
    return out
