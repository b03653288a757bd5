"""External wrenches on the base and in the joints: the contact Jacobians' part of the equations (D 4; C 3.6.3).

``Y x = S^T tau + sum J_c^T f_c``; what is computed here is the sum, sample by sample along the last tree path alone.
"""

from collections.abc import Mapping

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.rotations import rotate_back
from inertid_ros.robot.contacts import Contact
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.tree import path


def external_force(model: RobotModel, q: Array, wrenches: Mapping[str, Array]) -> Array:
    """``(N, nv)`` generalized force of measured external wrenches on a robot.

    Parameters
    ----------
    q: ``(N, nq)`` positions as :class:`RobotModel` says.
    wrenches: name of a contact of the model to force and torque ``(N, 6)`` on the robot, in the frame that the
        contact says: one of the robot, or that of a plate in the world.

    Raises
    ------
    RecordingError: a wrench that the model has no contact for.
    """
    known = {contact.name: contact for contact in model.options.contacts}
    out = np.zeros((len(q), model.velocities))
    for name, wrench in wrenches.items():
        if name not in known:
            raise RecordingError(f"wrench '{name}': the robot has no contact of this name; it has {', '.join(known)}")
        places = body_placements(model, q, contact_body(model, known[name]))
        force, torque = in_root(model, q, known[name], wrench, places)
        if model.free:
            out[:, :3] += force
            out[:, 3:6] += torque
        for body, (rotation, origin) in places.items():
            joint = model.tree[body]
            if joint.free:
                continue
            axis = rotation[:, :, 2]
            felt = force if joint.prismatic else torque - np.cross(origin, force)
            out[:, joint.ancestors[-1]] += np.sum(axis * felt, axis=1)
    return out


def contact_body(model: RobotModel, contact: Contact) -> int:
    """The body that a contact's wrench acts on; -1 for the ground of a fixed base."""
    kinematics = model.pinocchio
    return int(kinematics.frames[kinematics.getFrameId(contact.frame)].parentJoint) - 1


def carried_by(model: RobotModel, contact: Contact) -> list[int]:
    """Velocities that a contact's wrench enters: of the base, and of the joints between it and the contact."""
    body = contact_body(model, contact)
    return list(model.tree[body].ancestors) if body >= 0 else []


def body_placements(model: RobotModel, q: Array, body: int) -> dict[int, tuple[Array, Array]]:
    """Bodies from the root to ``body``, each with ``(N, 3, 3)`` and ``(N, 3)`` in the root's frame, z along its axis.

    The root's frame is the base's where that is free, and the world of a fixed one.
    """
    offset = model.positions - model.joints
    rotation, origin = np.tile(np.eye(3), (len(q), 1, 1)), np.zeros((len(q), 3))
    places = {}
    for index in path(model.tree, body):
        joint = model.tree[index]
        if not joint.free:
            origin = origin + rotation @ joint.placement_translation
            rotation = rotation @ joint.placement_rotation
            position = q[:, offset + index - int(model.free)]
            if joint.prismatic:
                origin = origin + rotation[:, :, 2] * position[:, None]
            else:
                rotation = rotation @ _about_z(position)
        places[index] = rotation, origin
    return places


def in_root(
    model: RobotModel, q: Array, contact: Contact, wrench: Array, places: Mapping[int, tuple[Array, Array]]
) -> tuple[Array, Array]:
    """Force and torque ``(N, 3)`` of a contact about the root's origin, in its frame."""
    force, torque = wrench[:, :3], wrench[:, 3:]
    if contact.plate is not None:
        rotation, lever = contact.plate.rotation, np.array(contact.plate.xyz)
        force, torque = force @ rotation.T, torque @ rotation.T
        if not model.free:
            return force, torque + np.cross(lever, force)
        torque = torque + np.cross(lever - q[:, :3], force)
        return rotate_back(q[:, 3:7], force), rotate_back(q[:, 3:7], torque)
    rotation, origin = frame_placement(model, contact, places, len(q))
    force = np.einsum("nij,nj->ni", rotation, force)
    return force, np.einsum("nij,nj->ni", rotation, torque) + np.cross(origin, force)


def frame_placement(
    model: RobotModel, contact: Contact, places: Mapping[int, tuple[Array, Array]], count: int
) -> tuple[Array, Array]:
    """``(N, 3, 3)`` and ``(N, 3)`` of a contact's frame in the root's."""
    kinematics, body = model.pinocchio, contact_body(model, contact)
    placement = kinematics.frames[kinematics.getFrameId(contact.frame)].placement
    if body < 0:
        return np.tile(placement.rotation, (count, 1, 1)), np.tile(placement.translation, (count, 1))
    rotation, origin = places[body]
    rotation = rotation @ model.tree[body].rotation.T
    return rotation @ placement.rotation, origin + rotation @ placement.translation


def _about_z(angle: Array) -> Array:
    """``(N, 3, 3)``."""
    out = np.zeros((len(angle), 3, 3))
    out[:, 0, 0] = out[:, 1, 1] = np.cos(angle)
    out[:, 1, 0] = np.sin(angle)
    out[:, 0, 1] = -out[:, 1, 0]
    out[:, 2, 2] = 1.0
    return out
