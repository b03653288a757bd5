"""CommandTopic: a topic of commands, whether anybody takes them, and who else publishes there."""

from typing import Any

from rclpy.node import Node

from inertid_ros.robot.recorded_joints import RecordedJoints
from inertid_ros.ros.qos import COMMAND

from .publishers import Publishers


class CommandTopic:
    """A topic on which a robot is commanded.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    joints : RecordedJoints
        What the controller calls the joints.
    """

    def __init__(self, node: Node, message_type: Any, topic: str, joints: RecordedJoints) -> None:
        self._node, self._joints = node, joints
        self._publisher = node.create_publisher(message_type, topic, COMMAND)
        self._publishers = Publishers(node, self._publisher.topic_name)

    @property
    def name(self) -> str:
        """Resolved name of the topic."""
        return str(self._publisher.topic_name)

    @property
    def has_controller(self) -> bool:
        """Whether somebody subscribes."""
        return bool(self._publisher.get_subscription_count())

    def begin(self) -> None:
        """Nothing to forget."""

    def halt(self) -> str:
        """Nothing: a topic tells of no goal that was given up."""
        return ""

    def problem(self) -> str:
        """Why commands do not arrive, in one line; empty if they do. Who else commands is told by name."""
        if not self.has_controller:
            return (
                f"nobody subscribes to {self.name}; start and activate the robot's controller, or set the parameter"
                " controller to its name"
            )
        own = (self._node.get_name(), self._node.get_namespace())
        others = [publisher for publisher in self._publishers.look() if publisher != own]
        if not others:
            return ""
        name, namespace = others[0]
        return f"{namespace.rstrip('/')}/{name} commands the robot on {self.name} too; stop it"


def of_controller(controller: str, name: str) -> str:
    """Return the name of a topic or action of a controller; the name itself where that has none."""
    return f"{controller}/{name}" if controller else name
