"""The SROS 2 policy of the nodes: ``python -m inertid_ros.nodes.tools.access_policy security [--ros-args ...]``.

It is made from what the nodes create with the parameters, namespace and remapping after ``--ros-args``.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
import rclpy
import yaml
from rclpy.action import get_action_client_names_and_types_by_node, get_action_server_names_and_types_by_node
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from std_msgs.msg import String

from inertid_ros.config.nodes import CalibrateOptions, MeasurePayloadOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import write_file
from inertid_ros.data.files.bag_writing import write_bag
from inertid_ros.data.recording import Recording
from inertid_ros.nodes.adaptation import Adaptation
from inertid_ros.nodes.calibrate import CalibrationFlow
from inertid_ros.nodes.excitation.node import Excitation
from inertid_ros.nodes.flow_client import FlowClient
from inertid_ros.nodes.identifier.node import Identifier
from inertid_ros.nodes.measure_payload import PayloadFlow
from inertid_ros.nodes.online.node import Online
from inertid_ros.nodes.recorder.node import Recorder
from inertid_ros.nodes.replay import Replay
from inertid_ros.nodes.simulator import Simulator
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.topics import LATCHED

FILE = "inertid_ros.policy.xml"
_POLICY_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Made by python -m inertid_ros.nodes.tools.access_policy security; see docs/networks.md. All else is denied. -->
"""
T = TypeVar("T")
_ACTION_INFIX = "/_action/"  # in the names of topics and services that make an action

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
"""All accesses in the order of the file."""

Used = Mapping[Access, Sequence[str]]
Identity = tuple[str, str]
"""Name and namespace of a node."""

# The flow makes the clients of its requests one after the other, each for one request only.
FLOW_REQUESTS: Used = {
    ("services", "request"): (
        "excitation/change_state",
        "excitation/get_parameter_types",
        "excitation/get_state",
        "recorder/get_parameter_types",
        "recorder/start",
        "recorder/stop",
    ),
    ("actions", "call"): ("excitation/excite", "identifier/identify"),
}
"""Names relative to the namespace of the flow, with the excitation node moving the robot."""

PAYLOAD_FLOW_REQUESTS: Used = {
    ("services", "request"): (
        "excitation/change_state", "excitation/get_parameter_types", "excitation/get_state",
    ),
    ("actions", "call"): ("excitation/excite", "online/identify_payload"),
}  # fmt: skip
"""Names relative to the namespace of the payload flow."""

