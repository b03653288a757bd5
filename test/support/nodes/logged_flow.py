"""The calibrate node, which writes the names that it requests to a file: ``python logged_flow.py FILE ...``."""

import sys
from pathlib import Path
from typing import Any

import rclpy.node
from rclpy.action import ActionClient

from inertid_ros.nodes.calibrate import main

LOG = Path(sys.argv.pop(1))
create_client, make_action_client = rclpy.node.Node.create_client, ActionClient.__init__


def logged(kind: str, name: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{kind} {name}\n")


def logged_client(self: rclpy.node.Node, type_: Any, name: str, **keywords: Any) -> Any:
    logged("services", self.resolve_service_name(name))
    return create_client(self, type_, name, **keywords)


def logged_action_client(self: ActionClient, node: rclpy.node.Node, type_: Any, name: str, **keywords: Any) -> None:
    logged("actions", node.resolve_topic_name(name))
    make_action_client(self, node, type_, name, **keywords)


rclpy.node.Node.create_client = logged_client  # type: ignore[method-assign]
ActionClient.__init__ = logged_action_client  # type: ignore[method-assign]
sys.exit(main())
