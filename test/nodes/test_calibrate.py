"""The calibration flow: an interruption leaves the robot at rest, and plans are moved once an operator says go."""

import signal
from pathlib import Path

import numpy as np
import pytest
from std_srvs.srv import Trigger
from support.nodes.fake_robot import FakeRobot
from support.nodes.quick_parameters import SHORT_MOTION
from support.nodes.ros_client import ros_client_in
from support.nodes.two_links import write_plan

from inertid_ros.msg import ExcitationStatus, RecorderStatus

pytestmark = pytest.mark.realtime


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


def test_the_plans_that_were_reviewed_are_moved_once_an_operator_says_go(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.yaml" for name in ("plan", "validation_plan")}
    plans = [write_plan(path, duration) for path, duration in zip(files.values(), (4.0, 3.0), strict=True)]
    with FakeRobot() as robot, ros_client_in(tmp_path) as ros:
        ros.start("excitation", SHORT_MOTION)
        ros.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        ros.start("identifier", {"output_directory": ""})
        status = ros.listen(ExcitationStatus, "excitation/status")
        given = {name: str(path) for name, path in files.items()}
        flow = ros.start("calibrate", {"wait_s": 30.0, "confirm": True, **given})
        for purpose, plan in zip(("training", "held-out"), plans, strict=True):
            ros.until(lambda: (status and "~/go" in status[-1].message) or flow.ended, "a plan", 40.0)
            assert robot.at_rest and not flow.ended, flow.log()
            before = len(robot.record().commands)
            assert ros.call(Trigger, "excitation/go", Trigger.Request()).success
            assert not ros.call(Trigger, "excitation/go", Trigger.Request()).success
            ros.until(lambda: status[-1].state == ExcitationStatus.READY or flow.ended, "end of the motion", 40.0)
            commanded = np.vstack([command.position for command in robot.record().commands[before:]])
            np.testing.assert_allclose(commanded.max(axis=0), plan.position.max(axis=0), atol=2e-3)
            np.testing.assert_allclose(commanded.min(axis=0), plan.position.min(axis=0), atol=2e-3)
            assert f"{purpose} motion: fourier motion of {plan.duration:.1f} s, speed scale 1" in flow.log()
            ros.until(lambda: status[-1].state != ExcitationStatus.READY or flow.ended, "the next step", 40.0)
