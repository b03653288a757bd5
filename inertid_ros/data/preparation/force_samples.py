"""Samples for equations of joint torques and of the wrench on the base."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions, WrenchOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples, UndecimatedVelocity
from inertid_ros.data.screening.channel_faults import ChannelNoise, flagged_within, saturated
from inertid_ros.robot.contacts import UNMEASURED, ContactPath, external_force, on_ground
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .bandwidth import Spectrum, longest_gap
from .filtered_motion import FilteredMotion, filter_motion
from .filtering import EvenGrid, StampedChannels, long_enough, low_pass, resample, sample_stride
from .recorded_channels import BASE_POSE, ForceChannels
from .wrenches import check_wrenches, notice_slipping, slipping

_log = logging.getLogger(__name__)
RESTING_SPEED = 1e-3  # rad/s or m/s; a slower drive may as well rest
_NOISE_DEVIATIONS = 3.0  # standard deviations of the velocity's noise, above which its sign is sure
_MAX_SLOW_WEIGHT = 0.5  # of what the filter mixes into a sample: with more of it at rest, friction is mostly stiction
_CENTRE_SHARES = (0.2, 0.8)  # of the recording's duration; what is here is what the experiment is about
_TRANSIENT_RATIO = 3.0  # times the largest acceleration of the centre
_MOVING_ACCELERATION_SHARE = 0.02  # a joint that accelerates less than this share of its fastest moment does not move in the centre


@dataclass(frozen=True)
class SharedByParts:
    """What a part takes from the recording that it belongs to.

    Attributes
    ----------
    spectra : tuple
        Of the joint positions, and of the channel of a free base, where there is one.
    grid : EvenGrid
        Instants of the samples before decimation.
    fast_speeds : ndarray, shape (n + couplings,)
        Of the drives, see :func:`.friction_direction.fast_speeds` [rad/s or m/s].
    noise : mapping of str to ChannelNoise
        Of the channels of joints, with the length of the whole recording.
    """

    spectra: tuple[Spectrum, Spectrum | None]
    grid: EvenGrid
    fast_speeds: Array
    noise: Mapping[str, ChannelNoise]


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
        usable &= _between_transients(name, motion.time, motion.a[:, of_joints])
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


def _between_transients(name: str, time: Array, acceleration: Array) -> NDArray[np.bool_]:
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


def fast_speeds(velocities: Sequence[Array], layout: ParameterLayout) -> Array:
    """``(n + couplings,)`` speed that each drive hardly exceeds, the 99th percentile [rad/s or m/s].

    Parameters
    ----------
    velocities : sequence of ndarray, shape (N, n)
        Joint velocities of each piece of a recording.
    layout : ParameterLayout
        Of the robot.
    """
    return np.asarray(np.percentile(np.abs(np.concatenate(velocities) @ layout.drive_ratios.T), 99, axis=0))


@dataclass(frozen=True)
class FrictionDirection:
    """Speeds above which the friction of a drive has a direction: joints first, then couplings.

    Attributes
    ----------
    layout : ParameterLayout
        Of the robot.
    threshold : ndarray, shape (n + couplings,)
        Speed above which a drive slides [rad/s or m/s].
    """

    layout: ParameterLayout
    threshold: Array

    @classmethod
    def from_speeds(
        cls, fast: Array, noise_deviation: Array, low_speed_fraction: float, layout: ParameterLayout
    ) -> "FrictionDirection":
        """Thresholds from what was measured: a share of the fast speed, and above the noise.

        Parameters
        ----------
        fast : ndarray, shape (n + couplings,)
            See :func:`fast_speeds`.
        noise_deviation : ndarray, shape (n,)
            Standard deviation of the noise of the velocities.
        low_speed_fraction : float
            Share of the fast speed below which a drive is held to be resting or presliding.
        layout : ParameterLayout
            Of the robot.
        """
        noise = np.sqrt(layout.drive_ratios**2 @ noise_deviation**2)
        return cls(layout, np.maximum(np.maximum(low_speed_fraction * fast, _NOISE_DEVIATIONS * noise), RESTING_SPEED))

    def defined(self, velocity: Array, low_pass: Callable[[Array], Array]) -> NDArray[np.bool_]:
        """``(N, n)`` where all drives with friction that act on a joint slide; true where none is identified.

        A sample is made of what the low-pass mixes into it; while a drive reverses swiftly, hardly any of that is
        slow, and its friction is known.

        Parameters
        ----------
        velocity : ndarray, shape (N, n)
            Joint velocity of a piece, at the rate of the recording [rad/s or m/s].
        low_pass : callable
            That of the torque.
        """
        drives = self.layout.drive_ratios
        with_friction = np.ones(len(drives), dtype=bool)
        with_friction[: len(self.layout.joints)] = "coulomb" in self.layout.drive_terms
        slow = np.abs(velocity @ drives.T) < self.threshold
        resting = (low_pass(slow.astype(float)) > _MAX_SLOW_WEIGHT) & with_friction
        return resting.astype(int) @ (drives != 0) == 0


def without_transients(time: Array, acceleration: Array) -> NDArray[np.bool_]:
    """Where a recording is past its start-up and before its stopping jerk.

    A controller that is switched onto a running motion jerks the robot into it; flexible joints and saturated drives
    then do what no rigid-body model describes. Such an end is recognised by accelerations several times above
    everything in the central three fifths, and is cut up to the last of them. Nothing within the centre is ever cut,
    and a recording that begins and ends at rest loses nothing.

    Parameters
    ----------
    time : ndarray, shape (N,)
        Time [s].
    acceleration : ndarray, shape (N, n)
        Filtered acceleration of the joints [rad/s^2 or m/s^2].

    Returns
    -------
    ndarray of bool, shape (N,)
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
