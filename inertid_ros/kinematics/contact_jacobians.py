"""External wrenches on the base and in the joints: the contact Jacobians' part of the equations of motion.

``Y x = S^T tau + sum J_c^T f_c`` ([vanDerGaag2024]_ sec. 4, [Lee2019]_ eq. 3.6.3); what is computed here is the sum.
"""

from collections.abc import Mapping

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.rotations import rotate_back, rotation_matrices
from inertid_ros.robot.contacts import Contact
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import path

from .spatial import turned_forces
from .tree_kinematics import BATCH, TreeKinematics


def external_force(model: RobotModel, q: Array, wrenches: Mapping[str, Array]) -> Array:
    """Generalized force of measured external wrenches on a robot.

    Parameters
    ----------
    model : RobotModel
    q : ndarray, shape (N, nq)
        Positions in the model's order.
    wrenches : mapping of str to ndarray, shape (N, 6)
        Name of a contact of the model to force [N] and torque [N m] on the robot, in the frame in which the contact is
        measured: one of the robot, or that of a plate in the world.

    Returns
    -------
    ndarray, shape (N, nv)

    Raises
    ------
    RecordingError
        The model has no contact of a wrench's name.
    """
    known = {contact.name: contact for contact in model.options.contacts}
    for name in wrenches:
        if name not in known:
            raise RecordingError(f"wrench '{name}': the robot has no contact of this name; it has {', '.join(known)}")
    out = np.zeros((len(q), model.velocities))
    kinematics = TreeKinematics.of(model)
    for start in range(0, len(q), BATCH):
        rows = slice(start, start + BATCH)
        placements = kinematics.placements(q[rows, model.positions - model.joints :])
        screws = kinematics.screws(placements)
        for name, wrench in wrenches.items():
            frames = measuring_frames(model, q[rows], known[name], placements)
            _add(model, known[name], screws, turned_forces(frames, wrench[rows, :, None]), out[rows, :, None])
    return out


def contact_jacobians(model: RobotModel, q: Array) -> Array:
    """``(N, nv, 6 k)`` transposed Jacobians of the model's ``k`` contacts: wrenches to generalized force."""
    kinematics = TreeKinematics.of(model)
    placements = kinematics.placements(q[:, model.positions - model.joints :])
    screws = kinematics.screws(placements)
    out = np.zeros((len(q), model.velocities, 6 * len(model.options.contacts)))
    for index, contact in enumerate(model.options.contacts):
        frames = measuring_frames(model, q, contact, placements)
        unit = np.broadcast_to(np.eye(6), (len(q), 6, 6))
        _add(model, contact, screws, turned_forces(frames, unit), out[..., 6 * index : 6 * index + 6])
    return out


def contact_body(model: RobotModel, contact: Contact) -> int:
    """The body that a contact's wrench acts on; -1 for the ground of a fixed base."""
    kinematics = model.pinocchio
    return int(kinematics.frames[kinematics.getFrameId(contact.frame)].parentJoint) - 1


def contact_velocities(model: RobotModel, contact: Contact) -> list[int]:
    """Velocities that a contact's wrench enters: of the base, and of the joints between it and the contact."""
    body = contact_body(model, contact)
    return list(model.tree[body].ancestors) if body >= 0 else []


def contact_frames(model: RobotModel, q: Array, contact: Contact) -> Array:
    """``(N, 4, 4)`` placement of a contact's frame of the robot in the root frame, from positions ``(N, nq)``."""
    kinematics, joints = TreeKinematics.of(model), q[:, model.positions - model.joints :]
    batches = (joints[start : start + BATCH] for start in range(0, len(q), BATCH))
    return np.concatenate([_on_robot(model, contact, kinematics.placements(batch)) for batch in batches])


def measuring_frames(model: RobotModel, q: Array, contact: Contact, placements: Array) -> Array:
    """``(N, 4, 4)`` placement in the root frame of the frame in which a contact's wrench is measured.

    Parameters
    ----------
    model : RobotModel
    q : ndarray, shape (N, nq)
        Positions in the model's order.
    contact : Contact
    placements : ndarray, shape (N, nb, 4, 4)
        Of the bodies in the root frame.
    """
    if contact.plate is None:
        return _on_robot(model, contact, placements)
    out = np.tile(np.eye(4), (len(q), 1, 1))
    out[:, :3, :3], out[:, :3, 3] = contact.plate.rotation, contact.plate.xyz
    if model.free:
        out[:, :3, 3] = rotate_back(q[:, 3:7], out[:, :3, 3] - q[:, :3])
        out[:, :3, :3] = rotation_matrices(q[:, 3:7]).swapaxes(1, 2) @ contact.plate.rotation
    return out


def _on_robot(model: RobotModel, contact: Contact, placements: Array) -> Array:
    kinematics, body = model.pinocchio, contact_body(model, contact)
    placement = kinematics.frames[kinematics.getFrameId(contact.frame)].placement.homogeneous
    return np.asarray(placements[:, body] @ placement if body >= 0 else np.tile(placement, (len(placements), 1, 1)))


def _add(model: RobotModel, contact: Contact, screws: Array, wrenches: Array, out: Array) -> None:
    """Add the generalized force ``(N, nv, k)`` of wrenches ``(N, 6, k)`` at the root on a contact's body."""
    if model.free:
        out[:, :6] += wrenches
    bodies = [body for body in path(model.tree, contact_body(model, contact)) if not model.tree[body].free]
    out[:, [model.tree[body].ancestors[-1] for body in bodies]] += screws[:, bodies] @ wrenches
