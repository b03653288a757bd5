"""The adaptation node controls the simulated Panda: what it follows, refuses and is stopped by; it always holds."""

import time
from collections.abc import Iterator

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from support.nodes.adapted_arm import (  # noqa: E402
    CLEAN_UP,
    JOINTS,
    START,
    AdaptedArm,
    adapted_arm_in,
)
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from inertid_ros.msg import InertialParameters  # noqa: E402

pytestmark = [pytest.mark.realtime, pytest.mark.alone]
FASTEST = 0.3  # rad/s of these motions


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdaptedArm]:
    with adapted_arm_in(tmp_path_factory.mktemp("adaptation")) as arm:
        arm.in_control()
        yield arm


def moving(arm: AdaptedArm) -> None:
    """In the middle of a motion."""
    arm.undisturbed()
    arm.sway(period=4.0, rounds=3)
    arm.until_moving(FASTEST)


def test_it_takes_the_arm_over_where_it_stands_and_follows(arm: AdaptedArm) -> None:
    parameters = arm.ros.listen(InertialParameters, "adaptation/parameters")
    assert np.abs(arm.position - START).max() < 0.02
    arm.follow(period=4.0)
    assert np.abs(arm.position - START).max() < 0.1 and FASTEST < arm.fastest < 1.0
    message = parameters[-1]
    assert message.verdict == InertialParameters.NO_VERDICT and len(message.links) == 7 and message.sequence > 3
    assert all(link.mass > 0 for link in message.links)


def reference(names: tuple[str, ...], target: np.ndarray, seconds: float = 2.0) -> JointTrajectory:
    message = JointTrajectory(joint_names=list(names))
    message.points = [JointTrajectoryPoint(positions=target.tolist(), velocities=[0.0] * len(target))]
    message.points[0].time_from_start.sec = int(seconds)
    return message


def test_bad_references_move_nothing(arm: AdaptedArm) -> None:
    late = reference(JOINTS, START + 0.1)
    late.header.stamp.sec = int(time.time()) - 100
    for message, words in (
        (reference(JOINTS[:-1], START[:-1]), "joint trajectory: holds joints"),
        (reference(JOINTS, START + 4.0, 60), "position"),
        (reference(JOINTS, START + 1.5, 1), "beyond its limit"),
        (reference(JOINTS, np.full(7, np.nan)), "not finite"),
        (late, "s ago"),
        (JointTrajectory(points=[JointTrajectoryPoint()] * 2001), "send it in parts"),
    ):
        arm.undisturbed()
        before = arm.position
        arm.send(message)
        arm.ros.until(lambda words=words: words in arm.log(), words)
        arm.spin(0.2)
        assert np.abs(arm.position - before).max() < 0.02


def test_a_stop_on_request_holds_until_it_is_activated_again(arm: AdaptedArm) -> None:
    moving(arm)
    answer = arm.ros.trigger("adaptation/stop")
    assert answer.success and answer.message == "stopped on request"
    arm.until_rest()
    assert not arm.change_state(CLEAN_UP)  # not from active
    arm.go_to(START, 2.0)
    arm.ros.until(lambda: "reference: refused, stopped on request" in arm.log(), "refusal")
    assert arm.speed < 0.05
    arm.active_again()


def test_states_that_stop_end_the_motion_and_the_driver_holds_the_arm(arm: AdaptedArm) -> None:
    moving(arm)
    arm.set_simulator(fault__silent=True)
    arm.ros.until(lambda: "no joint state for" in arm.log(), "fault")
    arm.spin(1.0)
    count = len(arm.efforts)
    arm.spin(0.5)
    assert len(arm.efforts) == count, "torques without feedback are commanded for good"
    arm.set_simulator(fault__silent=False)
    arm.spin(0.5)
    assert len(arm.efforts) > count
    arm.until_rest()
    arm.active_again()


def test_a_signal_ends_it_at_rest(arm: AdaptedArm) -> None:
    moving(arm)
    assert arm.node.stop() == 0, arm.log()
    arm.until_rest()
    before = arm.position
    arm.spin(0.5)
    assert np.abs(arm.position - before).max() < 0.02


def test_a_killed_node_leaves_the_arm_to_its_driver(arm: AdaptedArm) -> None:
    arm.restart()
    arm.go_to(START, 2.0)
    moving(arm)
    arm.node.kill()
    arm.until_rest()
    before = arm.position
    arm.spin(0.5)
    assert np.abs(arm.position - before).max() < 0.01
