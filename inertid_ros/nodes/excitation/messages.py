"""Requests, outcomes, status and plans of the excitation node as messages."""

from dataclasses import fields

from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.excitation.execution.supervisor import ExecutionStage, Supervisor
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.conversions import TrajectoryArrays, to_joint_trajectory

from .arming import Arming, ArmingState
from .request import Ending, ExcitationRequest, GoalOutcome

_ARMING_STATES = {
    ArmingState.UNARMED: ExcitationStatus.UNARMED,
    ArmingState.READY: ExcitationStatus.READY,
    ArmingState.PLANNING: ExcitationStatus.PLANNING,
    ArmingState.LATCHED: ExcitationStatus.LATCHED,
}
_STAGES = {
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


def from_goal(goal: Excite.Goal) -> ExcitationRequest:
    """Return what a goal of the action ``Excite`` asks for."""
    return ExcitationRequest(**{field.name: getattr(goal, field.name) for field in fields(ExcitationRequest)})


def to_result(outcome: GoalOutcome) -> Excite.Result:
    """Return the result of the action ``Excite``."""
    return Excite.Result(
        error_code=_ERROR_CODES[outcome.ending],
        message=outcome.message,
        condition_number=outcome.condition_number,
        duration=float(outcome.duration),
        max_tracking_error=float(outcome.max_tracking_error),
    )


def to_status(arming: Arming, supervisor: Supervisor | None, now: float) -> ExcitationStatus:
    """Return the status without its stamp.

    Parameters
    ----------
    arming : Arming
    supervisor : Supervisor or None
        Of the motion that is being executed.
    now : float
        Steady clock [s].
    """
    if supervisor is None:
        return ExcitationStatus(state=_ARMING_STATES[arming.state], message=arming.message)
    progress = supervisor.progress(now)
    return ExcitationStatus(
        state=_STAGES[progress.stage],
        message=supervisor.fault or progress.stage.value,
        fraction=float(progress.fraction),
        joint_names=list(supervisor.monitor.joint_names),
        tracking_error=progress.tracking_error.tolist(),
    )


def to_plan_message(plan: Plan, stamp: Time) -> JointTrajectory:
    """Return a plan as a trajectory that begins at a stamp."""
    arrays = TrajectoryArrays(plan.joint_names, plan.time, plan.position, plan.velocity, plan.acceleration)
    return to_joint_trajectory(arrays, stamp)
