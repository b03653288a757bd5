"""Whatever /clock says ends no node."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from builtin_interfaces.msg import Time  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from support.latencies import Latencies  # noqa: E402
from support.nodes.armed_excitation import PARAMETERS, excitation_in  # noqa: E402
from support.nodes.ros_client import RosClient, ros_client_in  # noqa: E402
from support.nodes.two_links import URDF  # noqa: E402

from inertid_ros.data.files.bag_backends import write_bag  # noqa: E402
from inertid_ros.data.recording import Recording  # noqa: E402
from inertid_ros.nodes.robot_states import SimulatedTime  # noqa: E402
from inertid_ros.ros.conversions import to_time  # noqa: E402

LAST, LARGEST = 2**31 - 1, 2**32 - 1
TIMES = (
    Time(sec=-1), Time(sec=-(2**31)), Time(), Time(nanosec=LARGEST), Time(sec=LAST), Time(sec=LAST, nanosec=LARGEST),
    Time(sec=-1, nanosec=LARGEST), Time(sec=1), Time(sec=2**31 - 367 * 86400, nanosec=999_999_999), Time(sec=10**9),
)  # fmt: skip


def any_time(rng: random.Random) -> Time:
    """Now, near it, far from it, or what no clock says."""
    match rng.randrange(4):
        case 0:
            return to_time(time.time_ns())
        case 1:
            return to_time(time.time_ns() + rng.randrange(-(10**11), 10**11))
        case 2:
            return Time(sec=rng.randrange(-(2**31), 2**31), nanosec=rng.randrange(2**32))
    return rng.choice(TIMES)


@contextmanager
def wild_clock(ros: RosClient) -> Iterator[None]:
    """/clock from a thread, seen by its node at 500 Hz."""
    publisher, end, rng = ros.node.create_publisher(Clock, "/clock", 10), threading.Event(), random.Random(0)

    def run() -> None:
        for instant in TIMES:
            publisher.publish(Clock(clock=instant))
            end.wait(0.01)
        while not end.wait(0.002):
            publisher.publish(Clock(clock=any_time(rng)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.timeout(200)  # eight nodes at once, and other tests beside them
def test_no_time_of_a_clock_ends_a_node(tmp_path: Path) -> None:
    """Each node in a namespace of its own, so that none has to do with another."""
    (tmp_path / "robot.urdf").write_text(URDF)
    instants, still = np.arange(0.0, 0.1, 0.01), np.zeros((10, 2))
    bag = write_bag(Recording(("shoulder", "elbow"), instants, still, still), tmp_path / "bag")
    urdf: dict[str, Any] = {"urdf": str(tmp_path / "robot.urdf")}
    parameters = {
        "adaptation": urdf, "calibrate": {"wait_s": 200.0}, "excitation": urdf,
        "identifier": {**urdf, "output_directory": ""}, "online": {},
        "recorder": {"directory": str(tmp_path), "min_free_mb": 1}, "replay": {"bag": str(bag), "wait_s": 200.0},
        "simulator": urdf,
    }  # fmt: skip
    with ros_client_in(tmp_path) as ros:
        nodes = [
            ros.start(name, {**own, "use_sim_time": True}, namespace=f"/{name}") for name, own in parameters.items()
        ]
        ros.until(lambda: set(parameters) <= set(ros.node.get_node_names()), "nodes", 100.0)
        with wild_clock(ros):
            ros.until(lambda: all("has the invalid time" in node.log() for node in nodes), "impossible time", 100.0)
            ros.spin(0.7)
        for node in nodes:
            assert not node.ended, node.log()
            assert node.log().count("has the invalid time") == 1


@pytest.mark.realtime
def test_a_robot_in_motion_comes_to_rest_whatever_its_clock_says(tmp_path: Path, latencies: Latencies) -> None:
    with excitation_in(tmp_path, latencies, {**PARAMETERS, "use_sim_time": True}) as excitation:
        ros, end = excitation.ros, threading.Event()
        publisher = ros.node.create_publisher(Clock, "/clock", 10)

        def run() -> None:
            while not end.wait(0.005):
                publisher.publish(Clock(clock=to_time(time.time_ns())))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        excitation.ready()
        goal = excitation.moving_fast()
        end.set()
        thread.join()
        with wild_clock(ros):
            ros.result(goal)
            excitation.expect_rest()
        assert not excitation.node.ended, excitation.node.log()


@pytest.mark.parametrize("seed", range(20))
def test_simulated_time_never_goes_back(seed: int) -> None:
    rng, simulated, real, before = random.Random(seed), SimulatedTime(), 0.0, 0.0
    for _ in range(300):
        instant, real = any_time(rng), real + rng.random() * 0.2
        simulated.update(max(instant.sec, 0) + instant.nanosec * 1e-9, real, rng.choice((0.0, 1e9, -1e9, float(real))))
        assert simulated.now >= before
        before = simulated.now
        if rng.random() < 0.02:
            simulated.restart()
            before = simulated.now
    assert np.isfinite(simulated.now)
