"""Simulator node: a MuJoCo arm, or a robot on force plates, in real time, with the topics of a real one."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.config.robot import DRIVE_TERMS, LoadOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.msg import InertialParameters
from inertid_ros.nodes.spin import run_node
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.loads import load_bodies
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.ros.conversions import from_joint_trajectory, to_joint_state, to_nanoseconds, to_time
from inertid_ros.ros.diagnostics import DiagnosticsPublisher
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.parameters import declare, guard, read
from inertid_ros.ros.polling import PolledSubscription
from inertid_ros.ros.qos import COMMAND, LATCHED
from inertid_ros.simulation.commands import CommandedTrajectory
from inertid_ros.simulation.example_robots import example_urdf
from inertid_ros.simulation.joint_sensors import FaultyChannel, StateFaults
from inertid_ros.simulation.simulated_robot import SimulatedRobot

from .controller_state import ControllerState
from .diagnostics import robot_status
from .force_plate_robot import ForcePlateRobot, described_model
from .parameters import FaultOptions, SimulatorOptions

_LARGEST_LAG_S = 0.1  # after a longer pause the simulated time continues where it was instead of catching up


class Simulator(Node):
    """A simulated arm, or what :class:`ForcePlateRobot` adds.

    Physics follows the steady clock; stamps are the ROS time at the start plus the simulated time.
    """

    def __init__(self) -> None:
        super().__init__("simulator")
        self.options = declare(self, SimulatorOptions)
        declare(self, FaultOptions, read_only=False, prefix="fault.")
        guard(self, FaultOptions, lambda: "", prefix="fault.")
        self.tick_s = 1.0 / self.options.state_hz
        if self.options.legged_robot.robot:
            self.tick = ForcePlateRobot(self, self.options).tick
            return
        self.tick = self._tick
        truth = load_model(read_description(self.options.urdf or example_urdf()), model_options(self.options.robot))
        described = described_model(truth, self.options)
        self.empty = truth  # without what is attached
        self.robot = SimulatedRobot(
            truth,
            self.options.simulation,
            start=np.array(self.options.start) if self.options.start else None,
        )
        self.channel = FaultyChannel(np.random.default_rng(self.options.simulation.seed))
        self._set_faults(read(self, FaultOptions, "fault."))
        controller = self.options.controller
        self.controller_state = ControllerState(self, controller, truth.joint_names)
        self.state_publisher = self.create_publisher(JointState, "joint_states", QoSProfile(depth=50))
        self.clock_publisher = (
            self.create_publisher(ClockMessage, "/clock", 10) if self.options.publish_clock else None
        )
        self.description_publisher = self.create_publisher(String, "robot_description", LATCHED)
        self.description_publisher.publish(String(data=described.urdf))
        self.truth_publisher = self.create_publisher(InertialParameters, "~/true_parameters", LATCHED)
        self._publish_truth()
        robot = self.robot
        self.commands: list[tuple[PolledSubscription, Callable[[Any], None]]] = [
            (PolledSubscription(self, message_type, topic, COMMAND), command)
            for message_type, topic, command in (
                (JointTrajectory, f"{controller}/joint_trajectory".lstrip("/"), self._follow),
                (Float64MultiArray, "position_commands", lambda given: robot.stream(np.array(given.data))),
                (Float64MultiArray, "effort_commands", lambda given: robot.command_effort(np.array(given.data))),
            )
        ]
        self.create_subscription(InertiaStamped, "~/attach", self._attach, COMMAND)
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.lost_s = 0.0  # by which the robot has fallen behind the steady clock
        self.diagnostics = DiagnosticsPublisher(
            self, lambda: [robot_status(robot.time, self.lost_s, self.faults)], lambda: truth.name
        )
        self.zero_ns = self.steady.now().nanoseconds  # steady clock at simulated time zero
        self.stamp_ns = Clock(clock_type=ClockType.SYSTEM_TIME).now().nanoseconds  # stamp at simulated time zero
        self.create_timer(0.2, self._read_faults, clock=self.steady)
        self.get_logger().info(f"simulating '{truth.name}' with {truth.joints} joints")

    def _tick(self) -> None:
        self._take_commands()
        now = self.steady.now().nanoseconds
        step = self.options.simulation.timestep_s
        behind = (now - self.zero_ns) * 1e-9 - self.robot.time
        if behind > _LARGEST_LAG_S:
            lost = round((behind - step) * 1e9)
            self.zero_ns += lost
            self.stamp_ns += lost
            self.lost_s += lost * 1e-9
            behind = step
        self.robot.step(max(int(behind / step), 0))
        measured = self.robot.state()
        arrived = self.channel.pass_on(measured)
        for sample in arrived:
            stamp = self._stamp(sample.time)
            state = to_joint_state(self.robot.joint_names, stamp, sample.position, sample.velocity, sample.effort)
            self.state_publisher.publish(state)
        if arrived:  # publishers are held up together
            factor = self.faults.speed_scaling if self.faults.tell_speed_scaling else 1.0
            self.controller_state.publish(self._stamp(measured.time), self.robot.desired(), measured, factor)
        if self.clock_publisher is not None:
            self.clock_publisher.publish(ClockMessage(clock=self._stamp(self.robot.time)))

    def _stamp(self, time: float) -> Time:
        """Stamp of a simulated time [s]."""
        return to_time(self.stamp_ns + round(time * 1e9))

    def _read_faults(self) -> None:
        faults = read(self, FaultOptions, "fault.")
        if faults != self.faults:
            self._set_faults(faults)

    def _set_faults(self, faults: FaultOptions) -> None:
        self.faults = faults
        self.robot.scale(faults.speed_scaling)
        self.channel.faults = StateFaults(
            silent=faults.silent,
            frozen=faults.frozen,
            not_finite=faults.not_finite,
            delay=faults.delay_s,
            drop=faults.drop,
            stamp_offset=faults.stamp_offset_s,
            gap_rate=faults.gap_rate_hz,
            gap=faults.gap_s,
        )

    def _publish_truth(self) -> None:
        drives = {term: self.robot.drives.term(term) for term in DRIVE_TERMS}
        stamp = self.get_clock().now().to_msg()
        self.truth_publisher.publish(known_parameters(self.empty, self.robot.bodies, drives, stamp))

    def _attach(self, message: InertiaStamped) -> None:
        """Hold a body fixed to the link of its frame from now on, in place of what was held; without mass, nothing."""
        try:
            self.robot.become(self._holding(message))
        except InertidError as error:
            self.get_logger().error(f"attach: {error}")
            return
        self._publish_truth()
        self.get_logger().info(f"holds {message.inertia.m:g} kg")

    def _holding(self, message: InertiaStamped) -> RobotModel:
        if message.inertia.m == 0:
            return self.empty
        com = message.inertia.com
        upper = tuple(getattr(message.inertia, f"i{axes}") for axes in ("xx", "xy", "xz", "yy", "yz", "zz"))
        load = LoadOptions(
            message.header.frame_id, message.inertia.m, ("*",), com=(com.x, com.y, com.z),
            inertia=upper if any(upper) else (),
        )  # fmt: skip
        bodies = self.empty.consistent_body_prior + load_bodies(self.empty, {"attached": load}, "attached")
        return self.empty.with_prior_bodies(bodies)

    # Commands

    def _take_commands(self) -> None:
        for topic, command in self.commands:
            for message, _ in topic.take():
                try:
                    command(message)
                except InertidError as error:
                    self.get_logger().error(str(error))

    def _follow(self, message: JointTrajectory) -> None:
        points = from_joint_trajectory(message, self.robot.joint_names)
        stamp = to_nanoseconds(message.header.stamp)
        start = (stamp - self.stamp_ns) * 1e-9 if stamp else None
        trajectory = CommandedTrajectory(points.time, points.position, points.velocity, points.acceleration)
        self.robot.follow(trajectory, start)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Simulator)


if __name__ == "__main__":
    sys.exit(main())
