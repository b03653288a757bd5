"""Measured external wrenches by contact: which are needed, and their sign."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.config.options import ConfigurationError, option
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.dynamics.contact_wrenches import UNMEASURED
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class WrenchOptions:
    """How measured external wrenches are read and watched."""

    reversed: tuple[str, ...] = option(
        (), "wrenches measured as what the robot does to its surroundings; their sign is turned"
    )
    ignored: tuple[str, ...] = option((), "recorded wrenches that are not on the robot, such as an idle plate's")
    contact_on_n: float = option(
        20.0, "a plate carries load from where its force exceeds this [N]", minimum=0.0, maximum=1e5
    )
    contact_off_n: float = option(10.0, "until it falls below this [N]", minimum=0.0, maximum=1e5)
    max_slip_m_s: float = option(
        0.1, "a foot whose point of pressure moves faster than this over its plate slips, and is left out",
        minimum=1e-3, maximum=1e3,
    )
    check: bool = option(True, "refuse wrenches that contradict the robot's weight: wrong sign, exchanged plates")

    def __post_init__(self) -> None:
        if self.contact_off_n > self.contact_on_n:
            raise ConfigurationError(
                f"wrenches.contact_off_n is {self.contact_off_n:g}, above contact_on_n; lower it"
            )


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
    if model.free:
        left = [name for name in recording.wrenches if name not in (*contacts, *options.ignored)]
        if left:
            raise RecordingError(
                f"{recording.name}: wrench/{left[0]} was recorded, but no contact or plate of the robot is named so;"
                " give it in robot.contacts or robot.plates, or in prepare.wrenches.ignored if it is not on the robot"
            )
        if not contacts and np.any(model.options.gravity):
            raise RecordingError(
                f"{recording.name}: the base is free, but what holds the robot up is not known; measure it and name it"
                " in robot.contacts or robot.plates"
            )
    out = {name: (-1.0 if name in options.reversed else 1.0) * recording.wrenches[name] for name in contacts}
    for contact in model.options.contacts:
        if contact.plate is not None and contact.plate.partial:
            out[contact.name][:, UNMEASURED] = 0.0  # what was recorded there is not a measurement
    return out
