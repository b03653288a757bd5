"""Faults around a moving robot on running nodes: clock steps, floods, exceptions, a recorder that dies or fails."""

import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from support.nodes.armed_excitation import PARAMETERS, Setup, armed_in
from support.nodes.calibration_flow import SHORT_MOTION, start_flow
from support.nodes.fake_robot import FakeRobot, write_plan
from support.nodes.ros_client import NodeProcess, bench_in
from support.paths import SUPPORT

from inertid_ros.action import Excite
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import RecorderStatus
from inertid_ros.ros.conversions import to_time

FAULTY = SUPPORT / "nodes" / "faulty_excitation.py"


class SteppingClock:
    """ROS time from a thread: the system's time plus an offset that a test may change at once."""

    def __init__(self, setup: Setup) -> None:
        self.offset_s = 0.0
        self._publisher = setup.bench.node.create_publisher(Clock, "/clock", 10)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "SteppingClock":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.005):
            self._publisher.publish(Clock(clock=to_time(time.time_ns() + round(self.offset_s * 1e9))))


@pytest.fixture
def on_ros_time(tmp_path: Path) -> Iterator[tuple[Setup, SteppingClock]]:
    """An armed node whose clock is /clock."""
    write_plan(tmp_path / "plan.yaml")
    with FakeRobot() as robot, bench_in(tmp_path) as bench:
        node = bench.start("excitation", {**PARAMETERS, "use_sim_time": True})
        setup = Setup(bench, robot, node, tmp_path / "plan.yaml")
        with SteppingClock(setup) as clock:
            setup.arm()
            bench.spin(0.5)
            yield setup, clock


@pytest.mark.parametrize("step_s", [-5.0, 5.0])
def test_clock_steps_change_nothing(on_ros_time: tuple[Setup, SteppingClock], step_s: float) -> None:
    """The node's clock steps in motion, the robot's does not."""
    setup, clock = on_ros_time
    goal = setup.moving_fast()
    clock.offset_s = step_s
    result = setup.bench.result(goal).result
    assert result.error_code == Excite.Result.SUCCEEDED, result.message
    setup.expect_rest(time.monotonic())


def test_robot_whose_clock_steps_as_well_ends_at_rest(on_ros_time: tuple[Setup, SteppingClock]) -> None:
    """Horizons on their way are stamped with the old time: the motion goes on, or stops for its tracking error."""
    setup, clock = on_ros_time
    goal = setup.moving_fast()
    clock.offset_s = setup.robot.clock_offset_s = -5.0
    result = setup.bench.result(goal).result
    assert result.error_code in (Excite.Result.SUCCEEDED, Excite.Result.STOPPED), result.message
    setup.bench.until(lambda: setup.robot.at_rest, "rest", 5.0)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Setup]:
    with armed_in(tmp_path) as setup:
        yield setup


def test_flood_of_states_stops_the_robot_and_names_the_sender(own: Setup) -> None:
    rogue = own.bench.node.create_publisher(JointState, "joint_states", 10)
    own.bench.node.destroy_publisher(rogue)
    goal = own.moving_fast()
    rogue = own.bench.node.create_publisher(JointState, "joint_states", 10)
    state = JointState(name=["shoulder", "elbow"], position=[0.0, 0.0], velocity=[0.0, 0.0], effort=[0.0, 0.0])
    end, moment = threading.Event(), time.monotonic()

    def flood() -> None:
        while not end.is_set():
            for _ in range(50):
                rogue.publish(state)
            time.sleep(0.005)

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    try:
        own.expect(goal, Excite.Result.STOPPED, "")
        own.expect_rest(moment)
        assert own.robot.rest_after(moment) - moment < 3.0
    finally:
        end.set()
        thread.join()
    refused = own.bench.result(own.excite()).result
    assert refused.error_code == Excite.Result.REFUSED


def test_exception_in_a_callback_brakes_and_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plan(tmp_path / "plan.yaml")
    trigger, popen = tmp_path / "raise", subprocess.Popen

    def start(command: list[str], **keywords: object) -> subprocess.Popen:
        if "inertid_ros.nodes.excitation.node" in command:
            command = [sys.executable, str(FAULTY), str(trigger), *command[3:]]
        return popen(command, **keywords)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", start)
    with FakeRobot() as robot, bench_in(tmp_path) as bench:
        node = bench.start("excitation", PARAMETERS)
        setup = Setup(bench, robot, node, tmp_path / "plan.yaml")
        setup.arm()
        setup.moving_fast()
        moment = time.monotonic()
        trigger.touch()
        assert node.process.wait(10) == 1, node.log()
        assert "made to fail" in node.log()
        setup.expect_rest(moment)


def test_recorder_that_dies_in_motion_ends_the_flow_with_the_robot_at_rest(tmp_path: Path) -> None:
    with FakeRobot() as robot, bench_in(tmp_path) as bench:
        bench.start("excitation", {**SHORT_MOTION, "excitation.duration_s": 12.0})
        recorder = bench.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        bench.start("identifier", {"output_directory": ""})
        flow = start_flow(tmp_path, wait_s=30.0)
        try:
            bench.until(lambda: robot.speed > 0.3 or flow.poll() is not None, "motion", 60.0)
            assert flow.poll() is None, flow.communicate()[0]
            moment = time.monotonic()
            recorder.signal(signal.SIGKILL)
            bench.until(lambda: flow.poll() is not None, "end of the flow", 30.0)
        finally:
            flow.kill()
        output, _ = flow.communicate()
        assert flow.returncode == 2, output
        assert "error: recorder has not been heard" in output and "Traceback" not in output
        assert robot.rest_after(moment) - moment < 10.0
        robot.check_limits()


def limit_file_size(process: NodeProcess, size: int) -> None:
    """From now on the node's files cannot grow beyond ``size`` bytes, as on a disk that is full."""
    resource.prlimit(process.process.pid, resource.RLIMIT_FSIZE, (size, size))


def test_full_disk_ends_a_recording_and_what_was_accepted_is_readable(tmp_path: Path) -> None:
    with bench_in(tmp_path) as bench, FakeRobot() as robot:
        recorder = bench.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        status = bench.listen(RecorderStatus, "recorder/status")
        bench.until(lambda: robot.node.count_subscribers("joint_states") > 0, "discovery")
        answer = bench.trigger("recorder/start")
        assert answer.success, answer.message
        bench.spin(0.5)
        bag = next((tmp_path / "recordings" / answer.message).glob("*.mcap"))
        limit_file_size(recorder, bag.stat().st_size + 20_000)
        bench.until(lambda: "cannot be written" in status[-1].message, "stop of the recording", 20.0)
        assert not status[-1].recording
        assert not bench.trigger("recorder/stop").success
        assert recorder.process.poll() is None, "the recorder itself goes on"
        recording = load_recording(str(tmp_path / "recordings" / answer.message))
        assert len(recording.time) > 50 and np.isfinite(recording.position).all()
