"""Samples for equations of momentum of a floating robot: rates of base, joints and wheels, filtered alike."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding
from inertid_ros.core.rotations import checked_quaternions, rotation_matrices
from inertid_ros.core.samples import Samples
from inertid_ros.data.cleaning.clean import CleanChannels
from inertid_ros.data.filtering.bandwidth import Spectrum
from inertid_ros.data.filtering.filter_settings import (
    away_from_edges,
    hardly_interpolated,
    long_enough,
    longest_gap,
    sample_stride,
)
from inertid_ros.data.filtering.filters import derivatives, low_pass
from inertid_ros.data.filtering.resampling import Segment, StampedChannels, resample
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.momentum_checks import check_conservation, check_pose
from inertid_ros.dynamics.floating_base_motion import BaseMotion
from inertid_ros.robot.model import RobotModel

from .dead_reckoning import dead_reckoning
from .recorded_channels import joint_columns, revolute_joints, wheel_columns

_REST_POSE = np.array([0.0, 0, 0, 0, 0, 0, 1.0])
_NORMAL = 1.4826  # standard deviation of a normal distribution over the median of its size


@dataclass(frozen=True)
class MomentumChannels:
    """What equations of momentum need of a recording.

    Attributes
    ----------
    stamped : StampedChannels
        Clean channels of joints, wheels and base at their stamps, without the ends that are skipped.
    findings : tuple of Finding
        About the channels.
    """

    stamped: StampedChannels
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, recording: Recording, model: RobotModel, options: PrepareOptions) -> "MomentumChannels":
        """Channels of a recording for a robot.

        Velocities are taken as measured where they were recorded, else from positions.

        Raises
        ------
        RecordingError
            A joint, a wheel or the base twist is missing, or nothing is left after cutting.
        """
        columns = joint_columns(recording, model) + wheel_columns(recording, model)
        if recording.base_twist is None:
            raise RecordingError(
                f"{recording.name}: base_twist is missing; record the base's odometry or twist, without it there is no"
                " momentum"
            )
        clean = CleanChannels(recording.name)
        raw = {"position": recording.position[:, columns]}
        if recording.velocity is not None and options.motion_from != "acceleration":
            raw["velocity"] = recording.velocity[:, columns]
        turning = np.concatenate([revolute_joints(model), np.ones(len(model.wheels.names), dtype=bool)])
        clean.add_joints(recording.time, raw, (*model.joint_names, *model.wheels.names), turning)
        lost = clean.add_finite(recording.time, "twist", recording.base_twist)
        if recording.base_pose is not None:
            quaternions, _ = checked_quaternions(recording.base_pose[:, 3:], recording.name)
            lost = lost | clean.add_finite(recording.time, "pose", np.hstack([recording.base_pose[:, :3], quaternions]))
        clean.replaced["twist"] = lost[:, None]
        stamped = StampedChannels(
            recording.name, recording.time, clean.channels, clean.replaced, clean.motion_replaced | lost, clean.held
        )
        return cls(stamped.without_ends(options.skip_start_s, options.skip_end_s), tuple(clean.findings))


def momentum_samples(
    recorded: MomentumChannels,
    joints: Spectrum,
    cutoff: float,
    model: RobotModel,
    options: PrepareOptions,
    change: bool = False,
) -> Samples:
    """Samples for :mod:`inertid_ros.regressors.momentum_equations`.

    The same zero-phase filter on all rates keeps them in step and takes out noise, which would make least squares
    underestimate every parameter, as noise in the regressor does. A base pose that was not recorded is integrated from
    the twist ([Naveen2019]_ sec. 7.3).

    Parameters
    ----------
    recorded : MomentumChannels
        Clean channels of a recording.
    joints : Spectrum
        Of the joint positions.
    cutoff : float
        Of the low-pass [Hz].
    model : RobotModel
        The robot, with its reaction wheels.
    options : PrepareOptions
        Filters and cuts.
    change : bool
        For equations of the change of momentum, in the world, see
        :class:`~inertid_ros.regressors.momentum_equations.MomentumChangeEquations`.

    Returns
    -------
    Samples
        Momentum on the measured side, ``c = 6``.

    Raises
    ------
    RecordingError
        The recording is too short, momentum is not conserved, or pose and twist contradict each other.
    """
    name = recorded.stamped.name
    segments = resample(recorded.stamped, longest_gap(recorded.stamped.period, cutoff, joints, options))
    period = segments[0].period
    pieces = [
        _piece(name, segment, model, cutoff, options, change) for segment in long_enough(name, segments, cutoff)
    ]
    samples = _concatenate(pieces, sample_stride(period, cutoff, options.rate_hz))
    samples = replace(samples, findings=recorded.findings)
    # Of the change of momentum only its deviation from the mean is an equation.
    return replace(samples, tau=samples.tau - samples.tau[samples.usable].mean(axis=0)) if change else samples


def _piece(
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
    integrated = dead_reckoning(segment.time, twist, segment.channels.get("pose", _REST_POSE[None])[0])
    pose = smooth(segment.channels["pose"]) if "pose" in segment.channels else integrated
    usable = away_from_edges(segment, cutoff, options.edge_periods)
    for flags in (segment.bridged[:, None], *segment.replaced.values()):
        usable &= hardly_interpolated(flags, period, cutoff, options.filter_order).all(axis=1)
    measured = np.zeros((len(q), 6))
    wheels = BaseMotion(model.tree, model.body_prior, model.wheels).wheel_momentum(q[:, :joints], v[:, joints:])
    kept = 2 * cutoff * period  # share of white noise that passes the filter
    removed = np.hstack([segment.channels["twist"] - twist, np.zeros_like(v) if given is None else given - v])
    noise = _NORMAL * np.median(np.abs(removed), axis=0) * np.sqrt(kept / max(1 - kept, 0.1))
    if change:
        if "pose" in segment.channels:
            check_pose(name, segment.time, pose, integrated)
        wheels = (rotation_matrices(pose[:, 3:]) @ wheels[..., None])[..., 0]
    else:
        check_conservation(name, segment.time[usable], twist[usable], v[usable], noise[:6])
    measured[:, 3:] = -wheels
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


def _concatenate(pieces: list[Samples], stride: int) -> Samples:
    keys = ("time", "q", "v", "a", "tau", "mask", "usable")
    whole: Any = {key: np.concatenate([getattr(piece, key)[::stride] for piece in pieces]) for key in keys}
    return replace(pieces[0], **whole)
