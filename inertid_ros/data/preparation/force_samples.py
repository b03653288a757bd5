"""Samples for equations of joint torques and of the wrench on the base."""

import logging
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions, WrenchOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.sensor_faults import faulty_wrenches, flagged_within, saturated
from inertid_ros.data.screening.transients import without_transients
from inertid_ros.data.screening.wrench_checks import check_wrenches, notice_slipping, slipping
from inertid_ros.dynamics.contact_wrenches import UNMEASURED, on_ground
from inertid_ros.kinematics.contact_jacobians import ContactPath, external_force
from inertid_ros.robot.model import RobotModel

from .external_wrenches import measured_wrenches
from .filter_settings import chosen_cutoff, long_enough, sample_stride
from .filtered_motion import WRENCH_PREFIX, FilteredMotion, filter_motion
from .filters import low_pass, spectrum
from .free_base import base_channels, noisiest_channel
from .friction_direction import FrictionDirection
from .recorded_channels import joint_channels, joint_columns
from .resampling import Segment, resample

_log = logging.getLogger(__name__)
_POSE = "base_pose"


def prepare_force(recording: Recording, model: RobotModel, options: PrepareOptions | None = None) -> Samples:
    """Samples for :class:`~inertid_ros.regressors.force_equations.ForceEquations`.

    All channels pass the same zero-phase filter, so that they stay in phase and equally delayed; velocity and
    acceleration are derivatives of the filtered position (or of the channels that ``motion_from`` and
    ``base.motion_from`` name). External wrenches enter by their contacts; where one is faulty, the channels on which it
    acts are masked.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot.
    options : PrepareOptions, optional
        Filters, cuts and sources of motion.

    Returns
    -------
    Samples
        Forces on the measured side.

    Raises
    ------
    RecordingError
        A joint of the model or a chosen channel is missing, nothing is left after cutting, the cutoff does not fit the
        sample rate, or wrenches contradict the robot's weight.
    """
    options = options or PrepareOptions()
    columns = joint_columns(recording, model)
    wrenches = measured_wrenches(recording, model, options.wrenches)
    channels = joint_channels(recording, columns, options)
    channels["effort"] = channels["effort"] * model.effort_scale
    channels |= {WRENCH_PREFIX + name: wrench for name, wrench in wrenches.items()}
    faulty = faulty_wrenches(recording, wrenches)
    if model.free:
        base, faulty[_POSE] = base_channels(recording, options.base)
        channels |= base
    segments = resample(recording.name, recording.time, channels, options.skip_start_s, options.skip_end_s,
                        options.max_gap_periods)
    period = segments[0].period
    liveliest = max(segments, key=_motion).channels
    of_positions = spectrum(liveliest["position"], period)
    of_base = spectrum(liveliest[noisiest_channel(options.base)], period) if model.free else None
    cutoff = chosen_cutoff(recording.name, options, period, of_positions, of_base)
    pieces = [
        filter_motion(recording.name, segment, cutoff, model, options)
        for segment in long_enough(recording.name, segments, cutoff)
    ]
    stride = sample_stride(period, cutoff, options.rate_hz)
    motion = FilteredMotion.concatenate([piece.select(slice(None, None, stride)) for piece in pieces])
    of_joints = slice(model.velocities - model.joints, None)
    noise = np.sqrt(of_positions.noise_density * (2 * np.pi) ** 2 * cutoff**3 / 3)  # of the velocity below the cutoff
    speeds = [piece.v[:, of_joints] for piece in pieces]
    friction = FrictionDirection.from_velocities(speeds, noise, options.low_speed_fraction, model.layout)
    slides = friction.defined(motion.v[:, of_joints])
    margin = 1.0 / cutoff  # as far as the filter mixes a fault into its neighbours
    faulty = {
        key: flagged_within(flags[:, None], recording.time, motion.time, margin)[:, 0] for key, flags in faulty.items()
    }
    usable = motion.usable & ~faulty.pop(_POSE, np.zeros_like(motion.usable))
    if options.trim_transients:
        usable &= _without_transients(recording.name, motion.time, motion.a[:, of_joints])
    if not model.free:
        usable &= slides.any(axis=1)  # a robot at rest shows stiction, which no model describes
    measured = _measured(recording, model, columns, motion, usable, faulty, options.wrenches)
    mask = usable[:, None] & measured
    mask[:, of_joints] &= slides & ~_saturated(recording, columns, motion.time, margin)
    tau = external_force(model, motion.q, motion.wrenches)
    tau[:, of_joints] += motion.effort
    tau = on_ground(model, motion.q, tau)
    directions = [low_pass(friction.smooth_sign(v), period, cutoff, options.filter_order) for v in speeds]
    _notice_unused(recording, model, mask[:, of_joints])
    return Samples(
        motion.time, motion.q, motion.v, motion.a, np.where(measured, tau, 0.0), mask, usable, name=recording.name,
        friction_direction=np.concatenate([piece[::stride] for piece in directions]), cutoff_hz=cutoff,
        measured=None if measured.all() else measured,
    )


