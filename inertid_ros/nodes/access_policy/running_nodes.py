"""The nodes of this package, made in this process for a moment, and what they use."""

import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import rclpy
import yaml
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from std_msgs.msg import String

from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.bag_writing import write_bag
from inertid_ros.data.recording import Recording
from inertid_ros.nodes.adaptation.node import Adaptation
from inertid_ros.nodes.calibrate.node import CalibrationFlow
from inertid_ros.nodes.calibrate.parameters import CalibrateOptions
from inertid_ros.nodes.excitation.node import Excitation
from inertid_ros.nodes.flow.client import FlowClient
from inertid_ros.nodes.identifier.node import Identifier
from inertid_ros.nodes.measure_payload.node import PayloadFlow
from inertid_ros.nodes.measure_payload.parameters import MeasurePayloadOptions
from inertid_ros.nodes.online.node import Online
from inertid_ros.nodes.recorder.node import Recorder
from inertid_ros.nodes.replay.node import Replay
from inertid_ros.nodes.simulator.node import Simulator
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.qos import LATCHED

from .used_names import Access, expressions, used_names

Used = Mapping[Access, Sequence[str]]

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
"""The same of the payload flow."""

_NODES: Mapping[str, Callable[[], Node]] = {
    "recorder": Recorder,
    "identifier": Identifier,
    "online": Online,
    "simulator": Simulator,
    "replay": Replay,
    "adaptation": Adaptation,
}
_WAIT_S = 10.0
_URDF = """<robot name="robot"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""


def used_by_nodes(arguments: Sequence[str] = ()) -> dict[tuple[str, str], Used]:
    """Return name and namespace of every node, and what it uses.

    Parameters
    ----------
    arguments : sequence of str
        Of ROS: what follows ``--ros-args``. The flow takes them from the command line of the process.

    Raises
    ------
    InertidError
        A node cannot be made with these arguments.
    """
    with tempfile.TemporaryDirectory() as folder:
        rclpy.init(args=["--ros-args", "--params-file", str(_needed(Path(folder))), *arguments])
        nodes: list[Node] = []
        try:
            nodes.append(_configured_excitation())
            nodes.extend(make() for make in _NODES.values())
            found = {_identity(node): used_names(node) for node in nodes}
        finally:
            for node in nodes:
                node.destroy_node()
            rclpy.try_shutdown()
    calibrate = _used_by_flow(
        "calibrate", lambda client: CalibrationFlow(client, declare(client.node, CalibrateOptions)), FLOW_REQUESTS
    )
    measure_payload = _used_by_flow(
        "measure_payload",
        lambda client: PayloadFlow(client, declare(client.node, MeasurePayloadOptions)),
        PAYLOAD_FLOW_REQUESTS,
    )
    return {**found, **calibrate, **measure_payload}


def _needed(folder: Path) -> Path:
    """Write a parameter file with what simulator and replay cannot do without, a robot and a bag."""
    (folder / "robot.urdf").write_text(_URDF, encoding="utf-8")
    still, instants = np.zeros((10, 1)), np.linspace(0.0, 0.09, 10)
    bag = write_bag(Recording(("joint",), instants, still, still), folder / "bag")
    given = {"simulator": {"urdf": str(folder / "robot.urdf")}, "replay": {"bag": str(bag), "record": True}}
    file = folder / "needed.yaml"
    text = yaml.safe_dump({f"/**/{node}": {"ros__parameters": values} for node, values in given.items()})
    file.write_text(text, encoding="utf-8")
    return file


def _configured_excitation() -> Excitation:
    """The excitation node with its command interface, which it makes when a robot is described to it."""
    node = Excitation()
    helper = rclpy.create_node("robot_state_publisher")
    executor = SingleThreadedExecutor()
    try:
        helper.create_publisher(String, "robot_description", LATCHED).publish(String(data=_URDF))
        executor.add_node(node)
        end = time.monotonic() + _WAIT_S
        while not node.robot.joint_names and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
        if node.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
            raise InertidError(f"excitation: {node.machine.message}")
        return node
    finally:
        executor.shutdown(timeout_sec=0.0)
        helper.destroy_node()


def _used_by_flow(
    short: str, make: Callable[[FlowClient], object], asked: Used
) -> dict[tuple[str, str], Used]:
    """Of a flow, which has a context and signal handlers of its own, and its requests."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with FlowClient(short, lease_topic="excitation/lease") as client:
            node, flow = client.node, make(client)  # noqa: F841 - while it lives, so do its subscriptions
            name, namespace = _identity(node)
            requests = {
                access: expressions((f"{namespace.rstrip('/')}/{each}" for each in names), name, namespace)
                for access, names in asked.items()
            }
            return {(name, namespace): {**used_names(node), **requests}}
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _identity(node: Node) -> tuple[str, str]:
    return node.get_name(), node.get_namespace()
