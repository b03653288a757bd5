"""Wrenches of contacts: predicted where nobody measures them, and seen in the frame of a plate that measures a part.

A balance board gives the force along its normal and the centre of pressure. In the frame of the base that is a mixture
of all six rows; in the frame of the board it is three of them whole, and the other three are unknown.
"""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.rotations import cross, rotation_matrices
from inertid_ros.kinematics.contact_jacobians import contact_jacobians
from inertid_ros.robot.contacts import Plate
from inertid_ros.robot.model import RobotModel

UNMEASURED = (0, 1, 5)  # of force and torque in the frame of a partial plate
_SMALLEST = 0.01  # of the largest singular value; components with less effect on the joints are not predicted


def predict_wrenches(model: RobotModel, force: Array, torque: Array, q: Array) -> dict[str, Array]:
    """Contact wrenches that explain best, in least squares, what joint torques do not.

    ``J^T f = Y x - S^T tau`` ([vanDerGaag2024]_ sec. 4.1). Two feet flat on the ground and ten joints leave 12 unknowns
    for 16 equations. Wrenches of the feet against one another without torque in any joint between them, such as about
    the vertical where no leg can turn, are set to zero.

    Parameters
    ----------
    model : RobotModel
    force : ndarray, shape (N, nv)
        Generalized force ``Y x`` that the model needs for its motion.
    torque : ndarray, shape (N, n)
        Of the joints [N m or N].
    q : ndarray, shape (N, nq)
        Positions in the model's order.

    Returns
    -------
    dict of str to ndarray, shape (N, 6)
        Contact name to wrench, in the frame in which the contact is measured.

    Raises
    ------
    ModelError
        The model has no contacts.
    """
    contacts = model.options.contacts
    if not contacts:
        raise ModelError(f"'{model.name}' has no contacts to predict wrenches of; give robot.contacts or robot.plates")
    missing = np.array(force)
    missing[:, model.velocities - model.joints :] -= torque
    wrenches = (np.linalg.pinv(contact_jacobians(model, q), rcond=_SMALLEST) @ missing[..., None])[..., 0]
    return {contact.name: wrenches[:, 6 * k : 6 * k + 6] for k, contact in enumerate(contacts)}


def turn_base_rows(ground: Plate, q: Array, rows: Array) -> None:
    """Turn forces and torques on the base, about its origin and in its frame, into the frame of a plate, in place.

    Parameters
    ----------
    ground : Plate
    q : ndarray, shape (nq, k)
        Positions, the pose of the base first.
    rows : ndarray, shape (>= 6, c, k)
        The first six are turned.
    """
    turns = ground.rotation.T @ rotation_matrices(q[3:7].T)
    turn = np.ascontiguousarray(np.moveaxis(turns, 0, -1))  # samples are neighbours, as in the rows
    lever = ground.rotation.T @ (q[:3] - np.array(ground.xyz)[:, None])
    force = np.einsum("imk,mck->ick", turn, rows[:3])
    rows[3:6] = np.einsum("imk,mck->ick", turn, rows[3:6]) + cross(lever[:, None], force, axis=0)
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
