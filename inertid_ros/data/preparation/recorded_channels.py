"""Channels of a recording that equations need, clean, in the order of the model."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.config.schema.structuring import flow
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding
from inertid_ros.data.cleaning.channel_noise import ChannelNoise
from inertid_ros.data.cleaning.clean import CleanChannels
from inertid_ros.data.filtering.resampling import StampedChannels
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.sensor_faults import faulty_wrenches
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.recorded_joints import proposed_names

from .external_wrenches import measured_wrenches
from .filtered_motion import WRENCH_PREFIX
from .free_base import base_channels

_log = logging.getLogger(__name__)
BASE_POSE = "base_pose"
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
        known = {*model.joint_names, *model.options.locked_joints}
        names = proposed_names([name for name in recording.joint_names if name not in known], missing)
        same = f"if these are the same joints in their order, set robot.joint_names: {flow(names)}; else " * bool(names)
        raise RecordingError(
            f"{recording.name}: joint_names lacks {', '.join(missing)} (it has {', '.join(recording.joint_names)});"
            f" {same}record these joints, or hold them with robot.locked_joints: {{JOINT: POSITION}}"
            " (--lock JOINT=POSITION)"
        )
    used = model.recorded_joints.joints
    extra = [name for name in recording.joint_names if name not in used]
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
    """Position, effort and what ``motion_from`` needs, ``(N, n)`` each, as recorded.

    Raises
    ------
    RecordingError
        A channel that ``motion_from`` needs was not recorded.
    """
    channels = {}
    for name in (*_MOTION[: 1 + _MOTION.index(options.motion_from)], "effort"):
        values = getattr(recording, name)
        if values is None:
            raise RecordingError(f"{recording.name}: {name} was not recorded; set prepare.motion_from to 'position'")
        channels[name] = values[:, columns]
    return channels


def revolute_joints(model: RobotModel) -> NDArray[np.bool_]:
    """``(n,)`` joints that turn, whose position is an angle."""
    return np.array([not joint.prismatic for joint in model.tree if not joint.free])


@dataclass(frozen=True)
class ForceChannels:
    """What equations of force need of a recording.

    Attributes
    ----------
    time : ndarray, shape (N,)
        Stamps of the recording [s].
    stamped : StampedChannels
        Clean channels at their stamps, without the ends that are skipped.
    without_effort : ndarray of bool, shape (n,)
        Joints whose effort was not measured.
    faulty : mapping of str to ndarray of bool, shape (N,)
        Samples of the recording in which the wrench of a contact, or the pose of the base, cannot be used.
    findings : tuple of Finding
        About the channels.
    noise : mapping of str to ChannelNoise
        Of the channels of joints, by which spikes and lost values were told.
    """

    time: Array
    stamped: StampedChannels
    without_effort: NDArray[np.bool_]
    faulty: Mapping[str, NDArray[np.bool_]]
    findings: tuple[Finding, ...]
    noise: Mapping[str, ChannelNoise]

    @classmethod
    def of(
        cls,
        recording: Recording,
        model: RobotModel,
        options: PrepareOptions,
        noise: Mapping[str, ChannelNoise] | None = None,
    ) -> "ForceChannels":
        """Channels of a recording for a robot, whose noise may be known.

        Raises
        ------
        RecordingError
            A joint of the model or a chosen channel is missing or has hardly a value, or nothing is left after cutting.
        """
        columns = joint_columns(recording, model)
        clean = CleanChannels(recording.name, noise=dict(noise or {}))
        clean.gap_findings(recording.time)
        raw = joint_channels(recording, columns, options)
        raw["effort"] = raw["effort"] * model.effort_scale
        clean.add_joints(recording.time, raw, model.joint_names, revolute_joints(model), passive=model.free)
        if not model.free:
            clean.effort_findings(model.joint_names)
            if clean.without_effort.all():
                raise RecordingError(
                    f"{recording.name}: effort is missing for every joint; enable the effort state interface of the"
                    " driver"
                )
        lost = {}
        wrenches = measured_wrenches(recording, model, options.wrenches)
        for name, wrench in wrenches.items():
            lost[name] = clean.add_finite(recording.time, WRENCH_PREFIX + name, wrench)
            wrenches[name] = clean.channels[WRENCH_PREFIX + name]
        faulty = faulty_wrenches(recording, wrenches)
        faulty = {name: flags | lost[name] for name, flags in faulty.items()}
        if model.free:
            base, faulty[BASE_POSE] = base_channels(recording, options.base)
            for name, values in base.items():
                faulty[BASE_POSE] = faulty[BASE_POSE] | clean.add_finite(recording.time, name, values)
        stamped = StampedChannels(
            recording.name, recording.time, clean.channels, clean.replaced, clean.motion_replaced, clean.held
        ).without_ends(options.skip_start_s, options.skip_end_s)
        return cls(recording.time, stamped, clean.without_effort, faulty, tuple(clean.findings), clean.noise)
