"""Measured external wrenches: which are needed, their sign, and where they cannot be trusted."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.options import ConfigurationError, option
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.contact_state import spans
from inertid_ros.data.screening.saturation import saturated
from inertid_ros.dynamics.plate_frame import UNMEASURED
from inertid_ros.robot.model import RobotModel

_log = logging.getLogger(__name__)
_STUCK_S = 0.05  # longer than this no sensor repeats all six values
_STUCK = 5  # samples
_SUDDEN = 0.1  # of the largest force; a load that goes to exactly zero from more than this was not lifted off


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
    """Contact to ``(N, 6)`` force and torque on the robot.

    Raises
    ------
    RecordingError: a contact of the robot was not recorded, a recorded wrench belongs to no contact, a name in the
        options is none, or a free base has no contact at all.
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
            out[contact.name][:, UNMEASURED] = 0.0  # whatever stands there is no measurement
    return out


def untrusted(recording: Recording, wrenches: Mapping[str, Array]) -> dict[str, NDArray[np.bool_]]:
    """Where each wrench is saturated or stuck ``(N,)``, with a notice each; nothing is put in its place."""
    out = {}
    for name, wrench in wrenches.items():
        clipped = saturated(wrench).any(axis=1) & ~stuck(recording.time, wrench)
        dead = stuck(recording.time, wrench)
        for flags, what in ((clipped, "sticks to its limit"), (dead, "repeats itself (the sensor is dead)")):
            if flags.any():
                first, last = recording.time[flags][[0, -1]] - recording.time[0]
                _log.warning(
                    "%s: wrench/%s %s in %d samples between %.2f s and %.2f s, which are left out",
                    recording.name, name, what, flags.sum(), first, last,
                )
        out[name] = clipped | dead
    return out


def stuck(time: Array, wrench: Array) -> NDArray[np.bool_]:
    """Where a wrench ``(N, 6)`` repeats itself longer than a live sensor would, ``(N,)``.

    All zero is what many plates report while nothing stands on them. It counts only where the load was there just
    before or after.
    """
    same = np.concatenate([[False], (wrench[1:] == wrench[:-1]).all(axis=1)])
    out = np.zeros(len(wrench), dtype=bool)
    size = np.linalg.norm(wrench[:, :3], axis=1)
    sudden = _SUDDEN * size.max(initial=0.0)
    for start, end in spans(same):
        start -= 1  # the first of equal ones
        if end - start < _STUCK or time[end - 1] - time[start] < _STUCK_S:
            continue
        around = max(size[start - 1] if start else 0.0, size[end] if end < len(size) else 0.0)
        if wrench[start].any() or around > sudden > 0:
            out[start:end] = True
    return out
