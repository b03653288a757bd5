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
from inertid_ros.robot.tree import path, subtree

from .spatial import turned_forces
from .tree_kinematics import TreeKinematics, batches


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
    paths = [ContactPath(model, known[name]) for name in wrenches]
    for rows in batches(len(q)):
        for contact, wrench in zip(paths, wrenches.values(), strict=True):
            out[rows] += contact.generalized_forces(q[rows], wrench[rows, :, None])[..., 0]
    return out


def contact_jacobians(model: RobotModel, q: Array) -> Array:
    """``(N, nv, 6 k)`` transposed Jacobians of the model's ``k`` contacts: wrenches to generalized force."""
    unit = np.broadcast_to(np.eye(6), (len(q), 6, 6))
    columns = [ContactPath(model, contact).generalized_forces(q, unit) for contact in model.options.contacts]
    return np.concatenate(columns, axis=-1)


class ContactPath:
    """Kinematics of a contact: of the bodies from the root to the one that its wrench acts on.

    Parameters
    ----------
    model : RobotModel
    contact : Contact
        Of the model.

    Attributes
    ----------
    velocities : tuple of int
        Those that the wrench enters: of a free base, and of the joints between it and the contact.
    """

    def __init__(self, model: RobotModel, contact: Contact) -> None:
        frame = model.pinocchio.frames[model.pinocchio.getFrameId(contact.frame)]
        body = int(frame.parentJoint) - 1  # -1: the ground of a fixed base
        bodies = path(model.tree, body)
        self.velocities = model.tree[body].ancestors if bodies else ()
        self._free, self._plate, self._frame = model.free, contact.plate, frame.placement.homogeneous
        self._kinematics = TreeKinematics(subtree(model.tree, bodies))
        self._positions = [model.positions - model.joints + b - model.free for b in bodies if not model.tree[b].free]
        self._size = model.velocities

    def frames(self, q: Array) -> Array:
        """``(N, 4, 4)`` placement of the contact's frame of the robot in the root frame, from positions ``(N, nq)``."""
        return self._on_robot(self._kinematics.placements(q[:, self._positions]))

    def generalized_forces(self, q: Array, wrenches: Array) -> Array:
        """``(N, nv, k)`` from ``k`` wrenches ``(N, 6, k)`` in the frame in which the contact is measured."""
        placements = self._kinematics.placements(q[:, self._positions])
        out = np.zeros((len(q), self._size, wrenches.shape[-1]))
        wrenches = turned_forces(self._measuring_frames(q, placements), wrenches)
        if self._free:
            out[:, :6] = wrenches
        screws = self._kinematics.screws(placements)[:, int(self._free) :]  # of joints
        out[:, self.velocities[6 * self._free :]] = screws @ wrenches
        return out

    def _on_robot(self, placements: Array) -> Array:
        bodies = placements.shape[1]
        return np.asarray(placements[:, -1] @ self._frame if bodies else np.tile(self._frame, (len(placements), 1, 1)))

    def _measuring_frames(self, q: Array, placements: Array) -> Array:
        """``(N, 4, 4)`` placement in the root frame of the frame in which the wrench is measured."""
        if self._plate is None:
            return self._on_robot(placements)
        out = np.tile(np.eye(4), (len(q), 1, 1))
        out[:, :3, :3], out[:, :3, 3] = self._plate.rotation, self._plate.xyz
        if self._free:
            out[:, :3, 3] = rotate_back(q[:, 3:7], out[:, :3, 3] - q[:, :3])
            out[:, :3, :3] = rotation_matrices(q[:, 3:7]).swapaxes(1, 2) @ self._plate.rotation
        return out
