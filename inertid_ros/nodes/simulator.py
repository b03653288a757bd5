"""Simulator node: a MuJoCo arm, or a robot on force plates, in real time, with the topics of a real one."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, Header, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from inertid_ros.config.nodes import FaultOptions, SimulatorOptions
from inertid_ros.config.robot import DRIVE_TERMS, LoadOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.body_changes import load_bodies, perturb
from inertid_ros.robot.model import RobotModel, load_model, model_options
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.robot.urdf_writing import write_urdf
from inertid_ros.ros.conversions import (
    from_joint_trajectory,
    to_imu,
    to_joint_state,
    to_nanoseconds,
    to_odometry,
    to_time,
    to_wrench,
)
from inertid_ros.ros.diagnostics import WARN, DiagnosticsPublisher, Status, gravest
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.parameters import declare, guard, read
from inertid_ros.ros.topics import COMMAND, LATCHED, PolledSubscription
from inertid_ros.simulation.controller import CommandedTrajectory
from inertid_ros.simulation.example_robots import STANCES, example_urdf, legged_robot
from inertid_ros.simulation.legged_robot import LeggedRobot
from inertid_ros.simulation.sensors import BodySample, FaultyChannel, StateFaults, StateSample
from inertid_ros.simulation.simulated_robot import SimulatedRobot

from .spin import run_node

_MAX_LAG_S = 0.1  # after a longer pause the simulated time goes on where it was and does not catch up
_MAX_LOST_S = 0.5  # behind the clock; more means that the machine is too slow, and not merely busy for a moment


class Simulator(Node):
    """A simulated arm, or a :class:`ForcePlateRobot`.

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
        self.empty = truth  # without an attached body
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
                (Float64MultiArray, "position_commands", lambda message: robot.stream(np.array(message.data))),
                (Float64MultiArray, "effort_commands", lambda message: robot.command_effort(np.array(message.data))),
            )
        ]
        self.create_subscription(InertiaStamped, "~/attach", self._attach, COMMAND)
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.lost_s = 0.0  # by how much the robot has fallen behind the steady clock
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
        if behind > _MAX_LAG_S:
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
        if arrived:  # both publishers are held up together
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
        """Hold a body fixed to the link of its frame, in place of the body before; one without mass is none."""
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


def described_model(truth: RobotModel, options: SimulatorOptions) -> RobotModel:
    """Return the robot that the simulator publishes: the true one, or one that is wrong by point masses."""
    if not options.perturb:
        return truth
    rng = np.random.default_rng(options.perturbation_seed)
    return load_model(write_urdf(truth, perturb(truth, rng, options.perturbation)), truth.options)


