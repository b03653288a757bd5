"""A bag with other names of joints than the URDF's, replayed with a parameter file as launch files pass it on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from support.nodes.ros_client import FLOWS, ros_client_in
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.action import Identify
from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.data.files.bag_writing import write_bag
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import IdentifierStatus, InertialParameters
from inertid_ros.ros.received_parameters import from_inertial_parameters

pytestmark = FLOWS


def test_a_bag_with_other_names_from_replay_to_result(tmp_path: Path) -> None:
    case = synthetic_case(5, recordings=1, duration=8.0)
    recording = case.recordings[0]
    renamed = replace(recording, joint_names=tuple(f"other_{joint}" for joint in recording.joint_names))
    bag = write_bag(renamed, tmp_path / "bag")
    (tmp_path / "given.urdf").write_text(case.given.urdf)
    names = {"robot.joint_names.other_*": "*"}
    with ros_client_in(tmp_path) as ros:
        ros.start("identifier", {"urdf": str(tmp_path / "given.urdf"), "output_directory": "", **names})
        ros.start("recorder", {"write_bag": False})
        parameters = ros.listen(InertialParameters, "identifier/parameters")
        status = ros.listen(IdentifierStatus, "identifier/status")
        ros.start("replay", {"bag": str(bag), "rate": 8.0, "record": True})
        ros.until(lambda: status and status[-1].recordings, "recording at the identifier", 60.0)
        handle = ros.send_goal(Identify, "identifier/identify", Identify.Goal())
        assert ros.result(handle).result.success
        ros.until(lambda: parameters, "parameters")
    write_bag(recording, tmp_path / "own")
    expected = calibrate(case.given, [load_recording(tmp_path / "own")]).estimate
    received = from_inertial_parameters(parameters[-1])
    assert received.joint_names == case.given.joint_names
    np.testing.assert_allclose(received.bodies, expected.bodies, rtol=1e-9, atol=1e-9 * np.abs(expected.bodies).max())
