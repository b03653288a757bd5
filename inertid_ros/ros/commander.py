"""How horizons reach the robot: a trajectory topic, FollowJointTrajectory goals, or a stream of positions."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from rclpy.action import ActionClient
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ..errors import ExcitationError
from ..excitation.execution import Horizon
from ..robot.parameters import Array
from .conversions import TrajectoryArrays, to_joint_trajectory, to_time
from .qos import COMMAND


class Commander(Protocol):
    """What the excitation node needs of a command interface."""

    def problem(self) -> str:
        """Why commands would not arrive, or who else commands; empty when all is well."""
        ...

    def send(self, horizon: Horizon) -> None:
        """Replace what the robot follows."""
        ...

    def stream(self, position: Array) -> None:
        """Position commanded at this tick; only streams use it."""
        ...


def make_commander(node: Node, interface: str, joint_names: Sequence[str]) -> Commander:
    """Commander of a kind.

    Raises
    ------
    ExcitationError: the kind is unknown, or its messages are not installed.
    """
    kinds: dict[str, Callable[[Node, tuple[str, ...]], Commander]] = {
        "joint_trajectory": TrajectoryCommander,
        "follow_joint_trajectory": ActionCommander,
        "position_stream": StreamCommander,
    }
    if interface not in kinds:
        raise ExcitationError(f"command_interface '{interface}' is unknown; use one of {list(kinds)}")
    return kinds[interface](node, tuple(joint_names))


class TrajectoryCommander:
    """``trajectory_msgs/JointTrajectory`` on ``joint_trajectory``."""

    def __init__(self, node: Node, _joint_names: tuple[str, ...]) -> None:
        self._node = node
        self._publisher = node.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)

    def problem(self) -> str:
        return _publisher_problem(self._node, self._publisher)

    def send(self, horizon: Horizon) -> None:
        self._publisher.publish(_message(horizon))

    def stream(self, position: Array) -> None:
        """Nothing: the controller interpolates."""


class StreamCommander:
    """``std_msgs/Float64MultiArray`` on ``position_commands``, one position each tick, in the model's joint order.

    A robot that is commanded like this holds the last position when its sender dies: it stops at once, not within
    limits. Prefer trajectories where the robot takes them.
    """

    def __init__(self, node: Node, _joint_names: tuple[str, ...]) -> None:
        self._node = node
        self._publisher = node.create_publisher(Float64MultiArray, "position_commands", COMMAND)

    def problem(self) -> str:
        return _publisher_problem(self._node, self._publisher)

    def send(self, horizon: Horizon) -> None:
        """Nothing: positions are streamed."""

    def stream(self, position: Array) -> None:
        self._publisher.publish(Float64MultiArray(data=np.asarray(position).tolist()))


class ActionCommander:
    """``control_msgs/action/FollowJointTrajectory`` goals on ``follow_joint_trajectory``; each replaces the last."""

    def __init__(self, node: Node, _joint_names: tuple[str, ...]) -> None:
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            raise ExcitationError(
                "command_interface follow_joint_trajectory needs control_msgs, which is not installed; install it or"
                " use joint_trajectory"
            ) from None
        self._action: Any = FollowJointTrajectory
        self._client = ActionClient(node, FollowJointTrajectory, "follow_joint_trajectory")
        self._refused = ""

    def problem(self) -> str:
        if not self._client.server_is_ready():
            return "no controller serves follow_joint_trajectory; start and activate it, or remap the action"
        return self._refused

    def send(self, horizon: Horizon) -> None:
        goal = self._action.Goal(trajectory=_message(horizon))
        self._client.send_goal_async(goal).add_done_callback(self._answered)

    def stream(self, position: Array) -> None:
        """Nothing: the controller interpolates."""

    def _answered(self, future: Any) -> None:
        handle = future.result()
        self._refused = "" if handle.accepted else "the controller rejects goals; activate it"


def _publisher_problem(node: Node, publisher: Any) -> str:
    topic = publisher.topic_name
    if publisher.get_subscription_count() == 0:
        return f"nobody subscribes to {topic}; start and activate the robot's controller, or remap the topic"
    own = (node.get_name(), node.get_namespace())
    for other in node.get_publishers_info_by_topic(topic):
        if (other.node_name, other.node_namespace) != own:
            return f"{other.node_namespace.rstrip('/')}/{other.node_name} commands the robot on {topic} too; stop it"
    return ""


def _message(horizon: Horizon) -> JointTrajectory:
    """With the horizon's stamp, so that latency does not move the points; without one the controller starts it now."""
    arrays = TrajectoryArrays(
        horizon.joint_names, horizon.time_from_start, horizon.position, horizon.velocity, horizon.acceleration
    )
    return to_joint_trajectory(arrays, None if np.isnan(horizon.stamp) else to_time(round(horizon.stamp * 1e9)))
