"""The publishers of a topic that should bring data: none, of the wrong type, or with an incompatible profile."""

from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy


@dataclass(frozen=True)
class TopicState:
    """The publishers of a topic.

    Attributes
    ----------
    topic : str
        Resolved name.
    publishers : int
        How many there are.
    problem : str
        What is wrong with them, in one line; empty when all is well.
    """

    topic: str
    publishers: int
    problem: str

    @property
    def several(self) -> str:
        """A line where several nodes publish at once; empty otherwise."""
        if self.publishers < 2:
            return ""
        return f"{self.publishers} publishers on {self.topic}, whose data is mixed; stop all but one"


def inspect_topic(node: Node, topic: str, type_name: str, profile: QoSProfile) -> TopicState:
    """Compare the publishers of a resolved topic with a subscription of type ``type_name`` and ``profile``."""
    offers = node.get_publishers_info_by_topic(topic)
    if not offers:
        return TopicState(topic, 0, f"nobody publishes {topic}; start the robot's driver, or remap the topic")
    for offer in offers:
        who = f"{offer.node_namespace.rstrip('/')}/{offer.node_name} publishes {topic}"
        if offer.topic_type != type_name:
            return TopicState(topic, len(offers), f"{who} as {offer.topic_type}, expected {type_name}")
        wants_reliable = profile.reliability == ReliabilityPolicy.RELIABLE
        if wants_reliable and offer.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT:
            return TopicState(
                topic, len(offers), f"{who} best effort; set the parameter reliability to best_effort"
            )
        wants_history = profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        if wants_history and offer.qos_profile.durability == DurabilityPolicy.VOLATILE:
            return TopicState(topic, len(offers), f"{who} volatile; it must be latched (transient local)")
    return TopicState(topic, len(offers), "")
