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

from .goal import ExcitationGoal, GoalOutcome, GoalState
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


def to_feedback(goal: ExcitationGoal) -> Excite.Feedback:
    """Return the feedback of the action ``Excite``; it has no stage before anything is planned."""
    progress, prepared = goal.progress, goal.prepared
    feedback = Excite.Feedback(condition_number=_NAN, closest=_NAN, required=_NAN)
    if isinstance(progress, PreparationProgress):
        feedback.stage = "planning"
        feedback.condition_number = float(progress.condition_number)
    elif isinstance(progress, ExecutionProgress):
        feedback.stage = progress.stage.value
        feedback.tracking_error = float(np.abs(progress.tracking_error).max())
    elif prepared is not None:
        feedback.stage = "planned" if goal.state is GoalState.CONFIRMING else "planning"
        feedback.fraction = 1.0
    if progress is not None:
        feedback.fraction = float(progress.fraction)
    if prepared is not None:
        feedback.plan = prepared.summary
    if prepared is not None and prepared.clearance is not None:
        feedback.closest, feedback.required = prepared.clearance.closest_m, prepared.clearance.required_m
    return feedback


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
