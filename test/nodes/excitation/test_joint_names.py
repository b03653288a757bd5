"""The excitation node moves a robot whose controller has other names of joints than the URDF."""

from pathlib import Path

import numpy as np
import pytest
from support.latencies import Latencies
from support.nodes.armed_excitation import PARAMETERS, excitation_in

from inertid_ros.action import Excite

pytestmark = pytest.mark.realtime


def test_motion_of_a_robot_with_other_names(tmp_path: Path, latencies: Latencies) -> None:
    parameters = {**PARAMETERS, "robot.joint_names.left_*": "*"}
    with excitation_in(tmp_path, latencies, parameters, "left_") as excitation:
        excitation.ready()
        excitation.expect(excitation.excite(), Excite.Result.SUCCEEDED, "done")
        record = excitation.expect_rest()
    assert not record.problems and np.abs(record.position).max() > 0.3
