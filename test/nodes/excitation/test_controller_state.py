"""The controller's state, and the speed scaling as the driver tells it."""

from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Time
from std_msgs.msg import Float64

from inertid_ros.config.nodes import SpeedScalingOptions
from inertid_ros.nodes.excitation.robot_interface import ControllerState, RobotInterface
from inertid_ros.robot.recorded_joints import RecordedJoints
from inertid_ros.ros.controller import state_topic


class Topics:
    """A node that keeps the callbacks of its subscriptions."""

    def __init__(self) -> None:
        self.callbacks = {}

    def create_subscription(self, _type, topic, callback, _qos, **_keywords):
        self.callbacks[topic] = callback
        return SimpleNamespace()


def ignore(*_values: object) -> None:
    """Nothing is done."""


def state(factor: float, positions: tuple[float, ...] = (0.1, 0.2)) -> SimpleNamespace:
    header = SimpleNamespace(stamp=Time(sec=7, nanosec=500_000_000))
    reference = SimpleNamespace(positions=list(positions))
    return SimpleNamespace(
        header=header, joint_names=["a", "b"], reference=reference, speed_scaling_factor=factor
    )  # fmt: skip


def test_percent_of_the_driver_become_a_factor() -> None:
    topics, told = Topics(), []
    controller = ControllerState(topics, SpeedScalingOptions(), "", told.append, ignore)
    assert controller.factor == 1.0
    topics.callbacks["speed_scaling_state_broadcaster/speed_scaling"](Float64(data=50.0))
    assert controller.factor == 0.5 and told == [0.5]
    controller.poll(1.0)  # without a controller there is nothing to read


def test_no_topic_is_no_subscription() -> None:
    topics = Topics()
    assert ControllerState(topics, SpeedScalingOptions(topic=""), "", ignore, ignore).factor == 1.0
    assert not topics.callbacks


def test_the_controller_is_read_now_and_then_and_before_a_horizon_is_sent() -> None:
    told, states = [], []
    controller = ControllerState(Topics(), SpeedScalingOptions(topic=""), "", told.append, ignore)
    controller._state = SimpleNamespace(take=lambda: [(states[-1], 0.0)])
    for now, factor, at_once in ((1.0, 1.0, False), (1.005, 0.5, False), (1.01, 0.5, True), (1.04, 0.0, False)):
        states.append(state(factor))
        controller.poll(now, at_once)
    assert told == [1.0, 0.5, 0.0]  # what came at 1.005 is left for later


def test_its_reference_is_handed_on_with_its_stamp_if_it_holds_all_joints() -> None:
    references = []
    controller = ControllerState(
        Topics(), SpeedScalingOptions(topic=""), "", ignore, lambda *reference: references.append(reference)
    )
    for positions in ((0.1, 0.2), ()):
        controller._state = SimpleNamespace(take=lambda positions=positions: [(state(1.0, positions), 0.0)])
        controller.poll(len(references) + 1.0)
    ((stamp, names, position),) = references
    assert (stamp, names) == (7.5, ("a", "b"))
    np.testing.assert_allclose(position, [0.1, 0.2])


@pytest.mark.parametrize(
    ("controller", "arguments", "topic"),
    [
        ("arm", [], "arm/controller_state"),
        ("", [], ""),
        ("", ["-r", "__ns:=/cell"], ""),
        ("", ["-r", "joint_trajectory:=/arm/joint_trajectory"], "/arm/controller_state"),
        ("", ["-r", "__ns:=/cell", "-r", "joint_trajectory:=arm/joint_trajectory"], "/cell/arm/controller_state"),
    ],
)
def test_the_state_is_read_beside_the_topic_of_trajectories(controller: str, arguments: list[str], topic: str) -> None:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("excitation", context=context, cli_args=["--ros-args", *arguments] if arguments else [])
    try:
        assert state_topic(node, controller) == topic
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)


def test_references_that_are_no_positions_of_this_robot_are_ignored() -> None:
    taken, told = [], []
    joints = RecordedJoints(("panda_joint1",), {"fer_*": "panda_*"})
    logger = SimpleNamespace(warning=lambda text, **_keywords: told.append(text))
    robot = SimpleNamespace(
        _model=SimpleNamespace(recorded_joints=joints, joint_names=("panda_joint1",)),
        _on_reference=lambda *reference: taken.append(reference), _node=SimpleNamespace(get_logger=lambda: logger),
    )  # fmt: skip
    for names, values in (
        (("fer_joint1",), [np.nan]), (("fer_joint1", "panda_joint1"), [0.1, 0.2]), (("fer_joint1",), [0.3])
    ):  # fmt: skip
        RobotInterface._take_reference(robot, 1.0, names, np.array(values))
    assert len(told) == 1 and len(taken) == 1 and taken[0][1].tolist() == [0.3]
