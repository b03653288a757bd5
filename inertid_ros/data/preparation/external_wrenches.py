"""Measured external wrenches by contact: which are needed, and their sign."""


import numpy as np

from inertid_ros.config.preparation import WrenchOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.dynamics.contact_wrenches import UNMEASURED
from inertid_ros.robot.model import RobotModel


def measured_wrenches(recording: Recording, model: RobotModel, options: WrenchOptions) -> dict[str, Array]:
    """Force and torque on the robot, by contact.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot, with its contacts.
    options : WrenchOptions
        Wrenches whose sign is turned, and those that are not on the robot.

    Returns
    -------
    dict of str to ndarray, shape (N, 6)
        Force [N] and torque [N m] in the contact's frame; components that a partial plate does not measure are zero.

    Raises
    ------
    RecordingError
        A contact of the robot was not recorded, a recorded wrench belongs to no contact, a name in the options was not
        recorded, or a free base has no contact at all.
    ModelError
        A contact of a fixed base.
    """
    contacts = [contact.name for contact in model.options.contacts]
    there = ", ".join(recording.wrenches) or "none"
    for name in contacts:
        if name not in recording.wrenches:
            raise RecordingError(
                f"{recording.name}: wrench/{name} was not recorded (there is {there}); without it no force on the robot"
                " is known: record it, or correct robot.contacts and robot.plates"
            )
    for key in ("reversed", "ignored"):
        for name in getattr(options, key):
            if name not in recording.wrenches:
                raise RecordingError(
                    f"{recording.name}: prepare.wrenches.{key} names '{name}', but recorded is {there}"
                )
    left = [name for name in recording.wrenches if name not in (*contacts, *options.ignored)]
    if left:
        raise RecordingError(
            f"{recording.name}: wrench/{left[0]} was recorded, but no contact or plate of the robot is named so;"
            " give it in robot.contacts or robot.plates, or in prepare.wrenches.ignored if it is not on the robot"
        )
    if not model.free:
        _check_moving(model)
    elif not contacts and np.any(model.options.gravity):
        raise RecordingError(
            f"{recording.name}: the base is free, but what holds the robot up is not known; measure it and name it"
            " in robot.contacts or robot.plates"
        )
    out = {name: (-1.0 if name in options.reversed else 1.0) * recording.wrenches[name] for name in contacts}
    for contact in model.options.contacts:
        if contact.plate is not None and contact.plate.partial:
            out[contact.name][:, UNMEASURED] = 0.0  # what was recorded there is not a measurement
    return out


def _check_moving(model: RobotModel) -> None:
    """Raise ModelError for a contact that no joint moves: its wrench would enter no equation."""
    for contact in model.options.contacts:
        frame = model.pinocchio.frames[model.pinocchio.getFrameId(contact.frame)]
        if frame.parentJoint == 0:
            key = f"robot.{'contacts' if contact.plate is None else 'plates'}.{contact.name}"
            raise ModelError(
                f"{key}: no joint moves its frame '{contact.frame}' while robot.base is fixed, so that nothing is"
                f" identified from its wrench; set robot.base to free and record the pose of the base, or leave {key}"
                " out"
            )
