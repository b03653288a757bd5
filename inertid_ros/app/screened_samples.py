"""Samples of a recording that has been screened: what every command and node fits or validates with."""

from dataclasses import replace

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.screen import refuse, screen, screen_channels
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
        Their ``findings`` are those of preparation and screening.

    Raises
    ------
    RecordingError
        The recording cannot be used, or does not belong to this robot.
    """
    refuse(screen_channels(recording, model))
    samples = prepare(recording, model, configuration.prepare, configuration.identify.equations)
    findings = screen(recording, samples, model)
    refuse(findings)
    return replace(samples, findings=findings)
