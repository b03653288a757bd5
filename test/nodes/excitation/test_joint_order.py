"""Joints of a robot in joint states and in commands, where both have other names than the URDF."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from sensor_msgs.msg import JointState  # noqa: E402

from inertid_ros.config.excitation import MonitorOptions  # noqa: E402
from inertid_ros.core.errors import ExcitationError, RecordingError  # noqa: E402
from inertid_ros.excitation.execution.horizons import Horizon  # noqa: E402
from inertid_ros.nodes.excitation.commander import TrajectoryCommander  # noqa: E402
from inertid_ros.nodes.robot_states import JointStateWindow  # noqa: E402
from inertid_ros.robot.recorded_joints import RecordedJoints  # noqa: E402
from inertid_ros.ros.conversions import JointOrder  # noqa: E402

JOINTS = ("panda_joint1", "panda_joint2")
STATE = JointState(name=["gripper", "fer_joint2", "fer_joint1"], position=[9.0, 2.0, 1.0])


def test_joint_states_are_read_by_the_names_of_the_robot():
    order = JointOrder(JOINTS, recorded=RecordedJoints(JOINTS, {"fer_*": "panda_*"}))
    sample = order.sample(STATE)
    assert sample is not None
    np.testing.assert_array_equal(sample.position, [1.0, 2.0])
    assert order.others == ""


def test_commands_have_the_names_of_the_controller():
    sent = []
    publisher = SimpleNamespace(publish=sent.append, topic_name="/joint_trajectory")
    node = SimpleNamespace(create_publisher=lambda *_: publisher)
    values = np.zeros((2, 2))
    horizon = Horizon(JOINTS, np.array([0.0, 0.1]), values, values, values)
    TrajectoryCommander(node, RecordedJoints(JOINTS, {"fer_*": "panda_*"})).send(horizon)
    assert sent[0].joint_names == ["fer_joint1", "fer_joint2"]


def test_names_by_which_commands_would_call_another_joint_are_refused():
    """The robot does not move before its joint states can be read."""
    order = JointOrder(JOINTS, recorded=RecordedJoints(JOINTS, {"fer_*": "panda_*", "left_*": "panda_*"}))
    with pytest.raises(RecordingError, match="is panda_joint1, but commands name this joint fer_joint1; add it to"):
        order.sample(JointState(name=["left_joint1", "left_joint2"], position=[1.0, 2.0]))


def test_a_robot_with_other_names_does_not_move_and_the_names_are_proposed():
    window = JointStateWindow(JointOrder(JOINTS))
    assert window.take(STATE, 0.0) is None
    with pytest.raises(ExcitationError, match=r"but .* panda_joint2; set robot.joint_names: \{fer_\*: panda_\*\} if"):
        window.check(0.1, 0.1, MonitorOptions())
