"""Publishers: who publishes a topic, by name."""

from rclpy.node import Node

# The graph's, for some milliseconds between discovering a publisher and its node, and while a killed node is forgotten.
UNNAMED = "_NODE_NAME_UNKNOWN_"


class Publishers:
    """Nodes that publish a topic; one whose name is not known yet counts only when it is found a second time.

    Parameters
    ----------
    node : Node
        Whose graph is looked at.
    topic : str
        Resolved name.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._node, self.topic = node, topic
        self._unnamed = False  # whether the last look found one without a name

    def look(self) -> list[tuple[str, str]]:
        """Return name and namespace of the node of each publisher, those that are known first."""
        infos = self._node.get_publishers_info_by_topic(self.topic)
        found = [(info.node_name, info.node_namespace) for info in infos]
        named = [publisher for publisher in found if publisher[0] != UNNAMED]
        unnamed = [publisher for publisher in found if publisher[0] == UNNAMED]
        seen_before, self._unnamed = self._unnamed, bool(unnamed)
        return named + unnamed if seen_before else named
