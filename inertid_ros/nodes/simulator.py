"""Simulator node: a MuJoCo arm, a space robot, or a robot on force plates, in real time, with a real robot's topics."""

from collections.abc import Callable, Mapping, Sequence
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
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.config.nodes import FaultOptions, SimulatorOptions
from inertid_ros.config.robot import DRIVE_TERMS, LoadOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError, ModelError
from inertid_ros.core.samples import StateSample
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.body_changes import load_bodies, perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.ros import conversions
from inertid_ros.ros.controller import optional_type
from inertid_ros.ros.diagnostics import WARN, DiagnosticsPublisher, Status, judged
from inertid_ros.ros.node_parameters import declare, guard, read
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.topics import COMMAND, LATCHED, STEADY, PolledSubscription
from inertid_ros.simulation.example_robots import example_urdf, legged_robot, packaged_urdf
from inertid_ros.simulation.legged_robot import LeggedRobot
from inertid_ros.simulation.sensors import BodySample, FaultyChannel, FloatingSample
from inertid_ros.simulation.simulated_robot import SimulatedRobot

from .spin import run_node

# A real robot moves on while this computer pauses (a virtual machine under load pauses for 0.1 s at a time), so the
# simulation catches up after short pauses. After a longer pause, the simulated time continues from its last value.
_MAX_LAG_S = 0.3
_MAX_LOST_S = 0.5  # a larger loss of simulated time means that the machine is too slow, not just busy for a moment
_FAULTS_PERIOD_S = 0.2  # between two reads of the parameters fault.*
_SENSOR = QoSProfile(depth=50)


class Simulator(Node):
    """Node with a :class:`SimulatedArm`, or a :class:`ForcePlateRobot` if ``legged_robot.robot`` is set."""

    def __init__(self) -> None:
        super().__init__("simulator")
        options = declare(self, SimulatorOptions)
        declare(self, FaultOptions, read_only=False, prefix="fault.")
        guard(self, FaultOptions, lambda: "", prefix="fault.")
        self.tick_s = 1.0 / options.state_hz
        kind: type[SimulatedArm | ForcePlateRobot] = ForcePlateRobot if options.legged_robot.robot else SimulatedArm
        self.simulation = kind(self, options)
        self.tick = self.simulation.tick


