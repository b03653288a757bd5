"""The payload demo: a calibrated arm works and grasps a box of unknown mass, which the online node identifies."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped
from rclpy.action import ActionClient
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import IdentifyPayload
from inertid_ros.cli.printing import number, print_table
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.core.inertial_parameters import MassComInertia
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.msg import InertialParameters, RobotChange
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import JointOrder, from_inertia, to_inertia, to_joint_trajectory
from inertid_ros.ros.topics import COMMAND, LATCHED, STATE
from inertid_ros.simulation.simulated_robot import homogeneous_box

LINK = "panda_link8"  # the flange
_WORK_S, _EVENT_TIMEOUT_S = 90.0, 30.0
_MASS_RANGE_KG = (0.5, 3.0)
_QUANTITIES = ("mass [kg]", "com x [m]", "com y [m]", "com z [m]", *(f"inertia {axes} [kg m^2]" for axes in
               ("xx", "xy", "xz", "yy", "yz", "zz")))  # fmt: skip
_LIMIT_MARGIN_RAD = 0.1
_MOVEMENT_S, _MAX_DISPLACEMENT_RAD = 1.25, 0.5  # time of a movement, and distance of its end from the first pose


def attached(box: MassComInertia, link: str, stamp: Time) -> InertiaStamped:
    """Make the message by which the simulator attaches a box to a link."""
    return InertiaStamped(header=Header(stamp=stamp, frame_id=link), inertia=to_inertia(box.numbers))


def movements(model: RobotModel, start: Array, rng: np.random.Generator, seconds: float) -> PiecewiseQuintic:
    """Return movements from rest to rest, each to a random pose near the first pose; a controller interpolates them.

    ``start`` ``(n,)`` is the pose at the beginning and the end [rad]; all movements take ``seconds``.
    """
    count = max(2, round(seconds / _MOVEMENT_S))
    poses = start + rng.uniform(-_MAX_DISPLACEMENT_RAD, _MAX_DISPLACEMENT_RAD, (count, len(start)))
    poses[-1] = start
    poses = np.clip(poses, model.limits.lower + _LIMIT_MARGIN_RAD, model.limits.upper - _LIMIT_MARGIN_RAD)
    rest = np.zeros_like(poses)
    return PiecewiseQuintic(_MOVEMENT_S * np.arange(1.0, count + 1), poses, rest, rest)


class DemoNode:
    """The node of the demo, which lives as long as the context."""

    def __enter__(self) -> "DemoNode":
        rclpy.init()
        self.node = rclpy.create_node("demo")
        return self

    def __exit__(self, *_error: object) -> None:
        self.node.destroy_node()
        rclpy.try_shutdown()

    def listen(self, message_type: Any, topic: str, qos: QoSProfile = LATCHED, maximum: int | None = None) -> Any:
        """Return a container to which received messages are added; it keeps at most the newest ``maximum``."""
        messages: deque[Any] = deque(maxlen=maximum)
        # A function of its own: rclpy reads the signature of a callback, and deque.append has none.
        self.node.create_subscription(message_type, topic, lambda message: messages.append(message), qos)
        return messages

    def until(self, condition: Callable[[], Any], otherwise: str, timeout_s: float = _EVENT_TIMEOUT_S) -> None:
        """Spin until a condition holds; raise InertidError with the message after the timeout."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                raise InertidError(otherwise)
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def wait_for(self, what: str, condition: Callable[[], Any]) -> None:
        self.until(condition, f"no {what} within {_EVENT_TIMEOUT_S:g} s; see the logs of online and simulator")


def hold_a_box(model: RobotModel, seed: int) -> tuple[MassComInertia, IdentifyPayload.Result]:
    """Let the simulated arm work, grasp a box, identify it and release it; raise InertidError if a step fails."""
    rng = np.random.default_rng(seed)
    box = homogeneous_box(rng, float(rng.uniform(*_MASS_RANGE_KG)))
    with DemoNode() as demo:
        commands = demo.node.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)
        attach = demo.node.create_publisher(InertiaStamped, "simulator/attach", COMMAND)
        client = ActionClient(demo.node, IdentifyPayload, "online/identify_payload")
        changes = demo.listen(RobotChange, "online/change")
        parameters = demo.listen(InertialParameters, "online/parameters", maximum=1)
        states = demo.listen(JointState, "joint_states", STATE, maximum=1)
        demo.wait_for("joint states of the simulator", lambda: states and commands.get_subscription_count())
        start = JointOrder(model.joint_names).sample(states[-1])
        if start is None:
            raise InertidError(
                "the simulator publishes other joints than the model has; see the log of the simulator")
        motion = movements(model, start.position, rng, _WORK_S)
        commands.publish(to_joint_trajectory(model.joint_names, motion))
        print("the arm works; the online node follows its parameters ...", flush=True)
        demo.wait_for("parameters of the online node", lambda: parameters and client.server_is_ready())
        grasp = time.monotonic() + float(rng.uniform(2.0, 4.0))
        demo.wait_for("time for the box", lambda: time.monotonic() > grasp)
        print("the arm grasps a box", flush=True)
        attach.publish(attached(box, LINK, demo.node.get_clock().now().to_msg()))
        _show_change(demo, changes, lambda change: change.settled and change.cause == RobotChange.PAYLOAD)
        answer = _identify(demo, client)
        print("the arm releases the box", flush=True)
        attach.publish(InertiaStamped())
        _show_change(demo, changes, lambda change: change.cause == RobotChange.AS_CALIBRATED)
    return box, answer


def _show_change(demo: DemoNode, changes: Sequence[RobotChange], is_found: Callable[[RobotChange], bool]) -> None:
    count, began = len(changes), time.monotonic()
    demo.wait_for("change", lambda: len(changes) > count)
    first = changes[count]
    print(f"  after {time.monotonic() - began:.2f} s: {first.message}", flush=True)
    demo.wait_for("cause", lambda: any(map(is_found, list(changes)[count:])))
    if changes[-1] is not first:
        print(f"  {changes[-1].message}", flush=True)


def _identify(demo: DemoNode, client: ActionClient) -> IdentifyPayload.Result:
    sent = client.send_goal_async(
        IdentifyPayload.Goal(frame=LINK), feedback_callback=lambda message: _show(message.feedback))
    demo.wait_for("answer of the online node", sent.done)
    result = sent.result().get_result_async()
    demo.wait_for("payload", result.done)
    answer: IdentifyPayload.Result = result.result().result
    if not answer.success:
        raise InertidError(answer.message)
    return answer


def print_payload(box: MassComInertia, answer: IdentifyPayload.Result) -> None:
    """Print the identified payload next to the truth."""
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
    mass = f"{feedback.mass:.2f} ± {2 * feedback.mass_standard_deviation:.2f} kg" * bool(np.isfinite(feedback.mass))
    line = "; ".join(filter(None, (mass, feedback.uncertain)))
    print(f"  {feedback.stage} {100 * feedback.fraction:3.0f} %: {line}", flush=True)