def _measured(
    recording: Recording,
    model: RobotModel,
    columns: list[int],
    motion: FilteredMotion,
    usable: NDArray[np.bool_],
    faulty: Mapping[str, NDArray[np.bool_]],
    options: WrenchOptions,
) -> NDArray[np.bool_]:
    """``(N, nv)`` where a channel is measured: its effort, and all wrenches that act on it."""
    if options.check:
        checked = motion.select(usable & ~np.any([np.zeros_like(usable), *faulty.values()], axis=0))
        check_wrenches(recording.name, model, (checked.q, checked.v, checked.a), checked.wrenches)
    slips = slipping(model, motion.time, motion.q, motion.wrenches, options)
    slips = {name: flags & usable & ~faulty[name] for name, flags in slips.items()}
    notice_slipping(recording.name, motion.time, slips)
    measured = np.ones((len(motion.time), model.velocities), dtype=bool)
    measured[:, model.velocities - model.joints :] = np.isfinite(recording.effort[:, columns]).all(axis=0)
    for contact in model.options.contacts:
        acted_on = list(ContactPath(model, contact).velocities)
        measured[:, acted_on] &= ~(faulty[contact.name] | slips[contact.name])[:, None]
        if contact.plate is not None and contact.plate.partial:
            measured[:, [velocity for velocity in acted_on if velocity >= 6 or velocity in UNMEASURED]] = False
    return measured


def _motion(segment: Segment) -> float:
    """How much a piece moves: long rests, such as before the start, do not show the motion's spectrum."""
    return float(np.var(segment.channels["position"], axis=0).sum() * len(segment))


def _without_transients(name: str, time: Array, acceleration: Array) -> NDArray[np.bool_]:
    usable = without_transients(time, acceleration)
    if not usable.all():
        kept = time[usable] - time[0]
        _log.warning("%s: start-up or stop left out, used from %.2f s to %.2f s", name, kept[0], kept[-1])
    return usable


def _saturated(recording: Recording, columns: list[int], instants: Array, margin: float) -> NDArray[np.bool_]:
    """Where the filter mixes saturated effort into a sample."""
    flags = saturated(np.nan_to_num(recording.effort[:, columns]))
    for joint, column in enumerate(columns):
        if flags[:, joint].any():
            _log.warning(
                "%s: effort of %s is saturated in %d samples, which are left out",
                recording.name,
                recording.joint_names[column],
                flags[:, joint].sum(),
            )
    return flagged_within(flags, recording.time, instants, margin)


def _notice_unused(recording: Recording, model: RobotModel, mask: NDArray[np.bool_]) -> None:
    unused = [name for name, column in zip(model.joint_names, mask.T, strict=True) if not column.any()]
    if unused:
        names = ", ".join(unused)
        _log.warning("%s: no usable sample of %s (it rests, or the recording is too short)", recording.name, names)
