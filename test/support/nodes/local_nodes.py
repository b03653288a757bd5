"""The package's nodes in the process of the test, to look at what they create and publish."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from rclpy.executors import SingleThreadedExecutor
from support.nodes.two_links import URDF

from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.recording import Recording
from inertid_ros.nodes.adaptation import Adaptation
from inertid_ros.nodes.excitation.node import Excitation
from inertid_ros.nodes.feed_forward import FeedForward
from inertid_ros.nodes.identifier import Identifier
from inertid_ros.nodes.online import Online
from inertid_ros.nodes.recorder import Recorder
from inertid_ros.nodes.replay import Replay
from inertid_ros.nodes.simulator import Simulator
from inertid_ros.nodes.spin import tick_by_timer

CLASSES = {
    "excitation": Excitation, "recorder": Recorder, "identifier": Identifier, "online": Online, "simulator": Simulator,
    "replay": Replay, "adaptation": Adaptation, "feed_forward": FeedForward,
}  # fmt: skip


@contextmanager
def local_nodes(folder: Path, names: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Nodes by name with parameters of their own, in rclpy's default context, beside what they need in a folder."""
    (folder / "robot.urdf").write_text(URDF)
    usual: dict[str, dict[str, Any]] = {
        "excitation": {"urdf": str(folder / "robot.urdf")},
        "recorder": {"directory": str(folder / "recordings"), "min_free_mb": 1},
        "identifier": {"urdf": str(folder / "robot.urdf"), "output_directory": ""},
        "online": {},
        "simulator": {"urdf": str(folder / "robot.urdf")},
        "replay": {},
        "adaptation": {"urdf": str(folder / "robot.urdf")},
        "feed_forward": {"urdf": str(folder / "robot.urdf")},
    }
    if "replay" in names:
        time, zero = np.arange(0.0, 0.1, 0.01), np.zeros((10, 2))
        bag = write_bag(Recording(("shoulder", "elbow"), time, zero, zero), folder / "bag")
        usual["replay"] = {"bag": str(bag), "wait_s": 1000.0}
    content = {f"/**/{name}": {"ros__parameters": {**usual[name], **own}} for name, own in names.items()}
    (folder / "nodes.yaml").write_text(yaml.safe_dump(content))
    rclpy.init(args=["--ros-args", "--params-file", str(folder / "nodes.yaml")])
    nodes: dict[str, Any] = {}
    try:
        for name in names:
            nodes[name] = CLASSES[name]()
        yield nodes
    finally:
        for node in nodes.values():
            node.destroy_node()
        rclpy.try_shutdown()


@contextmanager
def spinning(nodes: Mapping[str, Any]) -> Iterator[SingleThreadedExecutor]:
    """An executor of all the nodes, which the test is to spin."""
    executor = SingleThreadedExecutor()
    try:
        for node in nodes.values():
            executor.add_node(node)
            if hasattr(node, "tick"):
                tick_by_timer(node)
        yield executor
    finally:
        executor.shutdown(timeout_sec=0.0)
