"""Read an earlier result for the plan of the next motion and for the next identification."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.data.recording import Recording
from inertid_ros.identification.continuation import EarlierFit
from inertid_ros.identification.information.information import (
    EarlierEquations,
    EarlierInformation,
    earlier_information,
)
from inertid_ros.identification.provenance import EarlierSource, checksum, file_checksum
from inertid_ros.report.results import PARAMETERS, REPORT, Result, ResultError, as_written
from inertid_ros.robot.model import RobotModel


def earlier_result(directory: str | Path, model: RobotModel) -> tuple[RobotModel, EarlierInformation]:
    """Read a result directory for the planner of a robot's next motion.

    Returns the model of the result (or ``model`` if the result was rejected), whose bodies predict efforts, and the
    information of the recordings. InertidError: the result or its information is missing, or belongs to another robot
    or to other drive terms.
    """
    result = _result_of(directory, model)
    report = result.report
    fitted_speeds = result.information.layout.stribeck_speeds
    model = model.with_layout(terms=result.model.layout.terms, stribeck_speeds=fitted_speeds)
    with as_written(result.directory / REPORT):
        recordings = report["provenance"]["recordings"]
        seconds = sum(recording["seconds"] for recording in recordings if recording["role"] == "train")
        information = earlier_information(model, result.information, report["residual_deviation"],
            report["effective_samples"], seconds)
    return (model if result.rejected else result.model), information


def earlier_fit(directory: str | Path, model: RobotModel,
        recordings: Sequence[Recording]) -> tuple[EarlierFit, EarlierSource]:
    """Read a result directory, to continue its identification with new ``recordings``, fitted and held out.

    InertidError: the result is missing, was rejected, belongs to another robot, or was fitted to one of ``recordings``,
    which would then count twice or would not be held out.
    """
    result = _result_of(directory, model)
    report = result.report
    if result.rejected:
        message = report.get("message")
        raise ResultError(f"{directory}: was rejected and cannot be a prior ({message}); continue a good result")
    with as_written(result.directory / REPORT):
        provenance = report["provenance"]
        before = provenance.get("earlier") or {"recordings": {}}
        source = EarlierSource(directory=str(result.directory), sha256=file_checksum(result.directory / PARAMETERS),
            created=provenance["created"], recordings={**before["recordings"], **result.fitted_recordings})
    for recording in recordings:
        name = source.recordings.get(checksum(recording))
        if name is not None:
            raise RecordingError(
                f"{recording.name}: is part of the earlier result already ({directory}, as {name}), and would count"
                " twice; give new recordings")
    information = result.information
    with as_written(result.directory / REPORT):
        share = np.asarray(report["effective_samples"], dtype=float) / np.maximum(information.counts, 1)
        R, z = information.whitened(np.sqrt(share) / np.asarray(report["residual_deviation"], dtype=float))
        prior_spread = float(report["solver"]["prior_spread"])
    equations = EarlierEquations(R, z)
    estimate = (result.prior, result.parameters, result.covariance)
    return EarlierFit(information.layout, information.robot, equations, *estimate, prior_spread), source


def _result_of(directory: str | Path, model: RobotModel) -> Result:
    result = Result.load(directory)
    if result.model.joint_names != model.joint_names or result.model.hash != model.hash:
        raise ModelError(f"{directory}: is of another robot or has other locked joints; give a result of this robot")
    return result
