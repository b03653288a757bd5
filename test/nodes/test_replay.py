"""A bag that is replayed over topics gives the same parameters as the bag itself."""

from pathlib import Path

import numpy as np
import pytest
from support.nodes.ros_client import ros_client_in

from inertid_ros.action import Identify
from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.data.files.bag_writing import write_bag
from inertid_ros.data.files.loading import load_recording, read_npz
from inertid_ros.data.recording import Recording
from inertid_ros.msg import IdentifierStatus, InertialParameters
from inertid_ros.robot.model import load_model
from inertid_ros.ros.parameter_messages import from_inertial_parameters


@pytest.fixture
def bag(datasets: Path, tmp_path: Path) -> Path:
    """Eight seconds of a real robot as a bag."""
    run = read_npz(datasets / "kuka_lwr4" / "run1.npz")
    rows = slice(1000, 2600)
    cut = Recording(run.joint_names, run.time[rows], run.position[rows], run.effort[rows], velocity=run.velocity[rows])
    return write_bag(cut, tmp_path / "bag")


def test_identification_of_replayed_topics_equals_that_of_the_bag(bag: Path, datasets: Path, tmp_path: Path) -> None:
    urdf = datasets / "kuka_lwr4/kuka_lwr4.urdf"
    with ros_client_in(tmp_path) as ros:
        ros.start("identifier", {"urdf": str(urdf), "output_directory": ""})
        ros.start("recorder", {"directory": str(tmp_path / "recordings")})
        parameters = ros.listen(InertialParameters, "identifier/parameters")
        status = ros.listen(IdentifierStatus, "identifier/status")
        replay = ros.start("replay", {"bag": str(bag), "rate": 8.0, "record": True})
        ros.until(lambda: status and status[-1].recordings, "recording at the identifier", 30.0)
        assert replay.process.wait(10) == 0, replay.log()
        handle = ros.send_goal(Identify, "identifier/identify", Identify.Goal())
        assert ros.result(handle).result.success
        ros.until(lambda: parameters, "parameters")
    offline = calibrate(load_model(urdf), [load_recording(bag)])
    received = from_inertial_parameters(parameters[-1])
    expected = offline.estimate.bodies
    np.testing.assert_allclose(received.bodies, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    for term, values in received.drives.items():
        np.testing.assert_allclose(values, offline.estimate.drive(term), rtol=1e-9, atol=1e-12)
    recorded = load_recording(tmp_path / "recordings" / "recording_001")
    np.testing.assert_array_equal(recorded.position, load_recording(bag).position)
