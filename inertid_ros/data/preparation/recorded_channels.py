"""Clean channels of a recording for equations, in the order of the model; faulty values are replaced or flagged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np

from inertid_ros.config.recordings import BASE_MOTION_SOURCES, BaseMotionOptions, PrepareOptions
from inertid_ros.config.structuring import flow
from inertid_ros.core.arrays import Array, Mask, checked_quaternions
from inertid_ros.core.errors import NoticeLogger, RecordingError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.recording import LOST_SAMPLE_PERIODS, WRENCH_PREFIX, Recording
from inertid_ros.data.screening import channel_faults
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.recorded_joints import proposed_names

from .wrenches import measured_wrenches

_log = NoticeLogger(__name__)
BASE_POSE = "base_pose"
BASE_SOURCES = {
    "pose": (), "twist": ("base_twist",), "imu": ("imu",), "acceleration": ("base_twist", "base_acceleration")}
"""Channels that each source of a free base's motion needs in addition to the pose, the noisiest first."""
_MOTION = ("position", "velocity", "acceleration")  # each channel needs the channels before it
_CARE_SHARE = 0.02  # replaced share of a channel's samples
_CARE_GAP_SHARE = 0.1  # share of the recording's time that gaps take
_MIN_NOTED_SPIKES = 5  # fewer may be the first samples of transients, and are harmless
_MAX_EXCEPTION_SHARE = 0.1  # share of flagged samples; with more, they are typical of the channel and stay
_ABRUPT_NOISES = 3.0  # second difference of an abrupt motion over the noise, and steps, of a position
_MIN_QUANTA = 20  # quanta in a channel's range; with fewer, rounding exceeds 4 % of its standard deviation
_MIN_PRESENT_SHARE = 0.5  # share of finite samples in a usable channel
_FAULTS = {"dropouts": "lacks values of", "stuck_channel": "repeats values of", "spikes": "has spikes of",
    "saturated": "is saturated for"}


def _held(values: Array, lost: Mask) -> Array:
    """Replace lost values ``(N, n)`` by the last value before, or by the first value at the start."""
    rows = np.maximum.accumulate(np.where(lost, 0, np.arange(len(values))[:, None]), axis=0)
    return np.take_along_axis(values, np.maximum(rows, np.argmax(~lost, axis=0)), axis=0)


