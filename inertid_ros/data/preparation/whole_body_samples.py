"""Samples for equations of a whole body: momentum of a floating robot, and wrenches on separately recorded bodies.

Momentum needs the rates of base, joints and wheels, all through one filter. Separately recorded poses come, for
example, from motion capture of the segments of a person.
"""

import operator
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.core.arrays import (
    MAD_TO_DEVIATION,
    Array,
    checked_quaternions,
    continuous_quaternions,
    rotation_matrices,
)
from inertid_ros.core.errors import RecordingError, first_few
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation import filtering
from inertid_ros.data.preparation.bandwidth import Spectrum
from inertid_ros.data.preparation.filtered_motion import pose_motion
from inertid_ros.data.preparation.recorded_channels import BASE_POSE, CleanChannels, joint_columns
from inertid_ros.data.preparation.wrenches import measured_wrenches
from inertid_ros.data.recording import WRENCH_PREFIX, Recording
from inertid_ros.data.screening.channel_faults import flagged_within
from inertid_ros.robot.body_segments import wrench_frame
from inertid_ros.robot.contacts import UNMEASURED
from inertid_ros.robot.floating_base_motion import REST_POSE, BaseMotion
from inertid_ros.robot.kinematics import motion_cross
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.recorded_joints import POSE

_STILL_SPEED_SHARE = 0.01  # share of an axis's highest speed; a slower axis is at rest
_MOVING_DEVIATIONS, _MOVING_SPEED_SHARE = 6.0, 0.05  # noise deviations, share of RMS speed; a faster base moves
_MAX_DRIFT_SHARE = 0.1  # drift between integrated twist and pose over the range of the base's motion
_TWIST_PARTS = ((slice(0, 3), "moves", "m/s"), (slice(3, 6), "turns", "rad/s"))


def momentum_channels(recording: Recording, model: RobotModel, options: PrepareOptions) -> CleanChannels:
    """Clean the channels that equations of momentum need.

    Recorded velocities are used unless ``motion_from`` is acceleration; otherwise positions are differentiated.

    Raises RecordingError: a joint, the speed of a wheel or the base twist is missing.
    """
    columns, wheels = joint_columns(recording, model), model.wheels.names
    if missing := [name for name in wheels if name not in recording.joint_names]:
        raise RecordingError(
            f"{recording.name}: lacks the speed of wheel {', '.join(missing)} (it has"
            f" {', '.join(recording.joint_names)}); record it as a joint of that name")
    columns += recording.columns(wheels)
    if recording.base_twist is None:
        raise RecordingError(
            f"{recording.name}: base_twist is missing; record the base's odometry or twist; the equations of"
            " momentum need it")
    clean = CleanChannels(recording.name, recording.time)
    raw = {"position": recording.position[:, columns]}
    if recording.velocity is not None and options.motion_from != "acceleration":
        raw["velocity"] = recording.velocity[:, columns]
    turning = np.concatenate([~model.slides, np.ones(len(wheels), dtype=bool)])
    clean.add_joints(raw, (*model.joint_names, *wheels), turning)
    lost = clean.add_finite("twist", recording.base_twist)
    if recording.base_pose is not None:
        quaternions, _ = checked_quaternions(recording.base_pose[:, 3:], recording.name)
        lost = lost | clean.add_finite("pose", np.hstack([recording.base_pose[:, :3], quaternions]))
    clean.replaced["twist"] = lost[:, None]
    return clean.without_ends(options.skip_start_s, options.skip_end_s)


def momentum_samples(recorded: CleanChannels, joints: Spectrum, cutoff: float, model: RobotModel,
        options: PrepareOptions, change: bool = False) -> Samples:
    """Samples for :mod:`inertid_ros.regressors.whole_body_equations` (momentum as measurement), below a cutoff [Hz].

    One zero-phase filter for all rates keeps them in phase and removes noise: noise in the regressor makes least
    squares underestimate every parameter. A base pose that was not recorded is integrated from the twist
    ([Naveen2019]_ sec. 7.3). ``joints`` is the spectrum of the joint positions; ``change`` selects equations of the
    change of momentum, in the world.

    Raises RecordingError: the recording is too short, momentum is not conserved, or pose and twist contradict each
    other.
    """
    segments, chosen = filtering.even_pieces(recorded, float(joints.motion_hz.max()), cutoff, options)
    pieces = [_piece(recorded.name, segment, model, cutoff, options, change) for segment in segments]
    parts = [piece.select(rows) for piece, rows in zip(pieces, chosen, strict=True)]
    keys = ("time", "q", "v", "a", "tau", "mask", "usable")
    whole: Any = {key: np.concatenate([getattr(part, key) for part in parts]) for key in keys}
    samples = replace(pieces[0], **whole, findings=tuple(recorded.findings))
    # The equations of the change of momentum use deviations from the mean.
    return replace(samples, tau=samples.tau - samples.tau[samples.usable].mean(axis=0)) if change else samples


