"""Samples for equations of any type."""

import logging
from collections.abc import Sequence

import attrs
import numpy as np

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .bandwidth import HIGHEST_CUTOFF
from .filter_settings import checked_cutoff, spectra
from .force_samples import prepare_force
from .free_base import noisiest_channel
from .momentum_samples import momentum_channels, prepare_momentum
from .recorded_channels import ForceChannels

_log = logging.getLogger(__name__)


def prepare(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, equation_type: str = "force"
) -> Samples:
    """Samples of a robot from a recording.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot; its joints are matched by name.
    options : PrepareOptions, optional
        Filters, cuts and sources of motion.
    equation_type : str
        Type of the equations that the samples are for, one of :data:`inertid_ros.config.identification.EQUATION_TYPES`.

    Returns
    -------
    Samples
        Evenly spaced, filtered, in the order of the model.

    Raises
    ------
    RecordingError
        The recording lacks what these equations need, or cannot be used.
    """
    if equation_type in MOMENTUM_EQUATIONS:
        samples = prepare_momentum(recording, model, options, change=equation_type == "momentum_change")
    else:
        samples = prepare_force(recording, model, options)
    for finding in samples.findings:
        _log.warning("%s", finding)
    return samples


def with_common_cutoff(
    recordings: Sequence[Recording],
    model: RobotModel,
    options: PrepareOptions | None = None,
    equation_type: str = "force",
    others: Sequence[Recording] = (),
) -> PrepareOptions:
    """Options with one cutoff that suits all recordings together, so that all are filtered alike.

    Parameters
    ----------
    recordings : sequence of Recording
        Those to be fitted.
    model : RobotModel
        The robot.
    options : PrepareOptions, optional
        As configured; a ``cutoff_hz`` that is not zero stays.
    equation_type : str
        As in :func:`prepare`.
    others : sequence of Recording
        Recordings that will be filtered alike, such as those held out, of which only the sample rates matter.

    Raises
    ------
    RecordingError
        A recording lacks what these equations need.
    """
    options = options or PrepareOptions()
    if options.cutoff_hz:
        return options
    base = None
    if equation_type in MOMENTUM_EQUATIONS:
        stamped = [momentum_channels(recording, model, options) for recording in recordings]
    else:
        stamped = [ForceChannels.of(recording, model, options).stamped for recording in recordings]
        base = noisiest_channel(options.base) if model.free else None
    names = ", ".join(recording.name for recording in recordings)
    cutoff = checked_cutoff(names, options, *spectra(stamped, base))
    slowest = max((float(np.median(np.diff(other.time))) for other in others), default=0.0)
    return attrs.evolve(options, cutoff_hz=min(cutoff, HIGHEST_CUTOFF / slowest) if slowest else cutoff)
