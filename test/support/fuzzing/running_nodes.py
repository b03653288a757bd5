"""Random messages on every topic, and random requests to every service and action, of the package's running nodes."""

import importlib
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, GetParameterTypes
from rclpy._rclpy_pybind11 import RCLError
from rclpy.action import ActionClient, get_action_server_names_and_types_by_node
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rosidl_parser.definition import AbstractNestedType, Array, BasicType, NamespacedType
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import NodeProcess
from support.nodes.quick_parameters import MANY_NODES
from support.nodes.ros_client import RosClient, ros_client_in
from support.nodes.two_links import URDF, two_links, write_plan
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.msg import InertialParameters
from inertid_ros.ros.conversions import to_joint_trajectory
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.topics import COMMAND, LATCHED

from .bounds import BrokenBoundError
from .values import NAMES

ANSWER_S = 10.0
EVERY_SUBSCRIBER = QoSProfile(
    depth=100, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL,
    liveliness=LivelinessPolicy.AUTOMATIC, liveliness_lease_duration=Duration(seconds=0.4),
)  # fmt: skip
_SHUTDOWN = range(5, 8)  # transitions that end a lifecycle node, rightly
_ARMING = (1, 2, 3, 3, 3, 3, 4)  # configure, clean up, activate, deactivate
_ARM_AGAIN = (4, 1, 3)  # after a fault, too
# These end a motion, rightly.
_RARELY = ("/joint_states", "/robot_description", "/speed_scaling", "/stop", "/recorder/status")
_RARELY_IN_MOTION = (*_RARELY, "/change_state")
_RARE = 0.05  # of the times that they are drawn
_UNASKED = {"/rosout", "/parameter_events", "/clock"}
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, float("nan"), float("inf"), -float("inf"), 0.5, 3.2)
_LENGTHS = (0, 1, 2, 2, 2, 3, 7, 300)
# Nodes write into folders that requests and parameters name; those of the test are enough.
_TEXTS = (*(name for name in NAMES if not set("/~\\") & set(name) and ".." not in name), "~no_such_user", "x/y.npz")


def interface(name: str) -> Any:
    """The class of a message, service or action, such as ``std_msgs/msg/String``."""
    package, kind, own = name.split("/")
    return getattr(importlib.import_module(f"{package}.{kind}"), own)


class RandomMessages:
    """Messages of any type with values that readers stumble over, and with names that the nodes know."""

    def __init__(self, rng: random.Random, words: tuple[str, ...]) -> None:
        self._rng, self._words = rng, words

    def fill(self, message: Any) -> Any:
        """The message with about every second field changed."""
        names = message.get_fields_and_field_types()
        for name, kind in zip(names, message.SLOT_TYPES, strict=True):
            if self._rng.random() < 0.5:
                setattr(message, name, self._value(kind, getattr(message, name)))
        return message

    def _value(self, kind: Any, present: Any) -> Any:
        if not isinstance(kind, AbstractNestedType):
            return self._new(kind, present)
        count = kind.size if isinstance(kind, Array) else self._rng.choice(_LENGTHS)
        count = min(count, getattr(kind, "maximum_size", count))
        some = [self._new(kind.value_type) for _ in range(min(count, 7))]
        return [some[index % len(some)] for index in range(count)]

    def _new(self, kind: Any, present: Any = None) -> Any:
        rng = self._rng
        if isinstance(kind, NamespacedType):
            return self.fill(present if present is not None else interface("/".join(kind.namespaced_name()))())
        if isinstance(kind, BasicType):
            return self._number(kind.typename)
        text = rng.choice(self._words if rng.random() < 0.5 else _TEXTS)
        return text[: getattr(kind, "maximum_size", None)]

    def _number(self, typename: str) -> Any:
        rng = self._rng
        if typename == "boolean":
            return rng.random() < 0.5
        if typename in ("float", "double"):
            number = rng.choice(_FLOATS) if rng.random() < 0.5 else rng.uniform(-2.0, 2.0)
            return number if typename == "double" or not 1e38 < abs(number) < float("inf") else 1e38
        if typename == "octet":
            return bytes([rng.randrange(256)])
        bits = int("".join(filter(str.isdigit, typename)) or 8)
        low = 0 if typename.startswith("u") or typename == "char" else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        return rng.choice((low, high, 0, 1, 2, 3, 4, max(low, -1), rng.randint(low, high)))


