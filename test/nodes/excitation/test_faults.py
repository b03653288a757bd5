"""Faults around a moving robot on running nodes: clock steps, floods, exceptions, a recorder that dies."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sensor_msgs.msg import JointState
from support.latencies import Latencies
from support.nodes.armed_excitation import HORIZON_S, LONGEST_BRAKE_S, PARAMETERS, excitation_in
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import raise_priority
from support.nodes.quick_parameters import SHORT_MOTION
from support.nodes.ros_client import ros_client_in
from support.paths import SUPPORT

from inertid_ros.action import Excite

pytestmark = pytest.mark.realtime
FAULTY = SUPPORT / "nodes" / "faulty_excitation.py"


CLOCK = """
import sys, threading, time
import rclpy
from rosgraph_msgs.msg import Clock
from inertid_ros.ros.conversions import to_time

offsets = [0.0]


def read():
    for line in sys.stdin:
        offsets.append(float(line))


threading.Thread(target=read, daemon=True).start()
rclpy.init()
publisher = rclpy.create_node("stepping_clock").create_publisher(Clock, "/clock", 10)
while True:
    publisher.publish(Clock(clock=to_time(time.time_ns() + round(offsets[-1] * 1e9))))
    time.sleep(0.005)
"""


class SteppingClock:
    """ROS time from a process of its own: the system's time plus an offset that a test may change at once."""

    def __enter__(self) -> "SteppingClock":
        self._process = subprocess.Popen([sys.executable, "-c", CLOCK], stdin=subprocess.PIPE, text=True)
        raise_priority(self._process.pid)
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()

    def step(self, offset_s: float) -> None:
        assert self._process.stdin is not None
        print(offset_s, file=self._process.stdin, flush=True)


def test_a_step_of_the_clock_changes_nothing(tmp_path: Path, latencies: Latencies) -> None:
    """The node's clock steps in motion, the robot's does not."""
    parameters = {**PARAMETERS, "use_sim_time": True}
    with SteppingClock() as clock, excitation_in(tmp_path, latencies, parameters) as excitation:
        excitation.ready()
        goal = excitation.moving_fast()
        clock.step(-5.0)
        excitation.expect(goal, Excite.Result.SUCCEEDED, "done")
        excitation.expect_rest()


def test_flood_of_states_stops_the_robot_and_names_the_sender(tmp_path: Path, latencies: Latencies) -> None:
    with excitation_in(tmp_path, latencies) as excitation:
        excitation.ready()
        goal = excitation.moving_fast()
        rogue = excitation.ros.node.create_publisher(JointState, "joint_states", 10)
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
            excitation.expect(goal, Excite.Result.STOPPED, "test_client")
            # A flood may keep the node from commanding anything: the robot rests where its last horizon ends.
            rest = excitation.expect_rest().rested_at - moment
        finally:
            end.set()
            thread.join()
        latencies.add("rest after a flood of states", rest)
        assert rest < HORIZON_S + LONGEST_BRAKE_S
        excitation.expect(excitation.excite(), Excite.Result.REFUSED, "stopped")


def test_exception_in_a_callback_brakes_and_ends_with_an_error(tmp_path: Path, latencies: Latencies) -> None:
    trigger = tmp_path / "raise"
    with excitation_in(tmp_path, latencies, script=[str(FAULTY), str(trigger)]) as excitation:
        excitation.ready()
        excitation.moving_fast()
        moment = time.monotonic()
        trigger.touch()
        assert excitation.node.process.wait(30) == 1, excitation.node.log()
        assert "made to fail" in excitation.node.log()
        excitation.latencies.add("rest after an exception", excitation.expect_rest().rested_at - moment)


def test_recorder_that_dies_ends_the_flow_with_the_robot_at_rest(tmp_path: Path, latencies: Latencies) -> None:
    with FakeRobot() as robot, ros_client_in(tmp_path) as ros:
        ros.start("excitation", {**SHORT_MOTION, "excitation.duration_s": 9.0})
        recorder = ros.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        ros.start("identifier", {"output_directory": ""})
        flow = ros.start("calibrate", {"wait_s": 30.0})
        ros.until(lambda: robot.speed > 0.3 or flow.ended, "motion", 60.0)
        assert not flow.ended, flow.log()
        moment = time.monotonic()
        recorder.signal(signal.SIGKILL)
        ros.until(lambda: flow.ended, "end of the flow", 30.0)
        output = flow.log()
        assert flow.process.returncode == 2, output
        assert "recorder has ended" in output and output.count("[ERROR]") == 1, output
        record = robot.record()
        record.check_limits()
        latencies.add("rest after a recorder died", record.rested_at - moment)
