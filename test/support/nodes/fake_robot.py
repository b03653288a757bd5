"""The judge: a robot outside the tested process that follows commands exactly, and checks all that it was told.

It runs in a thread of the test with a context of its own. It integrates the joint trajectories that it receives as a
controller does and keeps what it did, so that a test can see limits, rest, and how fast a stop came.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from support.nodes.ros_client import hurry
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.motions.basis_functions import FourierBasis
from inertid_ros.excitation.motions.trajectories import LinearTrajectory
from inertid_ros.excitation.plans.plan import Plan, plan_of
from inertid_ros.excitation.plans.plan_file import save_plan
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros.conversions import from_joint_trajectory, to_joint_state, to_nanoseconds, to_time
from inertid_ros.ros.qos import COMMAND, LATCHED
from inertid_ros.simulation.commands import CommandedTrajectory, Follower

PERIOD_S = 0.005

URDF = """<robot name="two_links">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.004" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="60"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="2" effort="40"/></joint>
</robot>"""


def two_links() -> tuple[RobotModel, MotionLimits]:
    """The robot of these tests."""
    model = load_model(URDF)
    return model, motion_limits(model)


def write_plan(path: Path, duration: float = 3.0, reach: float = 1.0) -> Plan:
    """A motion around the zero pose that uses most of the velocity limits, as a plan file."""
    model, limits = two_links()
    basis = FourierBasis(duration, 2)
    shape = np.random.default_rng(7).normal(size=(basis.size, model.joints))
    instants = np.linspace(0, duration, 400)
    used = LinearTrajectory(basis, np.zeros(model.joints), shape).sample(instants)
    bounds = (limits.upper, limits.velocity, limits.acceleration)
    use = max(float(np.max(np.abs(values) / bound)) for values, bound in zip(used, bounds, strict=True))
    motion = LinearTrajectory(basis, np.zeros(model.joints), 0.9 * reach / use * shape)
    plan = plan_of(motion, limits, motion_type="fourier", model_hash=model.hash)
    save_plan(plan, path)
    return plan


@dataclass(frozen=True)
class History:
    """What the robot did: steady time ``(N,)`` [s], and position, velocity, acceleration ``(N, n)`` at each period."""

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class FakeRobot:
    """Use as a context manager. Faults are attributes that may be set at any time."""

    def __init__(self) -> None:
        self.model, self.limits = two_links()
        self.last_state_at = 0.0
        self.reset()
        self._follower = Follower(np.zeros(self.model.joints))
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.node = rclpy.create_node("fake_robot", context=self._context)
        self._publisher = self.node.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
        description = self.node.create_publisher(String, "robot_description", LATCHED)
        description.publish(String(data=URDF))
        self.node.create_subscription(JointTrajectory, "joint_trajectory", self._command, COMMAND)
        self.node.create_subscription(Float64MultiArray, "position_commands", self._stream, COMMAND)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "FakeRobot":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()
        self._executor.shutdown(timeout_sec=0.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def reset(self) -> None:
        """No fault, nothing done and nothing commanded yet."""
        self.silent = self.frozen = self.not_finite = self.deaf = False
        self.stamp_offset_s = 0.0  # wrong stamps of states
        self.clock_offset_s = 0.0  # the robot's clock itself has stepped: stamps of states and of commands are its
        self.disturbance = np.zeros(self.model.joints)  # added to the reported position
        self.commands: list[tuple[float, JointTrajectory]] = []
        self.streamed: list[tuple[float, np.ndarray]] = []
        self.problems: list[str] = []
        self._periods: list[tuple] = []

    # What tests ask

    @property
    def history(self) -> History:
        return History(*(np.array(column) for column in zip(*list(self._periods), strict=True)))

    @property
    def speed(self) -> float:
        """Largest joint speed now."""
        return float(np.abs(self._follower.desired(time.monotonic())[1]).max())

    @property
    def at_rest(self) -> bool:
        return self.speed < 1e-6

    def check_limits(self) -> None:
        """Nothing that the robot did may have left the limits or jumped."""
        assert not self.problems, self.problems[0]
        slack, history = 1.02, self.history
        position, velocity, acceleration = history.position, history.velocity, history.acceleration
        assert (position <= self.limits.upper).all() and (position >= self.limits.lower).all()
        assert (np.abs(velocity) <= slack * self.limits.velocity).all(), np.abs(velocity).max(axis=0)
        assert (np.abs(acceleration) <= 1.5 * self.limits.acceleration).all(), np.abs(acceleration).max(axis=0)
        step = np.diff(history.time)[:, None]
        jump = np.abs(np.diff(position, axis=0)) - slack * self.limits.velocity * step
        assert jump.max() < 1e-3, jump.max()

    def stop_after(self, moment: float) -> float:
        """Steady time of the first command after ``moment`` that ends the motion sooner than those before did."""
        ends = [(at, at + to_nanoseconds(m.points[-1].time_from_start) * 1e-9) for at, m in self.commands]
        for (_, before), (at, end) in zip(ends, ends[1:], strict=False):
            if at >= moment and end < before - 0.02:
                return at
        raise AssertionError("no stop was commanded")

    def rest_after(self, moment: float) -> float:
        """Steady time from which on the robot did not move any more."""
        history = self.history
        moving = history.time[np.abs(history.velocity).max(axis=1) > 1e-6]
        assert len(moving) and moving[-1] < time.monotonic() - 0.1, "it still moves"
        return max(float(moving[-1]), moment)

    # The robot

    def _run(self) -> None:
        hurry()  # this thread alone
        due = time.monotonic()
        while not self._end.is_set():
            self._executor.spin_once(timeout_sec=max(due - time.monotonic(), 0.0))
            now = time.monotonic()
            if now < due:
                continue
            due = max(due + PERIOD_S, now - PERIOD_S)
            q, v, a = (np.array(values) for values in self._follower.desired(now))
            self._periods.append((now, q, v, a))
            self._publish(now, q, v)

    def _publish(self, now: float, position: np.ndarray, velocity: np.ndarray) -> None:
        if self.silent:
            return
        if self.frozen:
            position = self._frozen_at
        else:
            self._frozen_at = np.array(position)
            position = position + self.disturbance
        if self.not_finite:
            position = np.full_like(position, np.nan)
        stamp = to_time(round((now + self.stamp_offset_s + self.clock_offset_s) * 1e9) + self._offset_ns)
        self._publisher.publish(
            to_joint_state(self.model.joint_names, stamp, position, velocity, np.zeros_like(position))
        )
        self.last_state_at = now

    def _command(self, message: JointTrajectory) -> None:
        now = time.monotonic()
        self.commands.append((now, message))
        if self.deaf:
            return
        try:
            points = from_joint_trajectory(message, self.model.joint_names)
            stamp = to_nanoseconds(message.header.stamp)
            start = (stamp - self._offset_ns) * 1e-9 - self.clock_offset_s if stamp else now
            self._follower.follow(
                CommandedTrajectory(points.time, points.position, points.velocity, points.acceleration), now, start
            )
        except ExcitationError as error:
            if "ended" not in str(error):  # what comes after its end changes nothing
                self.problems.append(str(error))
        except Exception as error:  # the test reads it; the thread must go on
            self.problems.append(f"{error.__class__.__name__}: {error}")

    def _stream(self, message: Float64MultiArray) -> None:
        now = time.monotonic()
        self.streamed.append((now, np.array(message.data)))
        try:
            self._follower.stream(np.array(message.data), now)
        except ExcitationError as error:
            self.problems.append(str(error))
