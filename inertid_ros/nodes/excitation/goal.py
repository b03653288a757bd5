"""ExcitationGoal: one goal of the excitation node, from the request until the robot is at rest, without ROS."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import attrs
import numpy as np

from inertid_ros.calibration.planning import ExcitationJob, PreparationProgress, PreparedMotion, prepare_motion
from inertid_ros.config.nodes import MotionOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, InertidError
from inertid_ros.core.worker import Standby, Worker
from inertid_ros.excitation.execution.horizons import ExecutionProgress
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.plan_check import check_start, is_full_speed
from inertid_ros.excitation.execution.supervisor import Supervisor

if TYPE_CHECKING:  # ROS types; the state machine runs without ROS
    from inertid_ros.action import Excite

    from .robot_interface import RobotInterface

_START_TOLERANCE = 0.01  # allowed motion of the robot during planning [rad or m]
_NO_CONTROLLER_STATE = (
    "the controller publishes no state, so that a speed scaling that its driver does not report is found late; set the"
    " parameter controller to the controller's name")
_MAX_TICK_GAP_S = 0.1  # a longer gap means that this thread was blocked; the excess does not count as waiting time

PlanningWorker = Worker[PreparationProgress, PreparedMotion]


class GoalState(Enum):
    """Step of a goal."""

    COLLECTING = "collecting"  # joint states, and the recorder's status if needed, before planning
    PLANNING = "planning"  # in another process
    CONFIRMING = "confirming"  # planned; waits for an operator's confirmation
    CHECKING = "checking"  # joint states are collected again for the last checks
    EXECUTING = "executing"  # the robot moves
    ENDED = "ended"  # the robot is at rest


class Ending(Enum):
    """Kind of a goal's ending."""

    SUCCEEDED = "succeeded"
    CANCELED = "canceled"  # stopped on request
    REFUSED = "refused"  # before any motion
    STOPPED = "stopped"  # a fault stopped the motion


@dataclass(frozen=True)
class GoalOutcome:
    """Outcome of a goal; ``message`` is one line with the event and the remedy."""

    ending: Ending
    message: str
    fault: str = ""  # the fault that stopped the motion
    condition_number: float = float("nan")  # condition number of the base regressor along the plan
    duration: float = 0.0  # duration of the motion with its approach [s]; 0 without motion
    max_tracking_error: float = float("nan")  # over all joints [rad or m]; NaN without motion


class Planning:
    """Prepares motions in another process; the process for the next motion is started in advance."""

    def __init__(self) -> None:
        self._standby = Standby(prepare_motion.__module__)

    def __call__(self, job: ExcitationJob) -> PlanningWorker:
        """Begin to prepare a motion."""
        process, timeout = self._standby.take(), 10 * job.excitation.time_limit_s
        return Worker("planning", prepare_motion, (job,), timeout, process)

    def make_ready(self) -> None:
        """Start the process for the next motion; to be called while the robot rests."""
        self._standby.prepare()


