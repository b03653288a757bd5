"""Contacts: where external wrenches act on the robot, how they are measured, and their generalized forces.

``Y x = S^T tau + sum J_c^T f_c`` ([vanDerGaag2024]_ sec. 4, [Lee2019]_ eq. 3.6.3).

A balance board measures the force along its normal and the centre of pressure. In the frame of the base, the unmeasured
components enter all six rows; in the frame of the board, three rows are measured and three unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array, cross, rotate_back, rotation_matrices
from inertid_ros.core.errors import ModelError, RecordingError

from .kinematics import TreeKinematics, batches, path, subtree, turned_forces

if TYPE_CHECKING:
    from .model import RobotModel

UNMEASURED = (0, 1, 5)  # components of force and torque in the frame of a partial plate
_PLANE_TOLERANCE = 1e-6  # m and rad
_MIN_SINGULAR_VALUE_RATIO = 0.01  # of the largest; wrench components with less effect are zero


@dataclass(frozen=True)
class Plate:
    """A force plate fixed in the world.

    ``xyz`` [m] and ``rpy`` [rad] are its pose in the world. A ``partial`` plate measures only the force along its
    z-axis and the centre of pressure, as a balance board does: force along x and y and torque about z are unknown, even
    if recorded.
    """

    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)
    partial: bool = False

    @property
    def rotation(self) -> Array:
        return np.asarray(pin.rpy.rpyToMatrix(*map(float, self.rpy)))


@dataclass(frozen=True)
class Contact:
    """Measured external wrench.

    Attributes
    ----------
    name : key of ``Recording.wrenches``.
    frame : frame of the robot, such as a link; the wrench acts on the body that carries this frame.
    plate : plate in the world that measures the wrench; None: the wrench is measured in ``frame``.
    """

    name: str
    frame: str
    plate: Plate | None = None


def contacts_of(options: RobotOptions) -> tuple[Contact, ...]:
    """Contacts of a robot: sensors on the robot, then plates."""
    sensors = (Contact(name, sensor.frame or name) for name, sensor in options.contacts.items())
    plates = {name: (x.frame, Plate(x.xyz, x.rpy, x.measures == "pressure")) for name, x in options.plates.items()}
    return (*sensors, *(Contact(name, *plate) for name, plate in plates.items()))


def ground_of(contacts: Sequence[Contact]) -> Plate | None:
    """Plate in whose frame the base rows are expressed: the first partial plate; None if no plate is partial.

    ModelError for partial plates in several planes, because measured and unmeasured components would mix.
    """
    partial = [(contact.name, contact.plate) for contact in contacts if contact.plate and contact.plate.partial]
    if not partial:
        return None
    first, ground = partial[0]
    normal = ground.rotation[:, 2]
    for name, plate in partial[1:]:
        apart = abs(normal @ (np.array(plate.xyz) - np.array(ground.xyz)))
        if apart > _PLANE_TOLERANCE or np.linalg.norm(np.cross(normal, plate.rotation[:, 2])) > _PLANE_TOLERANCE:
            raise ModelError(
                f"plates '{first}' and '{name}': measure only a part of the wrench and do not lie in one plane;"
                " correct their poses, or measure whole wrenches")
    return ground


def check_contacts(kinematics: pin.Model, contacts: Sequence[Contact]) -> None:
    """Raise ModelError for an unknown frame, a name given twice, and partial plates in several planes."""
    ground_of(contacts)
    names = [contact.name for contact in contacts]
    for contact in contacts:
        if names.count(contact.name) > 1:
            raise ModelError(f"contact '{contact.name}': is given twice; rename or drop one")
        if not kinematics.existFrame(contact.frame):
            links = ", ".join(f.name for f in kinematics.frames if f.type == pin.FrameType.BODY)
            missing = f"the robot has no frame '{contact.frame}'"
            raise ModelError(f"contact '{contact.name}': {missing}; its links are {links}")


def external_force(model: "RobotModel", q: Array, wrenches: Mapping[str, Array]) -> Array:
    """Generalized force ``(N, nv)`` of measured external wrenches on a robot; RecordingError for an unknown contact.

    Parameters
    ----------
    wrenches : map from contact names to ``(N, 6)`` force [N] and torque [N m] on the robot, in the measurement's frame.
    """
    by_name = {contact.name: contact for contact in model.contacts}
    for name in wrenches:
        if name not in by_name:
            raise RecordingError(f"wrench '{name}': the robot has no contact of this name; it has {', '.join(by_name)}")
    out = np.zeros((len(q), model.velocities))
    paths = [ContactPath(model, by_name[name]) for name in wrenches]
    for rows in batches(len(q)):
        for contact, wrench in zip(paths, wrenches.values(), strict=True):
            out[rows] += contact.generalized_forces(q[rows], wrench[rows, :, None])[..., 0]
    return out


def contact_jacobians(model: "RobotModel", q: Array) -> Array:
    """``(N, nv, 6 k)`` transposed Jacobians of the model's ``k`` contacts, which map wrenches to generalized force."""
    unit = np.broadcast_to(np.eye(6), (len(q), 6, 6))
    columns = [ContactPath(model, contact).generalized_forces(q, unit) for contact in model.contacts]
    return np.concatenate(columns, axis=-1)


