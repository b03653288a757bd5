"""What a result directory tells the planner of the next motion: what is known already, and of which robot."""

from dataclasses import dataclass
from pathlib import Path

from inertid_ros.core.errors import ModelError
from inertid_ros.excitation.criteria.known_information import KnownInformation, known_information
from inertid_ros.report.results import StoredResult, read_result
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class Earlier:
    """What an earlier identification gives to a plan.

    Attributes
    ----------
    model: with the inertia to work out efforts by: the calibrated one, or that of the URDF where the result was
        rejected.
    known: what its recordings said.
    """

    model: RobotModel
    known: KnownInformation


def earlier(directory: str | Path, model: RobotModel) -> Earlier:
    """Read a result directory for a robot.

    Raises
    ------
    InertidError: it is no result, has no information, or is of another robot or other drive terms.
    """
    result = read_result(directory)
    if result.model.joint_names != model.joint_names or result.model.hash != model.hash:
        raise ModelError(f"{directory}: is of another robot, or has other joints locked; give the result of this one")
    rejected = result.report.get("status") == "rejected"
    return Earlier(model if rejected else result.model, _known(result, model))


def _known(result: StoredResult, model: RobotModel) -> KnownInformation:
    report = result.report
    recordings = report["provenance"]["recordings"]
    seconds = sum(entry["seconds"] for entry in recordings if entry["role"] == "train")
    return known_information(
        model, result.information, report["residual_deviation"], report["effective_samples"], seconds
    )
