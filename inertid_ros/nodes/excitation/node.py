"""Excitation node: moves the robot along an exciting motion, and brings it to rest whatever happens.

A lifecycle node. Active means armed: only then goals are accepted. A fault stops the motion within limits and latches;
deactivating and activating arms again. Commands are short horizons that each end at rest.
"""

import sys
import time

import numpy as np
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.task import Future
from std_msgs.msg import Empty
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.config.execution import MonitorOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.data.live.stream_watch import StreamWatch
from inertid_ros.msg import ExcitationStatus
from inertid_ros.nodes.spin import raise_priority, run_node
from inertid_ros.ros.diagnostics import DiagnosticsPublisher, Status
from inertid_ros.ros.joint_order import JointSample
from inertid_ros.ros.lifecycle import refuse_impossible_transitions
from inertid_ros.ros.parameters import declare, guard, read
from inertid_ros.ros.qos import LATCHED, STATE

from . import diagnostics
from .arming import Arming, ArmingState
from .goal import Ending, ExcitationGoal, GoalOutcome, GoalState
from .messages import to_feedback, to_plan_message, to_result, to_status
from .parameters import ExcitationNodeOptions, MotionOptions
from .robot_interface import RobotInterface

_RESULT_DELIVERY_S = 0.3  # for the goal's result to arrive at its client before the process ends


