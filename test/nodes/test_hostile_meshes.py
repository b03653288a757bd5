"""Anybody on the network may describe a robot, with any mesh: no node ends by it, and its message is one line."""

import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")
pytest.importorskip("coal")

from std_msgs.msg import String  # noqa: E402
from support.nodes.ros_client import ros_client_in  # noqa: E402
from support.recordings.synthetic import random_motion, record  # noqa: E402
from support.robots.mesh_texts import HOSTILE, bare_robot  # noqa: E402

from inertid_ros.action import Identify  # noqa: E402
from inertid_ros.calibration.planning import ExcitationJob, prepare_motion  # noqa: E402
from inertid_ros.config.excitation import ExcitationOptions  # noqa: E402
from inertid_ros.core.errors import InertidError  # noqa: E402
from inertid_ros.core.worker import Worker  # noqa: E402
from inertid_ros.data.files.bag_backends import write_bag  # noqa: E402
from inertid_ros.msg import IdentifierStatus  # noqa: E402
from inertid_ros.robot.model import load_model  # noqa: E402
from inertid_ros.ros.topics import LATCHED  # noqa: E402

MESHES = ("itself.dae", "nan.stl", "far.stl")


def described(folder: Path, *meshes: str) -> str:
    """Description of a robot whose first links have hostile meshes, by their paths."""
    text = bare_robot(folder, {mesh: HOSTILE[mesh][0] for mesh in meshes}).read_text()
    return text.replace('filename="', f'filename="file://{folder}/')


def test_no_description_ends_a_node(tmp_path: Path) -> None:
    with ros_client_in(tmp_path) as ros:
        nodes = [ros.start("excitation"), ros.start("adaptation"), ros.start("identifier", {"output_directory": ""})]
        publisher = ros.node.create_publisher(String, "robot_description", LATCHED)
        ros.until(lambda: {node.name for node in nodes} <= set(ros.node.get_node_names()), "nodes")
        for mesh in MESHES:
            publisher.publish(String(data=described(tmp_path, mesh)))
            ros.spin(1.0)
        for node in nodes:
            assert not node.ended, node.log()


def test_a_plan_for_such_a_robot_tells_each_mesh_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the excitation node plans."""
    quick = ExcitationOptions(duration_s=5.0, starts=1, improved=1, iterations=1)
    job = ExcitationJob(described(tmp_path, *MESHES), np.zeros(3), excitation=quick)
    worker: Worker = Worker("planning", prepare_motion, (job,), timeout_s=100.0)
    while not worker.poll():
        time.sleep(0.01)
    try:
        worker.result()
    except InertidError as error:
        assert "ended with" not in str(error)
    told = [line for line in capfd.readouterr().err.splitlines() if "cannot read mesh" in line]
    assert {mesh for mesh in MESHES for line in told if f"{mesh}' (" in line and "); " in line} == set(MESHES)
    assert all(any(f"{mesh}' (" in line for mesh in MESHES) and "); " in line for line in told)


def test_the_identifier_fits_such_a_robot(tmp_path: Path) -> None:
    text = described(tmp_path, "itself.dae")
    model = load_model(text)
    run = record(model, random_motion(np.random.default_rng(0), 3), np.arange(0.0, 8.0, 0.01))
    bag = write_bag(run, tmp_path / "bag")
    with ros_client_in(tmp_path) as ros:
        node = ros.start("identifier", {"output_directory": ""})
        ros.node.create_publisher(String, "robot_description", LATCHED).publish(String(data=text))
        states = ros.listen(IdentifierStatus, "identifier/status")
        ros.until(lambda: states and states[-1].state == IdentifierStatus.READY, "robot description")
        handle = ros.send_goal(Identify, "identifier/identify", Identify.Goal(train=[str(bag)]))
        assert ros.result(handle).result.success, node.log()
        assert "cannot read mesh" in node.log() and not node.ended