class Simulation:
    """Time, faults and topics that the simulated robots share.

    Physics follows the steady clock; stamps are the system time at the start plus the simulated time. Publishes
    ``joint_states``, ``robot_description``, ``~/true_parameters`` and, if configured, ``/clock``.
    """

    def __init__(self, node: Node, options: SimulatorOptions, truth: RobotModel) -> None:
        self.node, self.options, self.truth = node, options, truth
        self.described = truth  # robot of the published description; `perturb` adds errors by point masses
        if options.perturb:
            bodies = perturb(truth, np.random.default_rng(options.perturbation_seed), options.perturbation)
            self.described = load_model(write_urdf(truth, bodies), truth.options)
        self.faults = read(node, FaultOptions, "fault.")
        self.lost_s = 0.0  # simulated time lost in pauses so far
        self.states = node.create_publisher(JointState, "joint_states", _SENSOR)
        self.clock_publisher = node.create_publisher(ClockMessage, "/clock", 10) if options.publish_clock else None
        self.description = node.create_publisher(String, "robot_description", LATCHED)
        self.description.publish(String(data=self.described.urdf))
        self.true_parameters = node.create_publisher(InertialParameters, "~/true_parameters", LATCHED)

    def start(self, robot: SimulatedRobot | LeggedRobot, details: str) -> None:
        """Start the simulated time and the diagnostics of a robot; ``details`` ends the log message."""
        self.diagnostics = DiagnosticsPublisher(self.node, lambda: [self._status(robot)], lambda: self.truth.name)
        self.zero_ns = STEADY.now().nanoseconds  # steady clock at simulated time zero
        self.stamp_ns = Clock(clock_type=ClockType.SYSTEM_TIME).now().nanoseconds  # stamp at simulated time zero
        self.node.create_timer(_FAULTS_PERIOD_S, self._read_faults, clock=STEADY)
        self.node.get_logger().info(f"simulating '{self.truth.name}' with {self.truth.joints} joints{details}")

    def _behind(self, time_s: float, kept_s: float) -> tuple[float, int]:
        """Return the lag of the simulated time ``time_s`` behind the steady clock [s], and the time lost now [ns].

        After a long pause, all of the lag except ``kept_s`` is lost: the robot continues from its last state.
        """
        behind = (STEADY.now().nanoseconds - self.zero_ns) * 1e-9 - time_s
        if behind <= _MAX_LAG_S:
            return behind, 0
        lost_ns = round((behind - kept_s) * 1e9)
        self.zero_ns += lost_ns
        self.lost_s += lost_ns * 1e-9
        return kept_s, lost_ns

    def _stamp(self, time_s: float) -> Time:
        return conversions.to_time(self.stamp_ns + round(time_s * 1e9))

    def _publish_state(self, joints: Sequence[str], sample: StateSample, stamp: Time) -> None:
        channels = (sample.position, sample.velocity, sample.effort)
        self.states.publish(conversions.to_joint_state(joints, stamp, *channels))

    def _publish_clock(self, time_s: float) -> None:
        if self.clock_publisher is not None:
            self.clock_publisher.publish(ClockMessage(clock=self._stamp(time_s)))

    def _publish_truth(self, bodies: Array, drives: Mapping[str, Array]) -> None:
        stamp = self.node.get_clock().now().to_msg()
        self.true_parameters.publish(known_parameters(self.truth, bodies, drives, stamp))

    def _read_faults(self) -> None:
        self.faults = read(self.node, FaultOptions, "fault.")

    def _status(self, robot: SimulatedRobot | LeggedRobot) -> Status:
        defaults, faults = attrs.asdict(FaultOptions()), attrs.asdict(self.faults)
        asked = ", ".join(f"fault.{name}" for name, value in faults.items() if value != defaults[name])
        slow = f"{self.lost_s:.1f} s behind the clock; reduce the load of this machine"
        values = {"Simulated time (s)": robot.time, "Lost time (s)": self.lost_s, "Faults": asked}
        return judged(
            "robot", values,
            (WARN, asked and f"faults on request: {asked}"),
            (WARN, slow if self.lost_s > _MAX_LOST_S else ""),
            otherwise="simulating")