class NodeFuzzer:
    """Endpoints of running nodes, each with one client; processes must stay alive, and answer within ten seconds.

    If the robot ``moves``, what would rightly prevent motion (a second publisher of joint states) is left out, and a
    good goal follows each that has ended.
    """

    def __init__(self, ros: RosClient, processes: Mapping[str, NodeProcess], robot: FakeRobot, plan: Path,
                 seed: int, moves: bool) -> None:  # fmt: skip
        self.ros, self.processes, self.robot, self._rng = ros, processes, robot, random.Random(seed)
        self._moves = moves
        self._plan, words = str(plan), (*two_links()[0].joint_names, str(plan))
        self.counts: Counter[str] = Counter()
        self.longest = 0.0
        self._messages = RandomMessages(self._rng, words)
        self._waiting: list[tuple[float, str, Any]] = []
        self._topics, self._services, self._actions = [], [], []
        self._motion: Any = None  # answer to the last good goal, then its result
        self.filled = ros.listen(JointTrajectory, "/apart/arm/joint_trajectory", COMMAND)
        ros.node.create_service(GetParameters, "/apart/arm/get_parameters", _effort_interface)
        self._good = ros.node.create_publisher(InertialParameters, "/apart/identifier/parameters", LATCHED)
        self._good.publish(_good_parameters())
        for name in processes:
            self._find(name)

    def _find(self, node: str) -> None:
        """Take up the endpoints of a node (its name with namespace)."""
        own = self.ros.node
        space, _, name = f"/{node}".rpartition("/")
        space = space or "/"
        self.ros.until(lambda: any((name, space) == found for found in own.get_node_names_and_namespaces()), node)
        self.ros.client(GetParameterTypes, f"/{node}/get_parameter_types")
        for topic, (kind, *_) in own.get_subscriber_names_and_types_by_node(name, space):
            if topic not in _UNASKED and "/_action/" not in topic and not (self._moves and topic.endswith(_RARELY)):
                self._topics.append(own.create_publisher(interface(kind), topic, EVERY_SUBSCRIBER))
        for service, (kind, *_) in own.get_service_names_and_types_by_node(name, space):
            if "/_action/" not in service:
                self._services.append(self.ros.client(interface(kind), service))
        for action, (kind, *_) in get_action_server_names_and_types_by_node(own, name, space):
            self._actions.append(ActionClient(own, interface(kind), action))

    def run(self, inputs: int) -> None:
        """Send so many messages, requests and goals; raises BrokenBoundError for what breaks a bound."""
        for number in range(inputs):
            self._send()
            self.ros.spin(1e-4)
            if number % 50 == 0 or len(self._waiting) > 20:
                self._collect()
        while self._waiting:
            self._collect()
            self.ros.spin(0.01)

    def _send(self) -> None:
        draw = self._rng.random()
        if self._moves and (self._motion is None or self._motion.done()) and draw < 0.1:
            self._arm()
            excite = next(client for client in self._actions if client._action_type is Excite)
            self._motion = self._send_goal(excite, Excite.Goal(plan_file=self._plan))
        if draw < 0.8:
            publisher = self._drawn(self._topics, "topic_name")
            if draw < 0.1:  # bytes that are no such message; the middleware itself refuses them if they are too many
                with suppress(RCLError):
                    publisher.publish(bytes([0, 1, 0, 0]) + self._rng.randbytes(self._rng.choice((0, 3, 40, 3000))))
            else:
                publisher.publish(self._message(publisher.msg_type))
            self.counts["messages"] += 1
        elif draw < 0.995 or not self._actions:
            client = self._drawn(self._services, "srv_name")
            request = self._messages.fill(client.srv_type.Request())
            if isinstance(request, ChangeState.Request):
                if self._rng.random() < 0.8:
                    request.transition = Transition(id=self._rng.choice(_ARMING))
                elif request.transition.id in _SHUTDOWN:
                    return
            self._await(client.srv_name, client.call_async(request))
            self.counts["requests"] += 1
        else:
            client = self._rng.choice(self._actions)
            self._send_goal(client, self._messages.fill(client._action_type.Goal()))

    def _message(self, kind: Any) -> Any:
        """A random message; half of the trajectories are good but for one part, and may be so altogether."""
        if kind is not JointTrajectory or self._rng.random() < 0.5:
            return self._messages.fill(kind())
        rest, moved = np.zeros((1, 2)), np.array([[0.2, -0.1]])
        q, v, a = (np.concatenate([rest, values, rest]) for values in (moved, 2 * moved, rest))
        joints = two_links()[0].joint_names
        message = to_joint_trajectory(joints, PiecewiseQuintic(np.array([0.0, 0.4, 1.0]), q, v, a))
        if self._rng.random() < 0.5:
            self._messages.fill(self._rng.choice([message.header, *message.points, message.points[1].time_from_start]))
        return message

    def _send_goal(self, client: Any, goal: Any) -> Any:
        self.counts["goals"] += 1
        return self._await(client._action_name, client.send_goal_async(goal))

    def _await(self, name: str, answer: Any) -> Any:
        begun = time.monotonic()
        answer.add_done_callback(lambda _: setattr(self, "longest", max(self.longest, time.monotonic() - begun)))
        self._waiting.append((begun, name, answer))
        return answer

    def _arm(self) -> None:
        client = next(each for each in self._services if each.srv_name == "/excitation/change_state")
        for transition in _ARM_AGAIN:
            answer = client.call_async(ChangeState.Request(transition=Transition(id=transition)))
            self.ros.until(answer.done, client.srv_name)
        self.counts["requests"] += len(_ARM_AGAIN)

    def _drawn(self, endpoints: list[Any], name: str) -> Any:
        while True:
            drawn = self._rng.choice(endpoints)
            rarely = _RARELY_IN_MOTION if self._moves else _RARELY
            if not getattr(drawn, name).endswith(rarely) or self._rng.random() < _RARE:
                return drawn

    def _collect(self) -> None:
        now = time.monotonic()
        for begun, name, future in self._waiting:
            if future.done():
                answer = future.result()
                if getattr(answer, "accepted", False):  # a goal
                    self.counts["accepted goals"] += 1
                    if future is self._motion:
                        self._motion = answer.get_result_async()
                    if self._rng.random() < 0.2:
                        answer.cancel_goal_async()
            elif now - begun > ANSWER_S:
                raise BrokenBoundError(f"{name} did not answer within {ANSWER_S:g} s")
        self._waiting = [entry for entry in self._waiting if not entry[2].done()]
        for name, process in self.processes.items():
            if process.ended:
                raise BrokenBoundError(f"{name} ended with status {process.process.returncode}: {process.log()[-500:]}")

    def moved_s(self) -> float:
        """Time in which the robot moved [s]."""
        record = self.robot.record()
        moving = np.abs(record.velocity[1:]).max(axis=1) > 1e-6
        return float(np.diff(record.time)[moving].sum())

    def check_end(self) -> None:
        """Raise BrokenBoundError if a log has a traceback or control characters, or the robot left its limits."""
        for name, process in self.processes.items():
            log = process.log()
            if "Traceback" in log:
                raise BrokenBoundError(f"{name} printed a traceback: {log[log.index('Traceback'):][:2000]}")
            lines = [line for line in log.split("\n") if "] [rcl" not in line]  # those of ROS itself
            if found := [line for line in lines if any(ord(each) < 32 and each != "\t" for each in line)]:
                raise BrokenBoundError(f"{name} printed control characters: {found[0][:500]!r}")
        if self.longest > ANSWER_S:
            raise BrokenBoundError(f"an answer took {self.longest:.1f} s, more than {ANSWER_S:g} s")
        for trajectory in self.filled:
            effort = np.array([point.effort for point in trajectory.points]).reshape(-1, 2)
            if not (np.abs(effort) <= two_links()[0].limits.effort).all():
                raise BrokenBoundError(f"feed_forward sends efforts of {np.abs(effort).max(axis=0)} N m")
        try:
            self.robot.record().check_limits()
        except AssertionError as error:
            raise BrokenBoundError(f"the robot left its limits: {error}") from None


