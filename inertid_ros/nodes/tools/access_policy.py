"""The SROS 2 policy of the nodes: ``python -m inertid_ros.nodes.tools.access_policy security [--ros-args ...]``.

The policy lists the topics, services and actions that the nodes use, given the parameters, namespace and remapping
after ``--ros-args``.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np
import rclpy
import yaml
from rclpy.action import get_action_client_names_and_types_by_node, get_action_server_names_and_types_by_node
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from std_msgs.msg import String

from inertid_ros.config.nodes import CalibrateOptions, MeasurePayloadOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import write_file
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.recording import Recording
from inertid_ros.nodes.excitation.node import Excitation
from inertid_ros.nodes.flow_client import FlowClient
from inertid_ros.nodes.tools.processes import claim_domain
from inertid_ros.ros.node_parameters import declare

from .. import adaptation, calibrate, feed_forward, identifier, measure_payload, online, recorder, replay, simulator

FILE = "inertid_ros.policy.xml"
_POLICY_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- Made by python -m inertid_ros.nodes.tools.access_policy security; see docs/networks.md. All else is denied. -->
"""
_ACTION_INFIX = "/_action/"  # in the names of topics and services of an action

Access = tuple[str, str]
"""Element and attribute of a policy, such as ``("topics", "publish")``."""

ACCESS: Mapping[Access, Callable[[Node, str, str], Any]] = {
    ("topics", "publish"): Node.get_publisher_names_and_types_by_node,
    ("topics", "subscribe"): Node.get_subscriber_names_and_types_by_node,
    ("services", "reply"): Node.get_service_names_and_types_by_node,
    ("services", "request"): Node.get_client_names_and_types_by_node,
    ("actions", "execute"): get_action_server_names_and_types_by_node,
    ("actions", "call"): get_action_client_names_and_types_by_node}
"""All accesses in the order of the file, each with the function that lists a node's names for this access."""

Used = Mapping[Access, Sequence[str]]
Identity = tuple[str, str]
"""Name and namespace of a node."""

# A flow creates a client only when it needs one, so a new flow does not have the clients of these names yet.
_ARMING = ("excitation/change_state", "excitation/get_parameter_types", "excitation/get_state")
FLOW_REQUESTS: Mapping[str, Used] = {
    "calibrate": {
        ("services", "request"): (*_ARMING, "recorder/get_parameter_types", "recorder/start", "recorder/stop"),
        ("actions", "call"): ("excitation/excite", "identifier/identify")},
    "measure_payload": {
        ("services", "request"): _ARMING,
        ("actions", "call"): ("excitation/excite", "online/identify_payload")}}
"""Names that each flow requests, relative to its namespace, if the excitation node moves the robot."""


def used_by_nodes(arguments: Sequence[str] = ()) -> dict[Identity, Used]:
    """Create every node briefly with the arguments after ``--ros-args``, and return the names that each node uses.

    No other node of the ROS domain may have one of their names. Flows take the arguments from the command line of the
    process. Raises InertidError if a node cannot be created.
    """
    with tempfile.TemporaryDirectory() as folder:
        rclpy.init(args=["--ros-args", "--params-file", str(_replay_parameters(Path(folder))), *arguments])
        try:
            excitation, robot, filler = Excitation(), simulator.Simulator(), feed_forward.FeedForward()
            description = String(data=robot.simulation.described.urdf)
            filler.receive_description(description)
            # The excitation node has a command interface only after it is configured.
            excitation.robot.receive_description(description)
            if excitation.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
                raise InertidError(f"excitation: {excitation.machine.message}")
            nodes = (
                excitation, recorder.Recorder(), identifier.Identifier(), online.Online(), robot, replay.Replay(),
                adaptation.Adaptation(), filler)
            used = {(node.get_name(), node.get_namespace()): used_names(node) for node in nodes}
            for node in nodes:
                node.destroy_node()
        finally:
            rclpy.try_shutdown()
    used |= _used_by_flow("calibrate", CalibrateOptions, calibrate.CalibrationFlow)
    return used | _used_by_flow("measure_payload", MeasurePayloadOptions, measure_payload.PayloadFlow)


def _replay_parameters(folder: Path) -> Path:
    still, instants = np.zeros((10, 1)), np.linspace(0.0, 0.09, 10)
    values = {"bag": str(write_bag(Recording(("joint",), instants, still, still), folder / "bag")), "record": True}
    file = folder / "needed.yaml"
    file.write_text(yaml.safe_dump({"/**/replay": {"ros__parameters": values}}), encoding="utf-8")
    return file


def _used_by_flow(
        node_name: str, options: type[Any], flow_type: Callable[[FlowClient, Any], object]) -> dict[Identity, Used]:
    """Create a flow with its own context and signal handlers, and return the names that it uses and requests."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with FlowClient(node_name) as client:
            flow = flow_type(client, declare(client.node, options))  # noqa: F841 - keeps its endpoints alive
            name, namespace = client.node.get_name(), client.node.get_namespace()
            above = namespace.rstrip("/")
            requested = {
                access: expressions((f"{above}/{relative}" for relative in names), name, namespace)
                for access, names in FLOW_REQUESTS[node_name].items()}
            return {(name, namespace): {**used_names(client.node), **requested}}
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def used_names(node: Node) -> Used:
    """Return the names that a node uses, by access, and relative to the node if possible."""
    name, namespace = node.get_name(), node.get_namespace()
    return {
        access: expressions((full for full, _types in names_of(node, name, namespace)), name, namespace)
        for access, names_of in ACCESS.items()}


def expressions(full_names: Iterable[str], name: str, namespace: str) -> tuple[str, ...]:
    """Return names as a profile lists them, sorted: ``~/x`` for names of the node, ``x`` for names in its namespace."""
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
    """Return the policy that allows each node only the names that it uses."""
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
    parser = argparse.ArgumentParser(
        description="write the SROS 2 policy of the nodes with the arguments after --ros-args")
    parser.add_argument("folder", nargs="?", default="security", help="folder of the policy file")
    arguments = [*sys.argv[1:], "--ros-args"]
    index = arguments.index("--ros-args")
    folder = Path(parser.parse_args(arguments[:index]).folder)
    try:
        with claim_domain() as domain:  # running nodes of the same names would be listed together with these
            os.environ["ROS_DOMAIN_ID"] = str(domain)
            text = policy_text(used_by_nodes(arguments[index + 1 : -1]))
        write_file(folder / FILE, text.encode(), force=True)
    except (InertidError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
