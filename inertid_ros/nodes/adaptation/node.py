"""Adaptation node: an arm follows a reference by torques while its parameters adapt, and holds whatever happens.

A lifecycle node. Active means that references are followed. Once it has been active it commands efforts without end:
deactivated, or after a fault, it brings the arm to rest and holds it. Cleaning up at rest ends that.
"""

import sys
import time

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.adaptation.execution.controlled_arm import ControlledArm
from inertid_ros.app.adaptive_arm import FirstEstimate, adaptive_controller, controlled_arm, first_estimate
from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.errors import InertidError
from inertid_ros.data.live.stream_watch import StreamWatch
from inertid_ros.msg import InertialParameters
from inertid_ros.nodes.hardware.diagnostics import joint_states, timing
from inertid_ros.nodes.spin import raise_priority, run_node
from inertid_ros.robot.model import load_model
from inertid_ros.ros.diagnostics import DiagnosticsPublisher, Status
from inertid_ros.ros.joint_order import JointSample
from inertid_ros.ros.lifecycle import refuse_impossible_transitions
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.qos import COMMAND, LATCHED

from . import diagnostics
from .arm_interface import ArmInterface
from .parameters import AdaptationNodeOptions

_LOOK_S = 0.1  # between two looks at who else commands or publishes
_START_S = 0.5  # between two tries to start by itself
_SETTLE_S = 0.3  # for which the arm is held at rest before the process ends


