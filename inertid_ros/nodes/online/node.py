"""Online node: parameters, changes and payloads of a calibrated robot from its joint states as they come."""

import math
import sys
import time

from geometry_msgs.msg import InertiaStamped
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState

from inertid_ros.action import IdentifyPayload
from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.errors import IdentificationError, InertidError
from inertid_ros.data.screening.live_watch import StreamWatch
from inertid_ros.monitoring.followed_robot import Followed, FollowedRobot
from inertid_ros.monitoring.online_identification import OnlineEstimate
from inertid_ros.msg import IdentificationReport, InertialParameters, RobotChange
from inertid_ros.nodes.goal_node import GoalNode
from inertid_ros.nodes.spin import run_node
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import to_nanoseconds, to_time
from inertid_ros.ros.diagnostics import WARN, DiagnosticsPublisher, Status, gravest
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.topics import LATCHED, PolledSubscription, recording_profile

from . import messages
from .following import Following, PayloadGoal

_STATES_PERIOD_S, _FEEDBACK_PERIOD_S, _FAULT_LOG_PERIOD_S = 0.02, 0.5, 2.0


class Online(GoalNode):
    """Subscription, publishers and action around a :class:`~.following.Following`."""

    def __init__(self) -> None:
        super().__init__("online")
        self.options = declare(self, OnlineNodeOptions)
        self.watch = StreamWatch()
        self.following: Following | None = None
        self.estimate: OnlineEstimate | None = None
        self.sequence, self.solved_ns, self.problem = 0, 0, ""
        self.payload_state, self.payload_failure, self.payload_mass, self.fed_back = "none asked for", "", math.nan, 0.0
        self.parameters_publisher = self.create_publisher(InertialParameters, "~/parameters", LATCHED)
        self.change_publisher = self.create_publisher(RobotChange, "~/change", LATCHED)
        self.payload_publisher = self.create_publisher(InertiaStamped, "~/payload", LATCHED)
        if self.options.result:
            self._follow(self.options.result)
        else:
            self.create_subscription(IdentificationReport, "identifier/report", self._receive_report, LATCHED)
        # Taken in batches: waking an executor for each message costs more than processing it.
        self.states = PolledSubscription(self, JointState, "joint_states", recording_profile("best_effort"))
        self.create_timer(_STATES_PERIOD_S, self._take_states, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.serve_goals(IdentifyPayload, "~/identify_payload", "another payload is being identified")
        self.diagnostics = DiagnosticsPublisher(
            self, self._statuses, lambda: self.following.result.model.name if self.following is not None else ""
        )

    # The robot

    def _receive_report(self, report: IdentificationReport) -> None:
        """Follow a new calibration if its result is written and may be used."""
        if report.verdict == InertialParameters.DO_NOT_USE or not report.result_directory:
            return
        try:
            self._follow(report.result_directory)
        except InertidError as error:
            self.problem = str(error)
            self.get_logger().error(self.problem)

    def _follow(self, directory: str) -> None:
        self.following = Following(directory, self.options)
        if self.work is not None:
            self.work.cancel("another calibration is followed now; measure again")
        self.estimate, self.problem = None, ""
        self.get_logger().info(f"following '{self.following.result.model.name}' of {directory}")

    def _take_states(self) -> None:
        ahead = self.get_clock().now().nanoseconds * 1e-9 - time.monotonic()  # by which the clock of stamps is ahead
        for message, received in self.states.take():
            self._receive(message, received, received + ahead - to_nanoseconds(message.header.stamp) * 1e-9)

    def _receive(self, message: JointState, now: float, delay: float) -> None:
        if self.following is None:
            self.watch.add(now, delay)
            return
        fault = self.following.last_fault
        try:
            taken = self.following.take(message)
        except IdentificationError as error:
            self.problem = str(error)
            return
        if not self.following.foreign:
            self.watch.add(now, delay)
        if self.following.last_fault != fault:
            self.get_logger().warning(self.following.last_fault, throttle_duration_sec=_FAULT_LOG_PERIOD_S)
        if taken is None or self.following.robot is None:
            return
        state, followed = taken
        self._publish(self.following.result.model, self.following.robot, followed)
        if self.work is not None:
            self.work.take(state, followed, now)

    def _publish(self, model: RobotModel, robot: FollowedRobot, followed: Followed) -> None:
        if followed.news:
            stamp, since = (to_time(robot.stamp_ns(time)) for time in (robot.changes.time, robot.changes.since))
            change = messages.to_robot_change(model, robot.change, stamp, since, self.options.false_alarms_per_hour)
            self.change_publisher.publish(change)
            self.get_logger().info(change.message)
        if followed.estimate is not None:
            self.estimate, self.problem = followed.estimate, ""
            self.sequence, self.solved_ns = self.sequence + 1, self.get_clock().now().nanoseconds
            stamp = to_time(robot.stamp_ns(self.estimate.time))
            self.parameters_publisher.publish(messages.followed_parameters(model, self.estimate, self.sequence, stamp))

    # Payload

    def begin(self, request: IdentifyPayload.Goal) -> PayloadGoal:
        work = PayloadGoal(request, self.following, self.options)
        self.payload_state = "measuring"
        return work

    def poll_goal(self) -> None:
        """Take joint states first: if this process was held up they wait, and the robot was not silent."""
        self._take_states()
        super().poll_goal()

    def feedback(self, work: PayloadGoal) -> IdentifyPayload.Feedback | None:
        if (now := time.monotonic()) - self.fed_back <= _FEEDBACK_PERIOD_S:
            return None
        self.fed_back = now
        return messages.to_payload_feedback(*work.stage, work.progress)

    def conclude(self, work: PayloadGoal) -> IdentifyPayload.Result:
        answer = messages.to_payload_result(work.result(), self.get_clock().now().to_msg())
        self.payload_publisher.publish(answer.payload)
        self.payload_state, self.payload_failure = answer.message, ""
        self.payload_mass = answer.payload.inertia.m
        self.get_logger().info(answer.message)
        return answer

    def failed(self, reason: str) -> IdentifyPayload.Result:
        self.payload_state, self.payload_failure = "failed", reason
        return IdentifyPayload.Result(message=reason)

    # Status

    def _statuses(self) -> list[Status]:
        now = self.get_clock().now().nanoseconds
        age = (now - self.solved_ns) * 1e-9 if self.solved_ns else math.nan
        return [
            messages.joint_states_status(self.following, self.watch.report(time.monotonic())),
            messages.parameters_status(self.following, self.estimate, age, self.problem),
            messages.robot_status(self.following),
            self._payload_status(),
        ]

    def _payload_status(self) -> Status:
        state, failure = self.payload_state, self.payload_failure
        values = {"State": state, "Mass (kg)": self.payload_mass, "Last fault": failure}
        return Status("payload", *gravest((WARN, failure), otherwise=state), values)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Online)


if __name__ == "__main__":
    sys.exit(main())