class SimulatedArm(Simulation):
    """A MuJoCo arm in real time with the topics of trajectory, position stream and effort controllers.

    With ``robot.base: free`` the root link floats, reaction wheels are further joints, and ``odometry`` is published.
    """

    def __init__(self, node: Node, options: SimulatorOptions) -> None:
        floating = options.robot.base == "free"
        urdf = packaged_urdf("space_robot") if floating else example_urdf()
        super().__init__(node, options, load_model(read_description(options.urdf or urdf), options.robot))
        start = np.array(options.start) if options.start else None
        self.robot = robot = SimulatedRobot(self.truth.commanded, options.simulation, start=start, floating=floating)
        self.odometry = node.create_publisher(Odometry, "odometry", _SENSOR) if floating else None
        self.channel = FaultyChannel(np.random.default_rng(options.simulation.seed))
        self._apply_faults()
        self.controller_state = ControllerState(node, options.controller, robot.joint_names)
        self._publish_robot()
        trajectories = f"{options.controller}/joint_trajectory".lstrip("/")
        self.commands: list[tuple[PolledSubscription, Callable[[Any], None]]] = [
            (PolledSubscription(node, message_type, topic, COMMAND), command)
            for message_type, topic, command in (
                (JointTrajectory, trajectories, self._follow),
                (Float64MultiArray, "position_commands", lambda message: robot.stream(np.array(message.data))),
                (Float64MultiArray, "effort_commands", lambda message: robot.command_effort(np.array(message.data))))]
        node.create_subscription(InertiaStamped, "~/attach", self._attach, COMMAND)
        self.start(robot, "")

    def tick(self) -> None:
        for topic, command in self.commands:
            for message, _ in topic.take():
                try:
                    command(message)
                except InertidError as error:
                    self.node.get_logger().error(str(error))
        step = self.options.simulation.timestep_s
        behind, lost_ns = self._behind(self.robot.time, step)
        self.stamp_ns += lost_ns  # a pause appears as a gap between stamps
        self.robot.step(max(int(behind / step), 0))
        measured = self.robot.state()
        arrived = self.channel.pass_on(measured)
        for sample in arrived:
            stamp = self._stamp(sample.time)
            self._publish_state(self.robot.joint_names, sample, stamp)
            if self.odometry is not None and isinstance(sample, FloatingSample):
                base = self.truth.link_names[0]
                self.odometry.publish(conversions.to_odometry(sample.base_pose, sample.base_twist, base, stamp))
        if arrived:  # a simulated delay holds back the controller's state, too
            factor = self.faults.speed_scaling if self.faults.tell_speed_scaling else 1.0
            self.controller_state.publish(self._stamp(measured.time), self.robot.desired(), measured, factor)
        self._publish_clock(self.robot.time)

    def _read_faults(self) -> None:
        before = self.faults
        super()._read_faults()
        if self.faults != before:
            self._apply_faults()

    def _apply_faults(self) -> None:
        self.robot.scale(self.faults.speed_scaling)
        self.channel.faults = self.faults

    def _publish_robot(self) -> None:
        joints = [self.robot.joint_names.index(name) for name in self.truth.joint_names]
        drives = {term: self.robot.drives.term(term)[joints] for term in DRIVE_TERMS}
        self._publish_truth(self.truth.consistent_body_prior if self.truth.free else self.robot.bodies, drives)

    def _attach(self, message: InertiaStamped) -> None:
        """Attach a body to the link ``frame_id`` in place of the last attached body; with mass 0, only remove it."""
        try:
            self.robot.become(self._holding(message))
        except InertidError as error:
            self.node.get_logger().error(f"attach: {error}")
            return
        self._publish_robot()
        self.node.get_logger().info(f"holds {message.inertia.m:g} kg")

    def _holding(self, message: InertiaStamped) -> RobotModel:
        if self.truth.free:
            raise ModelError("a floating robot cannot take a load here; simulate one on a fixed base")
        if message.inertia.m == 0:
            return self.truth
        mass, x, y, z, *upper = conversions.from_inertia(message.inertia).tolist()
        inertia = tuple(upper) if any(upper) else ()
        load = LoadOptions(message.header.frame_id, mass, ("*",), com=(x, y, z), inertia=inertia)
        bodies = self.truth.consistent_body_prior + load_bodies(self.truth, {"attached": load}, "attached")
        return self.truth.with_prior_bodies(bodies)

    def _follow(self, message: JointTrajectory) -> None:
        stamp = conversions.to_nanoseconds(message.header.stamp)
        start = (stamp - self.stamp_ns) * 1e-9 if stamp else None
        self.robot.follow(conversions.from_joint_trajectory(message, self.robot.joint_names), start)


