"""From a recording to :class:`~inertid_ros.core.samples.Samples` for equations of any type."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.notices import NoticeLogger
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_faults import ChannelNoise
from inertid_ros.data.screening.stamp_checks import as_measured
from inertid_ros.robot.model import RobotModel

from .bandwidth import MAX_CUTOFF_PER_RATE, Spectrum, checked_cutoff, spectra
from .filtered_motion import noisiest_channel
from .filtering import EvenGrid
from .force_samples import SharedByParts, fast_speeds, force_samples
from .momentum_samples import momentum_channels, momentum_samples
from .recorded_channels import CleanChannels, force_channels

_log = NoticeLogger(__name__)


@dataclass(frozen=True)
class Preparation:
    """A recording on its way to samples; everything independent of the cutoff is computed once.

    Attributes
    ----------
    recording : raw channels.
    model : the robot; its joints are matched by name.
    equation_type : one of :data:`inertid_ros.config.identification.EQUATION_TYPES`.
    shared : for a part of a long recording, see :func:`shared_by_parts`.
    """

    recording: Recording
    model: RobotModel
    options: PrepareOptions = field(default_factory=PrepareOptions)
    equation_type: str = "force"
    shared: SharedByParts | None = None

    @cached_property
    def fresh(self) -> Recording:
        """The recording without jitter of its stamps and repeated states."""
        return as_measured(self.recording)

    @property
    def channels(self) -> CleanChannels:
        """Clean channels; raises RecordingError if one that these equations need cannot be used.

        Those of a part of a long recording are cleaned at every use, to leave the memory to raw ones.
        """
        return self._stored_channels if self.shared is None else self._clean_channels()

    @cached_property
    def _stored_channels(self) -> CleanChannels:
        return self._clean_channels()

    def _clean_channels(self) -> CleanChannels:
        if self.equation_type in MOMENTUM_EQUATIONS:
            return momentum_channels(self.fresh, self.model, self.options)
        return force_channels(self.fresh, self.model, self.options, self.shared.noise if self.shared else {})

    @property
    def base_channel(self) -> str | None:
        """Channel of a free base that shows its noise."""
        of_force = self.equation_type not in MOMENTUM_EQUATIONS
        return noisiest_channel(self.options.base) if of_force and self.model.free else None

    @cached_property
    def spectra(self) -> tuple[Spectrum, Spectrum | None]:
        """Spectra of the joint positions, and of the channel of a free base."""
        return self.shared.spectra if self.shared else spectra([self.channels.stamped], self.base_channel)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """Prepare samples below a cutoff [Hz]; 0 takes the configured one, or one that suits this recording.

        Raises
        ------
        RecordingError
            The recording lacks channels that these equations need, or cannot be used.
        """
        joints, base = self.spectra
        cutoff = checked_cutoff(self.recording.name, cutoff_hz or self.options.cutoff_hz, joints, base)
        if self.equation_type in MOMENTUM_EQUATIONS:
            change = self.equation_type == "momentum_change"
            samples = momentum_samples(self.channels, joints, cutoff, self.model, self.options, change)
        else:
            samples = force_samples(self.channels, joints, cutoff, self.model, self.options, self.shared)
        for finding in samples.findings:
            _log.warning("%s", finding)
        return self._without_context(samples)

    def _without_context(self, samples: Samples) -> Samples:
        if not any(self.recording.context):
            return samples
        time, (before, after) = self.recording.time, self.recording.context
        begin = time[before] if before else -np.inf
        end = time[len(time) - after] if after else np.inf
        return samples.select(slice(*np.searchsorted(samples.time, [begin, end])))


def prepare(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, equation_type: str = "force"
) -> Samples:
    """Prepare samples of a robot from a recording: evenly spaced, filtered, in the order of the model.

    The arguments are those of :class:`Preparation`; raises RecordingError as :meth:`Preparation.samples`.
    """
    return Preparation(recording, model, options or PrepareOptions(), equation_type).samples()


def pooled_spectra(preparations: Sequence[Preparation]) -> tuple[Spectrum, Spectrum | None]:
    """Spectra of all recordings together, see :attr:`Preparation.spectra`."""
    first = preparations[0]
    if len(preparations) == 1:
        return first.spectra
    return spectra([preparation.channels.stamped for preparation in preparations], first.base_channel)


def shared_by_parts(
    parts: Sequence[Preparation], cutoff_hz: float, period: float, samples: int
) -> SharedByParts:
    """Compute from some parts what all parts of one long recording of forces share.

    Parameters
    ----------
    parts : parts at even distances over the recording, starting with its first one.
    cutoff_hz : cutoff for all parts [Hz].
    period, samples : sample period [s] and number of samples of the whole recording.

    Raises
    ------
    RecordingError
        A part cannot be used.
    """
    channels = [part.channels for part in parts]
    speeds: list[Array] = []
    for part in parts:
        undecimated = part.samples(cutoff_hz).undecimated
        speeds += undecimated.pieces if undecimated is not None else ()
    noise = {
        name: ChannelNoise(np.median([clean.noise[name].scale for clean in channels], axis=0), samples)
        for name in channels[0].noise
    }
    grid = EvenGrid(float(channels[0].stamped.time[0]), period)
    return SharedByParts(pooled_spectra(parts), grid, fast_speeds(speeds, parts[0].model.layout), noise)


def common_cutoff(preparations: Sequence[Preparation], others: Sequence[Recording] = ()) -> float:
    """Cutoff [Hz] that suits all recordings together, so that all are filtered alike.

    Parameters
    ----------
    preparations : those to be fitted, of one robot and with the same options; a configured cutoff has precedence.
    others : recordings that will be filtered alike, such as held-out ones, of which only the sample rates matter.

    Raises
    ------
    RecordingError
        A recording lacks channels that its equations need.
    """
    first = preparations[0]
    if first.options.cutoff_hz:
        return first.options.cutoff_hz
    names = ", ".join(dict.fromkeys(preparation.recording.name for preparation in preparations))
    cutoff = checked_cutoff(names, 0.0, *pooled_spectra(preparations))
    slowest = max((float(np.median(np.diff(other.time))) for other in others), default=0.0)
    return min(cutoff, MAX_CUTOFF_PER_RATE / slowest) if slowest else cutoff