_NODE_CLASSES: Mapping[str, Callable[[], Node]] = {
    "recorder": Recorder,
    "identifier": Identifier,
    "online": Online,
    "simulator": Simulator,
    "replay": Replay,
    "adaptation": Adaptation,
}
_CONFIGURE_TIMEOUT_S = 10.0
_ONE_JOINT_URDF = """<robot name="robot"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""


def used_by_nodes(arguments: Sequence[str] = ()) -> dict[Identity, Used]:
    """Make every node for a moment with the arguments after ``--ros-args``, and return what it uses.

    Flows take the arguments from the command line of the process. Raises InertidError if a node cannot be made.
    """
    with tempfile.TemporaryDirectory() as folder:
        rclpy.init(args=["--ros-args", "--params-file", str(_write_parameters(Path(folder))), *arguments])
        nodes: list[Node] = []
        try:
            nodes.append(_configured_excitation())
            nodes.extend(make() for make in _NODE_CLASSES.values())
            used = {(node.get_name(), node.get_namespace()): used_names(node) for node in nodes}
        finally:
            for node in nodes:
                node.destroy_node()
            rclpy.try_shutdown()
    calibrate = _used_by_flow("calibrate", CalibrateOptions, CalibrationFlow, FLOW_REQUESTS)
    payload = _used_by_flow("measure_payload", MeasurePayloadOptions, PayloadFlow, PAYLOAD_FLOW_REQUESTS)
    return {**used, **calibrate, **payload}


def _write_parameters(folder: Path) -> Path:
    """Write a parameter file with the robot that the simulator needs and the bag that replay needs."""
    (folder / "robot.urdf").write_text(_ONE_JOINT_URDF, encoding="utf-8")
    still, instants = np.zeros((10, 1)), np.linspace(0.0, 0.09, 10)
    bag = write_bag(Recording(("joint",), instants, still, still), folder / "bag")
    parameters = {"simulator": {"urdf": str(folder / "robot.urdf")}, "replay": {"bag": str(bag), "record": True}}
    file = folder / "needed.yaml"
    text = yaml.safe_dump({f"/**/{node}": {"ros__parameters": values} for node, values in parameters.items()})
    file.write_text(text, encoding="utf-8")
    return file


def _configured_excitation() -> Excitation:
    """Make the excitation node and configure it with a robot description, so that it has a command interface."""
    node = Excitation()
    helper = rclpy.create_node("robot_state_publisher")
    executor = SingleThreadedExecutor()
    try:
        helper.create_publisher(String, "robot_description", LATCHED).publish(String(data=_ONE_JOINT_URDF))
        executor.add_node(node)
        end = time.monotonic() + _CONFIGURE_TIMEOUT_S
        while not node.robot.joint_names and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        if node.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
            raise InertidError(f"excitation: {node.machine.message}")
        return node
    finally:
        executor.shutdown(timeout_sec=0.0)
        helper.destroy_node()


def _used_by_flow(
    node_name: str, options: type[T], flow_type: Callable[[FlowClient, T], object], requests: Used
) -> dict[Identity, Used]:
    """Make a flow, which has a context and signal handlers of its own, and return what it uses and requests."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with FlowClient(node_name) as client:
            flow = flow_type(client, declare(client.node, options))  # noqa: F841 - while it lives, so do its endpoints
            name, namespace = client.node.get_name(), client.node.get_namespace()
            above = namespace.rstrip("/")
            requested = {
                access: expressions((f"{above}/{relative}" for relative in names), name, namespace)
                for access, names in requests.items()
            }
            return {(name, namespace): {**used_names(client.node), **requested}}
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def used_names(node: Node) -> Mapping[Access, tuple[str, ...]]:
    """Return the names that a node uses by each access, as far as possible relative to the node."""
    name, namespace = node.get_name(), node.get_namespace()
    graph = (
        node.get_publisher_names_and_types_by_node(name, namespace),
        node.get_subscriber_names_and_types_by_node(name, namespace),
        node.get_service_names_and_types_by_node(name, namespace),
        node.get_client_names_and_types_by_node(name, namespace),
        get_action_server_names_and_types_by_node(node, name, namespace),
        get_action_client_names_and_types_by_node(node, name, namespace),
    )
    return {
        access: expressions((full for full, _types in names), name, namespace)
        for access, names in zip(ACCESS, graph, strict=True)
    }


def expressions(full_names: Iterable[str], name: str, namespace: str) -> tuple[str, ...]:
    """Return full names as they stand in the profile of a node: sorted, ``~/x`` for its own, ``x`` in its namespace."""
    above = f"{namespace.rstrip('/')}/"
    private = f"{above}{name}/"
    relative = set()
    for full in full_names:
        if _ACTION_INFIX in full:
            continue
        if full.startswith(private):
            relative.add(f"~/{full.removeprefix(private)}")
        elif full.startswith(above) and above != "/":
            relative.add(full.removeprefix(above))
        else:
            relative.add(full)
    return tuple(sorted(relative))


def policy_text(nodes: Mapping[Identity, Used]) -> str:
    """Return the policy that allows each node what it uses, and nothing else."""
    policy = Element("policy", version="0.2.0")
    enclaves = SubElement(policy, "enclaves")
    for (name, namespace), used in nodes.items():
        enclave = SubElement(enclaves, "enclave", path=f"{namespace.rstrip('/')}/{name}")
        profile = SubElement(SubElement(enclave, "profiles"), "profile", ns=namespace, node=name)
        for element, attribute in ACCESS:
            if names := used.get((element, attribute)):
                rules = SubElement(profile, element, {attribute: "ALLOW"})
                for expression in names:
                    SubElement(rules, element.removesuffix("s")).text = expression
    indent(policy)
    return f"{_POLICY_HEAD}{tostring(policy, encoding='unicode')}\n"


def main() -> int:
    """Write the policy file into the folder given."""
    parser = argparse.ArgumentParser(
        description="write the SROS 2 policy of the nodes, as they are with the arguments after --ros-args"
    )
    parser.add_argument("folder", nargs="?", default="security", help="of the policy file")
    arguments = [*sys.argv[1:], "--ros-args"]
    index = arguments.index("--ros-args")
    folder = Path(parser.parse_args(arguments[:index]).folder)
    try:
        text = policy_text(used_by_nodes(arguments[index + 1 : -1]))
        write_file(folder / FILE, text.encode(), force=True)
    except (InertidError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
