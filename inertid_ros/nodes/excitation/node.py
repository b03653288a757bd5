"""Excitation node: moves the robot along an exciting motion, and brings it to rest after any failure.

In its lifecycle, active means armed: only an armed node accepts goals. After a fault, the robot brakes within limits,
and the node refuses goals until it is deactivated and activated again. Commands are horizons: short trajectories, each
of which ends at rest.
"""

import time

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.task import Future
from std_msgs.msg import Empty
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from inertid_ros.action import Excite
from inertid_ros.calibration.planning import PreparedMotion
from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.config.nodes import ExcitationNodeOptions, MotionOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.data.screening.live_watch import StreamWatch
from inertid_ros.msg import ExcitationStatus
from inertid_ros.nodes.robot_states import joint_states_status, timing_status
from inertid_ros.nodes.spin import LONGEST_END_S, raise_priority, refuse_impossible_transitions, run_node
from inertid_ros.ros.conversions import JointSample, to_joint_trajectory
from inertid_ros.ros.diagnostics import DiagnosticsPublisher, Status
from inertid_ros.ros.node_parameters import declare, guard, read
from inertid_ros.ros.topics import LATCHED, STATE, STEADY

from .goal import Ending, GoalOutcome, Planning
from .messages import controller_status, motion_status, path_markers, to_feedback, to_result, to_status
from .robot_interface import RobotInterface
from .state_machine import State, StateMachine

_REFUSAL_LOG_PERIOD_S = 10.0  # a transition that fails repeatedly for one reason is logged at this interval
_RESULT_DELIVERY_S = 0.3  # for the goal's result to arrive at its client before the process ends


