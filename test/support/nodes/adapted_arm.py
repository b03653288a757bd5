"""The simulator and the adaptation node, and a client that sends references and grips payloads."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from support.nodes.processes import NodeProcess
from support.nodes.ros_client import RosClient, ros_client_in
from support.package_parameters import parameters_in
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.ros.conversions import to_joint_trajectory
from inertid_ros.ros.topics import COMMAND, PolledSubscription, recording_profile

CONFIGURE, CLEAN_UP, ACTIVATE, DEACTIVATE = 1, 2, 3, 4
JOINTS = tuple(f"panda_joint{index}" for index in range(1, 8))
START = np.array(parameters_in("adapt_simulated", "simulator")["start"])
SHAPE = 0.4 * np.array([1.0, 0.6, 1.0, 0.6, 1.0, 0.6, 1.0])


class AdaptedArm:
    """See the module; states and efforts are kept with their receipt by the middleware [s, steady]."""

    def __init__(self, ros: RosClient, start: Callable[[], NodeProcess]) -> None:
        self.ros, self._start = ros, start
        self.node = start()
        self.states: list[tuple[JointState, float]] = []
        self.efforts: list[tuple[Float64MultiArray, float]] = []
        self.problems: list[str] = []
        self.fastest = 0.0  # speed of a joint in the last motion of follow [rad/s]
        self._stops = 0
        depth = recording_profile("best_effort")
        self._states = PolledSubscription(ros.node, JointState, "joint_states", depth)
        self._efforts = PolledSubscription(ros.node, Float64MultiArray, "effort_commands", depth)
        self._attach = ros.node.create_publisher(InertiaStamped, "simulator/attach", 10)
        self._reference = ros.node.create_publisher(JointTrajectory, "adaptation/joint_trajectory", COMMAND)

    def take(self) -> None:
        self.states += self._states.take()
        self.efforts += self._efforts.take()

    def spin(self, seconds: float) -> None:
        """Spin, and take what comes."""
        for _ in range(max(1, round(seconds / 0.2))):
            self.ros.spin(min(seconds, 0.2))
            self.take()

    @property
    def position(self) -> np.ndarray:
        """Of the last joint state ``(7,)`` [rad]."""
        return self._of_joints("position")

    @property
    def speed(self) -> float:
        """Largest of a joint in the last joint state [rad/s]."""
        return float(np.abs(self._of_joints("velocity")).max())

    def _of_joints(self, key: str) -> np.ndarray:
        self.take()
        state = self.states[-1][0]
        return np.array([getattr(state, key)[state.name.index(joint)] for joint in JOINTS])

    def log(self) -> str:
        """Of the adaptation node."""
        return self.node.log()

    def until_moving(self, speed: float) -> None:
        self.ros.until(lambda: self.speed > speed, "motion")

    def until_rest(self, seconds: float = 0.4) -> None:
        """Wait until the arm has hardly moved for so long."""
        since = time.monotonic()

        def rests() -> bool:
            nonlocal since
            if self.speed > 0.05:
                since = time.monotonic()
            return time.monotonic() - since > seconds

        self.ros.until(rests, "rest")

    def go_to(self, target: np.ndarray, seconds: float) -> None:
        """Send a reference to a pose, and wait for rest there."""
        zero = np.zeros((1, 7))
        self.send(to_joint_trajectory(JOINTS, PiecewiseQuintic(np.array([seconds]), target[None], zero, zero)))
        self.spin(seconds)
        self.until_rest()

    def change_state(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self.ros.call(ChangeState, "adaptation/change_state", request).success)

    def active_again(self) -> None:
        """Activated anew, and back where motions begin."""
        self.until_rest()
        self.change_state(DEACTIVATE)
        assert self.change_state(ACTIVATE), self.log()
        self.go_to(START, 2.0)

    def held_up(self) -> bool:
        """Whether this machine has held a process up since the last call, which stops the arm."""
        before, reasons = self._stops, ("the controller was delayed", "no joint state")
        self._stops = sum(self.log().count(f"stopped: {reason}") for reason in reasons)
        return self._stops > before

    def undisturbed(self) -> None:
        """Activate anew if a process was held up: tests look at what else stops the arm."""
        if self.held_up():
            self.active_again()

    def follow(self, period: float) -> None:
        """Sway once to the end, and again if this machine has held a process up, or the reference until it was late."""
        for _ in range(10):
            self.undisturbed()
            begin, late = len(self.states), self.log().count("reference: began")
            self.sway(period)
            self.spin(0.3 + period)
            self.until_rest()
            if not self.held_up() and self.log().count("reference: began") == late:
                self.fastest = float(max(np.abs(state.velocity).max() for state, _ in self.states[begin:]))
                return
            self.active_again()
        raise AssertionError(f"this machine held a process up in ten motions\n{self.log()}")

    def restart(self) -> None:
        """Start the node again, and wait until it is in control."""
        self.node, self._stops = self._start(), 0
        self.efforts.clear()
        self.in_control()

    def in_control(self) -> None:
        """Wait until efforts come, and joint states: each node is discovered for itself, within seconds."""
        def come() -> bool:
            self.take()
            return len(self.efforts) > 10 and len(self.states) > 0

        self.ros.until(come, "efforts and joint states")
        self.ros.until(self._reference.get_subscription_count, "the node's subscription")
        self.spin(0.6)  # until the node has discovered this client, too

    def set_simulator(self, **values: Any) -> None:
        """Parameters of the simulator, with a dot for every double underscore."""
        parameters = [
            Parameter(
                name=name.replace("__", "."),
                value=ParameterValue(type=1, bool_value=value)
                if isinstance(value, bool)
                else ParameterValue(type=3, double_value=float(value)),
            )
            for name, value in values.items()
        ]
        answer = self.ros.call(SetParameters, "simulator/set_parameters", SetParameters.Request(parameters=parameters))
        assert all(each.successful for each in answer.results), answer

    def grip(self, mass: float, height: float = 0.15) -> None:
        """Hold a box on the last link from now on; without mass, nothing."""
        message = InertiaStamped()
        message.header.frame_id = "panda_link7"
        message.inertia.m, message.inertia.com.z = mass, height
        message.inertia.ixx = message.inertia.iyy = message.inertia.izz = mass * 0.1**2 / 6
        self._attach.publish(message)

    def sway(self, period: float = 4.0, rounds: int = 1, shape: np.ndarray = SHAPE) -> float:
        """Send a reference from the pose at the start and back, which begins in 0.3 s; return when [s, ROS time]."""
        time = np.linspace(0.0, period * rounds, 20 * rounds + 1)
        start = self.ros.node.get_clock().now().nanoseconds * 1e-9 + 0.3
        message = to_joint_trajectory(JOINTS, PiecewiseQuintic(time, *swayed(time, period, shape)))
        nanoseconds = round(start * 1e9)
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)
        self._reference.publish(message)
        return start

    def send(self, message: JointTrajectory) -> None:
        self._reference.publish(message)


def swayed(time: np.ndarray, period: float, shape: np.ndarray = SHAPE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity, acceleration ``(N, 7)`` of the reference at times since its start; at rest outside."""
    omega = 2 * np.pi / period
    angle = (omega * time)[:, None]
    return (
        START + 0.5 * shape * (np.cos(angle) - 1),
        -0.5 * omega * shape * np.sin(angle),
        -0.5 * omega**2 * shape * np.cos(angle),
    )


@contextmanager
def adapted_arm_in(
    folder: Path, parameters: Mapping[str, Any] | None = None, simulator: Mapping[str, Any] | None = None
) -> Iterator[AdaptedArm]:
    """The simulated Panda of adapt.launch.py, under control; ``parameters`` are those of the adaptation node."""
    own, adapted = (parameters_in("adapt_simulated", node) for node in ("simulator", "adaptation"))
    with ros_client_in(folder) as ros:
        ros.start("simulator", {**own, **(simulator or {})})
        yield AdaptedArm(ros, lambda: ros.start("adaptation", {**adapted, **(parameters or {})}))
