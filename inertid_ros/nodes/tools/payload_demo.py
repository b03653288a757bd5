"""The payload demo: a calibrated arm works and grasps a box of unknown mass, which the online node identifies."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import IdentifyPayload
from inertid_ros.cli.printing import number, print_table
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.msg import InertialParameters, RobotChange
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import JointOrder, TrajectoryArrays, from_inertia, to_inertia, to_joint_trajectory
from inertid_ros.ros.topics import COMMAND, LATCHED, STATE
from inertid_ros.simulation.plan_recording import Box

LINK = "panda_link8"  # the flange
_WORK_S, _EVENT_TIMEOUT_S = 90.0, 30.0
_MASS_RANGE_KG = (0.5, 3.0)
_QUANTITIES = ("mass [kg]", "com x [m]", "com y [m]", "com z [m]", *(f"inertia {axes} [kg m^2]" for axes in
               ("xx", "xy", "xz", "yy", "yz", "zz")))  # fmt: skip
_LIMIT_MARGIN_RAD = 0.1
_MOVEMENT_S, _MAX_DISPLACEMENT_RAD = 1.25, 0.5  # time of a movement, and distance of its end from the first pose


def attached(box: Box, link: str, stamp: Time) -> InertiaStamped:
    """Make the message by which the simulator attaches a box to a link."""
    return InertiaStamped(header=Header(stamp=stamp, frame_id=link), inertia=to_inertia(box.numbers))


def movements(model: RobotModel, start: Array, rng: np.random.Generator, seconds: float) -> TrajectoryArrays:
    """Return movements from rest to rest, each to a random pose near the first; a controller makes quintics of them.

    ``start`` ``(n,)`` is the pose at the beginning and the end [rad]; all movements take ``seconds``.
    """
    count = max(2, round(seconds / _MOVEMENT_S))
    poses = start + rng.uniform(-_MAX_DISPLACEMENT_RAD, _MAX_DISPLACEMENT_RAD, (count, len(start)))
    poses[-1] = start
    poses = np.clip(poses, model.limits.lower + _LIMIT_MARGIN_RAD, model.limits.upper - _LIMIT_MARGIN_RAD)
    rest = np.zeros_like(poses)
    return TrajectoryArrays(model.joint_names, _MOVEMENT_S * np.arange(1.0, count + 1), poses, rest, rest)


@contextmanager
def demo_node() -> Iterator[Node]:
    """Make the node of the demo."""
    rclpy.init()
    try:
        node = rclpy.create_node("demo")
        yield node
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


def spin_until(node: Node, condition: Callable[[], Any], otherwise: str, timeout_s: float) -> None:
    """Spin a node until a condition holds; raise InertidError with the message if the time is over."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise InertidError(otherwise)
        rclpy.spin_once(node, timeout_sec=0.05)