class ForcePlateRobot:
    """A MuJoCo biped or humanoid in real time. It balances, and moves when ``~/move`` asks it to.

    Publishes ``joint_states``, ``odometry``, ``imu``, ``<plate>/wrench`` for every plate, ``robot_description``, and
    latched ``~/moving`` and ``~/true_parameters``.
    """

    def __init__(self, node: Node, options: SimulatorOptions) -> None:
        self.node, self.options = node, options
        robot = legged_robot(options.legged_robot.robot, options.legged_robot.crouch_rad)
        robot_options = attrs.evolve(
            options.robot, base="free", plates=STANCES[options.legged_robot.robot].plate_options()
        )
        truth = load_model(robot.urdf, model_options(robot_options))
        described = described_model(truth, options)
        # The balancing controller is based on the wrong description, as on a real robot.
        self.robot = LeggedRobot(robot, options.legged_robot, controller_urdf=described.urdf)
        self.faults = FaultOptions()
        self.frozen: dict[str, np.ndarray] = {}
        sensor = QoSProfile(depth=50)
        self.states = node.create_publisher(JointState, "joint_states", sensor)
        self.odometry = node.create_publisher(Odometry, "odometry", sensor)
        self.imu = node.create_publisher(Imu, "imu", sensor)
        self.plates = {
            plate.name: node.create_publisher(WrenchStamped, f"{plate.name}/wrench", sensor) for plate in robot.plates
        }
        self.clock_publisher = node.create_publisher(ClockMessage, "/clock", 10) if options.publish_clock else None
        self.description = node.create_publisher(String, "robot_description", LATCHED)
        self.description.publish(String(data=described.urdf))
        self.true_parameters = node.create_publisher(InertialParameters, "~/true_parameters", LATCHED)
        drives = {term: np.zeros(truth.joints) for term in DRIVE_TERMS}
        stamp = node.get_clock().now().to_msg()
        self.true_parameters.publish(known_parameters(truth, truth.body_prior, drives, stamp))
        self.moving_publisher = node.create_publisher(Bool, "~/moving", LATCHED)
        self.moving = False
        self.moving_publisher.publish(Bool(data=False))
        node.create_service(Trigger, "~/move", self._move)
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.zero_ns = self.steady.now().nanoseconds
        self.lost_s = 0.0
        self.diagnostics = DiagnosticsPublisher(
            node, lambda: [robot_status(self.robot.time, self.lost_s, self.faults)], lambda: truth.name
        )
        self.stamp_ns = Clock(clock_type=ClockType.SYSTEM_TIME).now().nanoseconds
        node.create_timer(0.2, self._read_faults, clock=self.steady)
        node.get_logger().info(f"simulating '{truth.name}' with {truth.joints} joints on {len(robot.plates)} plates")

    def _move(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = not self.robot.moving
        if response.success:
            self.robot.move()
            self._publish_moving()
            response.message = f"moving for {self.robot.movement.duration:.1f} s"
        else:
            response.message = "the robot is moving already"
        return response

    def _publish_moving(self) -> None:
        if self.robot.moving != self.moving:
            self.moving = self.robot.moving
            self.moving_publisher.publish(Bool(data=self.moving))

    def tick(self) -> None:
        """Advance to now, and publish."""
        now = self.steady.now().nanoseconds
        step = self.options.legged_robot.timestep_s
        behind = (now - self.zero_ns) * 1e-9 - self.robot.time
        if behind > _MAX_LAG_S:
            # A machine that cannot keep up slows the robot down; its stamps stay evenly spaced, without gaps.
            self.zero_ns += round((behind - _MAX_LAG_S) * 1e9)
            self.lost_s += behind - _MAX_LAG_S
            behind = _MAX_LAG_S
        # Samples are evenly spaced in simulated time, whenever the timer comes.
        per_sample = max(round(1.0 / (self.options.state_hz * step)), 1)
        for _ in range(int(behind / (step * per_sample))):
            self.robot.step(per_sample)
            self._publish(self.robot.state())
        self._publish_moving()

    def _read_faults(self) -> None:
        self.faults = read(self.node, FaultOptions, "fault.")

    def _publish(self, sample: BodySample) -> None:
        faults = self.faults
        time_ns = self.stamp_ns + round(sample.time * 1e9)
        stamp = to_time(time_ns + round(faults.stamp_offset_s * 1e9))
        names = self.robot.joint_names
        if not faults.silent:
            self.states.publish(to_joint_state(names, stamp, sample.position, sample.velocity, sample.effort))
        self.odometry.publish(to_odometry(sample.base_pose, sample.base_twist, self.robot.world.root, stamp))
        self.imu.publish(to_imu(sample.specific_force, sample.rate, self.robot.robot.imu, stamp))
        for plate, publisher in self.plates.items():
            wrench = sample.wrenches[plate] * (-1.0 if plate in faults.reversed_plates else 1.0)
            if plate in faults.frozen_plates:
                wrench = self.frozen.setdefault(plate, wrench)
            else:
                self.frozen.pop(plate, None)
            if plate not in faults.silent_plates:
                publisher.publish(to_wrench(wrench, plate, stamp))
        if self.clock_publisher is not None:
            self.clock_publisher.publish(ClockMessage(clock=to_time(time_ns)))


class ControllerState:
    """Publisher of ``<controller>/controller_state``; none if control_msgs is not installed or the name is empty."""

    def __init__(self, node: Node, controller: str, joint_names: Sequence[str]) -> None:
        self._joint_names, self._publisher = list(joint_names), None
        try:
            from control_msgs.msg import JointTrajectoryControllerState
        except ImportError:
            return
        self._type: Any = JointTrajectoryControllerState
        if controller:
            self._publisher = node.create_publisher(self._type, f"{controller}/controller_state", QoSProfile(depth=1))

    def publish(self, stamp: Time, reference: Sequence[Array], measured: StateSample, factor: float) -> None:
        """Publish one cycle: position, velocity and acceleration of the reference ``(n,)``, and the speed scaling."""
        if self._publisher is None:
            return
        position, velocity, acceleration = reference
        self._publisher.publish(
            self._type(
                header=Header(stamp=stamp),
                joint_names=self._joint_names,
                reference=_point(position, velocity, acceleration),
                feedback=_point(measured.position, measured.velocity),
                error=_point(position - measured.position, velocity - measured.velocity),
                speed_scaling_factor=factor,
            )
        )


def _point(*values: Array) -> JointTrajectoryPoint:
    names = ("positions", "velocities", "accelerations")
    return JointTrajectoryPoint(**dict(zip(names, (value.tolist() for value in values), strict=False)))


def robot_status(time_s: float, lost_s: float, faults: FaultOptions) -> Status:
    """Status of the simulation: its time, the time lost in all, and the faults that were asked for."""
    defaults = attrs.asdict(FaultOptions())
    asked = ", ".join(f"fault.{name}" for name, value in attrs.asdict(faults).items() if value != defaults[name])
    level, message = gravest(
        (WARN, asked and f"faults on request: {asked}"),
        (WARN, f"{lost_s:.1f} s behind the clock; take other work off this machine" if lost_s > _MAX_LOST_S else ""),
        otherwise="simulating",
    )
    values = {"Simulated time (s)": time_s, "Lost time (s)": lost_s, "Faults": asked}
    return Status("robot", level, message, values)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Simulator)


if __name__ == "__main__":
    sys.exit(main())