class ForcePlateRobot(Simulation):
    """A MuJoCo biped or humanoid in real time, which balances, and moves when the service ``~/move`` is called.

    Also publishes ``odometry``, ``imu``, ``<plate>/wrench`` for every plate, and latched ``~/moving``.
    """

    def __init__(self, node: Node, options: SimulatorOptions) -> None:
        robot = legged_robot(options.legged_robot.robot, options.legged_robot.crouch_rad)
        robot_options = attrs.evolve(options.robot, base="free", plates=robot.plate_options())
        super().__init__(node, options, load_model(robot.urdf, robot_options))
        # As on a real robot, the balancing controller uses the published description, which may be wrong.
        self.robot = LeggedRobot(robot, options.legged_robot, controller_urdf=self.described.urdf)
        self.frozen: dict[str, Array] = {}  # wrenches of frozen plates
        self.odometry = node.create_publisher(Odometry, "odometry", _SENSOR)
        self.imu = node.create_publisher(Imu, "imu", _SENSOR)
        self.plates = {
            plate.name: node.create_publisher(WrenchStamped, f"{plate.name}/wrench", _SENSOR) for plate in robot.plates}
        self._publish_truth(self.truth.body_prior, dict.fromkeys(DRIVE_TERMS, np.zeros(self.truth.joints)))
        self.moving_publisher = node.create_publisher(Bool, "~/moving", LATCHED)
        self.moving: bool | None = None
        self._publish_moving()
        node.create_service(Trigger, "~/move", self._move)
        self.start(self.robot, f" on {len(robot.plates)} plates")

    def _move(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = not self.robot.moving, "the robot is already moving"
        if response.success:
            self.robot.move()
            self._publish_moving()
            response.message = f"moving for {self.robot.movement.duration:.1f} s"
        return response

    def _publish_moving(self) -> None:
        if self.robot.moving != self.moving:
            self.moving = self.robot.moving
            self.moving_publisher.publish(Bool(data=self.moving))

    def tick(self) -> None:
        """Advance to the present, and publish samples that are evenly spaced in simulated time."""
        # On an overloaded machine, the robot slows down, but its stamps have no gaps.
        behind, _ = self._behind(self.robot.time, _MAX_LAG_S)
        step = self.options.legged_robot.timestep_s
        per_sample = max(round(1.0 / (self.options.state_hz * step)), 1)
        for _ in range(int(behind / (step * per_sample))):
            self.robot.step(per_sample)
            self._publish(self.robot.state())
        self._publish_moving()

    def _publish(self, sample: BodySample) -> None:
        faults = self.faults
        stamp = self._stamp(sample.time + faults.stamp_offset_s)
        if not faults.silent:
            self._publish_state(self.robot.joint_names, sample, stamp)
        base = self.truth.link_names[0]
        self.odometry.publish(conversions.to_odometry(sample.base_pose, sample.base_twist, base, stamp))
        self.imu.publish(conversions.to_imu(sample.specific_force, sample.rate, self.robot.robot.imu, stamp))
        for plate, publisher in self.plates.items():
            wrench = sample.wrenches[plate] * (-1.0 if plate in faults.reversed_plates else 1.0)
            if plate in faults.frozen_plates:
                wrench = self.frozen.setdefault(plate, wrench)
            else:
                self.frozen.pop(plate, None)
            if plate not in faults.silent_plates:
                publisher.publish(conversions.to_wrench(wrench, plate, stamp))
        self._publish_clock(sample.time)


class ControllerState:
    """Publisher of ``<controller>/controller_state``; inactive without control_msgs, or if ``controller`` is empty."""

    def __init__(self, node: Node, controller: str, joint_names: Sequence[str]) -> None:
        self._joint_names, self._publisher = list(joint_names), None
        self._type = optional_type("control_msgs.msg", "JointTrajectoryControllerState")
        if controller and self._type is not None:
            self._publisher = node.create_publisher(self._type, f"{controller}/controller_state", QoSProfile(depth=1))

    def publish(self, stamp: Time, reference: Sequence[Array], measured: StateSample, factor: float) -> None:
        """Publish the reference (position, velocity, acceleration; each ``(n,)``), measured state and speed scaling."""
        if self._publisher is None:
            return
        position, velocity, acceleration = reference
        point = conversions.to_point
        self._publisher.publish(self._type(
            header=Header(stamp=stamp), joint_names=self._joint_names, speed_scaling_factor=factor,
            reference=point(position, velocity, acceleration), feedback=point(measured.position, measured.velocity),
            error=point(position - measured.position, velocity - measured.velocity)))


def main() -> int:
    return run_node(Simulator)
