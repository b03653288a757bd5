"""Which topics the recorder takes, from its parameters."""

from dataclasses import dataclass

from rclpy.node import Node

from inertid_ros.core.errors import InertidError
from inertid_ros.data.base_messages import IMU, ODOMETRY, POSE_STAMPED, TWIST_STAMPED
from inertid_ros.ros.definitions import message_class

from .parameters import RecorderOptions

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"


@dataclass(frozen=True)
class Source:
    """A topic that is recorded: resolved name, type, the frame of its wrench (empty: from its messages), and whether it
    tells how a free base moves."""

    name: str
    type: str
    frame: str = ""
    of_base: bool = False


def sources(node: Node, options: RecorderOptions) -> list[Source]:
    """Joint states first, then wrenches, then the motion of a free base, then topics that are only written.

    Raises
    ------
    InertidError: a message type is not installed, or two topics are to give the pose of the base.
    """
    if options.odometry and options.pose:
        raise InertidError("odometry and pose both give the pose of the base; set one")
    if options.odometry and options.twist:
        raise InertidError("odometry and twist both give the twist of the base; set one")
    found = [Source(node.resolve_topic_name("joint_states"), JOINT_STATE)]
    for entry in options.wrenches:
        topic, _, frame = entry.partition("=")
        found.append(Source(node.resolve_topic_name(topic), WRENCH, frame))
    of_base = {ODOMETRY: options.odometry, POSE_STAMPED: options.pose, TWIST_STAMPED: options.twist, IMU: options.imu}
    for kind, topic in of_base.items():
        if topic:
            found.append(Source(node.resolve_topic_name(topic), kind, of_base=True))
    for entry in options.other_topics:
        topic, _, kind = entry.partition("=")
        message_class(kind)
        found.append(Source(node.resolve_topic_name(topic), kind))
    return found
