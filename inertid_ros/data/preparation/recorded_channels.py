"""Channels of a recording that equations need, in the order of the model, without values that no sensor measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.config.structuring import flow
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.core.notices import NoticeLogger
from inertid_ros.data.recording import LOST_SAMPLE_PERIODS, WRENCH_PREFIX, Recording
from inertid_ros.data.screening.channel_faults import (
    ChannelNoise,
    dropouts,
    faulty_wrenches,
    held,
    joint_spikes,
    resolution,
    samples_held,
    unwrapped,
)
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.recorded_joints import proposed_names

from .filtered_motion import base_channels
from .filtering import StampedChannels
from .wrenches import measured_wrenches

_log = NoticeLogger(__name__)
BASE_POSE = "base_pose"
_MOTION = ("position", "velocity", "acceleration")  # each needs those before it
_CARE_SHARE = 0.02  # of a channel's samples replaced
_CARE_GAP_SHARE = 0.1  # of the time of a recording in gaps
_MIN_NOTED_SPIKES = 5  # fewer may be the first sample of a transient, and change nothing
_MAX_EXCEPTION_SHARE = 0.1  # of flagged samples; with more, the channel itself is like that, and nothing is replaced
_MIN_QUANTA = 20  # in the range of a channel; with fewer, rounding exceeds one per cent of its standard deviation
_MIN_PRESENT_SHARE = 0.5  # of the samples of a usable channel


@dataclass
class CleanChannels:
    """Channels of a recording, ready to be filtered.

    Attributes
    ----------
    name : str
        Name of the recording.
    channels : dict of str to ndarray, shape (N, n)
        Finite values; replaced ones are interpolated linearly between their neighbours.
    replaced : dict of str to ndarray of bool, shape (N, n)
        Replaced values.
    without_effort : ndarray of bool, shape (n,)
        Joints whose effort cannot be used.
    findings : list of Finding
    noise : dict of str to ChannelNoise
        Noise of the channels of joints; taken if given, else estimated.
    held : int
        Number of samples for which positions in motion keep their values.
    """

    name: str
    channels: dict[str, Array] = field(default_factory=dict)
    replaced: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    without_effort: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    findings: list[Finding] = field(default_factory=list)
    noise: dict[str, ChannelNoise] = field(default_factory=dict)
    held: int = 1

    @property
    def motion_replaced(self) -> NDArray[np.bool_]:
        """Flag the samples ``(N,)`` in which a motion channel of any joint was replaced."""
        flags = [self.replaced[channel].any(axis=1) for channel in _MOTION if channel in self.replaced]
        return np.any(flags, axis=0)

    def add_joints(
        self,
        time: Array,
        raw: Mapping[str, Array],
        joints: Sequence[str],
        revolute: NDArray[np.bool_],
        passive: bool = False,
    ) -> None:
        """Clean channels of joints: ``position``, ``effort`` and others.

        Parameters
        ----------
        time : ndarray, shape (N,)
            Stamps [s].
        raw : mapping of str to ndarray, shape (N, n)
            As recorded; may hold values that are not finite.
        joints : sequence of str
            Names of the columns.
        revolute : ndarray of bool, shape (n,)
            Joints whose position is an angle.
        passive : bool
            Whether joints may be without a drive, whose effort is always zero.

        Raises
        ------
        RecordingError
            A channel of the motion has hardly a value for some joint.
        """
        self.without_effort = np.zeros(len(joints), dtype=bool)
        if "effort" in raw:
            self.without_effort = _without_effort(raw["position"], raw["effort"], passive)
        for channel, values in raw.items():
            used = ~self.without_effort if channel == "effort" else np.ones(len(joints), dtype=bool)
            lost = ~np.isfinite(values)
            if channel in _MOTION:
                self._check_present(channel, lost.mean(axis=0), joints)
            values = np.where(used, filled(time, values, lost), 0.0)
            if channel == "position":
                values = self._unwrapped(values, joints, revolute)
            values = np.asfortranarray(values)  # what follows works column by column
            steps = resolution(values)
            if channel not in self.noise:
                self.noise[channel] = ChannelNoise.from_values(values, steps)
            noise = self.noise[channel]
            faults = {
                "dropouts": (lost | dropouts(values, noise)) & used,
                "stuck_channel": held(values, channel == "effort", noise) & used,
                "spikes": _exceptions(joint_spikes(time, channel, values, noise)) & used,
            }
            replaced = np.any(list(faults.values()), axis=0)
            self.channels[channel] = filled(time, values, replaced)
            self.replaced[channel] = replaced
            if channel == "position":
                self._look_at_held(self.channels[channel])
            for cause, flags in faults.items():
                self._count(cause, channel, flags, joints)
            self._coarse(channel, np.ptp(values, axis=0), steps, joints)

    def _check_present(self, channel: str, lost_shares: Array, joints: Sequence[str]) -> None:
        if (lost_shares > 1 - _MIN_PRESENT_SHARE).any():
            joint = joints[int(np.argmax(lost_shares))]
            remedy = "record it again" if channel == "position" else "set prepare.motion_from to 'position'"
            raise RecordingError(
                f"{self.name}: {channel} of joint '{joint}' holds {lost_shares.max():.0%} NaN; {remedy}"
            )

    def add_finite(self, time: Array, channel: str, values: Array) -> NDArray[np.bool_]:
        """Take a channel ``(N, k)`` of which only non-finite values are replaced, and flag these samples ``(N,)``.

        Raises
        ------
        RecordingError
            Most samples are not finite.
        """
        lost = ~np.isfinite(values)
        rows = lost.any(axis=1)
        if rows.mean() > 1 - _MIN_PRESENT_SHARE:
            share = f"{rows.mean():.0%}"
            raise RecordingError(f"{self.name}: {channel} holds {share} NaN; check its sensor and record again")
        self.channels[channel] = filled(time, values, lost)
        if rows.any():
            self._add("dropouts", rows.mean(), f"{channel} lacks {rows.sum()} samples")
        return np.asarray(rows)

    def gap_findings(self, time: Array) -> None:
        """Add a finding if stamps ``(N,)`` [s] show lost samples."""
        steps = np.diff(time)
        usual = float(np.median(steps))
        gaps = steps[steps > LOST_SAMPLE_PERIODS * usual]
        if len(gaps):
            share = float(gaps.sum() - len(gaps) * usual) / float(time[-1] - time[0])
            severity = Severity.CARE if share > _CARE_GAP_SHARE else Severity.NOTICE
            text = f"stamps have {len(gaps)} gaps of up to {gaps.max():.3g} s, {100 * share:.1f} % of its time"
            self.findings.append(Finding("gaps", severity, text, remedy_for("gaps"), recording=self.name))

    def effort_findings(self, joints: Sequence[str]) -> None:
        """Add a finding on joints whose effort cannot be used."""
        names = [joint for joint, without in zip(joints, self.without_effort, strict=True) if without]
        if names:
            text = f"effort of {', '.join(names)} is missing or zero in most samples"
            remedy = remedy_for("no_effort")
            self.findings.append(Finding("no_effort", Severity.CARE, text, remedy, tuple(names), self.name))

    def _unwrapped(self, values: Array, joints: Sequence[str], revolute: NDArray[np.bool_]) -> Array:
        turned, counts = unwrapped(values)
        for joint, count in zip(joints, counts * revolute, strict=True):
            if count:
                text = f"position of {joint} jumps by a full turn {count} times"
                remedy = remedy_for("wrapped_angle")
                self.findings.append(Finding("wrapped_angle", Severity.NOTICE, text, remedy, (joint,), self.name))
        return np.where(revolute, turned, values)

    def _look_at_held(self, position: Array) -> None:
        self.held = samples_held(position)
        if self.held > 1:
            text = f"positions in motion keep their values for {self.held} samples"
            remedy = remedy_for("repeated_states", "positions")
            self.findings.append(Finding("repeated_states", Severity.NOTICE, text, remedy, recording=self.name))

    def _count(self, cause: str, channel: str, flags: NDArray[np.bool_], joints: Sequence[str]) -> None:
        counts = flags.sum(axis=0)
        if not counts.any() or (cause == "spikes" and counts.max() < _MIN_NOTED_SPIKES):
            return
        what = {"dropouts": "lacks values of", "stuck_channel": "repeats values of", "spikes": "has spikes of"}[cause]
        by_joint = {joint: count for joint, count in zip(joints, counts, strict=True) if count}
        listed = ", ".join(f"{joint} ({count} of {len(flags)} samples)" for joint, count in by_joint.items())
        self._add(cause, counts.max() / len(flags), f"{channel} {what} {listed}", tuple(by_joint))

    def _coarse(self, channel: str, span: Array, steps: Array, joints: Sequence[str]) -> None:
        coarse = (span / np.maximum(steps, 1e-300) < _MIN_QUANTA) & (span > 0)
        names = tuple(joint for joint, few in zip(joints, coarse, strict=True) if few)
        if names:
            text = f"{channel} of {', '.join(names)} has fewer than {_MIN_QUANTA} steps in its whole range"
            remedy = remedy_for("coarse_channel")
            self.findings.append(Finding("coarse_channel", Severity.NOTICE, text, remedy, names, self.name))

    def _add(self, cause: str, share: float, text: str, subjects: tuple[str, ...] = ()) -> None:
        severity = Severity.CARE if share > _CARE_SHARE else Severity.NOTICE
        self.findings.append(Finding(cause, severity, text, remedy_for(cause), subjects, self.name))


def repaired(recording: Recording) -> Recording:
    """Remove spikes and non-finite values from the joint channels of a recording, for checks of its units.

    Angles stay wrapped, and a column without any finite value becomes zero.
    """
    channels: dict[str, Any] = {}
    for channel in (*_MOTION, "effort"):
        values = getattr(recording, channel)
        if values is not None:
            lost = ~np.isfinite(values)
            values = filled(recording.time, values, lost)
            spikes = _exceptions(joint_spikes(recording.time, channel, values))
            channels[channel] = filled(recording.time, values, spikes)
    return replace(recording, **channels)


def filled(time: Array, values: Array, lost: NDArray[np.bool_]) -> Array:
    """Interpolate the lost values ``(N, n)`` linearly; a column without any other value becomes zero."""
    out = np.where(lost, 0.0, values)
    for column in np.flatnonzero(lost.any(axis=0)):
        present = ~lost[:, column]
        if present.any():
            out[~present, column] = np.interp(time[~present], time[present], values[present, column])
    return out


def _exceptions(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Flags of channels ``(N, n)`` with few flagged samples."""
    return flags & (flags.mean(axis=0) <= _MAX_EXCEPTION_SHARE)


