"""The calibration flow: what it says when something is missing, and an interruption that leaves the robot at rest."""

import signal
from pathlib import Path

import pytest
from support.nodes.calibration_flow import SHORT_MOTION, start_flow
from support.nodes.fake_robot import FakeRobot
from support.nodes.ros_client import ros_client_in

from inertid_ros.msg import ExcitationStatus, RecorderStatus


def test_missing_nodes_are_named(tmp_path: Path) -> None:
    # In a namespace of its own: a node that a test before has killed may still be in the graph.
    flow = start_flow(tmp_path, namespace="/alone", wait_s=1.0)
    output, _ = flow.communicate(timeout=30)
    assert flow.returncode == 2, output
    assert "error: /alone/excitation/get_state is not there; start /alone/excitation" in output
    assert "Traceback" not in output


@pytest.mark.realtime
def test_interruption_leaves_robot_at_rest_and_nothing_armed(tmp_path: Path) -> None:
    with FakeRobot() as robot, ros_client_in(tmp_path) as ros:
        ros.start("excitation", SHORT_MOTION)
        ros.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        ros.start("identifier", {"output_directory": ""})
        status = ros.listen(ExcitationStatus, "excitation/status")
        recorder = ros.listen(RecorderStatus, "recorder/status")
        flow = start_flow(tmp_path, wait_s=30.0)
        try:
            ros.until(lambda: robot.speed > 0.3 or flow.poll() is not None, "motion", 40.0)
            assert flow.poll() is None, flow.communicate()[0]
            flow.send_signal(signal.SIGINT)
            ros.until(lambda: flow.poll() is not None, "end of the flow", 20.0)
        finally:
            flow.kill()
        output, _ = flow.communicate()
        assert flow.returncode == 130, output
        assert "interrupted; the robot is at rest" in output
        assert robot.at_rest
        ros.spin(0.3)
        record = robot.record()
        record.check_limits()
        assert record.rested_at < record.time[-1]
        ros.until(lambda: status[-1].state == ExcitationStatus.UNARMED, "disarmed")
        ros.until(lambda: not recorder[-1].recording, "recorder stopped")