class Excitation(LifecycleNode):
    """Lifecycle, action server and status around an :class:`~.goal.ExcitationGoal`."""

    def __init__(self) -> None:
        super().__init__("excitation")
        refuse_impossible_transitions(self)
        self.fixed = declare(self, ExcitationNodeOptions)
        raise_priority(self, self.fixed.realtime_priority)
        declare(self, MotionOptions, read_only=False)
        self.arming, self.published_at = Arming(self._publish_status), -np.inf
        self.goal: ExcitationGoal | None = None
        self.goal_handle: ServerGoalHandle | None = None
        self.goal_ended, self.goal_ended_at = Future(), -np.inf
        self.status_publisher = self.create_publisher(ExcitationStatus, "~/status", LATCHED)
        self.plan_publisher = self.create_publisher(JointTrajectory, "~/plan", LATCHED)
        self.ticks = StreamWatch()
        self.robot = RobotInterface(
            self,
            self.fixed,
            self._take_state,
            lambda: self._stop_goal("the robot description changed"),
            self._take_speed_scaling,
        )
        guard(self, MotionOptions, self._parameters_locked)
        self.create_subscription(Empty, "~/lease", self._renew_lease, STATE)
        self.create_service(Trigger, "~/stop", self._stop)
        self.server = ActionServer(
            self,
            Excite,
            "~/excite",
            self._execute,
            goal_callback=self._accept,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
            callback_group=ReentrantCallbackGroup(),
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(self.fixed.tick_s, self._tick, clock=steady)
        self.create_timer(0.1, self.report_and_check, clock=steady)
        self.diagnostics = DiagnosticsPublisher(self, self._statuses, lambda: self.robot.name)
        self._publish_status()

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the robot and prepare the command interface."""
        try:
            self.robot.configure()
        except InertidError as error:
            self.arming.disarm(str(error))
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        self.arming.disarm("configured; activate to arm")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Arm, unless the last motion is still braking."""
        if self.goal is not None:
            self.get_logger().error("not armed: the last motion is still coming to rest; try again")
            return TransitionCallbackReturn.FAILURE
        self.arming.arm()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Disarm; a motion brakes."""
        self.arming.disarm("not armed; activate to arm")
        self._stop_goal("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Back to not configured."""
        self.arming.disarm("not configured")
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Disarm for good; a motion brakes."""
        self.arming.disarm("shut down")
        self._stop_goal("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _parameters_locked(self) -> str:
        """Why limits, monitoring and all else that a motion is made by must not change now; empty where it may."""
        if self.goal is not None:
            return "a goal is active; wait for its end"
        if self.arming.is_armed:
            return "the excitation node is armed; deactivate it before parameters are changed"
        return ""

    # The goal

    def _accept(self, request: Excite.Goal) -> GoalResponse:
        if self.goal is not None:
            self.get_logger().error("goal refused: another one is active")
            return GoalResponse.REJECT
        try:
            options = read(self, MotionOptions)
        except InertidError as error:
            self.get_logger().error(f"goal refused: {error}")
            return GoalResponse.REJECT
        self.goal = ExcitationGoal(
            request, options, self.fixed.robot, self.robot, lambda: self.arming.objection
        )
        self.goal_ended = Future()
        return GoalResponse.ACCEPT

    async def _execute(self, handle: ServerGoalHandle) -> Excite.Result:
        self.goal_handle = handle
        outcome: GoalOutcome = await self.goal_ended
        self.goal, self.goal_handle, self.goal_ended_at = None, None, time.monotonic()
        if outcome.ending is Ending.CANCELED:
            handle.canceled()
        elif outcome.ending is Ending.SUCCEEDED:
            handle.succeed()
        else:
            self.get_logger().error(outcome.message)
            handle.abort()
        return to_result(outcome)

    def _tick(self) -> None:
        self.ticks.add(time.monotonic())
        self.robot.poll()
        goal = self.goal
        if goal is None:
            return
        before = goal.state
        after = goal.tick(self.goal_handle is not None and self.goal_handle.is_cancel_requested)
        if after is before:
            return
        if after is GoalState.PLANNING:
            self.arming.change(ArmingState.PLANNING, "planning")
        if before is GoalState.PLANNING and goal.prepared is not None:
            self.plan_publisher.publish(to_plan_message(goal.prepared.plan, self.get_clock().now().to_msg()))
        if after is GoalState.ENDED:
            self._conclude(goal.outcome)

    def _conclude(self, outcome: GoalOutcome) -> None:
        if outcome.fault:
            stopped = f"stopped: {outcome.fault}; deactivate and activate to arm again"
            self.arming.change(ArmingState.LATCHED, stopped)
        else:
            self.arming.change(ArmingState.READY, outcome.message)
        self.goal_ended.set_result(outcome)

    def _stop_goal(self, reason: str) -> None:
        if self.goal is not None:
            self.goal.stop(reason)

    # Input

    def _take_state(self, sample: JointSample, now: float) -> None:
        if self.goal is not None and self.goal.supervisor is not None:
            stamp = sample.stamp_ns * 1e-9
            self.goal.supervisor.update(stamp, self.robot.clock(), now, sample.position, sample.effort)

    def _take_speed_scaling(self, factor: float) -> None:
        if self.goal is not None and self.goal.supervisor is not None:
            self.goal.supervisor.scale(time.monotonic(), factor)

    def _renew_lease(self, _message: Empty) -> None:
        if self.goal is not None and self.goal.supervisor is not None:
            self.goal.supervisor.lease.renew(time.monotonic())

    def _stop(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Stop now, and stay stopped until armed again."""
        self._stop_goal("stopped on request")
        self.arming.change(ArmingState.LATCHED, "stopped on request; deactivate and activate to arm again")
        response.success, response.message = True, self.arming.message
        return response

    # Output

    def report_and_check(self) -> None:
        """Ten times a second: who else commands or publishes, feedback and status."""
        goal = self.goal
        if goal is not None and goal.moving:
            problem = self.robot.interference()
            if problem:
                goal.stop(problem)
        if goal is not None and self.goal_handle is not None and self.goal_handle.is_active:
            self.goal_handle.publish_feedback(to_feedback(goal.progress))
        if (goal is not None and goal.supervisor is not None) or time.monotonic() - self.published_at > 1.0:
            self._publish_status()

    def _publish_status(self) -> None:
        self.published_at, goal = time.monotonic(), self.goal
        executing = goal is not None and goal.state is GoalState.EXECUTING
        status = to_status(self.arming, goal.supervisor if goal is not None and executing else None, self.published_at)
        status.header.stamp = self.get_clock().now().to_msg()
        self.status_publisher.publish(status)

    def _statuses(self) -> list[Status]:
        now = time.monotonic()
        return [
            diagnostics.motion(self.arming, self.goal, now),
            diagnostics.joint_states(self.robot, read(self, MonitorOptions, "monitor.")),
            diagnostics.controller(self.robot, self.fixed, self.arming),
            diagnostics.timing(self.ticks.report(now), self.fixed.tick_s),
        ]

    # Ending

    def begin_shutdown(self) -> None:
        """A signal came: brake, then end."""
        self._stop_goal("the excitation node was asked to end")

    @property
    def shutdown_complete(self) -> bool:
        """Whether the robot is at rest, and the client of the last goal has its result."""
        return self.goal is None and time.monotonic() - self.goal_ended_at > _RESULT_DELIVERY_S

    def on_fault(self, error: Exception) -> None:
        """A callback raised and nothing spins any more: bring the robot to rest with what still works."""
        if self.goal is None:
            return
        self.goal.stop(f"internal error: {error}")
        while not self.goal.at_rest:
            self.goal.tick(cancel=False)
            time.sleep(self.fixed.tick_s)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Excitation)


if __name__ == "__main__":
    sys.exit(main())
