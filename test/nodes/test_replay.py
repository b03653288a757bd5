"""A bag that is replayed over topics gives the same parameters as the bag itself; its joints may have other names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from support.nodes.ros_client import FLOWS, ros_client_in
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.action import Identify
from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import IdentifierStatus, InertialParameters
from inertid_ros.ros.received_parameters import from_inertial_parameters

pytestmark = FLOWS


def test_identification_of_replayed_topics_equals_that_of_the_bag(tmp_path: Path) -> None:
    case, urdf = synthetic_case(5, recordings=1, duration=8.0), tmp_path / "given.urdf"
    urdf.write_text(case.given.urdf)
    recording = case.recordings[0]
    renamed = replace(recording, joint_names=tuple(f"other_{joint}" for joint in recording.joint_names))
    bag = write_bag(renamed, tmp_path / "bag")
    names = {"robot.joint_names.other_*": "*"}  # as launch files pass them on
    with ros_client_in(tmp_path) as ros:
        ros.start("identifier", {"urdf": str(urdf), "output_directory": "", **names})
        ros.start("recorder", {"directory": str(tmp_path / "recordings")})
        parameters = ros.listen(InertialParameters, "identifier/parameters")
        status = ros.listen(IdentifierStatus, "identifier/status")
        replay = ros.start("replay", {"bag": str(bag), "rate": 8.0, "record": True})
        ros.until(lambda: status and status[-1].recordings, "recording at the identifier", 30.0)
        assert replay.process.wait(10) == 0, replay.log()
        handle = ros.send_goal(Identify, "identifier/identify", Identify.Goal())
        assert ros.result(handle).result.success
        ros.until(lambda: parameters, "parameters")
    offline = calibrate(case.given, [load_recording(write_bag(recording, tmp_path / "own"))])
    received = from_inertial_parameters(parameters[-1])
    assert received.joint_names == case.given.joint_names
    expected = offline.estimate.bodies
    np.testing.assert_allclose(received.bodies, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    for term, values in received.drives.items():
        np.testing.assert_allclose(values, offline.estimate.drive(term), rtol=1e-9, atol=1e-12)
    recorded = load_recording(tmp_path / "recordings" / "recording_001")
    np.testing.assert_array_equal(recorded.position, load_recording(bag).position)


def test_a_recorder_that_refuses_ends_the_replay(tmp_path: Path) -> None:
    bag = write_bag(synthetic_case(5, recordings=1, duration=4.0).recordings[0], tmp_path / "bag")
    with ros_client_in(tmp_path) as ros:
        ros.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 10**7})
        replay = ros.start("replay", {"bag": str(bag), "record": True})
        ros.until(lambda: replay.ended, "end of the replay", 30.0)
    assert replay.process.returncode and "replay: " in replay.log(), replay.log()
