"""Samples for equations of joint torques and of the wrench on the base."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.recordings import PrepareOptions, WrenchOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.notices import NoticeLogger
from inertid_ros.core.samples import Samples, UndecimatedVelocity
from inertid_ros.data.screening.channel_faults import ChannelNoise, flagged_within, saturated
from inertid_ros.robot.contacts import UNMEASURED, ContactPath, external_force, on_ground
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .bandwidth import Spectrum, longest_gap
from .filtered_motion import FilteredMotion, filter_motion
from .filtering import EvenGrid, StampedChannels, long_enough, low_pass, resample, sample_stride
from .recorded_channels import BASE_POSE, CleanChannels
from .wrenches import check_wrenches, slipping

_log = NoticeLogger(__name__)
RESTING_SPEED = 1e-3  # rad/s or m/s; a slower drive may rest
_NOISE_DEVIATIONS = 3.0  # of the velocity's noise, above which its sign is certain
_MAX_SLOW_WEIGHT = 0.5  # of slow samples in a filtered one; with more, friction is mostly stiction
_CENTRE_SHARES = (0.2, 0.8)  # of the recording's duration
_TRANSIENT_RATIO = 3.0  # acceleration of a transient over the largest one of the centre
_MOVING_ACCELERATION_SHARE = 0.02  # of a joint's largest acceleration; with less in the centre it rests there


@dataclass(frozen=True)
class SharedByParts:
    """What the parts of a long recording share, so that each is prepared as the whole would be.

    Attributes
    ----------
    spectra : spectra of the joint positions, and of the channel of a free base, if any.
    grid : instants of the samples before decimation.
    fast_speeds : (n + couplings,), speeds of the drives, see :func:`fast_speeds` [rad/s or m/s].
    noise : noise of the channels of joints, with the length of the whole recording.
    """

    spectra: tuple[Spectrum, Spectrum | None]
    grid: EvenGrid
    fast_speeds: Array
    noise: Mapping[str, ChannelNoise]


def force_samples(
    recorded: CleanChannels,
    joints: Spectrum,
    cutoff: float,
    model: RobotModel,
    options: PrepareOptions,
    shared: SharedByParts | None = None,
) -> Samples:
    """Samples for equations of force below a cutoff [Hz]; ``joints`` is the spectrum of the joint positions.

    All channels pass the same zero-phase filter, so that they stay in phase and equally delayed. External wrenches
    enter by their contacts; if one is faulty, the channels on which it acts are masked. Raises RecordingError if
    nothing is left after cutting, or wrenches contradict the robot's weight.
    """
    name, stamped = recorded.name, recorded.stamped
    # Even samples in pieces, all channels through one filter.
    longest = longest_gap(stamped.period, cutoff, joints, options)
    segments = long_enough(name, resample(stamped, longest, shared.grid if shared else None), cutoff)
    period = segments[0].period
    stride = sample_stride(period, cutoff, options.rate_hz)
    pieces = [filter_motion(name, segment, cutoff, model, options) for segment in segments]
    chosen = [segment.every(stride) for segment in segments]
    motion = FilteredMotion.concatenate([piece.select(rows) for piece, rows in zip(pieces, chosen, strict=True)])
    # Where the friction of every drive has a direction.
    of_joints = slice(model.velocities - model.joints, None)
    noise = np.sqrt(joints.noise_density * (2 * np.pi) ** 2 * cutoff**3 / 3)  # of the velocity below the cutoff
    speeds = [piece.v[:, of_joints] for piece in pieces]
    fast = shared.fast_speeds if shared else fast_speeds(speeds, model.layout)
    friction = FrictionDirection.from_speeds(fast, noise, options.low_speed_fraction, model.layout)
    low_passed = partial(low_pass, period=period, cutoff_hz=cutoff, order=options.filter_order)
    undecimated = UndecimatedVelocity(tuple(speeds), low_passed, _kept_rows(speeds, chosen))
    slides = np.concatenate([friction.defined(v, low_passed) for v in speeds])[undecimated.rows]
    slides &= joints.motion_hz > 0
    # Which samples, and which channels of them, are measured and usable.
    margin = 1.0 / cutoff  # as far as the filter mixes a fault into its neighbours
    faulty = {
        key: flagged_within(flags[:, None], recorded.time, motion.time, margin)[:, 0]
        for key, flags in recorded.faulty.items()
    }
    usable = motion.usable & ~faulty.pop(BASE_POSE, np.zeros_like(motion.usable))
    if options.trim_transients:
        usable &= _steady(name, motion.time, motion.a[:, of_joints])
    if not model.free:
        usable &= slides.any(axis=1)  # a robot at rest shows stiction, which no model describes
    measured = _measured(recorded, model, motion, usable, faulty, options.wrenches)
    tau = external_force(model, motion.q, motion.wrenches)
    tau[:, of_joints] += motion.effort
    tau = np.where(measured, on_ground(model, motion.q, tau), 0.0)
    measured[:, of_joints] &= motion.effort_measured
    mask = usable[:, None] & measured
    mask[:, of_joints] &= slides & ~_saturated(stamped, model.joint_names, motion.time, margin)
    unused = [joint for joint, used in zip(model.joint_names, mask[:, of_joints].T, strict=True) if not used.any()]
    if unused:
        _log.warning("%s: no usable sample of %s (it rests, or the recording is too short)", name, ", ".join(unused))
    return Samples(
        motion.time, motion.q, motion.v, motion.a, tau, mask, usable, name=name,
        undecimated=undecimated, sliding=_of_channels(slides, model), cutoff_hz=cutoff,
        measured=None if measured.all() else measured, noise=_of_channels(noise, model),
        findings=tuple(recorded.findings),
    )  # fmt: skip


def _kept_rows(pieces: Sequence[Array], chosen: Sequence[slice]) -> NDArray[np.intp]:
    """Chosen rows of each piece, counted through all of them."""
    ends = np.cumsum([len(piece) for piece in pieces])
    rows = zip(ends, pieces, chosen, strict=True)
    return np.concatenate([np.arange(end - len(piece), end)[of_piece] for end, piece, of_piece in rows])


def _of_channels(of_joints: NDArray, model: RobotModel) -> NDArray:
    """Values ``(..., nv)`` from ``(..., n)``; a free base slides freely, and its noise is unknown."""
    base = np.full((*of_joints.shape[:-1], model.velocities - model.joints), of_joints.dtype == bool)
    return np.concatenate([base.astype(of_joints.dtype), of_joints], axis=-1)


def _measured(
    recorded: CleanChannels,
    model: RobotModel,
    motion: FilteredMotion,
    usable: NDArray[np.bool_],
    faulty: Mapping[str, NDArray[np.bool_]],
    options: WrenchOptions,
) -> NDArray[np.bool_]:
    """Flag ``(N, nv)`` the channels with measured effort and all wrenches that act on them."""
    if options.check:
        checked = motion.select(usable & ~np.any([np.zeros_like(usable), *faulty.values()], axis=0))
        check_wrenches(recorded.name, model, (checked.q, checked.v, checked.a), checked.wrenches)
    slips = slipping(model, motion.time, motion.q, motion.wrenches, options)
    measured = np.ones((len(motion.time), model.velocities), dtype=bool)
    measured[:, model.velocities - model.joints :] = ~recorded.without_effort
    for contact in model.contacts:
        slipped = slips[contact.name] & usable & ~faulty[contact.name]
        if slipped.any():
            _log.warning(
                "%s: the foot on %s slips, or the pose of the base drifts, in %d samples from %.2f s on; left out",
                recorded.name, contact.name, slipped.sum(), motion.time[slipped][0],
            )  # fmt: skip
        acted_on = list(ContactPath(model, contact).velocities)
        measured[:, acted_on] &= ~(faulty[contact.name] | slipped)[:, None]
        if contact.plate is not None and contact.plate.partial:
            measured[:, [velocity for velocity in acted_on if velocity >= 6 or velocity in UNMEASURED]] = False
    return measured


def _saturated(recorded: StampedChannels, joints: Sequence[str], instants: Array, margin: float) -> NDArray[np.bool_]:
    """Flag the samples into which the filter mixes saturated effort."""
    flags = saturated(recorded.channels["effort"])
    for joint, count in zip(joints, flags.sum(axis=0), strict=True):
        if count:
            _log.warning("%s: effort of %s is saturated in %d samples, left out", recorded.name, joint, count)
    return flagged_within(flags, recorded.time, instants, margin)


def fast_speeds(velocities: Sequence[Array], layout: ParameterLayout) -> Array:
    """Speed ``(n + couplings,)`` that each drive hardly exceeds (99th percentile) in pieces of joint velocities."""
    return np.asarray(np.percentile(np.abs(np.concatenate(velocities) @ layout.drive_ratios.T), 99, axis=0))


@dataclass(frozen=True)
class FrictionDirection:
    """Speeds ``(n + couplings,)`` above which the friction of a drive has a direction [rad/s or m/s]."""

    layout: ParameterLayout
    threshold: Array

    @classmethod
    def from_speeds(
        cls, fast: Array, noise_deviation: Array, low_speed_fraction: float, layout: ParameterLayout
    ) -> "FrictionDirection":
        """Thresholds at a share of the fast speeds ``(n + couplings,)``, and above the noise of the velocities.

        ``noise_deviation (n,)`` is its standard deviation; below ``low_speed_fraction`` of its fast speed a drive
        counts as resting or presliding.
        """
        noise = np.sqrt(layout.drive_ratios**2 @ noise_deviation**2)
        return cls(layout, np.maximum(np.maximum(low_speed_fraction * fast, _NOISE_DEVIATIONS * noise), RESTING_SPEED))

    def defined(self, velocity: Array, low_pass: Callable[[Array], Array]) -> NDArray[np.bool_]:
        """Flag ``(N, n)`` where all drives with friction that act on a joint slide; true if none is identified.

        ``velocity (N, n)`` is that of a piece at the rate of the recording, ``low_pass`` the filter of the torque: a
        filtered sample is a mixture, and while a drive reverses swiftly, hardly any of it is slow.
        """
        drives = self.layout.drive_ratios
        with_friction = np.ones(len(drives), dtype=bool)
        with_friction[: len(self.layout.joints)] = "coulomb" in self.layout.drive_terms
        slow = np.abs(velocity @ drives.T) < self.threshold
        resting = (low_pass(slow.astype(float)) > _MAX_SLOW_WEIGHT) & with_friction
        return resting.astype(int) @ (drives != 0) == 0


def _steady(name: str, time: Array, acceleration: Array) -> NDArray[np.bool_]:
    """Samples ``(N,)`` without start-up and stop, with a notice if that leaves some out."""
    steady = without_transients(time, acceleration)
    if not steady.all():
        used = time[steady] - time[0]
        _log.warning("%s: start-up or stop left out, used from %.2f s to %.2f s", name, used[0], used[-1])
    return steady


def without_transients(time: Array, acceleration: Array) -> NDArray[np.bool_]:
    """Flag ``(N,)`` the samples between the start-up and the stopping jerk, by filtered accelerations ``(N, n)``.

    A controller that is switched onto a running motion jerks the robot into it; flexible joints and saturated drives
    then do what no rigid-body model describes. Such an end has accelerations several times above everything in the
    central three fifths, and is cut up to the last of them. Nothing within the centre is ever cut, and a recording that
    starts and ends at rest loses nothing.
    """
    share = (time - time[0]) / (time[-1] - time[0])
    size = np.abs(acceleration)
    centre = size[(share >= _CENTRE_SHARES[0]) & (share <= _CENTRE_SHARES[1])]
    usable = np.ones(len(time), dtype=bool)
    if len(centre) == 0:
        return usable
    typical = centre.max(axis=0)
    moves = typical > _MOVING_ACCELERATION_SHARE * size.max(axis=0)
    unlike = ((size > _TRANSIENT_RATIO * typical) & moves).any(axis=1)
    start = np.flatnonzero(unlike & (share < _CENTRE_SHARES[0]))
    end = np.flatnonzero(unlike & (share > _CENTRE_SHARES[1]))
    if len(start):
        usable[: start[-1] + 1] = False
    if len(end):
        usable[end[0] :] = False
    return usable
