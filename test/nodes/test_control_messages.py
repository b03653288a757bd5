"""The stand-in of control_msgs, which tests of the action interface use where the real one is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from support.nodes.control_messages import control_messages_environment  # noqa: E402

FIELDS = """
from control_msgs.action import FollowJointTrajectory
goal, result = FollowJointTrajectory.Goal(), FollowJointTrajectory.Result()
print(type(goal.trajectory).__name__, type(goal.goal_time_tolerance).__name__, goal.path_tolerance, goal.goal_tolerance)
from control_msgs.msg import JointTrajectoryControllerState
state = JointTrajectoryControllerState()
print(type(state.reference).__name__, type(state.multi_dof_error).__name__, state.speed_scaling_factor)
print(result.error_code, result.PATH_TOLERANCE_VIOLATED, result.INVALID_GOAL)
"""


@pytest.mark.xdist_group("control_msgs")  # builds it beside the other tests, before those that move a robot
def test_it_has_the_fields_and_codes_of_the_real_one(pytestconfig: pytest.Config) -> None:
    extra = control_messages_environment(Path(pytestconfig.rootpath) / ".pytest_cache" / "control_msgs")
    command = [sys.executable, "-c", FIELDS]
    done = subprocess.run(command, env={**os.environ, **extra}, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "JointTrajectory Duration [] []", "JointTrajectoryPoint MultiDOFJointTrajectoryPoint 0.0", "0 -4 -1"
    ], done.stderr  # fmt: skip
