"""Efforts of robots that report none but follow position commands: from recorded commands and gains of the drives."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import ModelError, NoticeLogger, RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.robot.body_changes import matches
from inertid_ros.robot.model import RobotModel

from .filtered_motion import FilteredMotion
from .recorded_channels import joint_columns

_log = NoticeLogger(__name__)
# Variance of the tracking error over variance of the position: 1 for a constant command, about 2 for the command of
# another joint, 4 for a reversed sign, and 0.3 for a soft drive with heavy links.
_MAX_TRACKING_ERROR = 0.8


def with_commanded_effort(recording: Recording, model: RobotModel) -> Recording:
    """Compute efforts as ``kp (q_cmd - q) + kd (v_cmd - v) + commanded effort``, without a delay of the command.

    Channels of velocity and effort that were not commanded count as zero. The velocity ``v`` is the derivative of the
    position.

    Raises RecordingError: the commands are missing, or a joint does not follow them.
    Raises ModelError: a joint has no gain, or the recording has several factors on its gains.
    """
    if model.command_gains is None:
        return recording
    if recording.command_position is None:
        raise RecordingError(
            f"{recording.name}: has no command_position, from which robot.effort position_command computes torque;"
            " set topics.commands or topics.controller_state of the bag, add this channel to the .npz file or"
            " <joint>_command_position to the table, or set robot.effort")
    columns, (kp, kd) = joint_columns(recording, model), _gains_of(recording.name, model)
    position, command = recording.position[:, columns], recording.command_position[:, columns]
    _check_followed(recording.name, model.joint_names, kp > 0, position, command)
    desired: Array | float = 0.0
    if recording.command_velocity is not None:
        desired = recording.command_velocity[:, columns]
    elif kd.any():
        _log.warning("%s: has no command_velocity, which counts as zero", recording.name)
    torque = kp * (command - position) + kd * (desired - _velocity(recording.time, position))
    if recording.command_effort is not None:
        torque = torque + recording.command_effort[:, columns]
    if not np.isfinite(torque).any():
        raise RecordingError(f"{recording.name}: commands and positions give no finite effort; record both in rad or m")
    effort = np.full(recording.position.shape, np.nan)
    effort[:, columns] = torque
    return replace(recording, effort=effort)


def command_torque(name: str, model: RobotModel, motion: FilteredMotion) -> Array | None:
    """Part ``(N, nv)`` of filtered efforts of a recording that follows from commands; None if efforts are measured."""
    if model.command_gains is None:
        return None
    kp, kd = _gains_of(name, model)
    of_joints = slice(-model.joints, None)
    command = np.zeros_like(motion.v)
    of_state = kp * motion.q[:, of_joints] + kd * motion.v[:, of_joints]
    command[:, of_joints] = motion.effort + model.effort_scale * of_state
    return command


def _gains_of(recording: str, model: RobotModel) -> Array:
    """Gains ``(2, n)`` of position and velocity in a recording."""
    factors = {key: factor for key, factor in model.options.command_gain_factors.items() if matches(recording, [key])}
    if len(factors) > 1:
        raise ModelError(
            f"robot.command_gain_factors: {recording} matches {' and '.join(factors)}; leave one of these patterns")
    return np.asarray(model.command_gains) * next(iter(factors.values()), 1.0)


def _velocity(time: Array, position: Array) -> Array:
    """Central differences ``(N, n)``, without the smoothing over their step, which would look like a delay."""
    velocity = np.asarray(np.gradient(position, time, axis=0))
    velocity[1:-1] -= np.diff(velocity, 2, axis=0) / 6
    return velocity


def _check_followed(name: str, joints: Sequence[str], stiff: Mask, position: Array, command: Array) -> None:
    """Raise RecordingError if a joint with a position gain does not follow its command."""
    spreads = (np.ma.masked_invalid(values).std(axis=0) for values in (command - position, position))
    error, moved = (np.ma.filled(spread, 0.0) for spread in spreads)
    far = stiff & (error**2 > _MAX_TRACKING_ERROR * moved**2) & (moved > 0)
    if far.any():
        joint = int(np.argmax(np.where(far, error / np.maximum(moved, 1e-300), 0.0)))
        raise RecordingError(
            f"{name}: {joints[joint]} does not follow command_position: they differ by"
            f" {error[joint]:.3g} rad or m (standard deviation), and it moves by {moved[joint]:.3g}; record the command"
            " that its drive receives, in rad or m, with the names of the joints in this order")
