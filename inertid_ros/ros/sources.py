"""Which topics the recorder takes, from its parameters."""

from dataclasses import dataclass

from rclpy.node import Node

from ..nodes.options import RecorderOptions
from .definitions import message_class

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"


@dataclass(frozen=True)
class Source:
    """A topic that is recorded: resolved name, type, and the frame of its wrench (empty: from its messages)."""

    name: str
    type: str
    frame: str = ""


def sources(node: Node, options: RecorderOptions) -> list[Source]:
    """Joint states first, then wrenches, then topics that are only written.

    Raises
    ------
    InertidError: a message type is not installed.
    """
    found = [Source(node.resolve_topic_name("joint_states"), JOINT_STATE)]
    for entry in options.wrenches:
        topic, _, frame = entry.partition("=")
        found.append(Source(node.resolve_topic_name(topic), WRENCH, frame))
    for entry in options.other_topics:
        topic, _, kind = entry.partition("=")
        message_class(kind)
        found.append(Source(node.resolve_topic_name(topic), kind))
    return found