def _effort_interface(_request: Any, response: Any) -> Any:
    response.values = [ParameterValue(type=ParameterType.PARAMETER_STRING_ARRAY, string_array_value=["effort"])]
    return response


def _good_parameters() -> InertialParameters:
    model = two_links()[0]
    drives = dict.fromkeys(DRIVE_TERMS, np.full(model.joints, 0.1))
    message = known_parameters(model, model.body_prior, drives, Time(sec=int(time.time())))
    for joint in message.joints:
        joint.stribeck_speed, joint.transition_speed = 0.1, 0.01
    message.sequence, message.verdict = 1, InertialParameters.USE
    return message


@contextmanager
def fuzzed_nodes(folder: Path, seed: int, moves: bool = False) -> Iterator[NodeFuzzer]:
    """A fuzzer of the nodes around a fake robot, and of those that compute torques in a namespace of their own."""
    own: dict[str, dict[str, Any]] = {
        "excitation": {**MANY_NODES, "monitor.max_wait_s": 1.0, "require_recorder": False},
        "recorder": {"directory": str(folder / "recordings"), "min_free_mb": 1},
        "identifier": {"output_directory": str(folder / "results"), "state_directory": str(folder / "state")},
        "online": {},
        "simulator": {},
        "adaptation": {},
        "feed_forward": {"urdf": str(folder / "robot.urdf"), "controller": "arm"},
    }
    apart = ("simulator", "adaptation", "feed_forward")
    (folder / "robot.urdf").write_text(URDF)
    with FakeRobot() as robot, ros_client_in(folder) as ros:
        processes = {
            f"apart/{name}" if name in apart else name: ros.start(
                name, parameters, namespace="/apart" if name in apart else "")
            for name, parameters in own.items()}
        plan = folder / "plan.json"
        write_plan(plan)
        yield NodeFuzzer(ros, processes, robot, plan, seed, moves)