@dataclass
class CleanChannels:
    """Channels of a recording, ready to be filtered.

    Attributes
    ----------
    time : (N,), increasing stamps [s].
    noise : noise of joint channels, by channel; ``add_joints`` estimates missing entries.
    channels : map from names to (N, n), finite values; replaced values are interpolated between their neighbours.
    replaced : map from names to bool (N, n), replaced values.
    faulty : map from names to bool (N,), samples in which a contact's wrench, or the base's pose, cannot be used.
    without_effort : bool (n,), joints whose effort cannot be used.
    held : number of samples for which the median joint in motion keeps its position; 1 if every sample is new.
    new_hz : (n,), rate of new positions of joints that keep their values for longer than the other joints [Hz];
        infinite for the others.
    """

    name: str
    time: Array
    channels: dict[str, Array] = field(default_factory=dict)
    replaced: dict[str, Mask] = field(default_factory=dict)
    noise: dict[str, channel_faults.ChannelNoise] = field(default_factory=dict)
    faulty: dict[str, Mask] = field(default_factory=dict)
    without_effort: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    findings: list[Finding] = field(default_factory=list)
    held: int = 1
    new_hz: Array = field(default_factory=lambda: np.array(np.inf))

    @property
    def period(self) -> float:
        """Median step of the stamps [s]."""
        return float(np.median(np.diff(self.time)))

    def select(self, rows: Mask) -> "CleanChannels":
        """Samples flagged in ``rows (N,)``."""
        by_row: Any = {
            key: {name: values[rows] for name, values in getattr(self, key).items()}
            for key in ("channels", "replaced", "faulty")}
        return replace(self, time=self.time[rows], **by_row)

    def without_ends(self, skip_start: float, skip_end: float) -> "CleanChannels":
        """Cut ``skip_start`` and ``skip_end`` [s] off the ends; RecordingError if fewer than four samples are left."""
        time = self.time
        keep = (time >= time[0] + skip_start) & (time <= time[-1] - skip_end)
        if keep.sum() < 4:
            raise RecordingError(
                f"{self.name}: time spans {time[-1] - time[0]:.2f} s, too short to skip {skip_start + skip_end:g} s of"
                " it; lower prepare.skip_start_s or record longer")
        return self if keep.all() else self.select(keep)

    def add_joints(self, raw: Mapping[str, Array], joints: Sequence[str], revolute: Mask,
            passive: bool = False) -> None:
        """Clean channels of joints.

        Raises RecordingError: a motion channel has too few values for a joint.

        Parameters
        ----------
        raw : map from channels to recorded values ``(N, n)``, finite or not; the first channel is ``position``.
        joints : names of the columns.
        revolute : bool (n,), joints whose position is an angle.
        passive : whether joints may lack a drive; their effort is then always zero.
        """
        every = np.ones(len(joints), dtype=bool)
        self.without_effort, off = ~every, np.zeros(len(self.time), dtype=bool)
        if "effort" in raw:
            off |= ~np.nan_to_num(raw["effort"]).any(axis=1)  # the drives have a mode without torque
            off &= (len(joints) > 1) & (np.count_nonzero(~off) > 1)
            self.without_effort = _without_effort(raw["position"][~off], raw["effort"][~off], passive)
        for channel, values in raw.items():
            used = ~self.without_effort if channel == "effort" else every
            lost = ~np.isfinite(values)
            if channel in _MOTION:
                self._check_present(channel, lost.mean(axis=0), joints)
            if channel == "position":  # a value between both sides of a full turn would hide the turn
                values = self._unwrapped(_held(values, lost), joints, revolute)
            values = np.where(used, filled(self.time, values, lost), 0.0)
            values = np.asfortranarray(values)  # the next steps work column by column
            steps = channel_faults.resolution(values)
            if channel not in self.noise:
                self.noise[channel] = channel_faults.ChannelNoise.from_values(values, steps)
            noise = self.noise[channel]
            dropped, spikes = channel_faults.dropouts(values, noise), _spikes(self.time, channel, values, noise)
            if channel == "effort":  # a motion that snaps needs these efforts
                spikes &= ~_accelerating(self.channels["position"], self.noise["position"])[:, None]
            held = channel_faults.held(values, channel == "effort", noise)
            dropped |= off[:, None] & (channel == "effort")
            faults = {"dropouts": lost | dropped, "stuck_channel": held, "spikes": spikes}
            faults = {cause: flags & used for cause, flags in faults.items()}
            self.replaced[channel] = np.any(list(faults.values()), axis=0)
            self.channels[channel] = filled(self.time, values, self.replaced[channel])
            if channel == "position":
                self._note_held(joints)
            if channel == "effort":  # clipped values stay, but do not measure the torque
                faults["saturated"] = channel_faults.saturated(self.channels[channel])
            self._note_faults(channel, faults, joints)
            span = np.ptp(values, axis=0)
            coarse = (span / np.maximum(steps, 1e-300) < _MIN_QUANTA) & (span > 0)
            if names := tuple(compress(joints, coarse)):
                evidence = f"{channel} of {', '.join(names)} has fewer than {_MIN_QUANTA} steps in its whole range"
                self._add("coarse_channel", evidence, names)

    def add_finite(self, channel: str, values: Array) -> Mask:
        """Add a channel ``(N, k)``, replace only its non-finite values, and flag the samples ``(N,)`` with them.

        Raises RecordingError: most samples are not finite.
        """
        lost = ~np.isfinite(values)
        rows = lost.any(axis=1)
        if rows.mean() > 1 - _MIN_PRESENT_SHARE:
            share = f"{rows.mean():.0%}"
            raise RecordingError(f"{self.name}: {channel} holds {share} NaN; check its sensor and record again")
        self.channels[channel] = filled(self.time, values, lost)
        if rows.any():
            self._add("dropouts", f"missing samples of {channel}: {rows.sum()}", care=rows.mean() > _CARE_SHARE)
        return np.asarray(rows)

    def add_wrench(self, contact: str, wrench: Array) -> None:
        """Add a wrench ``(N, 6)``; saturated and stuck samples are flagged and logged, but not replaced."""
        lost = self.add_finite(WRENCH_PREFIX + contact, wrench)
        values = self.channels[WRENCH_PREFIX + contact]
        repeated, unloaded = channel_faults.stuck(self.time, values), ~values.any(axis=1)
        clipped = channel_faults.saturated(values).any(axis=1) & ~repeated & ~unloaded
        for flags, what in ((clipped, "is saturated"), (repeated, "repeats itself (the sensor is dead)")):
            if flags.any():
                first, last = self.time[flags][[0, -1]] - self.time[0]
                _log.warning("%s: wrench/%s %s in %d samples between %.2f s and %.2f s, which are left out", self.name,
                    contact, what, flags.sum(), first, last)
        self.faulty[contact] = clipped | repeated | lost

    def note_gaps(self, joins: Sequence[float] = ()) -> None:
        """Add a finding on gaps in the stamps, except gaps between joined logs."""
        steps = np.diff(self.time)[~np.isin(self.time[1:], joins)]
        usual = float(np.median(steps))
        gaps = steps[steps > LOST_SAMPLE_PERIODS * usual]
        if len(gaps):
            share = float(gaps.sum() - len(gaps) * usual) / float(self.time[-1] - self.time[0])
            evidence = f"gaps between stamps: {len(gaps)}, up to {gaps.max():.3g} s, {100 * share:.1f} % of the time"
            self._add("gaps", evidence, care=share > _CARE_GAP_SHARE)

    def note_missing_efforts(self, joints: Sequence[str]) -> None:
        """Add a finding on joints whose effort cannot be used."""
        if names := tuple(compress(joints, self.without_effort)):
            self._add("no_effort", f"effort of {', '.join(names)} is missing or zero in most samples", names, care=True)

    def _check_present(self, channel: str, lost_shares: Array, joints: Sequence[str]) -> None:
        if (lost_shares > 1 - _MIN_PRESENT_SHARE).any():
            joint = joints[int(np.argmax(lost_shares))]
            remedy = "record it again" if channel == "position" else "set prepare.motion_from to 'position'"
            raise RecordingError(
                f"{self.name}: {channel} of joint '{joint}' holds {lost_shares.max():.0%} NaN; {remedy}")

    def _unwrapped(self, values: Array, joints: Sequence[str], revolute: Mask) -> Array:
        turned, counts = channel_faults.unwrapped(values)
        for joint, count in zip(joints, counts * revolute, strict=True):
            if count:
                self._add("wrapped_angle", f"jumps of {joint} by a full turn: {count}", (joint,))
        return np.where(revolute, turned, values)

    def _note_held(self, joints: Sequence[str]) -> None:
        """Note for how many samples positions keep their values; interpolate joints that keep them for longer.

        A joint is interpolated if it keeps its values for longer than the median joint: its stairs lag behind the
        other joints, and a low-pass for the other joints does not remove the steps.
        """
        position = self.channels["position"]
        held = channel_faults.samples_held(position)
        self.held = int(np.quantile(held, 0.5, method="lower"))
        self.new_hz = np.where(held > self.held, 1 / (held * self.period), np.inf)
        if self.held > 1:
            evidence = f"in motion, positions keep each value for {self.held} samples"
            self._add("repeated_states", evidence, case="positions")
        for joint in np.flatnonzero(held > self.held).tolist():
            new = np.flatnonzero(np.diff(position[:, joint], prepend=np.nan))
            position[:, joint] = np.interp(self.time, self.time[new], position[new, joint])
            evidence = f"in motion, only the position of {joints[joint]} keeps each value for {held[joint]} samples"
            self._add("repeated_states", evidence, (joints[joint],), case="alone")

    def _note_faults(self, channel: str, faults: Mapping[str, Mask], joints: Sequence[str]) -> None:
        for cause, flags in faults.items():
            counts = flags.sum(axis=0)
            if not counts.any() or (cause in ("spikes", "saturated") and counts.max() < _MIN_NOTED_SPIKES):
                continue
            by_joint = {joint: count for joint, count in zip(joints, counts, strict=True) if count}
            listed = ", ".join(f"{joint} ({count} of {len(flags)} samples)" for joint, count in by_joint.items())
            care = counts.max() / len(flags) > _CARE_SHARE
            self._add(cause, f"{channel} {_FAULTS[cause]} {listed}", tuple(by_joint), care=care)

    def _add(self, cause: str, evidence: str, subjects: tuple[str, ...] = (), care: bool = False,
            case: str = "") -> None:
        severity = Severity.CARE if care else Severity.NOTICE
        finding = Finding.with_remedy(cause, severity, evidence, *subjects, recording=self.name, case=case)
        self.findings.append(finding)


