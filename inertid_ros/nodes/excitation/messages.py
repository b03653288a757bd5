"""Progress, outcomes, status and plans of the excitation node as messages."""

import numpy as np
from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.app.excitation_job import PreparationProgress
from inertid_ros.excitation.execution.execution_progress import ExecutionProgress
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.conversions import TrajectoryArrays, to_joint_trajectory

from .goal import GoalOutcome
from .state_machine import State, StateMachine

_NAN = float("nan")
_STATUS = {
    State.UNCONFIGURED: ExcitationStatus.UNARMED,
    State.INACTIVE: ExcitationStatus.UNARMED,
    State.ARMED: ExcitationStatus.READY,
    State.PLANNING: ExcitationStatus.PLANNING,
    State.APPROACHING: ExcitationStatus.APPROACHING,
    State.MOVING: ExcitationStatus.MOVING,
    State.STOPPING: ExcitationStatus.STOPPING,
    State.WAITING: ExcitationStatus.WAITING,
    State.FAULT: ExcitationStatus.LATCHED,
    State.FINALIZED: ExcitationStatus.UNARMED,
}


def to_feedback(progress: PreparationProgress | ExecutionProgress | None) -> Excite.Feedback:
    """Return the feedback of the action ``Excite``; None, before anything is planned, has no stage."""
    if progress is None:
        return Excite.Feedback(condition_number=_NAN)
    if isinstance(progress, PreparationProgress):
        return Excite.Feedback(
            stage="planning",
            fraction=float(progress.fraction),
            condition_number=float(progress.condition_number),
        )
    return Excite.Feedback(
        stage=progress.stage.value,
        fraction=float(progress.fraction),
        condition_number=_NAN,
        tracking_error=float(np.abs(progress.tracking_error).max()),
    )


def to_result(outcome: GoalOutcome) -> Excite.Result:
    """Return the result of the action ``Excite``."""
    return Excite.Result(
        error_code=getattr(Excite.Result, outcome.ending.name),
        message=outcome.message,
        condition_number=outcome.condition_number,
        duration=float(outcome.duration),
        max_tracking_error=float(outcome.max_tracking_error),
    )


def to_status(machine: StateMachine) -> ExcitationStatus:
    """Return the status without its stamp."""
    status = ExcitationStatus(state=_STATUS[machine.state], message=machine.message)
    supervisor, progress = machine.supervisor, machine.progress
    if supervisor is not None and isinstance(progress, ExecutionProgress):
        status.fraction = float(progress.fraction)
        status.joint_names = list(supervisor.monitor.joint_names)
        status.tracking_error = progress.tracking_error.tolist()
    return status


def to_plan_message(plan: Plan, stamp: Time) -> JointTrajectory:
    """Return a plan as a trajectory that begins at a stamp."""
    arrays = TrajectoryArrays(plan.joint_names, plan.time, plan.position, plan.velocity, plan.acceleration)
    return to_joint_trajectory(arrays, stamp)
