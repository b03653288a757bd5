"""Samples for equations of joint torques and of the wrench on the base."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions, WrenchOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.core.undecimated_velocity import UndecimatedVelocity
from inertid_ros.data.filtering.bandwidth import Spectrum
from inertid_ros.data.filtering.filter_settings import long_enough, longest_gap, sample_stride
from inertid_ros.data.filtering.filters import low_pass
from inertid_ros.data.filtering.resampling import StampedChannels, resample
from inertid_ros.data.screening.sensor_faults import flagged_within, saturated
from inertid_ros.data.screening.transients import without_transients
from inertid_ros.data.screening.wrench_checks import check_wrenches, notice_slipping, slipping
from inertid_ros.dynamics.contact_wrenches import UNMEASURED, on_ground
from inertid_ros.kinematics.contact_jacobians import ContactPath, external_force
from inertid_ros.robot.model import RobotModel

from .filtered_motion import FilteredMotion, filter_motion
from .friction_direction import FrictionDirection, fast_speeds
from .recorded_channels import BASE_POSE, ForceChannels
from .shared_by_parts import SharedByParts

_log = logging.getLogger(__name__)


def force_samples(
    recorded: ForceChannels,
    joints: Spectrum,
    cutoff: float,
    model: RobotModel,
    options: PrepareOptions,
    shared: SharedByParts | None = None,
) -> Samples:
    """Samples for :class:`~inertid_ros.regressors.force_equations.ForceEquations`.

    All channels pass the same zero-phase filter, so that they stay in phase and equally delayed; velocity and
    acceleration are derivatives of the filtered position (or of the channels that ``motion_from`` and
    ``base.motion_from`` name). External wrenches enter by their contacts; where one is faulty, the channels on which it
    acts are masked.

    Parameters
    ----------
    recorded : ForceChannels
        Clean channels of a recording.
    joints : Spectrum
        Of the joint positions.
    cutoff : float
        Of the low-pass [Hz].
    model : RobotModel
        The robot.
    options : PrepareOptions
        Filters, cuts and sources of motion.
    shared : SharedByParts, optional
        What a part of a long recording takes from it.

    Returns
    -------
    Samples
        Forces on the measured side.

    Raises
    ------
    RecordingError
        Nothing is left after cutting, or wrenches contradict the robot's weight.
    """
    name = recorded.stamped.name
    longest = longest_gap(recorded.stamped.period, cutoff, joints, options)
    segments = long_enough(name, resample(recorded.stamped, longest, shared.grid if shared else None), cutoff)
    period = segments[0].period
    stride = sample_stride(period, cutoff, options.rate_hz)
    pieces = [filter_motion(name, segment, cutoff, model, options) for segment in segments]
    chosen = [segment.every(stride) for segment in segments]
    motion = FilteredMotion.concatenate([piece.select(rows) for piece, rows in zip(pieces, chosen, strict=True)])
    of_joints = slice(model.velocities - model.joints, None)
    noise = np.sqrt(joints.noise_density * (2 * np.pi) ** 2 * cutoff**3 / 3)  # of the velocity below the cutoff
    speeds = [piece.v[:, of_joints] for piece in pieces]
    fast = shared.fast_speeds if shared else fast_speeds(speeds, model.layout)
    friction = FrictionDirection.from_speeds(fast, noise, options.low_speed_fraction, model.layout)
    low_passed = partial(low_pass, period=period, cutoff_hz=cutoff, order=options.filter_order)
    undecimated = UndecimatedVelocity(tuple(speeds), low_passed, _kept_rows(speeds, chosen))
    slides = np.concatenate([friction.defined(v, low_passed) for v in speeds])[undecimated.rows]
    slides &= joints.motion_hz > 0
    margin = 1.0 / cutoff  # as far as the filter mixes a fault into its neighbours
    faulty = {
        key: flagged_within(flags[:, None], recorded.time, motion.time, margin)[:, 0]
        for key, flags in recorded.faulty.items()
    }
    usable = motion.usable & ~faulty.pop(BASE_POSE, np.zeros_like(motion.usable))
    if options.trim_transients:
        usable &= _without_transients(name, motion.time, motion.a[:, of_joints])
    if not model.free:
        usable &= slides.any(axis=1)  # a robot at rest shows stiction, which no model describes
    measured = _measured(recorded, model, motion, usable, faulty, options.wrenches)
    tau = external_force(model, motion.q, motion.wrenches)
    tau[:, of_joints] += motion.effort
    tau = np.where(measured, on_ground(model, motion.q, tau), 0.0)
    measured[:, of_joints] &= motion.effort_measured
    mask = usable[:, None] & measured
    mask[:, of_joints] &= slides & ~_saturated(recorded.stamped, model.joint_names, motion.time, margin)
    _notice_unused(name, model, mask[:, of_joints])
    return Samples(
        motion.time, motion.q, motion.v, motion.a, tau, mask, usable, name=name,
        undecimated=undecimated, sliding=_of_channels(slides, model), cutoff_hz=cutoff,
        measured=None if measured.all() else measured, noise=_of_channels(noise, model), findings=recorded.findings,
    )


def _kept_rows(pieces: Sequence[Array], chosen: Sequence[slice]) -> NDArray[np.intp]:
    """Chosen rows of each piece, counted through all of them."""
    ends = np.cumsum([len(piece) for piece in pieces])
    rows = zip(ends, pieces, chosen, strict=True)
    return np.concatenate([np.arange(end - len(piece), end)[of_piece] for end, piece, of_piece in rows])


def _of_channels(of_joints: NDArray, model: RobotModel) -> NDArray:
    """``(..., nv)`` from ``(..., n)``; a free base slides freely, and without noise that would be known."""
    base = np.full((*of_joints.shape[:-1], model.velocities - model.joints), of_joints.dtype == bool)
    return np.concatenate([base.astype(of_joints.dtype), of_joints], axis=-1)


def _measured(
    recorded: ForceChannels,
    model: RobotModel,
    motion: FilteredMotion,
    usable: NDArray[np.bool_],
    faulty: Mapping[str, NDArray[np.bool_]],
    options: WrenchOptions,
) -> NDArray[np.bool_]:
    """``(N, nv)`` where a channel is measured: its effort, and all wrenches that act on it."""
    if options.check:
        checked = motion.select(usable & ~np.any([np.zeros_like(usable), *faulty.values()], axis=0))
        check_wrenches(recorded.stamped.name, model, (checked.q, checked.v, checked.a), checked.wrenches)
    slips = slipping(model, motion.time, motion.q, motion.wrenches, options)
    slips = {name: flags & usable & ~faulty[name] for name, flags in slips.items()}
    notice_slipping(recorded.stamped.name, motion.time, slips)
    measured = np.ones((len(motion.time), model.velocities), dtype=bool)
    measured[:, model.velocities - model.joints :] = ~recorded.without_effort
    for contact in model.options.contacts:
        acted_on = list(ContactPath(model, contact).velocities)
        measured[:, acted_on] &= ~(faulty[contact.name] | slips[contact.name])[:, None]
        if contact.plate is not None and contact.plate.partial:
            measured[:, [velocity for velocity in acted_on if velocity >= 6 or velocity in UNMEASURED]] = False
    return measured


def _without_transients(name: str, time: Array, acceleration: Array) -> NDArray[np.bool_]:
    usable = without_transients(time, acceleration)
    if not usable.all():
        kept = time[usable] - time[0]
        _log.warning("%s: start-up or stop left out, used from %.2f s to %.2f s", name, kept[0], kept[-1])
    return usable


def _saturated(recorded: StampedChannels, joints: Sequence[str], instants: Array, margin: float) -> NDArray[np.bool_]:
    """Where the filter mixes saturated effort into a sample."""
    flags = saturated(recorded.channels["effort"])
    for joint, count in zip(joints, flags.sum(axis=0), strict=True):
        if count:
            _log.warning("%s: effort of %s is saturated in %d samples, left out", recorded.name, joint, count)
    return flagged_within(flags, recorded.time, instants, margin)


def _notice_unused(recording: str, model: RobotModel, mask: NDArray[np.bool_]) -> None:
    unused = [name for name, column in zip(model.joint_names, mask.T, strict=True) if not column.any()]
    if unused:
        names = ", ".join(unused)
        _log.warning("%s: no usable sample of %s (it rests, or the recording is too short)", recording, names)
