"""Progress, outcomes, status and plans of the excitation node as messages."""

import numpy as np
from builtin_interfaces.msg import Time
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.app.excitation_job import PreparationProgress
from inertid_ros.excitation.execution.supervisor import ExecutionProgress, Supervisor
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.conversions import TrajectoryArrays, to_joint_trajectory

from .arming import Arming
from .goal import GoalOutcome

_NAN = float("nan")


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
        return ExcitationStatus(state=getattr(ExcitationStatus, arming.state.name), message=arming.message)
    progress = supervisor.progress(now)
    return ExcitationStatus(
        state=getattr(ExcitationStatus, progress.stage.name),
        message=supervisor.fault or progress.stage.value,
        fraction=float(progress.fraction),
        joint_names=list(supervisor.monitor.joint_names),
        tracking_error=progress.tracking_error.tolist(),
    )


def to_plan_message(plan: Plan, stamp: Time) -> JointTrajectory:
    """Return a plan as a trajectory that begins at a stamp."""
    arrays = TrajectoryArrays(plan.joint_names, plan.time, plan.position, plan.velocity, plan.acceleration)
    return to_joint_trajectory(arrays, stamp)
