"""Raw recording to samples: joints in the model's order, even stamps, zero-phase filters, derivatives, masks."""

import logging
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.saturation import near, saturated
from inertid_ros.data.screening.transients import settled
from inertid_ros.data.screening.wrenches import check_wrenches, notice_slipping, slipping
from inertid_ros.dynamics.plate_frame import UNMEASURED, on_ground
from inertid_ros.kinematics.contact_frames import carried_by, external_force
from inertid_ros.robot.model import RobotModel

from .external_wrenches import WrenchOptions, measured_wrenches, untrusted
from .filtered_motion import PREFIX, Filtered, filtered, joined
from .filters import Spectrum, automatic_cutoff, low_pass, spectrum
from .free_base import base_channels, differentiated
from .resampling import Segment, resample
from .sliding_direction import Sliding

__all__ = ["PrepareOptions", "joint_columns", "prepare"]
_log = logging.getLogger(__name__)
_MIN_SAMPLES = 16
_POSE = "base_pose"
_MIN_CUTOFF_PERIODS = 4.0  # a shorter piece is all filter transient


def prepare(recording: Recording, model: RobotModel, options: PrepareOptions | None = None) -> Samples:
    """Samples of ``model`` from a recording.

    All channels pass the same zero-phase filter, so that they stay in phase and equally delayed; velocity and
    acceleration are derivatives of the filtered position (or of the channels that ``motion_from`` and
    ``base.motion_from`` name). External wrenches enter by their contacts; where one cannot be trusted, the channels
    that feel it are masked.

    Raises
    ------
    RecordingError: a joint of the model or a chosen channel is missing, nothing is left after cutting, the cutoff
        does not fit the sample rate, or wrenches contradict the robot's weight.
    """
    options = options or PrepareOptions()
    columns = joint_columns(recording, model)
    wrenches = measured_wrenches(recording, model, options.wrenches)
    channels = _channels(recording, columns, options)
    channels |= {PREFIX + name: wrench for name, wrench in wrenches.items()}
    distrusted = untrusted(recording, wrenches)
    if model.free:
        base, distrusted[_POSE] = base_channels(recording, options.base)
        channels |= base
    segments = resample(recording.name, recording.time, channels, options.skip_start_s, options.skip_end_s,
                        options.max_gap_periods)
    period = segments[0].period
    liveliest = max(segments, key=_motion).channels
    found = spectrum(liveliest["position"], period)
    of_base = spectrum(liveliest[differentiated(options.base)], period) if model.free else None
    cutoff = _cutoff(recording, options, (found, of_base), period)
    pieces = [
        filtered(recording.name, segment, cutoff, model, options)
        for segment in _long_enough(recording.name, segments, cutoff)
    ]
    stride = _stride(period, cutoff, options)
    motion = joined([piece.rows(slice(None, None, stride)) for piece in pieces])
    of_joints = slice(model.velocities - model.joints, None)
    noise = np.sqrt(found.noise_density * (2 * np.pi) ** 2 * cutoff**3 / 3)  # of the velocity below the cutoff
    speeds = [piece.v[:, of_joints] for piece in pieces]
    sliding = Sliding.of(speeds, noise, options.low_speed_fraction, model.layout)
    slides = sliding.sure(motion.v[:, of_joints])
    reach = 1.0 / cutoff
    bad = {
        key: near(flags[:, None], recording.time, motion.time, reach)[:, 0] for key, flags in distrusted.items()
    }
    usable = motion.usable & ~bad.pop(_POSE, np.zeros_like(motion.usable))
    if options.trim_transients:
        usable &= _trim(recording.name, motion.time, motion.a[:, of_joints])
    if not model.free:
        usable &= slides.any(axis=1)  # a robot at rest shows stiction, of which no model knows
    known = _known(recording, model, columns, motion, usable, bad, options.wrenches)
    mask = usable[:, None] & known
    mask[:, of_joints] &= slides & ~_clipped(recording, columns, motion.time, reach)
    tau = external_force(model, motion.q, motion.wrenches)
    tau[:, of_joints] += motion.effort
    tau = on_ground(model, motion.q, tau)
    directions = [low_pass(sliding.direction(v), period, cutoff, options.filter_order) for v in speeds]
    direction = np.concatenate([piece[::stride] for piece in directions])
    _notice_unused(recording, model, mask[:, of_joints])
    return Samples(
        motion.time, motion.q, motion.v, motion.a, np.where(known, tau, 0.0), mask, usable, name=recording.name,
        cutoff_hz=cutoff, friction_direction=direction, measured=None if known.all() else known,
    )