def _piece(name: str, segment: filtering.Segment, model: RobotModel, cutoff: float, options: PrepareOptions,
        change: bool) -> Samples:
    period, joints = segment.period, model.joints
    smooth = partial(filtering.low_pass, period=period, cutoff_hz=cutoff, order=options.filter_order)
    q = smooth(segment.channels["position"])
    velocity = segment.channels.get("velocity")
    v = filtering.derivatives(q, period, (1,))[0] if velocity is None else smooth(velocity)
    twist = smooth(segment.channels["twist"])
    integrated = dead_reckoning(segment.time, twist, segment.channels.get("pose", REST_POSE[None])[0])
    pose = smooth(segment.channels["pose"]) if "pose" in segment.channels else integrated
    usable = filtering.usable_samples(segment, cutoff, options)
    measured = np.zeros((len(q), 6))
    wheels = BaseMotion(model.tree, model.body_prior, model.wheels).wheel_momentum(q[:, :joints], v[:, joints:])
    passed = 2 * cutoff * period  # share of white noise that passes the filter
    removed = np.hstack([segment.channels["twist"] - twist, np.zeros_like(v) if velocity is None else velocity - v])
    noise = MAD_TO_DEVIATION * np.median(np.abs(removed), axis=0) * np.sqrt(passed / max(1 - passed, 0.1))
    if change:
        if "pose" in segment.channels:
            _check_pose(name, segment.time, pose, integrated)
        wheels = (rotation_matrices(pose[:, 3:]) @ wheels[..., None])[..., 0]
    else:
        _check_conservation(name, segment.time[usable], twist[usable], v[usable], noise[:6])
    measured[:, 3:] = -wheels
    rates = np.hstack([twist, v[:, :joints]])
    return Samples(time=segment.time, q=np.hstack([pose, q[:, :joints]]), v=rates,
        a=filtering.derivatives(rates, period, (1,))[0], tau=measured, mask=np.repeat(usable[:, None], 6, axis=1),
        usable=usable, name=name, cutoff_hz=cutoff, noise=noise[: 6 + joints])


def _check_conservation(name: str, time: Array, twist: Array, rates: Array, noise: Array) -> None:
    """Refuse a recording in which the base moves although joints and wheels stand still.

    Momentum then came from outside, or was not zero at the start; the check does not need parameters. ``twist (N, 6)``
    of the base [m/s, rad/s] has standard deviations ``noise (6,)``; ``rates (N, n + w)`` are the velocities of joints
    and wheels.
    """
    fastest = np.abs(rates).max(axis=0, initial=0.0)
    still = (np.abs(rates) <= _STILL_SPEED_SHARE * fastest).all(axis=1) if len(rates) else np.zeros(0, dtype=bool)
    if not still.any() or not fastest.any():
        return
    for part, verb, unit in _TWIST_PARTS:
        speed = np.linalg.norm(twist[:, part], axis=1)
        noise_speed, usual = float(np.linalg.norm(noise[part])), float(np.sqrt(np.mean(speed**2)))
        allowed = max(_MOVING_DEVIATIONS * noise_speed, _MOVING_SPEED_SHARE * usual)
        at = int(np.argmax(np.where(still, speed, -1.0)))
        if speed[at] > allowed:
            raise RecordingError(
                f"{name}: momentum is not conserved, or not zero: the base {verb} at {speed[at]:.3g} {unit} at"
                f" {time[at] - time[0]:.1f} s while joints and wheels stand still; keep thrusters off and external"
                " torques away, or, if it drifted from the start, set identify.equations to momentum_change")


def _check_pose(name: str, time: Array, pose: Array, integrated: Array) -> None:
    """Refuse a recording if the integrated twist drifts far from the pose ``(N, 7)``, relative to its range."""
    turn, other = (Rotation.from_quat(motion[:, 3:]) for motion in (pose, integrated))
    moved, apart = (np.linalg.norm(pose[:, :3] - place, axis=1) for place in (pose[0, :3], integrated[:, :3]))
    for extents, drifts, what, unit in (
        ((turn[0].inv() * turn).magnitude(), (turn.inv() * other).magnitude(), "turns", "rad"),
        (moved, apart, "moves", "m")):
        extent, drift = float(extents.max()), float(drifts.max())
        if drift > _MAX_DRIFT_SHARE * extent and drift > 1e-6:
            raise RecordingError(
                f"{name}: pose and twist of the base drift apart by {drift:.3g} {unit} within {time[-1] - time[0]:.0f}"
                f" s, {100 * drift / max(extent, 1e-12):.0f} % of the {extent:.3g} {unit} that it {what}; calibrate the"
                " rate sensor's bias, record shorter pieces, or start at zero momentum, which does not need a pose"
                " (identify.equations: momentum)")


def dead_reckoning(time: Array, twist: Array, start: Array) -> Array:
    """Integrate poses ``(N, 7)`` from body twists ``(N, 6)`` [m/s, rad/s] ([Naveen2019]_ eqs. 44-47).

    The twist between samples is the mean of its neighbours: exact to second order in the step, while the forward steps
    of [Naveen2019]_ are exact to first order. The signs of the quaternions (x y z, qx qy qz qw) do not jump.
    """
    steps = 0.5 * (twist[1:] + twist[:-1]) * np.diff(time)[:, None]
    return _compose_twists(start, steps)


