"""What a result directory gives to the planner of the next motion: the robot's model and the information so far."""

from pathlib import Path

from inertid_ros.core.errors import ModelError
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation, earlier_information
from inertid_ros.report.results import read_result
from inertid_ros.robot.model import RobotModel


def earlier_result(directory: str | Path, model: RobotModel) -> tuple[RobotModel, EarlierInformation]:
    """Read a result directory for a robot.

    Returns
    -------
    model : RobotModel
        Model by which efforts are predicted: the calibrated one, or that of the URDF where the result was rejected.
    information : EarlierInformation
        Information of its recordings.

    Raises
    ------
    InertidError
        The directory holds no result or no information, or a result of another robot or of other drive terms.
    """
    result = read_result(directory)
    if result.model.joint_names != model.joint_names or result.model.hash != model.hash:
        raise ModelError(f"{directory}: is of another robot, or has other joints locked; give the result of this one")
    report = result.report
    recordings = report["provenance"]["recordings"]
    seconds = sum(recording["seconds"] for recording in recordings if recording["role"] == "train")
    information = earlier_information(
        model, result.information, report["residual_deviation"], report["effective_samples"], seconds
    )
    return (model if report.get("status") == "rejected" else result.model), information
