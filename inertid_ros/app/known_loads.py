"""Known loads of recordings, and the gains of drives that they determine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_checks import refuse
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.drive_gains import DriveGains, drive_gains, effort_products
from inertid_ros.regressors.equations import equations_of
from inertid_ros.regressors.force_equations import with_gains
from inertid_ros.robot.body_changes import load_bodies
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class LoadedRecordings:
    """Samples of recordings whose efforts the gains of the drives make right.

    Attributes
    ----------
    model : RobotModel
        With the gains in its ``effort_scale``.
    samples : tuple of Samples
        Of all recordings, efforts multiplied by the gains.
    loads : tuple of ndarray, shape (nb, 10)
        Of all recordings.
    gains : DriveGains
        Found in those that are fitted, which come first.
    """

    model: RobotModel
    samples: tuple[Samples, ...]
    loads: tuple[Array, ...]
    gains: DriveGains

    @classmethod
    def of(
        cls,
        model: RobotModel,
        recordings: Sequence[Recording],
        samples: Sequence[Samples],
        fitted: int,
        configuration: Configuration,
    ) -> "LoadedRecordings":
        """Find the gains in the first ``fitted`` recordings and apply them to all.

        Raises
        ------
        IdentificationError
            All have the same load, or the equations are not those of joint torques.
        RecordingError
            Efforts are not those of this robot, whatever the gains.
        """
        loads = tuple(load_bodies(model, configuration.robot.loads, recording.name) for recording in recordings)
        equations = equations_of(model, configuration.identify.equations)
        gains = drive_gains(equations, samples[:fitted], loads[:fitted])
        scale = dict(zip(model.joint_names, (model.effort_scale * gains.values).tolist(), strict=True))
        scaled = [with_gains(model, gains.values, *each) for each in zip(loads, samples, strict=True)]
        if configuration.prepare.check_efforts:
            scaled = [_checked(each, model) for each in scaled]
        return cls(replace(model, options=replace(model.options, effort_scale=scale)), tuple(scaled), loads, gains)

    def widened(self, estimate: Estimate, fitted: Sequence[Samples]) -> Estimate:
        """An estimate of these samples, with the uncertainty of the gains in its covariance."""
        products = effort_products(estimate.equations, fitted, self.loads[: len(fitted)])
        return self.gains.widened(estimate, products)


def _checked(samples: Samples, model: RobotModel) -> Samples:
    """Samples with findings on their efforts."""
    findings = check_efforts(samples, model)
    refuse(findings)
    return replace(samples, findings=(*samples.findings, *findings))