class ExcitationGoal:
    """The steps of one goal. ``planner`` starts a process for planning; all other steps run in :meth:`tick`.

    Attributes
    ----------
    outcome : GoalOutcome
        Valid once the goal has ended.
    prepared : PreparedMotion or None
        The planned motion; None until planning has ended.
    supervisor : Supervisor or None
        Supervisor of the motion; None until the motion begins.
    lease : Lease
        The client's lease; its renewal keeps the goal active. If the lease has expired when the plan is ready, the goal
        ends without a motion.
    """

    def __init__(
            self, request: "Excite.Goal", options: MotionOptions, robot_options: RobotOptions, robot: "RobotInterface",
            planner: Callable[[ExcitationJob], PlanningWorker]) -> None:
        self.state = GoalState.COLLECTING
        self.outcome = GoalOutcome(Ending.REFUSED, "not ended yet")
        self.prepared: PreparedMotion | None = None
        self.supervisor: Supervisor | None = None
        self._request, self._options, self._robot_options = request, options, robot_options
        self._robot, self._planner = robot, planner
        self._worker: PlanningWorker | None = None
        self.lease = Lease(options.monitor.lease_timeout_s, robot.steady(), request.lease)
        self._ticked = -np.inf
        self._collect()

    @property
    def progress(self) -> PreparationProgress | ExecutionProgress | None:
        """Progress of planning or execution; None before planning."""
        if self.supervisor is not None:
            return self.supervisor.progress(self._robot.steady())
        return self._worker.progress if self._worker is not None else None

    def stop(self, reason: str) -> None:
        """Brake now because of a fault; if the motion has not begun, end the goal."""
        if self.supervisor is not None:
            self.supervisor.stop(self._robot.steady(), reason)
        else:
            self._end(GoalOutcome(Ending.REFUSED, f"{reason} (the robot did not move)"))

    def excessive_rate(self, velocity: Array, twist: Array) -> str:
        """Reason to stop because a wheel or the floating base moves too fast, or empty.

        Arguments are the measured velocities of the joints ``(n,)`` and the twist of the base ``(6,)``, NaN if unknown.
        """
        robot, options = self._robot.model, self._options.monitor
        for name, speed, limit in zip(robot.joint_names, np.abs(velocity), robot.limits.velocity, strict=True):
            if name in self._robot_options.wheels and speed > options.wheel_speed * limit:
                return (
                    f"wheel '{name}' turns at {speed:.3g} rad/s, more than {options.wheel_speed * limit:.3g}; slow the"
                    " wheels down before the next motion, or lower excitation.combinations.wheel_range")
        rates = ("speed", twist[:3], "m/s", options.base_speed), ("rate", twist[3:], "rad/s", options.base_rate)
        for key, part, unit, limit in rates:
            size = float(np.linalg.norm(part))
            if np.isfinite(limit) and np.isnan(size):
                return "the twist of the base is not received; check the topic odometry"
            if size > limit:
                return f"the base moves at {size:.3g} {unit}, more than monitor.base_{key} {limit:g}; move slower"
        return ""

    def take_halt(self, halt: str) -> None:
        """Process ``halt``, the reason why the controller itself stopped and holds the robot; empty if it did not."""
        if self.supervisor is not None and halt != self.supervisor.halt:
            self.supervisor.halt = halt
            if self.supervisor.moving:
                self.stop(halt)

    def go(self) -> bool:
        """Confirm the planned motion; return False if no motion waits for confirmation."""
        if self.state is not GoalState.CONFIRMING:
            return False
        self.state = GoalState.CHECKING
        self._collect()
        return True

    def tick(self, cancel: bool) -> GoalState:
        """Take the next step if one is due, and return the new state; to be called every few milliseconds.

        ``cancel`` is True if the client has requested the end of the goal.
        """
        now = self._robot.steady()
        if self.supervisor is not None:
            if self.state is not GoalState.ENDED and self.supervisor.tick(now, cancel):
                self._end_of_motion(self.supervisor, now)
        elif self.state is not GoalState.ENDED:
            try:
                if cancel:
                    self._end(GoalOutcome(Ending.CANCELED, "canceled; the robot did not move"))
                elif self._worker is not None:
                    self._poll_planning(self._worker)
                elif self.state is GoalState.CONFIRMING:
                    if silence := self.lease.check(now):
                        raise ExcitationError(silence)
                elif self._collected(now):
                    if self.prepared is None:
                        self._plan()
                    else:
                        self._begin(self.prepared)
            except InertidError as error:
                self._end(GoalOutcome(Ending.REFUSED, f"{error} (the robot did not move)"))
        return self.state

    # Before planning

    def _collect(self) -> None:
        self._collecting_since, self._waited = self._robot.steady(), 0.0

    def _collected(self, now: float) -> bool:
        """Return True if all needed nodes are discovered and the joint states are valid, or after the time limit."""
        elapsed = min(max(now - self._ticked, 0.0), _MAX_TICK_GAP_S)  # negative after simulated time went back
        self._waited, self._ticked = self._waited + elapsed, now
        self._collecting_since = min(self._collecting_since, now)
        is_ready = self._has_discovered and self._robot.has_states and self._states_are_good
        return is_ready or self._waited > self._options.discovery_s

    @property
    def _states_are_good(self) -> bool:
        try:
            self._robot.check_states(self._options.monitor)
        except ExcitationError:  # reported only after the time limit
            return False
        return True

    @property
    def _has_discovered(self) -> bool:
        """True if all nodes that a motion needs are discovered, which takes seconds on some networks.

        A driver or recorder that was started again takes time, too: the ROS graph still lists the former driver, and
        the last status may be the former recorder's.
        """
        robot = self._robot
        has_recorder = not self._needs_recorder or robot.recorder_writes
        has_controller = robot.has_controller or self._request.plan_only
        return robot.has_driver and has_recorder and has_controller and not robot.several_publishers()

    @property
    def _needs_recorder(self) -> bool:
        return self._options.require_recorder and not self._request.plan_only

    def _plan(self) -> None:
        """Check the request and the robot, then start planning."""
        request = self._request
        self._robot.commander.begin()
        if not 0 <= request.speed_scale <= 1:
            raise ExcitationError(f"speed_scale is {request.speed_scale:g}; give a value above 0, at most 1")
        if not 0 <= request.duration < np.inf:
            raise ExcitationError(f"duration is {request.duration:g} s; give a positive value, or 0 for the parameter")
        self._check_robot()
        self._worker = self._planner(self._job())
        self.state = GoalState.PLANNING

    def _check_robot(self) -> None:
        if several := self._robot.several_publishers():  # alternating states of two robots look like motion
            raise ExcitationError(several)
        self._robot.check_states(self._options.monitor)
        if self._request.plan_only:
            return
        if problem := self._robot.interference():
            raise ExcitationError(problem)
        if not is_full_speed(scaling := self._robot.speed_scaling):
            raise ExcitationError(
                f"the controller's speed scaling is {100 * scaling:.0f} %; set it to 100 %, and give the goal's"
                " speed_scale to move slower")
        if self._needs_recorder:
            self._robot.check_recorder()

    def _job(self) -> ExcitationJob:
        request, options = self._request, self._options.excitation
        options = options.held_out if request.held_out else options
        options = attrs.evolve(
            options, kind=request.motion or options.kind, duration_s=request.duration or options.duration_s,
            seed=request.seed or options.seed)
        robot, start = self._robot, np.array(self._options.start) if self._options.start else None
        return ExcitationJob(
            urdf=robot.model.urdf, measured_position=robot.position(), start=start, plan_file=request.plan_file,
            speed_scale=request.speed_scale or 1.0, prior=request.prior, robot=self._robot_options,
            limits=self._options.limits, excitation=options, execution=self._options.execution,
            folder=robot.model.folder)

    # From the plan to the motion

    def _poll_planning(self, worker: PlanningWorker) -> None:
        if not worker.poll():
            return
        self._worker = None
        self.prepared = worker.result()
        if self._request.plan_only:
            message = f"planned {self.prepared.plan.duration:.1f} s; the robot did not move"
            self._end(GoalOutcome(Ending.SUCCEEDED, message))
            return
        self.state = GoalState.CONFIRMING
        if not self._request.confirm:
            self.go()  # collects joint states again, as the transfer of a large plan may have blocked this thread

    def _begin(self, prepared: PreparedMotion) -> None:
        """Check for the last time, then send the first horizon."""
        robot = self._robot
        silence = self.lease.check(robot.steady())
        if silence and robot.steady() < self._collecting_since + self._options.monitor.lease_timeout_s:
            return  # lease renewals that came during the transfer of a large plan are not read yet
        if silence:
            raise ExcitationError(silence)
        self._check_robot()
        check_start(prepared.table.plan, robot.position(), _START_TOLERANCE)
        names, now = robot.model.joint_names, robot.steady()
        options = self._options.monitor
        if robot.commander.streams and not options.state_timeout_s:  # streamed positions do not end at rest
            options = attrs.evolve(options, state_timeout_s=self._options.execution.horizon_s)
        # A wheel at its largest speed counts as a joint at 1 rad/s.
        wheels = np.isin(names, tuple(self._robot_options.wheels))
        units = np.where(wheels, prepared.table.plan.limits.velocity, 1.0)
        monitor = StateMonitor(names, robot.model.limits, options, now, units)
        self.supervisor = Supervisor(prepared.table, monitor, self.lease, robot.commander, prepared.approach_s)
        self.state = GoalState.EXECUTING
        self.supervisor.start(now, robot.clock_ahead())

    def _end_of_motion(self, supervisor: Supervisor, now: float) -> None:
        error, fault = supervisor.max_tracking_error, supervisor.fault
        if fault:
            arm = f"ros2 lifecycle set {self._robot.node_name} deactivate, then activate, or start calibrate again"
            ending, message = Ending.STOPPED, f"{fault}; arm again before the next goal: {arm}"
        elif supervisor.canceled:
            ending, message = Ending.CANCELED, "canceled; the robot is at rest"
        else:
            ending, message = Ending.SUCCEEDED, f"done; largest tracking error {error:.4g}{_waits(supervisor)}"
        self._end(GoalOutcome(ending, message, fault, duration=supervisor.duration(now), max_tracking_error=error))

    def _end(self, outcome: GoalOutcome) -> None:
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        if self.prepared is not None:
            lines = [outcome.message, *map(str, self.prepared.findings)]
            if not (self._robot.commander.streams or self._robot.has_controller_state):
                lines.append(_NO_CONTROLLER_STATE)
            condition = float(self.prepared.plan.condition_number)
            outcome = replace(outcome, condition_number=condition, message="; warning: ".join(lines))
        self.outcome, self.state = outcome, GoalState.ENDED


def _waits(supervisor: Supervisor) -> str:
    """Return a text on the number of waits at rest and the longest gap of the states; empty without waits."""
    if not supervisor.interruptions:
        return ""
    gap = supervisor.monitor.counts.longest_gap
    return f"; waited {supervisor.interruptions} times at rest{f' (longest: {gap})' if gap else ''}"
