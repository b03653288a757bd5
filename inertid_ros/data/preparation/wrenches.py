"""Measured external wrenches by contact, and their checks against the robot's weight and motion."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from inertid_ros.config.recordings import WrenchOptions
from inertid_ros.core.arrays import Array, Mask, rotate, rotate_back
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.robot.contacts import UNMEASURED, Contact, ContactPath, Plate, external_force, on_ground
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

_WRENCH_CHECK_SAMPLES = 400
_MAX_PULL_SHARE = 0.2  # share of the load by which a plate may seem to pull the robot down
_EXCHANGED_ERROR_RATIO = 0.5  # error with exchanged plates over the error as recorded
_MIN_ERROR_WEIGHTS = 0.01  # error over the weight; smaller errors are not evidence


def measured_wrenches(recording: Recording, model: RobotModel, options: WrenchOptions) -> dict[str, Array]:
    """Measured force [N] and torque [N m] on the robot ``(N, 6)`` in the contact's frame, by contact.

    Components that a partial plate does not measure are zero.

    Raises RecordingError: a contact of the robot was not recorded, a recorded wrench does not belong to a contact, a
    name in the options was not recorded, or a free base lacks contacts.
    Raises ModelError: the base is fixed and joints do not move a contact, so that its wrench is not in the equations.
    """
    contacts = [contact.name for contact in model.contacts]
    there = ", ".join(recording.wrenches) or "none"
    for name in contacts:
        if name not in recording.wrenches:
            raise RecordingError(
                f"{recording.name}: wrench/{name} was not recorded (there is {there}), but the equations need it;"
                " record it, or correct robot.contacts and robot.plates")
    for key in ("reversed", "ignored"):
        for name in getattr(options, key):
            if name not in recording.wrenches:
                raise RecordingError(
                    f"{recording.name}: prepare.wrenches.{key} names '{name}', but there is {there}; correct the name")
    if left := [name for name in recording.wrenches if name not in (*contacts, *options.ignored)]:
        raise RecordingError(
            f"{recording.name}: wrench/{left[0]} was recorded, but the robot has no contact or plate of this name;"
            " add it to robot.contacts or robot.plates, or to prepare.wrenches.ignored if it is not on the robot; for a"
            " sensor that carries a tool, use inertid force-sensor to identify the tool")
    if not model.free:
        _check_moving(model)
    elif not contacts and np.any(model.options.gravity):
        raise RecordingError(
            f"{recording.name}: the base is free, but the force that supports the robot is unknown; measure it and"
            " add it to robot.contacts or robot.plates")
    out = {name: (-1.0 if name in options.reversed else 1.0) * recording.wrenches[name] for name in contacts}
    for contact in model.contacts:
        if contact.plate is not None and contact.plate.partial:
            out[contact.name][:, UNMEASURED] = 0.0  # these components are not measured
    return out


def _check_moving(model: RobotModel) -> None:
    for contact in model.contacts:
        frame = model.pinocchio.frames[model.pinocchio.getFrameId(contact.frame)]
        if frame.parentJoint == 0:
            key = f"robot.{'contacts' if contact.plate is None else 'plates'}.{contact.name}"
            raise ModelError(
                f"{key}: its frame '{contact.frame}' does not move while robot.base is fixed, so its wrench"
                " does not help to identify parameters; set robot.base to free and record the pose of the base,"
                f" or remove {key}")


def check_wrenches(
        name: str, model: RobotModel, motion: tuple[Array, Array, Array], wrenches: Mapping[str, Array]) -> None:
    """Refuse wrenches that contradict the weight of the robot; a fixed base is not checked.

    Raises RecordingError: a plate pulls, the wrenches give a negative total mass, or two plates are exchanged.

    Parameters
    ----------
    motion : ``(N, nq)``, ``(N, nv)``, ``(N, nv)``: position, velocity and acceleration of usable samples.
    wrenches : map from contacts to force [N] and torque [N m] on the robot, (N, 6).
    """
    gravity = np.array(model.options.gravity)
    if not model.free or not gravity.any() or not len(motion[0]) or not wrenches:
        return
    rows = np.unique(np.linspace(0, len(motion[0]) - 1, _WRENCH_CHECK_SAMPLES).astype(int))
    q, v, a = (channel[rows] for channel in motion)
    wrenches = {key: wrench[rows] for key, wrench in wrenches.items()}
    up = -gravity / np.linalg.norm(gravity)
    lifts = {contact.name: _lift(model, q, contact, wrenches[contact.name], up) for contact in model.contacts}
    mass = float(np.mean(sum(lifts.values()))) / float(np.linalg.norm(gravity))
    plates = [contact.name for contact in model.contacts if contact.plate is not None]
    pulling = [plate for plate in plates if _pulls(lifts[plate])]
    if pulling and len(pulling) < len(lifts):
        plate = pulling[0]
        raise RecordingError(
            f"{name}: plate '{plate}' pulls the robot down with {-lifts[plate].mean():.0f} N, which the ground cannot"
            " do; the sign or frame of the wrench is wrong: list the plate in prepare.wrenches.reversed, or turn it in"
            " robot.plates")
    if mass <= 0:
        raise RecordingError(
            f"{name}: its wrenches give the robot a negative mass, {mass:.1f} kg; they are measured on the ground"
            f" instead of the robot, or their frame points the wrong way: set prepare.wrenches.reversed to"
            f" {', '.join(wrenches)}, or turn the plates in robot.plates")
    _check_exchange(name, model, (q, v, a), wrenches)


def _pulls(lift: Array) -> bool:
    """True if a plate pulls the robot down (impossible for the ground), by its force against gravity ``(N,)`` [N]."""
    size = float(np.abs(lift).mean())
    return size > 1.0 and float(lift.mean()) < -_MAX_PULL_SHARE * size


def slipping(model: RobotModel, time: Array, q: Array, wrenches: Mapping[str, Array],
        options: WrenchOptions) -> dict[str, Mask]:
    """Flag by contact the samples in which a loaded foot moves at its centre of pressure: it slips or the pose drifts.

    A rolling foot does not move at this point. Only contacts with plates are checked: sensors in the robot's own
    frames cannot detect slip. ``wrenches`` hold force and torque on the robot ``(N, 6)`` by contact.
    """
    out = {}
    for contact in model.contacts:
        slips = np.zeros(len(time), dtype=bool)
        if contact.plate is not None and model.free:
            wrench = wrenches[contact.name]
            load = np.linalg.norm(wrench[:, :3], axis=1)
            loaded = in_contact(load, options.contact_on_n, options.contact_off_n)
            frames = ContactPath(model, contact).frames(q)
            slips = loaded & (_slip_speed(time, q, frames, contact.plate, wrench) > options.max_slip_m_s)
        out[contact.name] = slips
    return out


def in_contact(load: Array, on: float, off: float) -> Mask:
    """Flag the samples in which a plate or sensor carries load, by thresholds with hysteresis.

    True after the load ``(N,)`` [N] exceeds ``on``, until it falls below ``off`` [N]; a load between both at
    the start does not count as contact.
    """
    decided = np.where(load > on, 1, np.where(load < off, 0, -1))
    last = np.maximum.accumulate(np.where(decided >= 0, np.arange(len(load)), -1))
    return np.where(last >= 0, decided[np.maximum(last, 0)], 0).astype(bool)


def _lift(model: RobotModel, q: Array, contact: Contact, wrench: Array, up: Array) -> Array:
    """Force ``(N,)`` of a contact on the robot, along ``up`` [N]."""
    if contact.plate is not None:
        return np.asarray(wrench[:, :3] @ contact.plate.rotation.T @ up)
    rotation = ContactPath(model, contact).frames(q)[:, :3, :3]
    return np.asarray(rotate(q[:, 3:7], np.einsum("nij,nj->ni", rotation, wrench[:, :3])) @ up)


def _slip_speed(time: Array, q: Array, frames: Array, plate: Plate, wrench: Array) -> Array:
    """Speed ``(N,)``, along the plate, of the point of the foot that is at the centre of pressure [m/s].

    ``frames (N, 4, 4)`` of the foot are in the base frame.
    """
    normal, force, torque = plate.rotation[:, 2], wrench[:, :3] @ plate.rotation.T, wrench[:, 3:] @ plate.rotation.T
    pressed = force @ normal
    safe = np.where(np.abs(pressed) > 1e-9, pressed, 1.0)
    point = np.array(plate.xyz) + np.cross(normal, torque) / safe[:, None]
    rotation, origin = frames[:, :3, :3], frames[:, :3, 3]
    arm = np.einsum("nji,nj->ni", rotation, rotate_back(q[:, 3:7], point - q[:, :3]) - origin)

    def at(rows: slice) -> Array:
        """World positions of the points that are fixed to the foot, at the foot's poses in ``rows``."""
        inside = np.einsum("nij,nj->ni", rotation[rows], arm[1:-1]) + origin[rows]
        return q[rows, :3] + rotate(q[rows, 3:7], inside)

    speed = np.zeros(len(time))
    if len(time) > 2:
        step = (at(slice(2, None)) - at(slice(None, -2))) / (time[2:] - time[:-2])[:, None]
        speed[1:-1] = np.linalg.norm(step - (step @ normal)[:, None] * normal, axis=1)
    return speed


