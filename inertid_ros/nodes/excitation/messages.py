"""Outcome, progress and plan of the excitation node as messages."""

from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.excitation.execution.supervisor import ExecutionProgress, ExecutionStage
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.conversions import TrajectoryArrays, to_joint_trajectory

from .goal import Ending, GoalOutcome

_STATES = {
    ExecutionStage.APPROACHING: ExcitationStatus.APPROACHING,
    ExecutionStage.MOVING: ExcitationStatus.MOVING,
    ExecutionStage.STOPPING: ExcitationStatus.STOPPING,
}
_ERROR_CODES = {
    Ending.SUCCEEDED: Excite.Result.SUCCEEDED,
    Ending.CANCELED: Excite.Result.CANCELED,
    Ending.REFUSED: Excite.Result.REFUSED,
    Ending.STOPPED: Excite.Result.STOPPED,
}


def to_result(outcome: GoalOutcome) -> Excite.Result:
    """Return the result of the action ``Excite``."""
    return Excite.Result(
        error_code=_ERROR_CODES[outcome.ending],
        message=outcome.message,
        condition_number=outcome.condition_number,
        duration=float(outcome.duration),
        max_tracking_error=float(outcome.max_tracking_error),
    )


def to_status(progress: ExecutionProgress, fault: str, joint_names: tuple[str, ...]) -> ExcitationStatus:
    """Return the status, without its stamp, while a motion is executed; ``fault`` is what stopped it, if anything."""
    return ExcitationStatus(
        state=_STATES[progress.stage],
        message=fault or progress.stage.value,
        fraction=float(progress.fraction),
        joint_names=list(joint_names),
        tracking_error=progress.tracking_error.tolist(),
    )


def to_plan_message(plan: Plan, stamp: Time) -> JointTrajectory:
    """Return a plan as a trajectory that begins at a stamp."""
    arrays = TrajectoryArrays(plan.joint_names, plan.time, plan.position, plan.velocity, plan.acceleration)
    return to_joint_trajectory(arrays, stamp)