class Adaptation(LifecycleNode):
    """Lifecycle, topics and the tick around a :class:`~.ControlledArm`, which decides."""

    def __init__(self) -> None:
        super().__init__("adaptation")
        refuse_impossible_transitions(self)
        self.options = declare(self, AdaptationNodeOptions)
        raise_priority(self, self.options.realtime_priority)
        self.arm: ControlledArm | None = None
        self.estimate: FirstEstimate | None = None
        self.told_fault, self.refused, self.sequence = "", "", 0
        self.ending, self.rested_at = False, float("inf")
        self.ticks = StreamWatch()
        self.robot = ArmInterface(
            self, self.options, self._take_state, lambda: self._stop("the robot description changed")
        )
        self.parameters_publisher = self.create_publisher(InertialParameters, "~/parameters", LATCHED)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self._take_reference, COMMAND)
        self.create_service(Trigger, "~/stop", self._stop_on_request)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.tick_s = 1.0 / self.options.control.rate_hz
        self.create_timer(_LOOK_S, self._look, clock=steady)
        self.create_timer(1.0 / self.options.parameters_hz, self._publish_parameters, clock=steady)
        if self.options.autostart:
            self.starter = self.create_timer(_START_S, self._start, clock=steady)
        self.diagnostics = DiagnosticsPublisher(self, self._statuses, lambda: self.robot.name)

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the robot and its first estimate."""
        return self._answer(self._configured())

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take the arm over where it stands, or, where it is held already, follow references again."""
        problem = self._taken_over()
        if problem:
            return self._answer(problem)
        self.told_fault = self.refused = ""
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Come to rest and hold, without adaptation."""
        self._stop("")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Command nothing any more, unless the arm still moves."""
        if self.arm is not None and not self.arm.at_rest:
            return self._answer("not cleaned up: the arm is still coming to rest; try again")
        self.arm = None
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Come to rest and hold until the process ends."""
        self._stop("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _configured(self) -> str:
        """Why the robot cannot be controlled; empty where it can."""
        try:
            self.robot.read_robot()
            described = load_model(self.robot.model.urdf, self.robot.model.options)
            self.estimate = first_estimate(described, self.options.result)
            adaptive_controller(self.estimate, self.options.control)
        except InertidError as error:
            return str(error)
        return ""

    def _taken_over(self) -> str:
        """Why the arm cannot be controlled from where it stands; empty where it is now."""
        options = self.options
        if self.arm is not None:
            return self.arm.resume(self.robot.steady())
        try:
            assert self.estimate is not None
            if self.robot.model.hash != self.estimate.model.hash:
                return "the robot description has changed; clean up and configure anew"
            monitor = options.monitor.timed(self.robot.window.period)
            begin = self.robot.begin(monitor)
            own = adaptive_controller(self.estimate, options.control)
            self.arm = controlled_arm(own, self.estimate.model, options.limits, options.control, monitor, begin)
        except InertidError as error:
            return str(error)
        return ""

    def _answer(self, problem: str) -> TransitionCallbackReturn:
        if not problem:
            return TransitionCallbackReturn.SUCCESS
        self.get_logger().error(problem)
        return TransitionCallbackReturn.FAILURE

    def _start(self) -> None:
        """Configure and activate once all that it needs is there."""
        if not (self.robot.has_states and self.robot.commands.has_controller):
            return
        if self.estimate is None and self.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
            self.starter.cancel()  # nothing that it waits for would change that
            return
        if self.trigger_activate() is TransitionCallbackReturn.SUCCESS:
            self.starter.cancel()

    # Motion

    def tick(self) -> None:
        """Take joint states, and send efforts."""
        now = time.monotonic()
        self.ticks.add(now)
        self.robot.poll()
        effort = self.arm.tick(self.robot.steady()) if self.arm is not None else None
        if effort is not None:
            self.robot.commands.send(effort)

    def _take_state(self, sample: JointSample, clock: float, now: float) -> None:
        if self.arm is not None:
            stamp = sample.stamp_ns * 1e-9
            self.arm.update(stamp, clock, now, sample.position, sample.velocity, sample.effort)

    def _take_reference(self, message: JointTrajectory) -> None:
        try:
            if self.arm is None:
                raise InertidError("reference: refused, adaptation is not active; activate it")
            problem = self.robot.controller_problem()
            if problem:
                raise InertidError(f"reference: refused, {problem}")
            self.arm.follow(self.robot.reference(message), self.robot.steady())
            self.refused = ""
        except InertidError as error:
            self.refused = str(error)
            self.get_logger().error(self.refused)

    def _stop(self, reason: str) -> None:
        if self.arm is not None:
            self.arm.stop(self.robot.steady(), reason)

    def _stop_on_request(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Stop now, and stay stopped until activated anew."""
        self._stop("stopped on request")
        response.success = self.arm is not None
        response.message = self.arm.fault if self.arm is not None else "adaptation is not active"
        return response

    def _look(self) -> None:
        """Ten times a second: is the robot ours alone, and has a fault stopped it?"""
        arm = self.arm
        if arm is None:
            return
        problem = self.robot.interference() if arm.accepts else ""
        if problem:
            self._stop(problem)
        if arm.fault and arm.fault != self.told_fault:
            self.told_fault = arm.fault
            self.get_logger().error(f"stopped: {arm.fault}; the arm is held, deactivate and activate to go on")

    # Output

    def _publish_parameters(self) -> None:
        if self.arm is None or self.estimate is None:
            return
        self.sequence += 1
        model, drives = self.estimate.model, self.estimate.drives
        terms = {term: model.drive_prior[term] for term in DRIVE_TERMS}
        if drives is not None:
            terms |= {term: drives.parameters[model.layout.drive(term)] for term in model.layout.drive_terms}
        message = known_parameters(model, self.arm.controller.bodies, terms, self.get_clock().now().to_msg())
        message.sequence = self.sequence
        self.parameters_publisher.publish(message)

    def _statuses(self) -> list[Status]:
        first = float(self.estimate.bodies[:, 0].sum()) if self.estimate is not None else 0.0
        return [
            diagnostics.motion(self.arm, self.refused),
            joint_states(self.robot, self.options.monitor),
            diagnostics.controller(self.robot, self.arm is not None),
            diagnostics.parameters(self.arm, first),
            timing(self.ticks.report(time.monotonic()), self.tick_s),
        ]

    # Ending

    def begin_shutdown(self) -> None:
        """A signal came: come to rest, then end."""
        self._stop("the adaptation node was asked to end")
        self.ending = True

    @property
    def shutdown_complete(self) -> bool:
        """Whether the arm has been held at rest for a while; its last torque is what holds it."""
        if self.arm is None:
            return True
        now = time.monotonic()
        if not self.arm.at_rest:
            self.rested_at = float("inf")
        else:
            self.rested_at = min(self.rested_at, now)
        return now - self.rested_at > _SETTLE_S

    def on_fault(self, error: Exception) -> None:
        """A callback raised and nothing spins any more: bring the arm to rest with what still works."""
        self._stop(f"internal error: {error}")
        while not self.shutdown_complete:
            self.tick()
            time.sleep(self.tick_s)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Adaptation)


if __name__ == "__main__":
    sys.exit(main())