def _check_exchange(
        name: str, model: RobotModel, motion: tuple[Array, Array, Array], wrenches: Mapping[str, Array]) -> None:
    """Raise if the prior explains the base's wrench far better with the readings of two plates exchanged."""
    q, v, a = motion
    measured = slice(None, 6) if model.ground is None else [k for k in range(6) if k not in UNMEASURED]
    predicted = on_ground(model, q, rigid_torque(model, model.body_prior, q, v, a))[:, :6]
    weight = float(np.sqrt(np.mean(np.sum(predicted[:, :3] ** 2, axis=1))))

    def error(assigned: Mapping[str, Array]) -> float:
        # Errors of the URDF are nearly constant; moment errors from exchanged plates are not.
        off = (on_ground(model, q, external_force(model, q, assigned))[:, :6] - predicted)[:, measured]
        return float(np.sqrt(np.mean(off.var(axis=0))))

    as_given = error(wrenches)
    if as_given < _MIN_ERROR_WEIGHTS * weight:
        return
    on_plates = [contact.name for contact in model.contacts if contact.plate is not None]
    for one, other in combinations(on_plates, 2):
        exchanged = error({**wrenches, one: wrenches[other], other: wrenches[one]})
        if exchanged < _EXCHANGED_ERROR_RATIO * as_given:
            raise RecordingError(
                f"{name}: plates '{one}' and '{other}' are exchanged: the URDF predicts the variation of the base"
                f" wrench within {exchanged:.1f} if they are swapped, within {as_given:.1f} as recorded (N, N m); swap"
                " their topics or poses, or set prepare.wrenches.check to false if the URDF is wrong")
