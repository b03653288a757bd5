"""Fuzzing of running nodes: random messages on their topics, random requests to their services and actions.

    PYTHONPATH=benchmarks:test python benchmarks/message_fuzzing.py --messages 100000

A simulated robot of two joints, `excitation`, `recorder` and `identifier` run. Every request must be answered within
10 s, each node must go on and keep its memory, the log has neither tracebacks nor control characters, and the robot
keeps its limits. Transitions that end a node are left out.
"""

import argparse
import os
import random
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from support.fuzzing.interfaces import Endpoint, endpoints, random_content
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import NodeProcess
from support.nodes.quick_parameters import MANY_NODES
from support.nodes.ros_client import RosClient, ros_client_in
from support.nodes.two_links import URDF, write_plan
from tables import machine, publish, table

from inertid_ros.nodes.tools.processes import claim_domain
from inertid_ros.ros.topics import LATCHED

NODES = ("excitation", "recorder", "identifier")
ANSWER_S, ROUND = 10.0, 500  # messages between two checks of nodes and robot
MEMORY_MIB = 1024
STEPS = (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_CLEANUP, Transition.TRANSITION_ACTIVATE,
         Transition.TRANSITION_DEACTIVATE, 77)  # fmt: skip


class MessageFuzzer:
    """Nodes, what is sent to them, and what they broke."""

    def __init__(self, ros: RosClient, robot: FakeRobot, seed: int) -> None:
        self.ros, self.robot, self.rng = ros, robot, random.Random(seed)
        own: dict[str, dict[str, object]] = {
            "excitation": {**MANY_NODES, "require_recorder": True},
            "recorder": {"directory": str(ros.folder / "recordings"), "min_free_mb": 1},
            "identifier": {"output_directory": ""},
        }
        self.nodes: dict[str, NodeProcess] = {name: ros.start(name, own[name]) for name in NODES}
        for name in NODES:
            ros.call(GetState, f"{name}/get_state", GetState.Request())
        plan = ros.folder / "plan.yaml"
        write_plan(plan)
        self.words = (URDF, "shoulder", "elbow", "upper", "lower", "base", str(plan), str(ros.folder), "fourier")
        self.endpoints = list(endpoints(ros.node, NODES))
        self.publishers = {
            each.name: ros.node.create_publisher(each.type, each.name, LATCHED)
            for each in self.endpoints if not each.is_service
        }  # fmt: skip
        self.sent, self.slowest = Counter[Endpoint](), Counter[Endpoint]()
        self.broken: list[str] = []

    def run(self, messages: int) -> None:
        """Send messages and requests to endpoints drawn at random, and check all nodes after each round."""
        for count in range(1, messages + 1):
            self.send(self.rng.choice(self.endpoints))
            if count % ROUND == 0 or count == messages:
                self.check()
                print(count, "sent,", len(self.broken), "broken", flush=True)

    def send(self, endpoint: Endpoint) -> None:
        """Send one message, or one request and wait for its answer."""
        content = self.drawn(endpoint)
        self.sent[endpoint] += 1
        if not endpoint.is_service:
            self.publishers[endpoint.name].publish(content)
            self.ros.spin(0.0)
            return
        begun = time.monotonic()
        try:
            self.ros.call(endpoint.type, endpoint.name, content, ANSWER_S)
        except AssertionError:
            self.broken.append(f"{endpoint.name} did not answer {str(content)[:500]}")
        self.slowest[endpoint] = max(self.slowest[endpoint], round(1e3 * (time.monotonic() - begun)))

    def drawn(self, endpoint: Endpoint) -> Any:
        """Content for an endpoint."""
        content = random_content(endpoint.content, self.words, self.rng)
        if endpoint.type is ChangeState:
            content.transition.id, content.transition.label = self.rng.choice(STEPS), ""
        return content

    def check(self) -> None:
        """Note what the nodes and the robot broke, and start nodes that have ended."""
        for name, node in self.nodes.items():
            problem = self.problem(name, node)
            if problem:
                self.broken.append(f"{name}: {problem}")
            if node.ended:
                self.nodes[name] = self.ros.start(name)
        try:
            self.robot.record().check_limits()
        except AssertionError as error:
            self.broken.append(f"robot: {str(error)[:300]}")

    def problem(self, name: str, node: NodeProcess) -> str:
        """What a node broke, or empty."""
        log = node.log()
        if node.ended:
            return f"ended with status {node.process.poll()}: {log[-1000:]}"
        if "Traceback" in log:
            return log[log.index("Traceback") :][:2000]
        control = {each for each in log if unicodedata.category(each) == "Cc" and each not in "\n\t"}
        if control:
            return f"control characters in its log: {control}"
        fields = Path(f"/proc/{node.process.pid}/status").read_text()
        memory = int(fields.split("VmRSS:")[1].split()[0]) // 1024
        return f"takes {memory} MiB" if memory > MEMORY_MIB else ""

    def rows(self) -> list[list[object]]:
        """Table rows by node and kind of endpoint."""
        rows: list[list[object]] = []
        for name in NODES:
            for kind in (False, True):
                own = [each for each in self.endpoints if each.node == name and each.is_service is kind]
                slowest = max((self.slowest[each] for each in own), default=0) if kind else "-"
                rows.append([name, "services" if kind else "topics", len(own), sum(self.sent[each] for each in own), slowest])
        return rows


def main() -> None:
    """Fuzz the nodes and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=2000, help="messages and requests in all (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random generator (default 0)")
    options = parser.parse_args()
    with claim_domain() as domain, tempfile.TemporaryDirectory() as folder:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
        with FakeRobot() as robot, ros_client_in(Path(folder)) as ros:
            fuzzer = MessageFuzzer(ros, robot, options.seed)
            fuzzer.run(options.messages)
    print(*fuzzer.broken, sep="\n")
    header = ("node", "kind", "number", "messages", "longest answer [ms]")
    publish(
        "message-fuzzing",
        f"""## Fuzzing of running nodes

`python benchmarks/message_fuzzing.py --messages {options.messages} --seed {options.seed}`: random messages on all topics
that the nodes subscribe to, and random requests to all of their services, those of actions and parameters included,
beside a simulated robot of two joints. A bound is broken if a request is not answered within {ANSWER_S:g} s, a node ends,
takes more than {MEMORY_MIB} MiB, or logs a traceback or a control character, or if the robot leaves its limits.

{table(header, fuzzer.rows())}

Bounds broken: {len(fuzzer.broken)}. On {machine()}.""",
    )
    sys.exit(bool(fuzzer.broken))


if __name__ == "__main__":
    main()
