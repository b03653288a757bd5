"""Adaptation node: adaptive torque control of an arm along a reference; after any fault, the arm holds its position.

The lifecycle node follows references while it is active. From the first activation on, the node always commands
efforts: after a deactivation or a fault, it brings the arm to rest and holds it. A cleanup at rest ends the commands.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.adaptive_control import controlled_arm
from inertid_ros.config.excitation import StateMonitorOptions
from inertid_ros.config.nodes import AdaptationNodeOptions
from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.errors import ExcitationError, InertidError
from inertid_ros.core.samples import StateSample
from inertid_ros.data.screening.live_watch import StreamWatch
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.model import load_model
from inertid_ros.ros.controller import CommandTopic
from inertid_ros.ros.conversions import NANOSECONDS, JointSample, from_joint_trajectory, to_nanoseconds
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, DiagnosticsPublisher, Status, judged
from inertid_ros.ros.node_parameters import declare
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.topics import COMMAND, LATCHED, STEADY

from .robot_states import RobotStates, joint_states_status, timing_status
from .spin import LONGEST_END_S, raise_priority, refuse_impossible_transitions, run_node

_MAX_POINTS = 2000  # of a reference; a longer reference would delay the control tick too much
_INTERFERENCE_CHECK_PERIOD_S = 0.1  # between two checks for other nodes that command the arm or publish its states
_AUTOSTART_PERIOD_S = 0.5  # between two automatic attempts to start
_HOLD_BEFORE_END_S = 0.3  # the arm is held at rest for this long before the process ends


class ArmInterface(RobotStates):
    """Robot description, joint states and effort commands of one arm; see :class:`RobotStates`."""

    def __init__(
            self, node: Node, options: AdaptationNodeOptions, on_state: Callable[[JointSample, float, float], None],
            on_other_robot: Callable[[], None]) -> None:
        super().__init__(node, options, options.robot, on_state, on_other_robot)
        topic = f"{options.controller}/commands" if options.controller else "effort_commands"
        self.commands = CommandTopic(node, Float64MultiArray, topic)

    def begin(self, options: StateMonitorOptions) -> StateSample:
        """Check that the node can take control of the arm, and return the arm's state.

        Raises ExcitationError if joint states are missing or invalid, the arm moves, commands do not arrive, or another
        node interferes.
        """
        self.check_states(options)
        if problem := self.interference():
            raise ExcitationError(problem)
        sample = self.window.mean()
        if not np.isfinite(sample.velocity).all():
            raise ExcitationError("joint states hold no velocities, which torque control needs; check the driver")
        return StateSample(self.steady(), sample.position, sample.velocity, sample.effort)

    def interference(self) -> str:
        """Return why commands do not arrive, or which other nodes command the arm or publish states; else empty."""
        return self.namesake() or self.commands.problem() or self.several_publishers()

    def reference(self, message: JointTrajectory) -> PiecewiseQuintic:
        """Return a trajectory in the joint order of the model, with times on the steady clock.

        Raises InertidError if the trajectory is invalid.
        """
        if len(message.points) > _MAX_POINTS:
            raise ExcitationError(
                f"reference: has {len(message.points)} points, at most {_MAX_POINTS} are accepted; send it in parts")
        points = from_joint_trajectory(message, self.manager.joints)
        stamp = to_nanoseconds(message.header.stamp) / NANOSECONDS
        start = stamp - self.clock_ahead() if stamp else self.steady()
        return replace(points, time=points.time + start)


class Adaptation(LifecycleNode):
    """Lifecycle, topics and the tick around a :class:`~.ControlledArm`, which makes all decisions."""

    def __init__(self) -> None:
        super().__init__("adaptation")
        refuse_impossible_transitions(self)
        self.options = declare(self, AdaptationNodeOptions)
        raise_priority(self, self.options.realtime_priority)
        self.arm: controlled_arm.ControlledArm | None = None
        self.estimate: controlled_arm.FirstEstimate | None = None
        self.told_fault, self.refused, self.sequence = "", "", 0
        self.rested_at = float("inf")
        self.ticks = StreamWatch()
        self.robot = ArmInterface(
            self, self.options, self._take_state, lambda: self._stop("the robot description changed"))
        self.parameters_publisher = self.create_publisher(InertialParameters, "~/parameters", LATCHED)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self._take_reference, COMMAND)
        self.create_service(Trigger, "~/stop", self._stop_on_request)
        self.tick_s = 1.0 / self.options.control.rate_hz
        self.create_timer(_INTERFERENCE_CHECK_PERIOD_S, self._check, clock=STEADY)
        self.create_timer(1.0 / self.options.parameters_hz, self._publish_parameters, clock=STEADY)
        if self.options.autostart:
            self.starter = self.create_timer(_AUTOSTART_PERIOD_S, self._start, clock=STEADY)
        self.diagnostics = DiagnosticsPublisher(self, self._statuses, lambda: self.robot.name)

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the robot description and the first estimate of its parameters."""
        try:
            self.robot.read_robot()
            model = self.robot.model
            described = load_model(model.urdf, model.options, folder=model.folder)
            estimate = controlled_arm.first_estimate(described, self.options.result)
            controlled_arm.adaptive_controller(estimate, self.options.control)
            self.estimate = estimate
        except InertidError as error:
            return self._refuse(str(error))
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take control of the arm at its present pose; if the node already holds the arm, accept references again."""
        if problem := self._take_over():
            return self._refuse(problem)
        self.told_fault = self.refused = ""
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Bring the arm to rest and hold it, without adaptation."""
        self._stop("")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop sending commands; refused while the arm moves."""
        if self.arm is not None and not self.arm.at_rest:
            return self._refuse("not cleaned up: the arm is still coming to rest; try again")
        self.arm = self.estimate = None
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Bring the arm to rest and hold it until the process ends."""
        if self.options.autostart:
            self.starter.cancel()
        self._stop("shut down")
        return TransitionCallbackReturn.SUCCESS

    def _take_over(self) -> str:
        """Take control of the arm at its present pose; return the reason for a failure, empty on success."""
        options = self.options
        if self.arm is not None:
            return self.arm.resume(self.robot.steady())
        try:
            assert self.estimate is not None
            if self.robot.model.hash != self.estimate.model.hash:
                return "the robot description has changed; clean up and configure again"
            monitor = options.monitor.timed(self.robot.window.period)
            begin = self.robot.begin(monitor)
            controller = controlled_arm.adaptive_controller(self.estimate, options.control)
            self.arm = controlled_arm.ControlledArm(
                controller, self.estimate.model, options.limits, options.control, monitor, begin)
        except InertidError as error:
            return str(error)
        return ""

    def _refuse(self, problem: str) -> TransitionCallbackReturn:
        self.get_logger().error(problem)
        return TransitionCallbackReturn.FAILURE

    def _start(self) -> None:
        if self.arm is not None:  # an operator has activated the node
            self.starter.cancel()
            return
        if not (self.options.urdf or self.robot.has_states) or not self.robot.commands.has_controller:
            return
        if self.estimate is None and self.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
            self.starter.cancel()  # another attempt would fail, too
            return
        if self.robot.has_states and self.trigger_activate() is TransitionCallbackReturn.SUCCESS:
            self.starter.cancel()

    # Motion

    def tick(self) -> None:
        now = time.monotonic()
        self.ticks.add(now)
        self.robot.poll()
        effort = self.arm.tick(self.robot.steady()) if self.arm is not None else None
        if effort is not None:
            self.robot.commands.publish(Float64MultiArray(data=effort.tolist()))

    def _take_state(self, sample: JointSample, clock: float, now: float) -> None:
        if self.arm is not None:
            stamp = sample.stamp_ns * 1e-9
            self.arm.update(stamp, clock, now, sample.position, sample.velocity, sample.effort)

    def _take_reference(self, message: JointTrajectory) -> None:
        try:
            if self.arm is None:
                raise InertidError("reference: refused, adaptation is not active; activate it")
            if problem := self.robot.manager.problem():
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
        """Stop the arm now, and refuse references until the node is activated again."""
        self._stop("stopped on request")
        response.success = self.arm is not None
        response.message = self.arm.fault if self.arm is not None else "adaptation is not active"
        return response

    def _check(self) -> None:
        """Stop if another node commands the robot, and log a fault once."""
        arm = self.arm
        if arm is None:
            return
        if arm.accepts and (problem := self.robot.interference()):
            self._stop(problem)
        if arm.fault and arm.fault != self.told_fault:
            self.told_fault = arm.fault
            self.get_logger().error(f"stopped: {arm.fault}; the arm is held; deactivate and activate to continue")

    # Output

    def _publish_parameters(self) -> None:
        if self.arm is None or self.estimate is None:
            return
        self.sequence += 1
        model, drives = self.estimate.model, self.arm.controller.drives
        terms = {term: model.drive_prior[term] for term in DRIVE_TERMS}
        if drives is not None:
            terms |= {term: drives.parameters[model.layout.drive(term)] for term in model.layout.drive_terms}
        message = known_parameters(
            model, self.arm.controller.bodies, terms, self.get_clock().now().to_msg(),
            None if drives is None else drives.parameters)
        message.sequence = self.sequence
        self.parameters_publisher.publish(message)

    def _statuses(self) -> list[Status]:
        return [
            self._motion_status(), joint_states_status(self.robot, self.options.monitor), self._controller_status(),
            self._parameters_status(), timing_status(self.ticks.report(time.monotonic()), self.tick_s)]

    def _motion_status(self) -> Status:
        arm = self.arm
        state, fault = ("not in control", "") if arm is None else (arm.stage.value, arm.fault)
        values = {
            "State": state,
            "Accepts references": arm is not None and arm.accepts,
            "Tracking error (rad or m)": None if arm is None else float(np.abs(arm.error).max()),
            "Largest tracking error (rad or m)": None if arm is None else arm.largest_error,
            "Joint states rejected": None if arm is None else sum(arm.monitor.counts.rejected.values())}
        return judged("motion", values, (ERROR, fault), (WARN, self.refused), otherwise=state)

    def _controller_status(self) -> Status:
        """Status of the controller; a missing controller is an error only while the node is in control."""
        robot = self.robot
        values = {"Topic": robot.commands.name, "Discovered": robot.commands.has_controller}
        return judged(
            "controller", values,
            (STALE, "" if robot.name else "no robot description"),
            (WARN if self.arm is None else ERROR, robot.commands.problem() or robot.manager.problem()),
            otherwise="commands arrive")

    def _parameters_status(self) -> Status:
        """Status of the estimate: total mass, change since the first estimate, joints at their effort limit."""
        if self.arm is None or self.estimate is None:
            keys = ("Mass (kg)", "Added mass (kg)", "At their effort limit")
            return Status("parameters", STALE, "not in control", dict.fromkeys(keys))
        mass, controller = float(self.arm.controller.bodies[:, 0].sum()), self.arm.controller
        values = {
            "Mass (kg)": mass,
            "Added mass (kg)": mass - float(self.estimate.bodies[:, 0].sum()),
            "At their effort limit": int(controller.saturated.sum())}
        return Status("parameters", OK, "adapting" if self.arm.accepts else "held", values)

    # Ending

    def begin_shutdown(self) -> None:
        """Bring the arm to rest after a signal, before the process ends."""
        self._stop("the adaptation node received a signal to end")

    @property
    def shutdown_complete(self) -> bool:
        """True if the arm has been held at rest for a while; its controller keeps applying the last command."""
        if self.arm is None:
            return True
        now = time.monotonic()
        self.rested_at = min(self.rested_at, now) if self.arm.at_rest else float("inf")
        return now - self.rested_at > _HOLD_BEFORE_END_S

    def on_fault(self, error: Exception) -> None:
        """Bring the arm to rest after an exception in a callback; the executor no longer spins."""
        self._stop(f"internal error: {error}")
        end = time.monotonic() + LONGEST_END_S
        while not self.shutdown_complete and time.monotonic() < end:  # simulated time stands still now
            self.tick()
            time.sleep(self.tick_s)


def main() -> int:
    return run_node(Adaptation)
