"""The calibration flow: what it says when something is missing, and an interruption that leaves the robot at rest."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml
from support.excitation_setup import PARAMETERS
from support.fake_robot import FakeRobot
from support.ros_bench import bench_in

from inertid_ros.msg import ExcitationStatus, RecorderStatus

QUICK = {
    **PARAMETERS,
    "require_recorder": True,
    "excitation.duration_s": 6.0,
    "excitation.base_frequency_hz": 0.5,
    "excitation.harmonics": 3,
    "excitation.starts": 4,
    "excitation.improved": 0,
}


def start_flow(folder: Path, **parameters: float) -> subprocess.Popen:
    file = folder / "calibrate.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
    command = [sys.executable, "-m", "inertid_ros.nodes.calibrate.node", "--ros-args", "--params-file", str(file)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env=dict(os.environ)
    )


def test_missing_nodes_are_named(tmp_path: Path) -> None:
    flow = start_flow(tmp_path, wait_s=1.0)
    output, _ = flow.communicate(timeout=30)
    assert flow.returncode == 2
    assert "error: /excitation/get_state is not there; start /excitation" in output
    assert "Traceback" not in output


def test_interruption_leaves_robot_at_rest_and_nothing_armed(tmp_path: Path) -> None:
    with FakeRobot() as robot, bench_in(tmp_path) as bench:
        bench.start("excitation", QUICK)
        bench.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        bench.start("identifier", {"output_directory": ""})
        status = bench.listen(ExcitationStatus, "excitation/status")
        recorder = bench.listen(RecorderStatus, "recorder/status")
        flow = start_flow(tmp_path, wait_s=30.0)
        try:
            bench.until(lambda: robot.speed > 0.3 or flow.poll() is not None, "motion", 40.0)
            assert flow.poll() is None, flow.communicate()[0]
            moment = time.monotonic()
            flow.send_signal(signal.SIGINT)
            bench.until(lambda: flow.poll() is not None, "end of the flow", 20.0)
        finally:
            flow.kill()
        output, _ = flow.communicate()
        assert flow.returncode == 130, output
        assert "interrupted; the robot is at rest" in output
        assert robot.at_rest
        bench.spin(0.3)
        robot.rest_after(moment)
        robot.check_limits()
        bench.until(lambda: status[-1].state == ExcitationStatus.UNARMED, "disarmed")
        bench.until(lambda: not recorder[-1].recording, "recorder stopped")
