"""A robot that follows commands exactly and keeps what it did.

Its arguments are ADDRESS PREFIX [--ros-args ...]; its joints have the prefix in all messages.

A process of its own, without garbage collection and before other processes where that is allowed: whatever holds the
test up, its joint states come every 5 ms. It integrates joint trajectories as a controller does. The test asks and
changes it over the connection to that address, see :mod:`support.nodes.fake_robot`.
"""

import contextlib
import gc
import sys
import time
from multiprocessing.connection import Client, Connection

import numpy as np
import pinocchio
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from support.nodes.fake_robot import PERIOD_S, Command, Faults, Record
from support.nodes.processes import raise_priority
from support.nodes.two_links import COULOMB, NOISE, TRUE_URDF, URDF, VISCOUS, two_links
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.core.errors import ExcitationError
from inertid_ros.ros.conversions import from_joint_trajectory, to_joint_state, to_nanoseconds, to_time
from inertid_ros.ros.topics import COMMAND, LATCHED
from inertid_ros.simulation.controller import Follower


class Robot:
    """The node, and the loop that moves it."""

    def __init__(self, test: Connection, prefix: str) -> None:
        self._test = test
        model, _ = two_links()
        self._inertias = pinocchio.buildModelFromXML(TRUE_URDF)
        self._inertias_data, self._noise = self._inertias.createData(), np.random.default_rng(0)
        self._joint_names = tuple(prefix + name for name in model.joint_names)
        self.last_state_at = 0.0
        self.reset()
        rclpy.init()
        self.node = rclpy.create_node("fake_robot")
        self._publisher = self.node.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
        description = self.node.create_publisher(String, "robot_description", LATCHED)
        description.publish(String(data=URDF))
        self.node.create_subscription(JointTrajectory, "joint_trajectory", self._command, COMMAND)
        self.node.create_subscription(Float64MultiArray, "position_commands", self._stream, COMMAND)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)

    def run(self) -> None:
        """Until the test closes the connection."""
        due = time.monotonic()
        while True:
            self._executor.spin_once(timeout_sec=max(due - time.monotonic(), 0.0))
            now = time.monotonic()
            if now < due:
                continue
            due = max(due + PERIOD_S, now - PERIOD_S)
            q, v, a = (np.array(values) for values in self._follower.desired(now))
            self._periods.append((now, q, v, a))
            self._publish(now, q, v, self._effort(q, v, a))
            while self._test.poll():
                name, *arguments = self._test.recv()
                self._test.send(getattr(self, name)(*arguments))

    # What the test asks

    def reset(self) -> None:
        """At rest where plans begin, without faults, nothing done and nothing commanded yet."""
        self._follower = Follower(np.zeros(len(self._joint_names)))
        self.faults = Faults()
        self.holds = 0
        self.commands: list[Command] = []
        self.streamed: list[tuple[float, np.ndarray]] = []
        self.problems: list[str] = []
        self._periods: list[tuple] = []

    def set_faults(self, faults: Faults) -> None:
        """Instead of those of before."""
        self.faults = faults

    def speed(self) -> float:
        """Largest joint speed now [rad/s]."""
        return float(np.abs(self._follower.desired(time.monotonic())[1]).max())

    def record(self) -> Record:
        """Everything since the last reset."""
        columns = [np.array(column) for column in zip(*self._periods, strict=True)]
        return Record(*columns, self.commands, self.holds, self.streamed, self.problems, self.last_state_at)

    # The robot

    def _effort(self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        rigid = pinocchio.rnea(self._inertias, self._inertias_data, position, velocity, acceleration)
        friction = VISCOUS * velocity + COULOMB * np.tanh(velocity / 0.01)
        return rigid + friction + NOISE * self._noise.normal(size=len(position))

    def _publish(self, now: float, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray) -> None:
        faults = self.faults
        if faults.silent:
            return
        position = np.full_like(position, np.nan) if faults.not_finite else position + faults.disturbance
        stamp = to_time(round((now + faults.stamp_offset_s) * 1e9) + _wall_offset_ns())
        self._publisher.publish(
            to_joint_state(self._joint_names, stamp, position, velocity, effort)
        )
        self.last_state_at = now

    def _command(self, message: JointTrajectory) -> None:
        now = time.monotonic()
        if not message.points:  # a controller holds its position
            self.holds += 1
            self._follower.hold(self._follower.desired(now)[0])
            return
        try:
            points = from_joint_trajectory(message, self._joint_names)
            stamp = to_nanoseconds(message.header.stamp)
            start = (stamp - _wall_offset_ns()) * 1e-9 if stamp else now
            self._follower.follow(points, now, start)
            arrays = points.time, points.position, points.velocity, points.acceleration
            self.commands.append(Command(now, start, *arrays))
        except ExcitationError as error:
            if "ended" not in str(error):  # what comes after its end changes nothing
                self.problems.append(str(error))
        except Exception as error:  # the test reads it; the robot must go on
            self.problems.append(f"{error.__class__.__name__}: {error}")

    def _stream(self, message: Float64MultiArray) -> None:
        now = time.monotonic()
        self.streamed.append((now, np.array(message.data)))
        try:
            self._follower.stream(np.array(message.data), now)
        except ExcitationError as error:
            self.problems.append(str(error))


def _wall_offset_ns() -> int:
    """Asked each time, as the wall clock may be set."""
    return time.time_ns() - time.monotonic_ns()


def main() -> None:
    """Move, and answer, until the test ends."""
    gc.disable()
    raise_priority()
    with Client(sys.argv[1]) as connection, contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        Robot(connection, sys.argv[2]).run()
