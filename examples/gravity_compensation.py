#!/usr/bin/env python3
"""An effort controller that uses identified parameters: compliant tracking with gravity and friction compensated.

It may start long after the identification: the parameters are latched. In each of two phases it acts like soft springs
along a slow motion around the robot's first pose: first with the URDF as given, then with the identified parameters. It
prints the tracking error of both phases. The springs are soft, so that model errors are directly visible.

    ros2 run inertid_ros gravity_compensation --ros-args \
        -p robot.locked_joint_names:="[panda_finger_joint1]" -p robot.locked_joints.panda_finger_joint1:=0.0

Topics: subscribes to joint_states, robot_description and identifier/parameters, publishes effort_commands
(std_msgs/Float64MultiArray, joint order of the robot description) like a forward_effort_controller.
"""

import sys
import time
from dataclasses import dataclass, field

import attrs
import numpy as np
import pinocchio as pin
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from inertid_ros.config.option_fields import option, section
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.nodes.spin import run_node
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros import ParameterSubscriber
from inertid_ros.ros.conversions import JointOrder, JointSample
from inertid_ros.ros.node_parameters import declare
from inertid_ros.ros.topics import COMMAND, LATCHED, STATE

PERIOD_S = 0.005
STALE_S = 0.1  # after older states, no command is sent, and the robot's own controller holds the robot


@attrs.frozen
class Options:
    """Parameters of the example."""

    phase_s: float = option(8.0, "length of each phase [s]", minimum=2.0, maximum=600.0)
    amplitude: float = option(0.15, "amplitude of every joint's motion [rad or m]", minimum=0.0, maximum=1.0)
    stiffness_hz: float = option(2.0, "natural frequency of the springs [Hz]", minimum=0.1, maximum=20.0)
    wait_s: float = option(20.0, "longest wait for robot and parameters [s]", minimum=1.0, maximum=3600.0)
    robot: RobotOptions = section(RobotOptions)


@dataclass
class Phase:
    """Squared tracking errors of one phase."""

    name: str
    started: float
    squares: list[np.ndarray] = field(default_factory=list)

    def rms(self) -> float:
        """Root mean square over all joints and samples without the first quarter, in which the robot settles."""
        return float(np.sqrt(np.mean(np.array(self.squares[len(self.squares) // 4 :]) ** 2)))


class GravityCompensation(Node):
    """The controller node; see the module's description."""

    def __init__(self) -> None:
        super().__init__("gravity_compensation")
        self.options = declare(self, Options)
        self.robot: RobotModel | None = None
        self.parameters: ParameterSubscriber | None = None
        self.received = -np.inf
        self.began = time.monotonic()
        self.state: JointSample | None = None
        self.phase: Phase | None = None
        self.results: dict[str, float] = {}
        self.done = False
        self.publisher = self.create_publisher(Float64MultiArray, "effort_commands", COMMAND)
        self.create_subscription(String, "robot_description", self.on_description, LATCHED)
        self.create_timer(PERIOD_S, self.step, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def on_description(self, message: String) -> None:
        """Load the first URDF and create everything that needs it."""
        if self.robot is not None:
            return
        self.robot = load_model(message.data, self.options.robot)
        self.order = JointOrder(self.robot.joint_names, self.robot.effort_scale, self.robot.recorded_joints)
        self.given, self.given_data = self.robot.pinocchio, self.robot.pinocchio.createData()
        self.parameters = ParameterSubscriber(self, self.robot)
        newest = QoSProfile(depth=1, reliability=STATE.reliability)
        self.create_subscription(JointState, "joint_states", self.on_state, newest)

    def on_state(self, message: JointState) -> None:
        """Keep the newest joint state."""
        sample = self.order.sample(message)
        if sample is not None:
            self.state, self.received = sample, time.monotonic()

    def step(self) -> None:
        """Run one control step."""
        now = time.monotonic()
        if self.phase is None:
            self.wait(now)
            return
        if now - self.received > STALE_S:
            return
        state, elapsed = self.state, now - self.phase.started
        position, velocity, acceleration = self.reference(elapsed)
        if self.phase.name == "given":
            effort = pin.rnea(self.given, self.given_data, position, velocity, acceleration)
        else:
            self.parameters.update()  # between two steps, never during one
            effort = self.parameters.inverse_dynamics(position, velocity, acceleration)
            effort = effort + self.parameters.drive("offset")
        effort = effort + self.stiffness * (position - state.position) + self.damping * (velocity - state.velocity)
        limit = self.robot.limits.effort
        self.publisher.publish(Float64MultiArray(data=np.clip(effort, -limit, limit).tolist()))
        self.phase.squares.append(position - state.position)
        if elapsed > self.options.phase_s:
            self.next_phase(now)

    def wait(self, now: float) -> None:
        """Begin the first phase once the robot and its parameters have arrived."""
        if self.state is not None and self.parameters is not None and self.parameters.waiting:
            self.home = self.state.position
            inertia = np.diag(pin.crba(self.given, self.given_data, self.home))
            omega = 2 * np.pi * self.options.stiffness_hz
            self.stiffness, self.damping = inertia * omega**2, 1.4 * inertia * omega
            self.phase = Phase("given", now)
        elif now - self.began > self.options.wait_s:
            have = {"robot_description": self.robot, "joint_states": self.state}
            missing = next((topic for topic, value in have.items() if value is None), "identifier/parameters")
            raise InertidError(f"gravity_compensation: no {missing} received; start its publisher")

    def reference(self, elapsed: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a slow wave around home, from rest to rest: two periods in a phase."""
        total = self.options.phase_s
        x = np.clip(elapsed / total, 0.0, 1.0)
        sign = np.where(np.arange(len(self.home)) % 2, -1.0, 1.0) * self.options.amplitude
        # sin^2(pi x) keeps both ends at rest.
        w = 2 * np.pi / total
        shape = 0.5 * (1 - np.cos(2 * w * x * total))
        rate = w * np.sin(2 * w * x * total)
        change = 2 * w**2 * np.cos(2 * w * x * total)
        return self.home + sign * shape, sign * rate, sign * change

    def next_phase(self, now: float) -> None:
        """Store the error; after both phases, print the errors and end."""
        self.results[self.phase.name] = self.phase.rms()
        if self.phase.name == "given":
            self.phase = Phase("calibrated", now)
            return
        given, calibrated = self.results["given"], self.results["calibrated"]
        print(f"tracking error with the URDF as given:      {1e3 * given:.2f} mrad RMS")
        print(f"tracking error with identified parameters:  {1e3 * calibrated:.2f} mrad RMS", flush=True)
        self.done = True


def main() -> int:
    """Entry point of the executable."""
    return run_node(GravityCompensation)


if __name__ == "__main__":
    sys.exit(main())