def force_channels(recording: Recording, model: RobotModel, options: PrepareOptions,
        noise: Mapping[str, channel_faults.ChannelNoise]) -> CleanChannels:
    """Clean the channels that equations of force need; ``noise`` is the known noise, by channel.

    Raises RecordingError: a joint of the model or a chosen channel is missing or has too few values.
    """
    columns = joint_columns(recording, model)
    raw = {}
    for channel in (*_MOTION[: 1 + _MOTION.index(options.motion_from)], "effort"):
        values = getattr(recording, channel)
        if values is None:
            raise RecordingError(f"{recording.name}: {channel} was not recorded; set prepare.motion_from to 'position'")
        raw[channel] = values[:, columns]
    raw["effort"] = raw["effort"] * model.effort_scale
    clean = CleanChannels(recording.name, recording.time, noise=dict(noise))
    if not recording.repairs.lost:
        clean.note_gaps(recording.repairs.joins)
    clean.add_joints(raw, model.joint_names, ~model.slides, passive=model.free)
    if not model.free:
        clean.note_missing_efforts(model.joint_names)
        if clean.without_effort.all():
            raise RecordingError(
                f"{recording.name}: effort is missing for every joint; enable the effort state interface of the driver")
    for contact, wrench in measured_wrenches(recording, model, options.wrenches).items():
        clean.add_wrench(contact, wrench)
    if model.free:
        base, invalid = base_channels(recording, options.base)
        lost = [clean.add_finite(channel, values) for channel, values in base.items()]
        clean.faulty[BASE_POSE] = np.any([invalid, *lost], axis=0)
    return clean.without_ends(options.skip_start_s, options.skip_end_s)


