"""Simulated robots with a free base on force plates, with the topics of a laboratory."""


import attrs
import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.perturbation import perturb
from inertid_ros.robot.urdf_writing import write_urdf
from inertid_ros.ros.conversions import to_imu, to_joint_state, to_odometry, to_time, to_wrench
from inertid_ros.ros.diagnostics import DiagnosticsPublisher
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.parameters import read
from inertid_ros.ros.qos import LATCHED
from inertid_ros.simulation.force_plates.body_sensors import BodySample
from inertid_ros.simulation.force_plates.catalogue import STANCES, legged_robot
from inertid_ros.simulation.force_plates.legged_robot import LeggedRobot

from .diagnostics import robot_status
from .parameters import FaultOptions, SimulatorOptions

_LARGEST_LAG_S = 0.1


def described_model(truth: RobotModel, options: SimulatorOptions) -> RobotModel:
    """Return the robot as the simulator describes it: the true one, or one that is wrong by point masses."""
    if not options.perturb:
        return truth
    rng = np.random.default_rng(options.perturbation_seed)
    return load_model(write_urdf(truth, perturb(truth, rng, options.perturbation)), truth.options)


class ForcePlateRobot:
    """A MuJoCo biped or humanoid in real time. It balances, and moves when ``~/move`` asks it to.

    Publishes ``joint_states``, ``odometry``, ``imu``, ``<plate>/wrench`` for every plate, ``robot_description``, and
    latched ``~/moving`` and ``~/true_parameters``.

    Parameters
    ----------
    node : Node
        Of the simulator.
    options : SimulatorOptions
    """

    def __init__(self, node: Node, options: SimulatorOptions) -> None:
        self.node, self.options = node, options
        robot = legged_robot(options.legged_robot.robot, options.legged_robot.crouch_rad)
        known = attrs.evolve(options.robot, base="free", plates=STANCES[options.legged_robot.robot].plate_options())
        truth = load_model(robot.urdf, model_options(known))
        described = described_model(truth, options)
        # The balancing controller is based on the description, as that of a real robot is.
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
        if behind > _LARGEST_LAG_S:
            # A machine that cannot keep up slows the robot down; its stamps stay evenly spaced, without gaps.
            self.zero_ns += round((behind - _LARGEST_LAG_S) * 1e9)
            self.lost_s += behind - _LARGEST_LAG_S
            behind = _LARGEST_LAG_S
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
