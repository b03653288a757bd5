"""Samples for equations of any type."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_faults import ChannelNoise
from inertid_ros.data.screening.stamp_checks import as_measured
from inertid_ros.robot.model import RobotModel

from .bandwidth import MAX_CUTOFF_PER_RATE, Spectrum, checked_cutoff, spectra
from .filtered_motion import noisiest_channel
from .filtering import EvenGrid
from .force_samples import SharedByParts, fast_speeds, force_samples
from .momentum_samples import MomentumChannels, momentum_samples
from .recorded_channels import ForceChannels

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Preparation:
    """A recording on its way to samples; what does not depend on the cutoff is worked out once.

    Attributes
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot; its joints are matched by name.
    options : PrepareOptions
        Filters, cuts and sources of motion.
    equation_type : str
        Type of the equations that the samples are for, one of :data:`inertid_ros.config.identification.EQUATION_TYPES`.
    shared : SharedByParts, optional
        What a part of a long recording takes from it, see :func:`shared_by_parts`.
    """

    recording: Recording
    model: RobotModel
    options: PrepareOptions = field(default_factory=PrepareOptions)
    equation_type: str = "force"
    shared: SharedByParts | None = None

    @cached_property
    def fresh(self) -> Recording:
        """The recording as it was measured."""
        return as_measured(self.recording)

    @property
    def channels(self) -> ForceChannels | MomentumChannels:
        """Clean channels; raises RecordingError where one that these equations need cannot be used.

        Those of a part of a long recording are worked out anew, as memory is for its raw ones.
        """
        return self._kept_channels if self.shared is None else self._channels()

    @cached_property
    def _kept_channels(self) -> ForceChannels | MomentumChannels:
        return self._channels()

    def _channels(self) -> ForceChannels | MomentumChannels:
        if self.equation_type in MOMENTUM_EQUATIONS:
            return MomentumChannels.from_recording(self.fresh, self.model, self.options)
        return ForceChannels.from_recording(self.fresh, self.model, self.options, self.shared.noise if self.shared else None)

    @property
    def base_channel(self) -> str | None:
        """Channel of a free base from which its noise is known."""
        of_force = self.equation_type not in MOMENTUM_EQUATIONS
        return noisiest_channel(self.options.base) if of_force and self.model.free else None

    @cached_property
    def spectra(self) -> tuple[Spectrum, Spectrum | None]:
        """Of the joint positions, and of the channel of a free base."""
        return self.shared.spectra if self.shared else spectra([self.channels.stamped], self.base_channel)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """Samples below a cutoff [Hz]; 0 takes the configured one, or what suits this recording.

        Raises
        ------
        RecordingError
            The recording lacks what these equations need, or cannot be used.
        """
        joints, base = self.spectra
        cutoff = checked_cutoff(self.recording.name, cutoff_hz or self.options.cutoff_hz, joints, base)
        channels = self.channels
        if isinstance(channels, ForceChannels):
            samples = force_samples(channels, joints, cutoff, self.model, self.options, self.shared)
        else:
            change = self.equation_type == "momentum_change"
            samples = momentum_samples(channels, joints, cutoff, self.model, self.options, change)
        for finding in samples.findings:
            _log.warning("%s", finding)
        return self._own(samples)

    def _own(self, samples: Samples) -> Samples:
        """Those that are not in the context of a part."""
        if not any(self.recording.context):
            return samples
        time, (before, after) = self.recording.time, self.recording.context
        begin = time[before] if before else -np.inf
        end = time[len(time) - after] if after else np.inf
        return samples.select(slice(*np.searchsorted(samples.time, [begin, end])))


def prepare(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, equation_type: str = "force"
) -> Samples:
    """Samples of a robot from a recording; the arguments are those of :class:`Preparation`.

    Returns
    -------
    Samples
        Evenly spaced, filtered, in the order of the model.

    Raises
    ------
    RecordingError
        The recording lacks what these equations need, or cannot be used.
    """
    return Preparation(recording, model, options or PrepareOptions(), equation_type).samples()


def pooled_spectra(preparations: Sequence[Preparation]) -> tuple[Spectrum, Spectrum | None]:
    """Spectra of all recordings together, see :attr:`Preparation.spectra`."""
    first = preparations[0]
    if len(preparations) == 1:
        return first.spectra
    return spectra([each.channels.stamped for each in preparations], first.base_channel)


def shared_by_parts(
    parts: Sequence[Preparation], cutoff_hz: float, period: float, samples: int
) -> SharedByParts:
    """What is shared by the parts of one long recording of forces, from some of them.

    Parameters
    ----------
    parts : sequence of Preparation
        Parts at even distances over the recording, the first one of all at their head.
    cutoff_hz : float
        With which all are filtered [Hz].
    period : float
        Sample period of the whole recording [s].
    samples : int
        Of the whole recording.

    Raises
    ------
    RecordingError
        A part cannot be used.
    """
    channels = [part.channels for part in parts if isinstance(part.channels, ForceChannels)]
    speeds: list[Array] = []
    for part in parts:
        undecimated = part.samples(cutoff_hz).undecimated
        speeds += undecimated.pieces if undecimated is not None else ()
    return SharedByParts(
        spectra=pooled_spectra(parts),
        grid=EvenGrid(float(channels[0].stamped.time[0]), period),
        fast_speeds=fast_speeds(speeds, parts[0].model.layout),
        noise={
            name: ChannelNoise(np.median([each.noise[name].scale for each in channels], axis=0), samples)
            for name in channels[0].noise
        },
    )


def common_cutoff(preparations: Sequence[Preparation], others: Sequence[Recording] = ()) -> float:
    """Cutoff [Hz] that suits all recordings together, so that all are filtered alike.

    Parameters
    ----------
    preparations : sequence of Preparation
        Those to be fitted, of one robot and with the same options; a configured cutoff goes before all others.
    others : sequence of Recording
        Recordings that will be filtered alike, such as those held out, of which only the sample rates matter.

    Raises
    ------
    RecordingError
        A recording lacks what its equations need.
    """
    first = preparations[0]
    if first.options.cutoff_hz:
        return first.options.cutoff_hz
    names = ", ".join(dict.fromkeys(each.recording.name for each in preparations))
    cutoff = checked_cutoff(names, 0.0, *pooled_spectra(preparations))
    slowest = max((float(np.median(np.diff(other.time))) for other in others), default=0.0)
    return min(cutoff, MAX_CUTOFF_PER_RATE / slowest) if slowest else cutoff
