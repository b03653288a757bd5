"""Known loads of recordings, and the gains of drives that they determine."""

from dataclasses import replace

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.screening.channel_checks import refuse
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.drive_gains import DriveGains, drive_gains, effort_products
from inertid_ros.regressors.equations import equations_of
from inertid_ros.regressors.force_equations import with_gains
from inertid_ros.robot.body_changes import load_bodies

from .dataset import TRAIN, Dataset, ScreenedRecording


def with_drive_gains(dataset: Dataset) -> tuple[Dataset, DriveGains]:
    """Find the gains of the drives in the recordings to fit, and multiply the efforts of all recordings by them.

    Raises
    ------
    IdentificationError
        All have the same load, or the equations are not those of joint torques.
    RecordingError
        Efforts are not those of this robot, whatever the gains.
    """
    model, configuration = dataset.model, dataset.configuration
    equations = equations_of(model, configuration.identify.equations)
    gains = drive_gains(equations, dataset.samples(TRAIN), [_load(part) for part in dataset.parts(TRAIN)])

    def scaled(part: ScreenedRecording, samples: Samples) -> Samples:
        samples = with_gains(model, gains.values, _load(part), samples)
        if not configuration.prepare.check_efforts:
            return samples
        findings = check_efforts(samples, model)
        refuse(findings)
        return replace(samples, findings=(*samples.findings, *findings))

    scale = dict(zip(model.joint_names, (model.effort_scale * gains.values).tolist(), strict=True))
    scaled_model = replace(model, options=replace(model.options, effort_scale=scale))
    return replace(dataset.changed(scaled), model=scaled_model), gains


def with_gain_uncertainty(estimate: Estimate, gains: DriveGains, dataset: Dataset) -> Estimate:
    """Add the uncertainty of the gains to the covariance of an estimate."""
    loads = [_load(part) for part in dataset.parts(TRAIN)]
    return gains.widened(estimate, effort_products(estimate.equations, dataset.samples(TRAIN), loads))


def _load(part: ScreenedRecording) -> Array:
    preparation = part.preparation
    return load_bodies(preparation.model, part.configuration.robot.loads, preparation.recording.name)
