"""StateMachine: all decisions of the excitation node, without ROS and without its own clock."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from inertid_ros.calibration.planning import ExcitationJob, PreparationProgress
from inertid_ros.config.nodes import MotionOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.execution.horizons import ExecutionProgress
from inertid_ros.excitation.execution.supervisor import Supervisor

from .goal import Ending, ExcitationGoal, GoalOutcome, GoalState, PlanningWorker

if TYPE_CHECKING:  # ROS types; the state machine runs without ROS
    from inertid_ros.action import Excite

    from .robot_interface import RobotInterface


_INTERFERENCE_PERIOD_S = 0.1  # between two checks for other nodes that command or publish


class State(Enum):
    """State of the excitation node."""

    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"  # configured; goals are refused
    ARMED = "armed"  # at rest, accepts goals
    PLANNING = "planning"  # a goal is active, the robot rests: states are collected, a motion is planned and checked
    APPROACHING = "approaching"  # on the way to the start of the plan
    MOVING = "moving"  # along the plan
    STOPPING = "stopping"  # braking, or waiting for rest
    WAITING = "waiting"  # at rest on the path; continues by itself when joint states arrive again
    FAULT = "fault"  # stopped by a fault; disarming and arming again clears the fault
    FINALIZED = "finalized"  # shut down, at rest


TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.UNCONFIGURED: frozenset({State.INACTIVE, State.FINALIZED}),
    State.INACTIVE: frozenset({State.ARMED, State.UNCONFIGURED, State.FINALIZED}),
    State.ARMED: frozenset({State.PLANNING, State.INACTIVE, State.FAULT, State.FINALIZED}),
    State.PLANNING: frozenset({State.APPROACHING, State.ARMED, State.INACTIVE, State.FINALIZED}),
    State.APPROACHING: frozenset({State.MOVING, State.STOPPING}),
    State.MOVING: frozenset({State.STOPPING, State.ARMED}),
    State.STOPPING: frozenset({State.WAITING, State.ARMED, State.INACTIVE, State.FAULT, State.FINALIZED}),
    State.WAITING: frozenset(
        {State.APPROACHING, State.MOVING, State.STOPPING, State.ARMED, State.INACTIVE, State.FAULT, State.FINALIZED}),
    State.FAULT: frozenset({State.INACTIVE, State.FINALIZED}),
    State.FINALIZED: frozenset()}
"""Allowed transitions. Any other change is an internal error, after which the node brakes and ends."""


class StateMachine:
    """State of the excitation node: arming and one goal at a time.

    A motion ends in state ARMED, or in FAULT after a fault, or in INACTIVE if the node was disarmed during the motion.
    A goal is accepted only while the node is armed, and disarming stops the goal. ``planner`` starts the preparation of
    a motion in another process.

    Attributes
    ----------
    goal : ExcitationGoal or None
        The active goal.
    outcome : GoalOutcome or None
        Outcome of the last goal that ended or was refused.
    last_fault : str
        The last fault that led to state FAULT, also after the node is armed again; empty before the first fault.
    """

    def __init__(
            self, robot: "RobotInterface", robot_options: RobotOptions,
            planner: Callable[[ExcitationJob], PlanningWorker]) -> None:
        self.state = State.UNCONFIGURED
        self.goal: ExcitationGoal | None = None
        self.outcome: GoalOutcome | None = None
        self.last_fault = ""
        self._at_rest, self._message = State.UNCONFIGURED, "not configured"  # state after the present motion
        self._robot, self._robot_options, self._planner = robot, robot_options, planner
        self._looked = -float("inf")  # time of the last check for interference

    @property
    def message(self) -> str:
        """One line about the state."""
        if self.goal is None:
            return self._message
        if self.goal.state is GoalState.CONFIRMING:
            return "planned; call the service ~/go to move, or cancel"
        if self.supervisor is None:
            return self.state.value
        return self.supervisor.fault or self.supervisor.interruption or self.state.value

    @property
    def is_armed(self) -> bool:
        """True if motions may begin or continue, or a fault is not cleared yet."""
        return self.goal is not None or self._at_rest in (State.ARMED, State.FAULT)

    @property
    def supervisor(self) -> Supervisor | None:
        """Supervisor of the motion, until the goal has ended."""
        return self.goal.supervisor if self.goal is not None else None

    @property
    def progress(self) -> PreparationProgress | ExecutionProgress | None:
        """Progress of planning or execution; None before planning."""
        return self.goal.progress if self.goal is not None else None

    # Lifecycle

    def configure(self, problem: str = "") -> None:
        """Enter INACTIVE, or UNCONFIGURED if there is a problem with the robot or the command interface."""
        self._rest_in(State.UNCONFIGURED if problem else State.INACTIVE, problem or "configured; activate to arm")

    def clean_up(self) -> str:
        """Forget the configuration; return the reason for a refusal, empty on success."""
        if self.goal is not None:
            return "not cleaned up: the last motion is still coming to rest; try again"
        self._rest_in(State.UNCONFIGURED, "not configured")
        return ""

    def arm(self) -> str:
        """Accept goals, also after a fault; return the reason for a refusal, empty on success."""
        if self.goal is not None:
            return "not armed: the last motion is still coming to rest; try again"
        if self.state is not State.INACTIVE:
            return f"not armed: {self._message}"
        self._rest_in(State.ARMED, "armed")
        return ""

    def disarm(self) -> None:
        """Refuse goals; a moving robot brakes."""
        self._rest_in(State.INACTIVE, "not armed; activate to arm")
        self.stop("deactivated")

    def shut_down(self, reason: str) -> None:
        """Refuse all further goals; a moving robot brakes."""
        self._rest_in(State.FINALIZED, reason)
        self.stop(reason)

    # The goal

    def begin(self, request: "Excite.Goal", options: MotionOptions) -> bool:
        """Begin a goal; return False if another goal is active. If the node is not armed, the outcome is a refusal."""
        if self.goal is not None:
            return False
        if self.state is State.ARMED:
            self.goal = ExcitationGoal(request, options, self._robot_options, self._robot, self._planner)
            self._update()
        else:
            why = self._message if self.state is State.FAULT else f"excitation is not armed ({self._message})"
            self.outcome = GoalOutcome(Ending.REFUSED, f"{why} (the robot did not move)")
        return True

    def go(self) -> str:
        """Begin the motion that waits for confirmation; return the reason for a refusal, empty on success."""
        return "" if self.goal is not None and self.goal.go() else "no motion waits for confirmation"

    def tick(self, cancel: bool = False) -> None:
        """Take the next step of the goal if one is due; to be called every few milliseconds.

        ``cancel`` is True if the client has requested the end of the goal.
        """
        if self.goal is None:
            return
        now = self._robot.steady()
        self.goal.take_halt(self._robot.halt())
        is_moving = self.state in (State.APPROACHING, State.MOVING, State.WAITING)
        if is_moving and now - self._looked >= _INTERFERENCE_PERIOD_S:
            self._looked, problem = now, self._robot.interference()
            if problem:
                self.stop(problem)
        self.goal.tick(cancel)
        self._update()

    def stop(self, reason: str) -> None:
        """End the goal because of a fault: a moving robot brakes first; before the motion, the goal ends at once."""
        if self.goal is not None:
            self.goal.stop(reason)
            self._update()

    def latch(self, reason: str) -> None:
        """Call :meth:`stop`, and refuse goals until the node is armed again, even if no goal was active."""
        self.stop(reason)
        self._latch(reason)

    # Input

    def take_state(self, stamp: float, clock: float, now: float, position: Array, effort: Array) -> None:
        """Take a joint state for the next tick; see :meth:`.StateMonitor.update`."""
        if self.supervisor is not None:
            self.supervisor.update(stamp, clock, now, position, effort)

    def take_rates(self, velocity: Array, twist: Array) -> None:
        """Stop if the velocities of the joints ``(n,)`` or the twist of a floating base ``(6,)`` are too large."""
        goal = self.goal if self.supervisor is not None and self.supervisor.moving else None
        if goal is not None and (reason := goal.excessive_rate(velocity, twist)):
            self.stop(reason)

    @property
    def may_send(self) -> bool:
        """True if the next tick may send a horizon that continues the motion."""
        return self.supervisor is not None and self.supervisor.may_send(self._robot.steady())

    def take_speed_scaling(self, factor: float) -> None:
        """Take the controller's speed scaling, 1 at full speed."""
        if self.supervisor is not None:
            self.supervisor.scale(self._robot.steady(), factor)
            self._update()

    def take_reference(self, stamp: float, position: Array) -> None:
        """Take the position ``(n,)`` of the controller's reference and its stamp [s]."""
        if self.supervisor is not None:
            self.supervisor.update_reference(stamp, position)

    def renew_lease(self) -> None:
        """Renew the client's lease."""
        if self.goal is not None:
            self.goal.lease.renew(self._robot.steady())

    # Transitions

    def _update(self) -> None:
        """Enter the state that follows from the progress or the end of the goal; without a goal, the state at rest."""
        goal = self.goal
        if goal is None:
            self._enter(self._at_rest)
        elif goal.state is GoalState.ENDED:
            self.goal, self.outcome = None, goal.outcome
            if goal.outcome.fault:
                self._latch(f"stopped: {goal.outcome.fault}")
            elif self._at_rest is State.ARMED:
                self._message = goal.outcome.message
            self._enter(self._at_rest)
        else:
            supervisor = goal.supervisor
            stage = None if supervisor is None else supervisor.stage(self._robot.steady())
            self._enter(State.PLANNING if stage is None else State[stage.name])

    def _latch(self, reason: str) -> None:
        if self._at_rest is State.ARMED:
            self.last_fault = reason
            self._rest_in(State.FAULT, f"{reason}; deactivate and activate to arm again")

    def _rest_in(self, state: State, message: str) -> None:
        """Enter a state as soon as the robot rests; FINALIZED is never left."""
        if self._at_rest is not State.FINALIZED:
            self._at_rest, self._message = state, message
        if self.goal is None:
            self._enter(self._at_rest)

    def _enter(self, state: State) -> None:
        """Change the state; every change passes through this method."""
        before, self.state = self.state, state
        if state is not before and state not in TRANSITIONS[before]:
            raise RuntimeError(f"transition from {before.value} to {state.value} is not allowed")
