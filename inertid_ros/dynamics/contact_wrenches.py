"""Contact wrenches that nobody measures, from the model and joint torques (D 4.1)."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.kinematics.contact_frames import external_force
from inertid_ros.robot.model import RobotModel

_FELT = 0.01  # of the strongest direction; what joints feel less of is not predicted


def contact_map(model: RobotModel, q: Array) -> Array:
    """``(N, nv, 6 k)`` transposed Jacobians of the model's ``k`` contacts: wrenches to generalized force."""
    unit, columns = np.eye(6), []
    for contact in model.options.contacts:
        for axis in range(6):
            columns.append(external_force(model, q, {contact.name: np.tile(unit[axis], (len(q), 1))}))
    return np.stack(columns, axis=2)


def predict_wrenches(model: RobotModel, force: Array, torque: Array, q: Array) -> dict[str, Array]:
    """Contact name to ``(N, 6)``: the wrenches that explain best, in least squares, what joint torques do not.

    ``J^T f = Y x - S^T tau`` (D 4.1). Two feet flat on the ground and ten joints leave 12 unknowns for 16 equations.
    What feet do against one another without any joint between them feeling it, as turning about the vertical where no
    leg can, is taken for zero.

    Parameters
    ----------
    force: ``(N, nv)`` generalized force ``Y x`` that the model needs for its motion.
    torque: ``(N, n)`` joint torques.

    Raises
    ------
    ModelError: the model has no contacts.
    """
    contacts = model.options.contacts
    if not contacts:
        raise ModelError(f"'{model.name}' has no contacts to predict wrenches of; give robot.contacts or robot.plates")
    missing = np.array(force)
    missing[:, model.velocities - model.joints :] -= torque
    wrenches = (np.linalg.pinv(contact_map(model, q), rcond=_FELT) @ missing[..., None])[..., 0]
    return {contact.name: wrenches[:, 6 * k : 6 * k + 6] for k, contact in enumerate(contacts)}
