"""Samples for equations of any type."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .bandwidth import HIGHEST_CUTOFF, Spectrum
from .filter_settings import checked_cutoff, spectra
from .force_samples import force_samples
from .free_base import noisiest_channel
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
    known_spectra : tuple, optional
        Of the recording that this one is a part of, where they are known; its own, if not given.
    """

    recording: Recording
    model: RobotModel
    options: PrepareOptions = field(default_factory=PrepareOptions)
    equation_type: str = "force"
    known_spectra: tuple[Spectrum, Spectrum | None] | None = None

    @cached_property
    def channels(self) -> ForceChannels | MomentumChannels:
        """Clean channels; raises RecordingError where one that these equations need cannot be used."""
        of_these = MomentumChannels if self.equation_type in MOMENTUM_EQUATIONS else ForceChannels
        return of_these.of(self.recording, self.model, self.options)

    @property
    def base_channel(self) -> str | None:
        """Channel of a free base from which its noise is known."""
        of_force = self.equation_type not in MOMENTUM_EQUATIONS
        return noisiest_channel(self.options.base) if of_force and self.model.free else None

    @cached_property
    def spectra(self) -> tuple[Spectrum, Spectrum | None]:
        """Of the joint positions, and of the channel of a free base."""
        return self.known_spectra or spectra([self.channels.stamped], self.base_channel)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """Samples below a cutoff [Hz]; 0 takes the configured one, or what suits this recording.

        Raises
        ------
        RecordingError
            The recording lacks what these equations need, or cannot be used.
        """
        joints, base = self.spectra
        cutoff = checked_cutoff(self.recording.name, cutoff_hz or self.options.cutoff_hz, joints, base)
        if isinstance(self.channels, ForceChannels):
            samples = force_samples(self.channels, joints, cutoff, self.model, self.options)
        else:
            change = self.equation_type == "momentum_change"
            samples = momentum_samples(self.channels, joints, cutoff, self.model, self.options, change)
        for finding in samples.findings:
            _log.warning("%s", finding)
        return samples


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
    return min(cutoff, HIGHEST_CUTOFF / slowest) if slowest else cutoff