def _without_effort(position: Array, effort: Array, passive: bool) -> NDArray[np.bool_]:
    """Joints ``(n,)`` whose effort is mostly not finite, or mostly exactly zero while they move; none if all are zero.

    If joints may be passive, one whose effort is always zero counts as passive.
    """
    missing = np.mean(~np.isfinite(effort), axis=0) > 1 - _MIN_PRESENT_SHARE
    speed = np.abs(np.gradient(np.nan_to_num(position), axis=0))
    moving = speed > np.median(speed, axis=0)
    zero = np.sum((effort == 0) & moving, axis=0) > _MIN_PRESENT_SHARE * np.maximum(moving.sum(axis=0), 1)
    if passive:
        zero &= np.nan_to_num(effort).any(axis=0)
    return missing | (zero if not (zero | missing).all() else np.zeros_like(zero))


def joint_columns(recording: Recording, model: RobotModel) -> list[int]:
    """Column in the recording of each joint of the model, matched by exact name.

    Raises
    ------
    RecordingError
        The model has joints that the recording lacks.
    """
    missing = [name for name in model.joint_names if name not in recording.joint_names]
    if missing:
        of_robot = {*model.joint_names, *model.options.locked_joints}
        names = proposed_names([name for name in recording.joint_names if name not in of_robot], missing)
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
    """Column in the recording of each reaction wheel of the model.

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
    """Position, effort and the channels that ``motion_from`` needs, ``(N, n)`` each, as recorded.

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
    """Joints ``(n,)`` that turn, whose position is an angle."""
    return np.array([not joint.prismatic for joint in model.tree if not joint.free])


@dataclass(frozen=True)
class ForceChannels:
    """Channels of a recording that equations of force need.

    Attributes
    ----------
    time : ndarray, shape (N,)
        Stamps of the recording [s].
    stamped : StampedChannels
        Clean channels at their stamps, without the skipped ends.
    without_effort : ndarray of bool, shape (n,)
        Joints whose effort was not measured.
    faulty : mapping of str to ndarray of bool, shape (N,)
        Samples in which the wrench of a contact, or the pose of the base, cannot be used.
    findings : tuple of Finding
    noise : mapping of str to ChannelNoise
        Noise of the channels of joints, by which spikes and lost values were found.
    """

    time: Array
    stamped: StampedChannels
    without_effort: NDArray[np.bool_]
    faulty: Mapping[str, NDArray[np.bool_]]
    findings: tuple[Finding, ...]
    noise: Mapping[str, ChannelNoise]

    @classmethod
    def from_recording(
        cls,
        recording: Recording,
        model: RobotModel,
        options: PrepareOptions,
        noise: Mapping[str, ChannelNoise] | None = None,
    ) -> "ForceChannels":
        """Clean the channels of a recording for a robot, whose noise may be known.

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