class Excitation(LifecycleNode):
    """Lifecycle, action server and status around the :class:`~.state_machine.StateMachine`, which makes decisions."""

    def __init__(self) -> None:
        super().__init__("excitation")
        refuse_impossible_transitions(self)
        self.fixed = declare(self, ExcitationNodeOptions)
        self.tick_s = self.fixed.tick_s
        declare(self, MotionOptions, read_only=False)
        self.refusal, self.refusal_logged_at = "", -float("inf")  # refusal of the last transition
        self.logged_interruptions = 0
        self.published_at = -float("inf")
        self.published: tuple[object, ...] = ()
        self.goal_handle: ServerGoalHandle | None = None
        self.goal_ended: Future | None = None  # completed with the outcome of the goal; None without a goal
        self.goal_ended_at = -float("inf")
        self.status_publisher = self.create_publisher(ExcitationStatus, "~/status", LATCHED)
        self.plan_publisher = self.create_publisher(JointTrajectory, "~/plan", LATCHED)
        self.marker_publisher = self.create_publisher(MarkerArray, "~/markers", LATCHED)
        self.ticks = StreamWatch()
        self.robot = RobotInterface(
            self, self.fixed, self._take_state, lambda: self.machine.stop("the robot description changed"),
            lambda factor: self.machine.take_speed_scaling(factor), lambda stamp,
            position: self.machine.take_reference(stamp, position))
        self.planning = Planning()
        self.machine = StateMachine(self.robot, self.fixed.robot, self.planning)
        guard(self, MotionOptions, self._parameters_locked)
        self.create_subscription(Empty, "~/lease", lambda _message: self.machine.renew_lease(), STATE)
        self.create_service(Trigger, "~/stop", self._stop)
        self.create_service(Trigger, "~/go", self._go)
        self.server = ActionServer(
            self, Excite, "~/excite", self._execute, goal_callback=self._accept,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT, callback_group=ReentrantCallbackGroup())
        self.create_timer(0.1, self.report, clock=STEADY)
        self.diagnostics = DiagnosticsPublisher(self, self._statuses, lambda: self.robot.name)
        raise_priority(self, self.fixed.realtime_priority)
        self._publish_status()

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the robot and prepare the command interface."""
        problem = ""
        try:
            self.robot.configure()
        except InertidError as error:
            problem = str(error)
        self.machine.configure(problem)
        return self._answer(problem)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Arm, unless the last motion is still braking."""
        if objection := self.machine.arm():
            return self._answer(objection)
        try:
            self.planning.make_ready()
        except OSError as error:
            self.machine.disarm()
            return self._answer(f"not armed: a process for planning cannot start ({error}); end other processes")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Disarm; a moving robot brakes."""
        self.machine.disarm()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the configuration, unless the last motion is still braking."""
        return self._answer(self.machine.clean_up())

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Disarm permanently; a moving robot brakes."""
        self.machine.shut_down("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _answer(self, problem: str) -> TransitionCallbackReturn:
        if not problem:
            return TransitionCallbackReturn.SUCCESS
        now = time.monotonic()
        if problem != self.refusal or now - self.refusal_logged_at > _REFUSAL_LOG_PERIOD_S:
            self.get_logger().warning(problem)  # not an error: the client receives the failure, and tries again
            self.refusal, self.refusal_logged_at = problem, now
        return TransitionCallbackReturn.FAILURE

    def _parameters_locked(self) -> str:
        """Return why the parameters of motions must not change now; empty if they may."""
        if self._has_goal:
            return "a goal is active; wait for its end"
        if self.machine.is_armed:
            return "the excitation node is armed; deactivate it before parameters are changed"
        return ""

    # The goal

    @property
    def _has_goal(self) -> bool:
        return self.goal_ended is not None

    def _accept(self, request: Excite.Goal) -> GoalResponse:
        if self._has_goal:
            self.get_logger().error("goal refused: another goal is active")
            return GoalResponse.REJECT
        try:
            options = read(self, MotionOptions)
        except InertidError as error:
            self.get_logger().error(f"goal refused: {error}")
            return GoalResponse.REJECT
        self.logged_interruptions = 0
        self.machine.begin(request, options)
        self.goal_ended = Future()
        return GoalResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> Excite.Result:
        self.goal_handle = handle
        assert self.goal_ended is not None
        outcome: GoalOutcome = await self.goal_ended
        self.goal_ended = self.goal_handle = None
        if self.machine.state is not State.FINALIZED:
            self.planning.make_ready()
        if outcome.ending is Ending.CANCELED:
            handle.canceled()
        elif outcome.ending is Ending.SUCCEEDED:
            handle.succeed()
        else:
            if self.machine.state is State.FINALIZED:  # after a signal, not an error
                self.get_logger().info(outcome.message)
            else:  # a line of its own: rclpy refuses another severity from the same place
                self.get_logger().error(outcome.message)
            handle.abort()
        self.goal_ended_at = time.monotonic()  # only now: the above may take longer than the delivery of the result
        return to_result(outcome)

    def tick(self) -> None:
        """Take joint states, and send the next commands."""
        self.ticks.add(time.monotonic())
        self.robot.poll(self.machine.may_send)
        goal = self.machine.goal
        planned = goal is not None and goal.prepared is not None
        self.machine.tick(self.goal_handle is not None and self.goal_handle.is_cancel_requested)
        if goal is not None and goal.prepared is not None and not planned:
            self._show_plan(goal.prepared)
        if self.published != self._summary:
            self._publish_status()
            self._log_interruption()
        if self.goal_ended is not None and not self.goal_ended.done() and self.machine.goal is None:
            self.goal_ended.set_result(self.machine.outcome)

    # Input

    def _take_state(self, sample: JointSample, clock: float, now: float) -> None:
        self.machine.take_state(sample.stamp_ns * 1e-9, clock, now, sample.position, sample.effort)
        if self.fixed.robot.base == "free":
            self.machine.take_rates(sample.velocity, self.robot.base_twist())

    def _stop(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Stop the robot now, and refuse goals until the node is armed again."""
        self.machine.latch("stopped on request")
        response.success, response.message = True, self.machine.message
        return response

    def _go(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Move along the motion that was planned with ``confirm``."""
        objection = self.machine.go()
        response.success, response.message = not objection, objection or "the robot begins to move"
        return response

    # Output

    def _show_plan(self, prepared: PreparedMotion) -> None:
        """Publish the plan and the paths of links before the robot moves."""
        now = self.get_clock().now().to_msg()
        self.plan_publisher.publish(to_joint_trajectory(prepared.plan.joint_names, prepared.plan.curve, now))
        self.marker_publisher.publish(path_markers(prepared.paths, self.robot.model.root_name, now))
        self.report()

    def report(self) -> None:
        """Publish feedback ten times a second, and the status ten times a second in motion, else once a second."""
        if self.machine.goal is not None and self.goal_handle is not None and self.goal_handle.is_active:
            self.goal_handle.publish_feedback(to_feedback(self.machine.goal))
        if self.machine.supervisor is not None or time.monotonic() - self.published_at > 1.0:
            self._publish_status()

    @property
    def _summary(self) -> tuple[object, ...]:
        return self.machine.state, self.machine.message

    def _publish_status(self) -> None:
        self.published_at, self.published = time.monotonic(), self._summary
        status = to_status(self.machine)
        status.header.stamp = self.get_clock().now().to_msg()
        self.status_publisher.publish(status)

    def _log_interruption(self) -> None:
        """Log each interruption of a motion once, with its reason."""
        supervisor = self.machine.supervisor
        if supervisor is not None and supervisor.interruption and not supervisor.fault:
            if supervisor.interruptions != self.logged_interruptions:
                wait = f"the robot rests on its path for up to {supervisor.monitor.options.max_wait_s:g} s"
                self.get_logger().warning(f"{supervisor.interruption}; {wait}")
            self.logged_interruptions = supervisor.interruptions

    def _statuses(self) -> list[Status]:
        now = time.monotonic()
        return [
            motion_status(self.machine, self.robot.steady()),
            joint_states_status(self.robot, read(self, MonitorOptions, "monitor.")),
            controller_status(self.robot, self.fixed, self.machine.is_armed),
            timing_status(self.ticks.report(now), self.tick_s)]

    # Ending

    def begin_shutdown(self) -> None:
        """Brake after a signal, before the process ends."""
        self.machine.shut_down("the excitation node received a signal to end")

    @property
    def shutdown_complete(self) -> bool:
        """True if the robot is at rest, and the result of the last goal has had time to reach its client."""
        return not self._has_goal and time.monotonic() - self.goal_ended_at > _RESULT_DELIVERY_S

    def on_fault(self, error: Exception) -> None:
        """Bring the robot to rest after an exception in a callback; the executor no longer spins."""
        self.machine.shut_down(f"internal error: {error}")
        end = time.monotonic() + LONGEST_END_S
        while self.machine.goal is not None and time.monotonic() < end:  # simulated time stands still now
            self.machine.tick()
            time.sleep(self.tick_s)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Excitation)
