"""Recordings of a floating robot to samples of momentum: rates of base, joints and wheels, filtered alike."""

from dataclasses import replace
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.rotations import checked
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.conservation import check_conservation, check_pose
from inertid_ros.dynamics.base_from_momentum import BaseMotion
from inertid_ros.kinematics.floating import rotations
from inertid_ros.robot.model import RobotModel

from .dead_reckoning import dead_reckoning
from .filters import automatic_cutoff, derivatives, low_pass, spectrum
from .prepare import PrepareOptions, joint_columns
from .resampling import Segment, resample

_REST_POSE = np.array([0.0, 0, 0, 0, 0, 0, 1.0])
_NORMAL = 1.4826  # standard deviation of a normal distribution over the median of its size
_MIN_SAMPLES, _MIN_CUTOFF_PERIODS = 16, 4.0


def prepare_momentum(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, change: bool = False
) -> Samples:
    """Samples of momentum equations.

    Velocities are taken as measured where they were recorded, else from positions. The same zero-phase filter on all
    rates keeps them in step and takes out noise, which would make least squares underestimate every parameter, as
    noise in the regressor does. A base pose that was not recorded is integrated from the twist (B §7.3).

    Parameters
    ----------
    change: for equations of the change of momentum, in the world, see
        :class:`~inertid_ros.regressors.momentum_equations.MomentumChangeEquations`.

    Raises
    ------
    RecordingError: a joint, a wheel or the base twist is missing, the recording is too short, momentum is not
        conserved, or pose and twist contradict each other.
    """
    options = options or PrepareOptions()
    columns = joint_columns(recording, model) + _wheel_columns(recording, model)
    if recording.base_twist is None:
        raise RecordingError(
            f"{recording.name}: base_twist is missing; record the base's odometry or twist, without it there is no"
            " momentum"
        )
    channels = {"position": recording.position[:, columns], "twist": recording.base_twist}
    if recording.velocity is not None and options.motion_from != "acceleration":
        channels["velocity"] = recording.velocity[:, columns]
    if recording.base_pose is not None:
        turns, _ = checked(recording.base_pose[:, 3:], recording.name)
        channels["pose"] = np.hstack([recording.base_pose[:, :3], turns])
    segments = resample(
        recording.name, recording.time, channels, options.skip_start_s, options.skip_end_s, options.max_gap_periods
    )
    period = segments[0].period
    cutoff = options.cutoff_hz or _automatic(segments, period)
    if cutoff >= 0.5 / period:
        raise RecordingError(
            f"{recording.name}: prepare.cutoff_hz is {cutoff:g} but the sample rate is {1 / period:.1f} Hz; choose it"
            f" below {0.4 / period:.1f}, or 0 for automatic"
        )
    shortest = max(_MIN_SAMPLES * period, _MIN_CUTOFF_PERIODS / cutoff)
    usable = [segment for segment in segments if len(segment) * period >= shortest]
    if not usable:
        raise RecordingError(f"{recording.name}: no piece without a gap is longer than {shortest:.2f} s; record more")
    parts = [_samples(recording.name, segment, model, cutoff, options, change) for segment in usable]
    rate = options.rate_hz or 20.0 * cutoff
    joined = _joined(parts, max(1, int(np.floor(1.0 / (period * rate) + 1e-9))))
    return _centred(joined) if change else joined


def _wheel_columns(recording: Recording, model: RobotModel) -> list[int]:
    missing = [name for name in model.wheels.names if name not in recording.joint_names]
    if missing:
        raise RecordingError(
            f"{recording.name}: lacks the speed of wheel {', '.join(missing)} (it has"
            f" {', '.join(recording.joint_names)}); record it as a joint of that name"
        )
    return [recording.joint_names.index(name) for name in model.wheels.names]


def _automatic(segments: list[Segment], period: float) -> float:
    longest = max(segments, key=len)
    found = spectrum(longest.channels["position"], period)
    return automatic_cutoff(found, period) if found.motion_hz.any() else 0.1 / period


def _samples(
    name: str, segment: Segment, model: RobotModel, cutoff: float, options: PrepareOptions, change: bool
) -> Samples:
    period = segment.period

    def smooth(values: Array) -> Array:
        return low_pass(values, period, cutoff, options.filter_order)

    q = smooth(segment.channels["position"])
    given = segment.channels.get("velocity")
    v = derivatives(q, period, (1,))[0] if given is None else smooth(given)
    twist = smooth(segment.channels["twist"])
    joints = model.joints
    reckoned = dead_reckoning(segment.time, twist, segment.channels.get("pose", _REST_POSE[None])[0])
    pose = smooth(segment.channels["pose"]) if "pose" in segment.channels else reckoned
    edge = min(int(np.ceil(options.edge_periods / (cutoff * period))), len(segment) // 3)
    usable = np.ones(len(q), dtype=bool)
    usable[:edge] = usable[len(q) - edge :] = False
    measured = np.zeros((len(q), 6))
    spin = BaseMotion(model.tree, model.body_prior, model.wheels).wheel_momentum(q[:, :joints], v[:, joints:])
    kept = 2 * cutoff * period  # share of white noise that passes the filter
    removed = np.hstack([segment.channels["twist"] - twist, np.zeros_like(v) if given is None else given - v])
    noise = _NORMAL * np.median(np.abs(removed), axis=0) * np.sqrt(kept / max(1 - kept, 0.1))
    if change:
        if "pose" in segment.channels:
            check_pose(name, segment.time, pose, reckoned)
        spin = np.einsum("ijk,kj->ki", rotations(pose[:, 3:]), spin)
    else:
        check_conservation(name, segment.time[usable], twist[usable], v[usable], noise[:6])
    measured[:, 3:] = -spin
    rates = np.hstack([twist, v[:, :joints]])
    return Samples(
        time=segment.time,
        q=np.hstack([pose, q[:, :joints]]),
        v=rates,
        a=derivatives(rates, period, (1,))[0],
        tau=measured,
        mask=np.repeat(usable[:, None], 6, axis=1),
        usable=usable,
        name=name,
        cutoff_hz=cutoff,
        noise=noise[: 6 + joints],
    )


def _joined(parts: list[Samples], stride: int) -> Samples:
    def joined(channel: str) -> Any:
        return np.concatenate([getattr(part, channel)[::stride] for part in parts])

    motion = {channel: joined(channel) for channel in ("time", "q", "v", "a")}
    return replace(parts[0], **motion, tau=joined("tau"), mask=joined("mask"), usable=joined("usable"))


def _centred(samples: Samples) -> Samples:
    return replace(samples, tau=samples.tau - samples.tau[samples.usable].mean(axis=0))

