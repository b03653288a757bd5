"""Messages of the excitation node: feedback, result, status, paths in RViz and diagnostics."""

from collections.abc import Mapping

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from inertid_ros.action import Excite
from inertid_ros.calibration.planning import PreparationProgress
from inertid_ros.config.nodes import ExcitationNodeOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.execution.horizons import ExecutionProgress
from inertid_ros.excitation.execution.plan_check import is_full_speed
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, judged

from .goal import ExcitationGoal, GoalOutcome, GoalState
from .robot_interface import RobotInterface
from .state_machine import State, StateMachine

_PATH_COLOR = ColorRGBA(r=0.9, g=0.5, b=0.1, a=0.9)
_PATH_WIDTH_M = 0.005
_STATUS_CONSTANTS = {
    State.UNCONFIGURED: ExcitationStatus.UNARMED,
    State.INACTIVE: ExcitationStatus.UNARMED,
    State.ARMED: ExcitationStatus.READY,
    State.PLANNING: ExcitationStatus.PLANNING,
    State.APPROACHING: ExcitationStatus.APPROACHING,
    State.MOVING: ExcitationStatus.MOVING,
    State.STOPPING: ExcitationStatus.STOPPING,
    State.WAITING: ExcitationStatus.WAITING,
    State.FAULT: ExcitationStatus.LATCHED,
    State.FINALIZED: ExcitationStatus.UNARMED}


def to_feedback(goal: ExcitationGoal) -> Excite.Feedback:
    """Return the feedback of the action ``Excite``; ``stage`` is empty before planning."""
    progress, prepared = goal.progress, goal.prepared
    feedback = Excite.Feedback(condition_number=np.nan, closest=np.nan, required=np.nan)
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
        error_code=getattr(Excite.Result, outcome.ending.name), message=outcome.message,
        condition_number=outcome.condition_number, duration=float(outcome.duration),
        max_tracking_error=float(outcome.max_tracking_error))


def to_status(machine: StateMachine) -> ExcitationStatus:
    """Return the status without its stamp."""
    status = ExcitationStatus(state=_STATUS_CONSTANTS[machine.state], message=machine.message)
    supervisor, progress = machine.supervisor, machine.progress
    if supervisor is not None and isinstance(progress, ExecutionProgress):
        status.fraction = float(progress.fraction)
        status.joint_names = list(supervisor.monitor.joint_names)
        status.tracking_error = progress.tracking_error.tolist()
    return status


def path_markers(paths: Mapping[str, Array], frame: str, stamp: Time) -> MarkerArray:
    """Return an RViz line for each path ``(N, 3)`` [m] in a frame; its key is the moving link's name."""
    markers = []
    for name, points in paths.items():
        marker = Marker(ns=name, type=Marker.LINE_STRIP, action=Marker.ADD, color=_PATH_COLOR)
        marker.header.frame_id, marker.header.stamp = frame, stamp
        marker.scale.x = _PATH_WIDTH_M
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]
        markers.append(marker)
    return MarkerArray(markers=markers)


def motion_status(machine: StateMachine, now: float) -> Status:
    """Status of the motion and its last fault; ``now`` is the time of the steady clock [s]."""
    supervisor = machine.supervisor
    progress = supervisor.progress(now) if supervisor is not None else None
    fault = supervisor.fault if supervisor is not None else ""
    latched = machine.message if machine.state is State.FAULT else ""
    rejected = sum(supervisor.monitor.counts.rejected.values()) if supervisor is not None else None
    values = {
        "State": machine.state.value,
        "Done (%)": None if progress is None else 100.0 * float(progress.fraction),
        "Largest tracking error (rad or m)": None if progress is None else float(np.abs(progress.tracking_error).max()),
        "Joint states rejected in motion": rejected,
        "Last fault": fault or machine.last_fault}
    return judged("motion", values, (ERROR, latched), (ERROR, fault), otherwise=machine.message)


def controller_status(robot: RobotInterface, options: ExcitationNodeOptions, armed: bool) -> Status:
    """Status of the controller; a missing controller is an error only while the node is armed."""
    configured, scaling = robot.is_configured, robot.speed_scaling
    problem = robot.controller_problem() if configured else ""
    slow = "" if is_full_speed(scaling) else f"speed scaling is {100 * scaling:.0f} %; set it to 100 %"
    values = {
        "Command interface": options.command_interface,
        "Topic or action": robot.commander.name if configured else None,
        "Discovered": robot.has_controller,
        "Path tolerance (rad or m)": robot.manager.tolerance,
        "Speed scaling (%)": 100.0 * scaling}
    return judged(
        "controller", values,
        (STALE, "" if configured else "not configured"),
        (ERROR if armed else WARN, problem),
        (WARN, slow),
        otherwise="commands arrive")
