"""Excitation node: moves the robot along an exciting motion, and brings it to rest whatever happens.

A lifecycle node. Active means armed: only then goals are taken. A fault stops the motion within limits and latches;
deactivating and activating arms again. Commands are short horizons that each end at rest.
"""

import os
import sys
import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from inertid_ros.core.errors import InertidError
from inertid_ros.excitation.execution.supervisor import ExecutionStage
from inertid_ros.msg import ExcitationStatus
from inertid_ros.nodes.spin import run_node
from inertid_ros.ros.diagnostics import ERROR, OK, diagnostics
from inertid_ros.ros.lifecycle import refuse_impossible_transitions
from inertid_ros.ros.parameters import declare, guard
from inertid_ros.ros.qos import LATCHED, STATE

from .goals import ExciteGoals
from .parameters import ExcitationNodeOptions, MotionOptions

_STAGES = {
    ExecutionStage.APPROACHING: ExcitationStatus.APPROACHING,
    ExecutionStage.MOVING: ExcitationStatus.MOVING,
    ExecutionStage.STOPPING: ExcitationStatus.STOPPING,
}
_FAREWELL_S = 0.3  # for the goal's result to reach its client before the process ends


class Excitation(LifecycleNode):
    """See the module."""

    def __init__(self) -> None:
        super().__init__("excitation")
        refuse_impossible_transitions(self)
        self.fixed = declare(self, ExcitationNodeOptions)
        self._hurry(self.fixed.realtime_priority)
        declare(self, MotionOptions, read_only=False)
        self.state, self.message, self.published_at = ExcitationStatus.UNARMED, "not configured", -np.inf
        self.status_publisher = self.create_publisher(ExcitationStatus, "~/status", LATCHED)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.goals = ExciteGoals(self, self.fixed, self._say, self._objection)
        guard(self, MotionOptions, lambda: "a goal is active; wait for its end" if self.goals.busy else "")
        self.create_subscription(Empty, "~/lease", self._renew, STATE)
        self.create_service(Trigger, "~/stop", self._stop)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(self.fixed.tick_s, self.goals.tick, clock=steady)
        self.create_timer(0.1, self._look_around, clock=steady)
        self.create_timer(1.0, self._publish_diagnostics, clock=steady)
        self._publish_status()

    def _hurry(self, priority: int) -> None:
        """Real-time scheduling of this process, where it is asked for and allowed."""
        if not priority:
            return
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        except OSError as error:
            self.get_logger().warning(f"realtime_priority: not allowed ({error.strerror}); raise the rtprio limit")

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the robot and prepare the command interface."""
        try:
            self.goals.robot.configure()
        except InertidError as error:
            self._disarm(str(error))
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        self._disarm("configured; activate to arm")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Arm, unless the motion of before is still braking."""
        if self.goals.busy:
            self.get_logger().error("not armed: the last motion is still coming to rest; try again")
            return TransitionCallbackReturn.FAILURE
        self.state, self.message = ExcitationStatus.READY, "armed"
        self._publish_status()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Disarm; a motion brakes."""
        self._disarm("not armed; activate to arm")
        self.goals.stop("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Back to not configured."""
        self._disarm("not configured")
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Brake for good."""
        self._disarm("shut down")
        self.goals.stop("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _disarm(self, message: str) -> None:
        self.state, self.message = ExcitationStatus.UNARMED, message
        self._publish_status()

    def _objection(self) -> str:
        """Why no goal may begin."""
        if self.state == ExcitationStatus.UNARMED:
            return f"excitation is not armed ({self.message})"
        return self.message if self.state == ExcitationStatus.LATCHED else ""

    # Input

    def _renew(self, _message: Empty) -> None:
        if self.goals.run is not None:
            self.goals.run.lease.renew(time.monotonic())

    def _stop(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Stop now, and stay stopped until armed again."""
        self.goals.stop("stopped on request")
        self._say(ExcitationStatus.LATCHED, "stopped on request; deactivate and activate to arm again")
        response.success, response.message = True, self.message
        return response

    def _look_around(self) -> None:
        self.goals.look_around()
        if self.goals.run is not None or time.monotonic() - self.published_at > 1.0:
            self._publish_status()

    # Output

    def _say(self, state: int, message: str) -> None:
        """A new state; while not armed or latched, only arming changes it."""
        if self.state == ExcitationStatus.UNARMED:
            return
        if self.state != ExcitationStatus.LATCHED:
            self.state, self.message = state, message
        self._publish_status()

    def _publish_status(self) -> None:
        self.published_at = time.monotonic()
        status = ExcitationStatus(state=self.state, message=self.message)
        status.header.stamp = self.get_clock().now().to_msg()
        goals = getattr(self, "goals", None)
        if goals is not None and goals.run is not None:
            progress = goals.run.progress()
            status.state, status.fraction = _STAGES[progress.stage], float(progress.fraction)
            status.message = goals.run.fault or progress.stage.value
            status.joint_names = list(goals.robot.model.joint_names)
            status.tracking_error = progress.tracking_error.tolist()
        self.status_publisher.publish(status)

    def _publish_diagnostics(self) -> None:
        level = ERROR if self.state == ExcitationStatus.LATCHED else OK
        self.diagnostics.publish(diagnostics(self, "motion", level, self.message, {"state": self.state}))

    # Ending

    def begin_shutdown(self) -> None:
        """A signal came: brake, then end."""
        self.goals.stop("the excitation node was asked to end")

    @property
    def shutdown_complete(self) -> bool:
        """Whether the robot is at rest, and the client of the last goal knows."""
        return not self.goals.busy and time.monotonic() - self.goals.ended_at > _FAREWELL_S

    def on_fault(self, error: Exception) -> None:
        """A callback raised: bring the robot to rest with what still works."""
        self.goals.brake_without_executor(f"internal error: {error}")


def main() -> int:
    """Entry point of the executable."""
    return run_node(Excitation)


if __name__ == "__main__":
    sys.exit(main())