class ContactPath:
    """Kinematics of the bodies from the root to the body of a contact.

    Attributes
    ----------
    velocities : indices of the velocities that the wrench acts on: free base, and joints from the root to the contact.
    """

    def __init__(self, model: "RobotModel", contact: Contact) -> None:
        frame = model.pinocchio.frames[model.pinocchio.getFrameId(contact.frame)]
        body = int(frame.parentJoint) - 1  # -1: the ground of a fixed base
        bodies = path(model.tree, body)
        self.velocities = model.tree[body].ancestors if bodies else ()
        self._free, self._plate, self._frame = model.free, contact.plate, frame.placement.homogeneous
        self._kinematics = TreeKinematics(subtree(model.tree, bodies))
        self._of_joints = slice(model.positions - model.joints, None)
        moving = [model.tree[body] for body in bodies if not model.tree[body].free]
        self._torques = np.zeros((model.velocities, len(moving)))
        for column, joint in enumerate(moving):
            self._torques[joint.ancestors[-1], column] = joint.multiplier
        self._size = model.velocities

    def frames(self, q: Array) -> Array:
        """``(N, 4, 4)`` placement of the contact frame in the root frame, from positions ``(N, nq)``."""
        return self._on_robot(self._kinematics.placements(q[:, self._of_joints]))

    def generalized_forces(self, q: Array, wrenches: Array) -> Array:
        """Generalized forces ``(N, nv, k)`` of ``k`` wrenches ``(N, 6, k)`` in the frame of the measurement."""
        placements = self._kinematics.placements(q[:, self._of_joints])
        out = np.zeros((len(q), self._size, wrenches.shape[-1]))
        wrenches = turned_forces(self._measuring_frames(q, placements), wrenches)
        if self._free:
            out[:, :6] = wrenches
        screws = self._kinematics.screws(placements)[:, int(self._free) :]  # of joints
        out += self._torques @ (screws @ wrenches)
        return out

    def _on_robot(self, placements: Array) -> Array:
        bodies = placements.shape[1]
        return np.asarray(placements[:, -1] @ self._frame if bodies else np.tile(self._frame, (len(placements), 1, 1)))

    def _measuring_frames(self, q: Array, placements: Array) -> Array:
        """``(N, 4, 4)`` placement of the frame of the measurement in the root frame."""
        if self._plate is None:
            return self._on_robot(placements)
        out = np.tile(np.eye(4), (len(q), 1, 1))
        out[:, :3, :3], out[:, :3, 3] = self._plate.rotation, self._plate.xyz
        if self._free:
            out[:, :3, 3] = rotate_back(q[:, 3:7], out[:, :3, 3] - q[:, :3])
            out[:, :3, :3] = rotation_matrices(q[:, 3:7]).swapaxes(1, 2) @ self._plate.rotation
        return out


def wrenches_of_force(model: "RobotModel", q: Array) -> Array:
    """``(N, 6 k, nv)`` map from a generalized force to the least-squares wrenches of the model's ``k`` contacts."""
    return np.asarray(np.linalg.pinv(contact_jacobians(model, q), rcond=_MIN_SINGULAR_VALUE_RATIO))


def predict_wrenches(model: "RobotModel", force: Array, torque: Array, q: Array) -> dict[str, Array]:
    """Least-squares contact wrenches for the generalized force that joint torques do not explain.

    ``J^T f = Y x - S^T tau`` ([vanDerGaag2024]_ sec. 4.1). Two feet flat on the ground and ten joints give 16 equations
    for 12 unknowns. Internal wrenches between the feet that do not load a joint (such as a vertical torque, if the legs
    cannot turn about the vertical) are set to zero.

    Parameters
    ----------
    force : (N, nv), generalized force ``Y x`` of the motion.
    torque : (N, n), torque of the joints [N m or N].
    q : (N, nq), positions in the model's order.

    Returns
    -------
    Map from contact names to ``(N, 6)`` wrenches in the frame of the measurement.
    """
    contacts = model.contacts
    if not contacts:
        raise ModelError(f"'{model.name}' has no contacts, where wrenches act; set robot.contacts or robot.plates")
    missing = np.array(force)
    missing[:, model.velocities - model.joints :] -= torque
    wrenches = (wrenches_of_force(model, q) @ missing[..., None])[..., 0]
    return {contact.name: wrenches[:, 6 * k : 6 * k + 6] for k, contact in enumerate(contacts)}


def turn_base_rows(ground: Plate, q: Array, rows: Array) -> None:
    """Transform base forces and torques in place, from frame and origin of the base to frame and origin of a plate.

    Parameters
    ----------
    q : (nq, k), positions, the pose of the base first.
    rows : (>= 6, c, k), the first six rows are transformed.
    """
    turns = ground.rotation.T @ rotation_matrices(q[3:7].T)
    turn = np.ascontiguousarray(np.moveaxis(turns, 0, -1))  # samples along the last axis, as in the rows
    lever = ground.rotation.T @ (q[:3] - np.array(ground.xyz)[:, None])
    force = np.einsum("imk,mck->ick", turn, rows[:3])
    rows[3:6] = np.einsum("imk,mck->ick", turn, rows[3:6]) + cross(lever[:, None], force, axis=0)
    rows[:3] = force


def on_ground(model: "RobotModel", q: Array, force: Array) -> Array:
    """``(N, nv)`` generalized force with base rows in the frame of ``model.ground``; unchanged without a plate."""
    if model.ground is None:
        return force
    out = np.array(force)
    rows = np.ascontiguousarray(out[:, :6].T)[:, None]
    turn_base_rows(model.ground, q.T, rows)
    out[:, :6] = rows[:, 0].T
    return out
