"""Topics, services and actions of a node as the graph shows them, in the terms of an SROS 2 policy."""

from collections.abc import Iterable, Mapping

from rclpy.action import get_action_client_names_and_types_by_node, get_action_server_names_and_types_by_node
from rclpy.node import Node

Access = tuple[str, str]
"""Element and attribute of a policy, such as ``("topics", "publish")``."""

ACCESS: tuple[Access, ...] = (
    ("topics", "publish"),
    ("topics", "subscribe"),
    ("services", "reply"),
    ("services", "request"),
    ("actions", "execute"),
    ("actions", "call"),
)
"""In the order of the file."""

_OF_ACTION = "/_action/"  # topics and services that an action consists of


def used_names(node: Node) -> Mapping[Access, tuple[str, ...]]:
    """Return the names of each access that a node has, relative to the node where they are."""
    name, namespace = node.get_name(), node.get_namespace()
    found = (
        node.get_publisher_names_and_types_by_node(name, namespace),
        node.get_subscriber_names_and_types_by_node(name, namespace),
        node.get_service_names_and_types_by_node(name, namespace),
        node.get_client_names_and_types_by_node(name, namespace),
        get_action_server_names_and_types_by_node(node, name, namespace),
        get_action_client_names_and_types_by_node(node, name, namespace),
    )
    return {
        access: expressions((full for full, _types in names), name, namespace)
        for access, names in zip(ACCESS, found, strict=True)
    }


def expressions(full_names: Iterable[str], name: str, namespace: str) -> tuple[str, ...]:
    """Return full names as they stand in the profile of a node: sorted, ``~/x`` for its own, ``x`` in its namespace."""
    above = f"{namespace.rstrip('/')}/"
    own = f"{above}{name}/"
    found = set()
    for full in full_names:
        if _OF_ACTION in full:
            continue
        if full.startswith(own):
            found.add(f"~/{full.removeprefix(own)}")
        elif full.startswith(above) and above != "/":
            found.add(full.removeprefix(above))
        else:
            found.add(full)
    return tuple(sorted(found))
