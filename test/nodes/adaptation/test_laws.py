"""The adaptation node with another control law, another metric, a bound of a mass, and friction that adapts."""

from pathlib import Path

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from rcl_interfaces.srv import GetParameters  # noqa: E402
from support.nodes.adapted_arm import START, adapted_arm_in  # noqa: E402

from inertid_ros.msg import InertialParameters  # noqa: E402

pytestmark = [pytest.mark.realtime, pytest.mark.alone]
LAWS = {"control.controller_type": "computed_torque", "control.law": "pullback"}
PARAMETERS = {
    **LAWS,
    "control.adapted_links": ["panda_link6", "panda_link7"],
    "control.mass_names": ["panda_link7"],
    "control.masses.panda_link7": [1.4, 1.52],
    "control.friction_weight": 0.5,
    "control.speed": 30.0,
}


def test_computed_torque_in_a_constant_metric_with_a_bound_and_friction(tmp_path: Path) -> None:
    """The arm grips 1 kg, more than its last link may take up, so that the link before takes up mass."""
    with adapted_arm_in(tmp_path, PARAMETERS) as arm:
        messages = arm.ros.listen(InertialParameters, "adaptation/parameters")
        arm.in_control()
        answer = arm.ros.call(GetParameters, "adaptation/get_parameters", GetParameters.Request(names=list(LAWS)))
        assert [value.string_value for value in answer.values] == list(LAWS.values())
        arm.grip(1.0)
        arm.undisturbed()
        arm.sway(period=4.0)
        arm.until_moving(0.3)
        arm.until_rest()
        assert np.abs(arm.position - START).max() < 0.1 and arm.fastest < 1.0
    masses = np.array([[link.mass for link in message.links] for message in messages])
    assert (masses[:, :5] == masses[0, :5]).all() and masses[-1, 5] > masses[0, 5] + 0.2
    assert masses[0, 6] < masses[:, 6].max() < 1.52 and masses[:, 6].min() > 1.4
    friction = np.array([[[joint.viscous, joint.coulomb] for joint in message.joints] for message in messages])
    change = friction / friction[0]
    assert change.max() > 1.2 and change.min() > 0.2 and change.max() < 5.0
