"""From a recording to :class:`~inertid_ros.core.samples.Samples` for equations of any type."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.config.recordings import PrepareOptions, WrenchOptions
from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import NoticeLogger
from inertid_ros.core.samples import Samples, UndecimatedVelocity
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_faults import ChannelNoise, flagged_within, saturated
from inertid_ros.data.screening.stamp_checks import as_measured
from inertid_ros.robot.contacts import UNMEASURED, ContactPath, external_force, on_ground
from inertid_ros.robot.model import RobotModel

from . import filtered_motion
from .bandwidth import MAX_CUTOFF_PER_RATE, Spectrum, checked_cutoff, spectra
from .commanded_effort import command_torque, with_commanded_effort
from .filtering import EvenGrid, even_pieces, low_pass
from .recorded_channels import BASE_POSE, BASE_SOURCES, CleanChannels, force_channels
from .whole_body_samples import momentum_channels, momentum_samples, segment_channels, segment_samples
from .wrenches import check_wrenches, slipping

_log = NoticeLogger(__name__)


@dataclass(frozen=True)
class SharedByParts:
    """Values shared by the parts of a long recording, so that each part is prepared like the whole recording.

    Attributes
    ----------
    spectra : spectra of the joint positions, and of the channel of a free base, if any.
    grid : instants of the samples before decimation.
    fast_speeds : (n + couplings,), speeds of the drives, see :func:`.fast_speeds` [rad/s or m/s].
    noise : noise of the channels of joints, with the length of the whole recording.
    """

    spectra: tuple[Spectrum, Spectrum | None]
    grid: EvenGrid
    fast_speeds: Array
    noise: Mapping[str, ChannelNoise]


@dataclass(frozen=True)
class Preparation:
    """Preparation of one recording; results that do not depend on the cutoff are computed once.

    Attributes
    ----------
    recording : raw channels.
    model : the robot; its joints are matched by name.
    equation_type : one of :data:`inertid_ros.config.identification.EQUATION_TYPES`.
    shared : values for a part of a long recording, see :func:`shared_by_parts`; None for a whole recording.
    """

    recording: Recording
    model: RobotModel
    options: PrepareOptions = field(default_factory=PrepareOptions)
    equation_type: str = "force"
    shared: SharedByParts | None = None

    @cached_property
    def fresh(self) -> Recording:
        """The recording, repaired by :func:`.as_measured`, with efforts from commands if the robot reports none."""
        fresh = as_measured(self.recording)
        return fresh if self.equation_type in MOMENTUM_EQUATIONS else with_commanded_effort(fresh, self.model)

    @property
    def channels(self) -> CleanChannels:
        """Clean channels; raises RecordingError if a channel that the equations need cannot be used.

        For a part of a long recording, channels are cleaned at every use instead of stored, to save memory.
        """
        return self._stored_channels if self.shared is None else self._clean_channels()

    def _clean_channels(self) -> CleanChannels:
        if self.model.segmented:
            return segment_channels(self.fresh, self.model, self.options)
        if self.equation_type in MOMENTUM_EQUATIONS:
            return momentum_channels(self.fresh, self.model, self.options)
        return force_channels(self.fresh, self.model, self.options, self.shared.noise if self.shared else {})

    _stored_channels = cached_property(_clean_channels)

    @property
    def base_channel(self) -> str | None:
        """Channel from which the noise of a free base is estimated; None if it is not needed."""
        if self.equation_type in MOMENTUM_EQUATIONS or self.model.segmented or not self.model.free:
            return None
        return (*BASE_SOURCES[self.options.base.motion_from], BASE_POSE)[0]

    @cached_property
    def spectra(self) -> tuple[Spectrum, Spectrum | None]:
        """Spectra of the joint positions, and of the channel of a free base."""
        return self.shared.spectra if self.shared else spectra([self.channels], self.base_channel)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """Prepare samples below a cutoff [Hz]; 0 means the configured cutoff, or an automatic cutoff if it is 0 too.

        Raises RecordingError: the recording lacks channels that the equations need, or cannot be used.
        """
        joints, base = self.spectra
        cutoff = checked_cutoff(self.recording.name, cutoff_hz or self.options.cutoff_hz, joints, base)
        if self.model.segmented:
            samples = segment_samples(self.channels, joints, cutoff, self.model, self.options)
        elif self.equation_type in MOMENTUM_EQUATIONS:
            change = self.equation_type == "momentum_change"
            samples = momentum_samples(self.channels, joints, cutoff, self.model, self.options, change)
        else:
            samples = self._force_samples(joints, cutoff)
        for finding in samples.findings:
            _log.warning("%s", finding)
        return self._without_context(samples)

    def _force_samples(self, joints: Spectrum, cutoff: float) -> Samples:
        """Samples for equations of joint torques and of the wrench on the base.

        All channels pass the same zero-phase filter, so that they stay in phase. External wrenches add to the torque
        through their contacts; if a wrench is faulty, the channels on which it acts are masked.
        """
        recorded, model, options, shared = self.channels, self.model, self.options, self.shared
        # Even samples in pieces; all channels pass one filter.
        grid, motion_hz = shared.grid if shared else None, float(joints.motion_hz.max())
        segments, chosen = even_pieces(recorded, motion_hz, cutoff, options, grid)
        pieces = [filtered_motion.filter_motion(recorded.name, segment, cutoff, model, options) for segment in segments]
        kept = [piece.select(rows) for piece, rows in zip(pieces, chosen, strict=True)]
        motion = filtered_motion.FilteredMotion(*map(np.concatenate, zip(*kept, strict=True)))
        # Samples in which the friction of every drive has a direction.
        of_joints = slice(model.velocities - model.joints, None)
        noise = np.sqrt(joints.noise_density * (2 * np.pi) ** 2 * cutoff**3 / 3)  # velocity noise below the cutoff
        speeds = [piece.v[:, of_joints] for piece in pieces]
        fast = shared.fast_speeds if shared else filtered_motion.fast_speeds(speeds, model.layout)
        sliding = filtered_motion.sliding_speeds(fast, noise, options.low_speed_fraction, model.layout)
        low_passed = partial(low_pass, period=segments[0].period, cutoff_hz=cutoff, order=options.filter_order)
        rows = np.split(np.arange(sum(map(len, speeds))), np.cumsum([len(v) for v in speeds[:-1]]))
        kept_rows = np.concatenate([of_piece[part] for of_piece, part in zip(rows, chosen, strict=True)])
        undecimated = UndecimatedVelocity(tuple(speeds), low_passed, kept_rows)
        slides = np.concatenate([filtered_motion.slides(model.layout, sliding, v, low_passed) for v in speeds])
        slides = slides[kept_rows] & (joints.motion_hz > 0)
        # Samples, and channels of samples, that are measured and usable.
        margin = 1.0 / cutoff  # the filter mixes a fault into neighbours up to this distance
        faulty = {
            key: flagged_within(flags[:, None], recorded.time, motion.time, margin)[:, 0]
            for key, flags in recorded.faulty.items()}
        usable = motion.usable & ~faulty.pop(BASE_POSE, np.zeros_like(motion.usable))
        if options.trim_transients:
            usable &= _steady(recorded.name, motion.time, motion.a[:, of_joints])
        if not model.free:
            usable &= slides.any(axis=1)  # the equations do not describe stiction of a robot at rest
        measured = _measured(recorded, model, motion, usable, faulty, options.wrenches)
        tau = external_force(model, motion.q, motion.by_contact(model))
        tau[:, of_joints] += motion.effort
        tau = np.where(measured, on_ground(model, motion.q, tau), 0.0)
        clipped = flagged_within(saturated(recorded.channels["effort"]), recorded.time, motion.time, margin)
        measured[:, of_joints] &= motion.effort_measured & ~clipped
        mask = usable[:, None] & measured
        mask[:, of_joints] &= slides
        unused = [joint for joint, used in zip(model.joint_names, mask[:, of_joints].T, strict=True) if not used.any()]
        if unused:
            message = "%s: no usable sample of %s (it rests, or the recording is too short)"
            _log.warning(message, recorded.name, ", ".join(unused))
        return Samples(motion.time, motion.q, motion.v, motion.a, tau, mask, usable, name=recorded.name,
            undecimated=undecimated, sliding=_of_channels(slides, model), cutoff_hz=cutoff,
            measured=None if measured.all() else measured, noise=_of_channels(noise, model),
            findings=tuple(recorded.findings), command=command_torque(recorded.name, model, motion),
            command_limits=model.command_limits)

    def _without_context(self, samples: Samples) -> Samples:
        if not any(self.recording.context):
            return samples
        time, (before, after) = self.recording.time, self.recording.context
        begin = time[before] if before else -np.inf
        end = time[len(time) - after] if after else np.inf
        return samples.select(slice(*np.searchsorted(samples.time, [begin, end])))


def prepare(recording: Recording, model: RobotModel, options: PrepareOptions | None = None,
        equation_type: str = "force") -> Samples:
    """Prepare samples of a robot from a recording: evenly spaced, filtered, in the order of the model.

    For the arguments see :class:`Preparation`; raises RecordingError like :meth:`Preparation.samples`.
    """
    return Preparation(recording, model, options or PrepareOptions(), equation_type).samples()


def pooled_spectra(preparations: Sequence[Preparation]) -> tuple[Spectrum, Spectrum | None]:
    """Spectra of all recordings together, see :attr:`Preparation.spectra`."""
    first = preparations[0]
    if len(preparations) == 1:
        return first.spectra
    return spectra([preparation.channels for preparation in preparations], first.base_channel)


def shared_by_parts(parts: Sequence[Preparation], cutoff_hz: float, period: float, samples: int) -> SharedByParts:
    """Compute the values that all parts of a long recording share for force equations, from some of the parts.

    Raises RecordingError: a part cannot be used.

    Parameters
    ----------
    parts : parts at even distances over the recording, starting with its first part.
    cutoff_hz : cutoff for all parts [Hz].
    period, samples : sample period [s] and number of samples of the whole recording.
    """
    channels = [part.channels for part in parts]
    speeds: list[Array] = []
    for part in parts:
        undecimated = part.samples(cutoff_hz).undecimated
        speeds += undecimated.pieces if undecimated is not None else ()
    noise = {
        name: ChannelNoise(np.median([clean.noise[name].scale for clean in channels], axis=0), samples)
        for name in channels[0].noise}
    grid = EvenGrid(float(channels[0].time[0]), period)
    return SharedByParts(pooled_spectra(parts), grid, filtered_motion.fast_speeds(speeds, parts[0].model.layout), noise)


def common_cutoff(preparations: Sequence[Preparation], others: Sequence[Recording] = ()) -> float:
    """Cutoff [Hz] that suits all recordings together, so that all are filtered alike.

    Raises RecordingError: a recording lacks channels that its equations need.

    Parameters
    ----------
    preparations : recordings to be fitted, of one robot and with equal options; a configured cutoff has precedence.
    others : recordings that will be filtered alike, such as held-out recordings; only their sample rates matter.
    """
    first = preparations[0]
    if first.options.cutoff_hz:
        return first.options.cutoff_hz
    names = ", ".join(dict.fromkeys(preparation.recording.name for preparation in preparations))
    cutoff = checked_cutoff(names, 0.0, *pooled_spectra(preparations))
    slowest = max((other.period for other in others), default=0.0)
    return min(cutoff, MAX_CUTOFF_PER_RATE / slowest) if slowest else cutoff


def _of_channels(of_joints: Array | Mask, model: RobotModel) -> np.ndarray:
    """Extend values ``(..., n)`` of joints to all channels ``(..., nv)``: a free base slides (True), with noise 0."""
    base = np.full((*of_joints.shape[:-1], model.velocities - model.joints), of_joints.dtype == bool)
    return np.concatenate([base.astype(of_joints.dtype), of_joints], axis=-1)


def _measured(recorded: CleanChannels, model: RobotModel, motion: filtered_motion.FilteredMotion, usable: Mask,
        faulty: Mapping[str, Mask], options: WrenchOptions) -> Mask:
    """Flag ``(N, nv)`` the channels with measured effort and all wrenches that act on them."""
    if options.check:
        checked = motion.select(usable & ~np.any([np.zeros_like(usable), *faulty.values()], axis=0))
        check_wrenches(recorded.name, model, (checked.q, checked.v, checked.a), checked.by_contact(model))
    slips = slipping(model, motion.time, motion.q, motion.by_contact(model), options)
    measured = np.ones((len(motion.time), model.velocities), dtype=bool)
    measured[:, model.velocities - model.joints :] = ~recorded.without_effort
    for contact in model.contacts:
        slipped = slips[contact.name] & usable & ~faulty[contact.name]
        if slipped.any():
            _log.warning(
                "%s: the foot on %s slips, or the pose of the base drifts, in %d samples from %.2f s on; left out",
                recorded.name, contact.name, slipped.sum(), motion.time[slipped][0])
        acted_on = list(ContactPath(model, contact).velocities)
        measured[:, acted_on] &= ~(faulty[contact.name] | slipped)[:, None]
        if contact.plate is not None and contact.plate.partial:
            of_plate = range(6) if model.free else ()  # rows of the base that the plate may measure
            unmeasured = [row for row in acted_on if row not in of_plate or row in UNMEASURED]
            measured[:, unmeasured] = False
    return measured


def _steady(name: str, time: Array, acceleration: Array) -> Mask:
    """Flag the samples ``(N,)`` between start-up and stop, and log a warning if samples are left out."""
    steady = filtered_motion.without_transients(time, acceleration)
    if not steady.all():
        used = time[steady] - time[0]
        _log.warning("%s: start-up or stop left out, used from %.2f s to %.2f s", name, used[0], used[-1])
    return steady
