"""The calibration flow: what it says when something is missing, and an interruption that leaves the robot at rest."""

import signal
from pathlib import Path

import pytest
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import NodeProcess
from support.nodes.quick_parameters import SHORT_MOTION
from support.nodes.ros_client import ros_client_in

from inertid_ros.msg import ExcitationStatus, RecorderStatus


def test_missing_nodes_are_named(tmp_path: Path) -> None:
    # In a namespace of its own: a node that a test before has killed may still be in the graph.
    flow = NodeProcess("calibrate", tmp_path, {"wait_s": 1.0}, namespace="/alone")
    status, output = flow.process.wait(30), flow.log()
    assert status == 2, output
    assert "/alone/excitation/get_state is not there; start /alone/excitation" in output
    assert "Traceback" not in output


@pytest.mark.realtime
def test_interruption_leaves_robot_at_rest_and_nothing_armed(tmp_path: Path) -> None:
    with FakeRobot() as robot, ros_client_in(tmp_path) as ros:
        ros.start("excitation", SHORT_MOTION)
        ros.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        ros.start("identifier", {"output_directory": ""})
        status = ros.listen(ExcitationStatus, "excitation/status")
        recorder = ros.listen(RecorderStatus, "recorder/status")
        flow = ros.start("calibrate", {"wait_s": 30.0})
        ros.until(lambda: robot.speed > 0.3 or flow.ended, "motion", 40.0)
        assert not flow.ended, flow.log()
        flow.signal(signal.SIGINT)
        ros.until(lambda: flow.ended, "end of the flow", 20.0)
        output = flow.log()
        assert flow.process.returncode == 130, output
        assert "interrupted; the robot is at rest" in output
        assert robot.at_rest
        ros.spin(0.3)
        record = robot.record()
        record.check_limits()
        assert record.rested_at < record.time[-1]
        ros.until(lambda: status[-1].state == ExcitationStatus.UNARMED, "disarmed")
        ros.until(lambda: not recorder[-1].recording, "recorder stopped")