def _known(
    recording: Recording,
    model: RobotModel,
    columns: list[int],
    motion: Filtered,
    usable: NDArray[np.bool_],
    bad: Mapping[str, NDArray[np.bool_]],
    options: WrenchOptions,
) -> NDArray[np.bool_]:
    """``(N, nv)`` where the measured side of each channel is known: its effort, and all wrenches that it feels."""
    if options.check:
        seen = usable & ~np.any([np.zeros_like(usable), *bad.values()], axis=0)
        part = motion.rows(seen)
        check_wrenches(recording.name, model, (part.q, part.v, part.a), part.wrenches)
    slips = slipping(model, motion.time, motion.q, motion.wrenches, options)
    slips = {name: flags & usable & ~bad[name] for name, flags in slips.items()}
    notice_slipping(recording.name, motion.time, slips)
    known = np.ones((len(motion.time), model.velocities), dtype=bool)
    known[:, model.velocities - model.joints :] = np.isfinite(recording.effort[:, columns]).all(axis=0)
    for contact in model.options.contacts:
        felt = carried_by(model, contact)
        known[:, felt] &= ~(bad[contact.name] | slips[contact.name])[:, None]
        if contact.plate is not None and contact.plate.partial:
            known[:, [velocity for velocity in felt if velocity >= 6 or velocity in UNMEASURED]] = False
    return known


def _long_enough(name: str, segments: list[Segment], cutoff: float) -> list[Segment]:
    """Pieces that are more than filter transient."""
    period = segments[0].period
    shortest = max(_MIN_SAMPLES * period, _MIN_CUTOFF_PERIODS / cutoff)
    kept = [segment for segment in segments if len(segment) * period >= shortest]
    if not kept:
        raise RecordingError(
            f"{name}: time has no piece longer than {shortest:.2f} s without a gap;"
            " record without losses, or set prepare.cutoff_hz higher"
        )
    if len(kept) < len(segments):
        lost = sum(map(len, segments)) - sum(map(len, kept))
        _log.warning("%s: dropped %d samples in pieces too short to filter", name, lost)
    return kept


def _motion(segment: Segment) -> float:
    """How much a piece moves: long rests, such as before the start, say nothing of the motion's spectrum."""
    return float(np.var(segment.channels["position"], axis=0).sum() * len(segment))


def _trim(name: str, time: Array, acceleration: Array) -> NDArray[np.bool_]:
    usable = settled(time, acceleration)
    if not usable.all():
        kept = time[usable] - time[0]
        _log.warning("%s: start-up or stop left out, used from %.2f s to %.2f s", name, kept[0], kept[-1])
    return usable


def _clipped(recording: Recording, columns: list[int], instants: Array, reach: float) -> NDArray[np.bool_]:
    """Where the filter mixes saturated effort into a sample."""
    flags = saturated(np.nan_to_num(recording.effort[:, columns]))
    for joint, column in enumerate(columns):
        if flags[:, joint].any():
            _log.warning(
                "%s: effort of %s sticks to its limit in %d samples, which are left out",
                recording.name,
                recording.joint_names[column],
                flags[:, joint].sum(),
            )
    return near(flags, recording.time, instants, reach)


def joint_columns(recording: Recording, model: RobotModel) -> list[int]:
    """Index in the recording of each joint of the model, matched by exact name.

    Raises
    ------
    RecordingError: joints of the model that the recording does not have.
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


def _channels(recording: Recording, columns: list[int], options: PrepareOptions) -> dict[str, Array]:
    wanted = ["position"]
    if options.motion_from in ("velocity", "acceleration"):
        wanted.append("velocity")
    if options.motion_from == "acceleration":
        wanted.append("acceleration")
    channels = {}
    for name in wanted:
        values = getattr(recording, name)
        if values is None:
            raise RecordingError(f"{recording.name}: {name} was not recorded; set prepare.motion_from to 'position'")
        channels[name] = values[:, columns]
    channels["effort"] = np.nan_to_num(recording.effort[:, columns])
    return channels


def _cutoff(
    recording: Recording, options: PrepareOptions, spectra: tuple[Spectrum, Spectrum | None], period: float
) -> float:
    found, base = spectra
    if options.cutoff_hz == 0.0:
        if not found.motion_hz.any():
            _log.warning("%s: no joint moves; filtering at a tenth of the sample rate", recording.name)
            return 0.1 / period
        return automatic_cutoff(found, period, base)
    if options.cutoff_hz >= 0.5 / period:
        raise RecordingError(
            f"{recording.name}: prepare.cutoff_hz is {options.cutoff_hz:g} but the sample rate is {1 / period:.1f} Hz;"
            f" choose it below {0.4 / period:.1f}, or 0 for automatic"
        )
    return options.cutoff_hz


def _stride(period: float, cutoff: float, options: PrepareOptions) -> int:
    rate = options.rate_hz or 20.0 * cutoff
    return max(1, int(np.floor(1.0 / (period * rate) + 1e-9)))


def _notice_unused(recording: Recording, model: RobotModel, mask: NDArray[np.bool_]) -> None:
    unused = [name for name, column in zip(model.joint_names, mask.T, strict=True) if not column.any()]
    if unused:
        names = ", ".join(unused)
        _log.warning("%s: no usable sample of %s (it rests, or the recording is too short)", recording.name, names)