def fine_dead_reckoning(period: float, twist: Array, start: Array) -> Array:
    """Integrate poses ``(N, 7)`` to fourth order in the step, from twists ``(2 N - 1, 6)``, half a period apart."""
    first, middle, last = twist[:-1:2], twist[1::2], twist[2::2]
    steps = period / 6 * (first + 4 * middle + last)
    return _compose_twists(start, steps + period**2 / 12 * motion_cross(first, last))


def _compose_twists(start: Array, steps: Array) -> Array:
    """Poses ``(N + 1, 7)`` after twists ``(N, 6)``, each held for one unit of time."""
    placements = accumulate(map(pin.exp6, steps), operator.mul, initial=pin.XYZQUATToSE3(start))
    poses = np.array([pin.SE3ToXYZQUAT(placement) for placement in placements])
    poses[0] = start
    return np.hstack([poses[:, :3], continuous_quaternions(poses[:, 3:])])


def segment_channels(recording: Recording, model: RobotModel, options: PrepareOptions) -> CleanChannels:
    """Clean the poses of all segments and the external wrenches.

    Raises RecordingError: a part of a pose or a wrench is missing, or most quaternions do not have the length 1.
    """
    names = model.recorded_joints.joints
    if missing := [name for name in names if name not in recording.joint_names]:
        raise RecordingError(
            f"{recording.name}: joint_names lacks {first_few(missing)}; record the world pose of every link with mass,"
            f" as SEGMENT.{', SEGMENT.'.join(POSE)} [m, unit quaternion]")
    poses = recording.position[:, recording.columns(names)]
    invalid = np.zeros(len(poses), dtype=bool)
    for segment, pose in zip(model.link_names, np.split(poses, len(model.link_names), axis=1), strict=True):
        pose[:, 3:], wrong = checked_quaternions(pose[:, 3:], f"{recording.name}: {segment}")
        invalid |= wrong
    clean = CleanChannels(recording.name, recording.time)
    clean.note_gaps(recording.repairs.joins)
    clean.add_joints({"position": poses}, names, np.zeros(len(names), dtype=bool), passive=True)
    for contact, wrench in measured_wrenches(recording, model, options.wrenches).items():
        clean.add_wrench(contact, wrench)
    clean.faulty[BASE_POSE] = invalid
    return clean.without_ends(options.skip_start_s, options.skip_end_s)


def segment_samples(recorded: CleanChannels, poses: Spectrum, cutoff: float, model: RobotModel,
        options: PrepareOptions) -> Samples:
    """Samples for :class:`.BodySegmentEquations`, below a cutoff [Hz]; ``poses`` is the spectrum of the poses.

    One zero-phase filter for poses and wrenches keeps them in phase. Raises RecordingError: the recording is too short.
    """
    pieces, chosen = filtering.even_pieces(recorded, float(poses.motion_hz.max()), cutoff, options)
    parts = []
    for piece, rows in zip(pieces, chosen, strict=True):
        smooth = {key: filtering.low_pass(x, piece.period, cutoff, options.filter_order)
            for key, x in piece.channels.items()}
        bodies = np.split(smooth["position"], len(model.link_names), axis=1)
        q, v, a = map(np.hstack, zip(*(pose_motion(pose, piece.period) for pose in bodies), strict=True))
        usable = filtering.usable_samples(piece, cutoff, options)
        columns = piece.time, q, v, a, _external_wrench(model, q, smooth), usable
        parts.append([values[rows] for values in columns])
    time, q, v, a, tau, usable = map(np.concatenate, zip(*parts, strict=True))
    for flags in recorded.faulty.values():  # the filter mixes a fault into neighbours
        usable &= ~flagged_within(flags[:, None], recorded.time, time, 1.0 / cutoff)[:, 0]
    measured = np.ones(tau.shape, dtype=bool)
    if model.ground is not None:
        measured[:, UNMEASURED] = False
    return Samples(time, q, v, a, np.where(measured, tau, 0.0), usable[:, None] & measured, usable, name=recorded.name,
        cutoff_hz=cutoff, findings=tuple(recorded.findings), measured=None if measured.all() else measured)


def _external_wrench(model: RobotModel, q: Array, channels: Mapping[str, Array]) -> Array:
    """Sum ``(N, 6)`` of all wrenches, in the frame of :func:`.wrench_frame` [N, N m]."""
    total, (frame, origin) = np.zeros((len(q), 6)), wrench_frame(model, q)
    for contact in model.contacts:
        if contact.plate is not None:
            axes, place = contact.plate.rotation[None], np.array(contact.plate.xyz)
        else:
            first = 7 * model.link_names.index(contact.frame)
            axes, place = rotation_matrices(q[:, first + 3 : first + 7]), q[:, first : first + 3]
        wrench = channels[WRENCH_PREFIX + contact.name]
        force, torque = (np.einsum("nij,nj->ni", axes, part) for part in (wrench[:, :3], wrench[:, 3:]))
        total += np.hstack([force @ frame, (torque + np.cross(place - origin, force)) @ frame])
    return total
