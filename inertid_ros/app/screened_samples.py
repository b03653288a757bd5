"""Samples of recordings that have been screened: what every command and node fits or validates with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.errors import ModelError
from inertid_ros.core.findings import Finding
from inertid_ros.core.samples import Samples
from inertid_ros.data.cleaning.clean import repaired
from inertid_ros.data.preparation.prepare import Preparation, common_cutoff
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.data.screening.effort_noise import EffortNoise
from inertid_ros.data.screening.screen import refuse, screen_channels
from inertid_ros.regressors.load_torque import without_load
from inertid_ros.robot.loads import load_bodies
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class ScreenedRecording:
    """A recording whose raw channels may be those of this robot.

    Attributes
    ----------
    preparation : Preparation
        Of the recording for the robot as given.
    configuration : Configuration
        How it is prepared, and for which equations.
    findings : tuple of Finding
        On its raw channels.
    noise : EffortNoise, optional
        Of its efforts, where the equations are of force.
    """

    preparation: Preparation
    configuration: Configuration
    findings: tuple[Finding, ...]
    noise: EffortNoise | None

    @classmethod
    def of(cls, recording: Recording, model: RobotModel, configuration: Configuration) -> "ScreenedRecording":
        """Screen a recording; units are checked before the preparation, which would fail on wrong ones otherwise.

        Raises
        ------
        RecordingError
            The recording does not belong to this robot.
        """
        readable = repaired(recording)
        findings = screen_channels(readable, model)
        refuse(findings)
        equations = configuration.identify.equations
        preparation = Preparation(recording, model, configuration.prepare, equations)
        lacking = set(model.joint_names) - set(recording.joint_names)  # which the preparation refuses
        noise = None if lacking or equations in MOMENTUM_EQUATIONS else EffortNoise.of(readable, model)
        return cls(preparation, configuration, findings, noise)

    def prepared(self, cutoff_hz: float = 0.0) -> Samples:
        """Samples below a cutoff [Hz], with the torques of a known load taken off the efforts.

        Without a cutoff it is the configured one, or one that suits this recording alone.

        Raises
        ------
        ModelError
            A load of the recording is known, and the equations are not those of force.
        RecordingError
            The recording cannot be used.
        """
        configuration, recording, model = self.configuration, self.preparation.recording, self.preparation.model
        samples = self.preparation.samples(cutoff_hz)
        load = load_bodies(model, configuration.robot.loads, recording.name)
        if load.any() and configuration.identify.equations != "force":
            raise ModelError("robot.loads: loads are known to equations of force only; drop them")
        return without_load(model, load, samples)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """The same with all findings on the recording, and the noise of the efforts.

        Raises
        ------
        ModelError
            A load of the recording is known, and the equations are not those of force.
        RecordingError
            The recording cannot be used, or does not belong to this robot.
        """
        samples, configuration = self.prepared(cutoff_hz), self.configuration
        # Efforts whose gains are to be found are checked with these, see LoadedRecordings.
        efforts = configuration.prepare.check_efforts and not configuration.identify.drive_gains
        checked = check_efforts(samples, self.preparation.model) if efforts else ()
        findings = (*samples.findings, *self.findings, *checked)
        refuse(findings)
        noise = None if self.noise is None else self.noise.below(samples.cutoff_hz)
        return replace(samples, findings=findings, effort_noise=noise)


def screened(
    recordings: Sequence[Recording], model: RobotModel, configuration: Configuration
) -> list[ScreenedRecording]:
    """Screen recordings; raises RecordingError for the first that does not belong to this robot."""
    return [ScreenedRecording.of(recording, model, configuration) for recording in recordings]


def cutoff_of(
    recordings: Sequence[ScreenedRecording], others: Sequence[ScreenedRecording] = (), fitted_hz: float = 0.0
) -> float:
    """The one cutoff [Hz] that all recordings of a result are filtered with.

    Parameters
    ----------
    recordings : sequence of ScreenedRecording
        Those from which the cutoff is chosen; the configured one goes before all others.
    others : sequence of ScreenedRecording
        Recordings that will be filtered alike; the cutoff suits their sample rates.
    fitted_hz : float
        Cutoff with which a result was identified [Hz], where there is one; it goes before what recordings suggest.

    Raises
    ------
    RecordingError
        A recording cannot be used.
    """
    configured = recordings[0].configuration.prepare.cutoff_hz
    if fitted_hz and not configured:
        return fitted_hz
    return common_cutoff(
        [each.preparation for each in recordings], [other.preparation.recording for other in others]
    )
