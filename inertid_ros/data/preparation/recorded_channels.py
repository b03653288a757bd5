"""Channels of a recording that equations need, in the order of the model."""

import logging

import numpy as np

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

_log = logging.getLogger(__name__)
_MOTION = ("position", "velocity", "acceleration")  # each is used together with those before it


def joint_columns(recording: Recording, model: RobotModel) -> list[int]:
    """Index in the recording of each joint of the model, matched by exact name.

    Raises
    ------
    RecordingError
        The model has joints that the recording lacks.
    """
    missing = [name for name in model.joint_names if name not in recording.joint_names]
    if missing:
        raise RecordingError(
            f"{recording.name}: joint_names lacks {', '.join(missing)} (it has {', '.join(recording.joint_names)});"
            " record these joints, or hold them with locked_joints (--lock JOINT=POSITION)"
        )
    extra = [name for name in recording.joint_names if name not in model.joint_names]
    if extra:
        _log.info("%s: ignoring joints that are not in the model: %s", recording.name, ", ".join(extra))
    return [recording.joint_names.index(name) for name in model.joint_names]


def wheel_columns(recording: Recording, model: RobotModel) -> list[int]:
    """Index in the recording of each reaction wheel of the model.

    Raises
    ------
    RecordingError
        The speed of a wheel was not recorded.
    """
    missing = [name for name in model.wheels.names if name not in recording.joint_names]
    if missing:
        raise RecordingError(
            f"{recording.name}: lacks the speed of wheel {', '.join(missing)} (it has"
            f" {', '.join(recording.joint_names)}); record it as a joint of that name"
        )
    return [recording.joint_names.index(name) for name in model.wheels.names]


def joint_channels(recording: Recording, columns: list[int], options: PrepareOptions) -> dict[str, Array]:
    """Position, effort and what ``motion_from`` needs, ``(N, n)`` each; an effort that was not measured is zero.

    Raises
    ------
    RecordingError
        A channel that ``motion_from`` needs was not recorded.
    """
    channels = {}
    for name in _MOTION[: 1 + _MOTION.index(options.motion_from)]:
        values = getattr(recording, name)
        if values is None:
            raise RecordingError(f"{recording.name}: {name} was not recorded; set prepare.motion_from to 'position'")
        channels[name] = values[:, columns]
    channels["effort"] = np.nan_to_num(recording.effort[:, columns])
    return channels
