"""A node sees that another one has ended, was killed or is suspended, and does not take a busy one for lost."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from support.nodes.processes import NodeProcess  # noqa: E402
from support.nodes.ros_client import RosClient, ros_client_in  # noqa: E402

from inertid_ros.ros import diagnostics  # noqa: E402
from inertid_ros.ros.diagnostics import Liveliness  # noqa: E402


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as client:
        yield client


@pytest.fixture
def recorder(ros: RosClient) -> NodeProcess:
    return ros.start("recorder", {"write_bag": False})


def watch(ros: RosClient) -> Liveliness:
    """Of the recorder, once it is seen."""
    watched = Liveliness(ros.node, "recorder")
    ros.until(lambda: watched._pid, "recorder")
    assert watched.lost == ""
    return watched


@pytest.mark.parametrize("number, how", [(signal.SIGINT, "has ended"), (signal.SIGSTOP, "is suspended")])
def test_a_node_is_lost(ros: RosClient, recorder: NodeProcess, number: int, how: str) -> None:
    watched = watch(ros)
    recorder.signal(number)
    assert ros.until(lambda: watched.lost, "loss", 10.0) == how  # within a second, and what a busy machine adds to it


def test_a_node_of_another_system_is_lost_by_its_lease(
    ros: RosClient, recorder: NodeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics, "_system", lambda: "another")
    watched = watch(ros)
    recorder.signal(signal.SIGKILL)
    assert "killed" in ros.until(lambda: watched.lost, "loss", 10.0)


def test_a_node_that_is_held_up_is_not_lost(
    ros: RosClient, recorder: NodeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that waits for a processor: it renews no liveliness, but its process is not stopped."""
    monkeypatch.setattr(Liveliness, "_is_suspended", False)
    watched = watch(ros)
    recorder.signal(signal.SIGSTOP)
    ros.spin(2.0)
    assert watched.lost == ""
    recorder.signal(signal.SIGCONT)
    ros.spin(1.0)
    assert watched._lost_at > time.monotonic()


def test_a_killed_node_that_starts_again_is_alive(ros: RosClient, recorder: NodeProcess) -> None:
    watched = watch(ros)
    recorder.signal(signal.SIGKILL)
    assert ros.until(lambda: watched.lost, "loss", 10.0) == "has ended"
    ros.start("recorder", {"write_bag": False})
    ros.until(lambda: not watched.lost, "new recorder", 20.0)


def test_what_was_never_seen_is_not_lost(ros: RosClient) -> None:
    watched = Liveliness(ros.node, "nobody")
    ros.spin(0.5)
    assert watched.lost == ""


def test_nodes_of_one_name_are_counted(ros: RosClient, recorder: NodeProcess) -> None:
    watched = watch(ros)
    ros.until(lambda: watched.living == 1, "one recorder")
    other = ros.start("recorder", {"write_bag": False})
    ros.until(lambda: watched.living == 2, "two recorders")
    other.kill()
    ros.until(lambda: watched.living == 1, "one recorder again")