class PayloadDemo:
    """Moves the simulated arm, puts a box into its hand, and asks the online node."""

    def __init__(self, node: Node, model: RobotModel, seed: int) -> None:
        self._node, self._model = node, model
        self._rng = np.random.default_rng(seed)
        self.box = Box.random(self._rng, float(self._rng.uniform(*_MASS_RANGE_KG)))
        self._changes: list[tuple[float, RobotChange]] = []
        self._parameters: list[InertialParameters] = []
        self._states: deque[JointState] = deque(maxlen=1)
        self._commands = node.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)
        self._attach = node.create_publisher(InertiaStamped, "simulator/attach", COMMAND)
        self._client = ActionClient(node, IdentifyPayload, "online/identify_payload")
        node.create_subscription(
            RobotChange, "online/change", lambda message: self._changes.append((time.monotonic(), message)), LATCHED
        )
        node.create_subscription(InertialParameters, "online/parameters", self._parameters.append, LATCHED)
        node.create_subscription(JointState, "joint_states", self._states.append, STATE)

    def run(self) -> IdentifyPayload.Result:
        """Work, grasp, identify, let go, and return the payload; raise InertidError if a step fails."""
        self._until(lambda: self._states and self._commands.get_subscription_count(), "joint states of the simulator")
        start = JointOrder(self._model.joint_names).sample(self._states[-1])
        if start is None:
            raise InertidError("the simulator's joint states have other joints; see its log")
        work = movements(self._model, start.position, self._rng, _WORK_S)
        self._commands.publish(to_joint_trajectory(work))
        print("the arm works; its parameters are followed ...", flush=True)
        self._until(lambda: self._parameters and self._client.server_is_ready(), "parameters of the online node")
        grasp = time.monotonic() + float(self._rng.uniform(2.0, 4.0))
        self._until(lambda: time.monotonic() > grasp, "time for the box")
        print("a box is put into its hand", flush=True)
        self._change_to(self.box)
        answer = self._identify()
        print("it lets go", flush=True)
        self._change_to(None)
        return answer

    def _change_to(self, box: Box | None) -> None:
        """Hold a box, or nothing, and wait until the online node has found the cause."""
        count, began = len(self._changes), time.monotonic()
        stamp = self._node.get_clock().now().to_msg()
        self._attach.publish(InertiaStamped() if box is None else attached(box, LINK, stamp))
        self._until(lambda: len(self._changes) > count, "change")
        time_s, first = self._changes[count]
        print(f"  after {time_s - began:.2f} s: {first.message}", flush=True)

        def is_found() -> bool:
            changes = [change for _, change in self._changes[count:]]
            if box is None:
                return any(change.cause == RobotChange.AS_CALIBRATED for change in changes)
            return any(change.settled and change.cause == RobotChange.PAYLOAD for change in changes)

        self._until(is_found, "cause")
        if self._changes[-1] != self._changes[count]:
            print(f"  {self._changes[-1][1].message}", flush=True)

    def _identify(self) -> IdentifyPayload.Result:
        goal = IdentifyPayload.Goal(frame=LINK)
        accepted = self._client.send_goal_async(goal, feedback_callback=lambda message: _show(message.feedback))
        self._until(accepted.done, "answer of the online node")
        result = accepted.result().get_result_async()
        self._until(result.done, "payload")
        answer: IdentifyPayload.Result = result.result().result
        if not answer.success:
            raise InertidError(answer.message)
        return answer

    def _until(self, condition: Callable[[], Any], what: str) -> None:
        otherwise = f"no {what} within {_EVENT_TIMEOUT_S:g} s; see the logs of online and simulator"
        spin_until(self._node, condition, otherwise, _EVENT_TIMEOUT_S)


def hold_a_box(model: RobotModel, seed: int) -> tuple[Box, IdentifyPayload.Result]:
    """Have the simulated arm work and grasp a box; raise InertidError if a step fails or the payload is refused."""
    with demo_node() as node:
        demo = PayloadDemo(node, model, seed)
        return demo.box, demo.run()


def print_payload(box: Box, answer: IdentifyPayload.Result) -> None:
    """Print the identified payload against the truth."""
    values = from_inertia(answer.payload.inertia)
    rows = []
    for name, true, value, low, high in zip(_QUANTITIES, box.numbers, values, answer.lower, answer.upper, strict=True):
        inside = "yes" if low <= true <= high else "no"
        rows.append((name, number(true), number(value), f"{number(low, 3)} to {number(high, 3)}", inside))
    print_table(f"The box in the frame of {LINK}", ("", "truth", "identified", "95 % interval", "inside"), rows)
    print(f"URScript: {answer.set_target_payload}\nlibfranka: {answer.set_load}")


def _show(feedback: IdentifyPayload.Feedback) -> None:
    if feedback.stage != "measuring":
        return
    mass = f"{feedback.mass:.2f} ± {2 * feedback.mass_standard_deviation:.2f} kg" * math.isfinite(feedback.mass)
    line = "; ".join(filter(None, (mass, feedback.uncertain)))
    print(f"  {feedback.stage} {100 * feedback.fraction:3.0f} %: {line}", flush=True)