def base_channels(recording: Recording, options: BaseMotionOptions) -> tuple[dict[str, Array], Mask]:
    """Raw channels of the base, and flags ``(N,)`` of samples with an invalid pose.

    The quaternions of the pose ``(N, 7)`` have unit length, and their signs do not jump.

    Raises RecordingError: the pose or the chosen channel was not recorded, or the pose lacks unit quaternions.
    """
    if recording.base_pose is None:
        raise RecordingError(
            f"{recording.name}: base_pose was not recorded, but a free base needs it; set its topic in"
            " topics.odometry or topics.pose")
    orientation, invalid = checked_quaternions(recording.base_pose[:, 3:], recording.name)
    channels = {"base_pose": np.hstack([recording.base_pose[:, :3], orientation])}
    recorded = {key for keys in BASE_SOURCES.values() for key in keys if getattr(recording, key) is not None}
    for key in BASE_SOURCES[options.motion_from]:
        if key not in recorded:
            possible = [source for source in BASE_MOTION_SOURCES if recorded.issuperset(BASE_SOURCES[source])]
            raise RecordingError(
                f"{recording.name}: {key} was not recorded; name its topic in topics, or set prepare.base.motion_from"
                f" to {' or '.join(possible)}")
        channels[key] = getattr(recording, key)
    return channels, invalid


