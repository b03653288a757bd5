"""The state of the simulated robot's controller, as a JointTrajectoryController publishes it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")
pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

from support.nodes.control_messages import control_messages_environment  # noqa: E402
from support.nodes.two_links import URDF  # noqa: E402

PROBE = """
import json, sys, time
import rclpy
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from inertid_ros.nodes.simulator import Simulator
from inertid_ros.nodes.spin import tick_by_timer
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

rclpy.init(args=["--ros-args", "-p", f"urdf:={sys.argv[1]}", "-p", "controller:=arm", "-p", "state_hz:=100.0",
                 "-p", "fault.speed_scaling:=0.5", "-p", "fault.gap_rate_hz:=0.0"])
simulator, client, states = Simulator(), rclpy.create_node("client"), []
client.create_subscription(JointTrajectoryControllerState, "arm/controller_state", states.append, 100)
commands = client.create_publisher(JointTrajectory, "arm/joint_trajectory", 1)
executor = SingleThreadedExecutor()
executor.add_node(simulator)
executor.add_node(client)
tick_by_timer(simulator)

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.01)

while not (states and commands.get_subscription_count()):
    spin(0.1)
points = [JointTrajectoryPoint(positions=[0.2 * k, 0.0], velocities=[0.2 * (k < 3), 0.0]) for k in range(4)]
for k, point in enumerate(points):
    point.time_from_start.sec = k
commands.publish(JointTrajectory(joint_names=["shoulder", "elbow"], points=points))
while sum(state.reference.positions[0] > 0.02 for state in states) < 50:
    spin(0.1)
simulator.set_parameters([Parameter("fault.tell_speed_scaling", value=False)])
spin(0.5)
rows = [(s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec, s.reference.positions[0], s.feedback.positions[0],
         s.error.positions[0], s.speed_scaling_factor) for s in states]
print(json.dumps(rows))
"""


@pytest.mark.xdist_group("control_msgs")
def test_it_tells_how_far_the_trajectory_has_come(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    extra = control_messages_environment(Path(pytestconfig.rootpath) / ".pytest_cache" / "control_msgs")
    (tmp_path / "robot.urdf").write_text(URDF)
    command = [sys.executable, "-c", PROBE, str(tmp_path / "robot.urdf")]
    done = subprocess.run(command, env={**os.environ, **extra}, capture_output=True, text=True, check=True, timeout=60)
    rows = json.loads(done.stdout.splitlines()[-1])
    moving = [row for row in rows if row[1] > 0.02]
    stamp, reference, feedback, error, _ = np.array(moving).T
    # Half of the speed of the points; a busy machine holds the robot up, and its stamps go on.
    assert np.median(np.diff(reference) / np.diff(stamp)) == pytest.approx(0.1, rel=1e-3)
    np.testing.assert_allclose(error, reference - feedback, atol=1e-9)
    assert np.abs(error).max() < 0.01
    assert len(moving) > 20
    assert rows[0][-1] == 0.5 and rows[-1][-1] == 1.0
