"""Samples of a recording that has been screened: what every command and node fits or validates with."""

from collections.abc import Sequence
from dataclasses import replace

import attrs

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.errors import ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.data.cleaning.clean import repaired
from inertid_ros.data.preparation.prepare import prepare, with_common_cutoff
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.data.screening.effort_noise import effort_noise
from inertid_ros.data.screening.screen import refuse, screen_channels
from inertid_ros.regressors.load_torque import without_load
from inertid_ros.robot.loads import load_bodies
from inertid_ros.robot.model import RobotModel


def screened_samples(recording: Recording, model: RobotModel, configuration: Configuration) -> Samples:
    """Prepare a recording, with all findings on it.

    Units are checked before the preparation, which would fail on wrong ones with another reason.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot as given.
    configuration : Configuration
        Holds how it is prepared, and for which equations.

    Returns
    -------
    Samples
        Their ``findings`` are those of preparation and screening; with the noise of the efforts.

    Raises
    ------
    RecordingError
        The recording cannot be used, or does not belong to this robot.
    """
    readable = repaired(recording)
    on_channels = screen_channels(readable, model)
    refuse(on_channels)
    samples = prepared_samples(recording, model, configuration)
    # Efforts whose gains are to be found are checked with these, see LoadedRecordings.
    efforts = configuration.prepare.check_efforts and not configuration.identify.drive_gains
    findings = (*samples.findings, *on_channels, *(check_efforts(samples, model) if efforts else ()))
    refuse(findings)
    samples = replace(samples, findings=findings)
    if configuration.identify.equations in MOMENTUM_EQUATIONS:
        return samples
    return replace(samples, effort_noise=effort_noise(readable, model, samples.cutoff_hz))


def prepared_samples(recording: Recording, model: RobotModel, configuration: Configuration) -> Samples:
    """Prepare a recording and take the torques of its known load off the efforts.

    Raises
    ------
    ModelError
        A load of the recording is known, and the equations are not those of force.
    RecordingError
        The recording cannot be used.
    """
    samples = prepare(recording, model, configuration.prepare, configuration.identify.equations)
    load = load_bodies(model, configuration.robot.loads, recording.name)
    if load.any() and configuration.identify.equations != "force":
        raise ModelError("robot.loads: loads are known to equations of force only; drop them")
    return without_load(model, load, samples)


def with_common_filter(
    recordings: Sequence[Recording],
    model: RobotModel,
    configuration: Configuration,
    others: Sequence[Recording] = (),
    cutoff_hz: float = 0.0,
) -> Configuration:
    """Configuration with the one cutoff that all recordings of a result are filtered with.

    Parameters
    ----------
    recordings : sequence of Recording
        Those from which the cutoff is chosen where it is not configured.
    model : RobotModel
        The robot as given.
    configuration : Configuration
        Its ``prepare.cutoff_hz`` goes before all others where it is not zero.
    others : sequence of Recording
        Recordings that will be filtered alike; the cutoff suits their sample rates.
    cutoff_hz : float
        Cutoff with which a result was identified [Hz]; 0 where there is none.

    Raises
    ------
    RecordingError
        A recording cannot be used, or does not belong to this robot.
    """
    for recording in (*recordings, *others):
        refuse(screen_channels(repaired(recording), model))
    options = configuration.prepare
    if cutoff_hz and not options.cutoff_hz:
        options = attrs.evolve(options, cutoff_hz=cutoff_hz)
    options = with_common_cutoff(recordings, model, options, configuration.identify.equations, others)
    return attrs.evolve(configuration, prepare=options)