def repaired(recording: Recording) -> Recording:
    """Remove spikes and non-finite values from the joint channels of a recording, for checks of its units.

    Angles stay wrapped, and a column without any finite value becomes zero.
    """
    channels: dict[str, Any] = {}
    for channel in (*_MOTION, "effort"):
        values = getattr(recording, channel)
        if values is not None:
            values = filled(recording.time, values, ~np.isfinite(values))
            channels[channel] = filled(recording.time, values, _spikes(recording.time, channel, values))
    return replace(recording, **channels)


def filled(time: Array, values: Array, lost: Mask) -> Array:
    """Interpolate the lost values ``(N, n)`` linearly; a column without any other value becomes zero."""
    out = np.where(lost, 0.0, values)
    for column in np.flatnonzero(lost.any(axis=0)):
        present = ~lost[:, column]
        if present.any():
            out[~present, column] = np.interp(time[~present], time[present], values[present, column])
    return out


def _spikes(time: Array, channel: str, values: Array, noise: channel_faults.ChannelNoise | None = None) -> Mask:
    """Flag spikes ``(N, n)`` of a channel, except in columns with many spikes."""
    flags = channel_faults.spikes(values, noise, time if channel == "position" else None)
    return flags & (flags.mean(axis=0) <= _MAX_EXCEPTION_SHARE)


def _accelerating(position: Array, noise: channel_faults.ChannelNoise) -> Mask:
    """Flag samples ``(N,)`` near which a joint accelerates far more than in nine tenths of the samples."""
    second = np.abs(np.diff(position, 2, axis=0, prepend=position[:1], append=position[-1:]))
    usual = np.quantile(second, 1 - _MAX_EXCEPTION_SHARE, axis=0)
    abrupt = np.any(second > np.maximum(noise.threshold * usual, _ABRUPT_NOISES * noise.scale), axis=1)
    reach = channel_faults.HALF_WINDOW
    return np.convolve(abrupt, np.ones(2 * reach + 1))[reach : reach + len(position)] > 0


def _without_effort(position: Array, effort: Array, passive: bool) -> Mask:
    """Flag joints ``(n,)`` whose effort is mostly not finite, or mostly exactly zero in motion.

    Zeros are ignored if all joints would be flagged. If ``passive``, a joint whose effort is always zero counts as
    passive and is not flagged.
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

    Raises RecordingError: the model has joints that the recording lacks.
    """
    if missing := [name for name in model.joint_names if name not in recording.joint_names]:
        of_robot = {*model.joint_names, *model.options.locked_joints}
        names = proposed_names([name for name in recording.joint_names if name not in of_robot], missing)
        rename = f"if the recorded names mean these joints, set robot.joint_names: {flow(names)}; else " * bool(names)
        raise RecordingError(
            f"{recording.name}: joint_names lacks {', '.join(missing)} (it has"
            f" {', '.join(recording.joint_names) or 'none'});"
            f" {rename}record the missing joints, or lock them (--lock JOINT=POSITION); to lock them at zero:"
            f" --set 'robot.locked_joints={flow({**model.options.locked_joints, **dict.fromkeys(missing, 0.0)})}'")
    used = model.recorded_joints.joints
    if extra := [name for name in recording.joint_names if name not in used]:
        _log.info("%s: ignoring joints that are not in the model: %s", recording.name, ", ".join(extra))
    return recording.columns(model.joint_names)
