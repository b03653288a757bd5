"""Controllers, laws and bounds of the adaptation node that are not its defaults, on an arm with an unknown payload."""

from pathlib import Path

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from support.nodes.adapted_arm import START, adapted_arm_in  # noqa: E402

from inertid_ros.msg import InertialParameters  # noqa: E402
from inertid_ros.simulation.example_robots import example_urdf  # noqa: E402

pytestmark = [pytest.mark.realtime, pytest.mark.alone]
HAND, PAYLOAD = "control.masses.panda_link7", 1.0  # [kg]; the hand with it has 2.5 kg, beyond the bound


@pytest.mark.parametrize(
    ("parameters", "adapts"),
    [
        ({"control.controller_type": "computed_torque", "control.law": "pullback"}, "bodies"),
        (
            {"control.friction_weight": 0.5, "control.inside_links": True, "control.largest_factor": 3.0}
            | {HAND: [1.3, 2.0], "urdf": str(example_urdf())},  # the topic does not tell where meshes are
            "friction",
        ),
        ({"control.law": "none"}, "nothing"),
    ],
    ids=["computed torque", "friction", "none"],
)
def test_it_follows_and_adapts_within_its_bounds(parameters, adapts, tmp_path: Path) -> None:
    with adapted_arm_in(tmp_path, parameters) as arm:
        messages = arm.ros.listen(InertialParameters, "adaptation/parameters")
        arm.in_control()
        arm.ros.until(lambda: messages, "parameters")
        arm.grip(PAYLOAD)
        arm.follow(period=3.0)
        assert np.abs(arm.position - START).max() < 0.15 and arm.fastest > 0.3, arm.log()
    masses, viscous, coulomb = (
        np.array([[getattr(entry, key) for entry in getattr(message, field)] for message in messages])
        for field, key in (("links", "mass"), ("joints", "viscous"), ("joints", "coulomb"))
    )
    friction = np.hstack([viscous, coulomb])
    lightest, heaviest = parameters.get(HAND, (0.0, np.inf))
    assert lightest < masses[:, -1].min() and masses[:, -1].max() < heaviest
    assert (masses[:, :-1] == masses[0, :-1]).all()  # only the last link adapts
    assert masses[-1, -1] > masses[0, -1] + 0.02 or adapts == "nothing"
    assert (masses == masses[0]).all() or adapts != "nothing"
    assert (friction[-1] > 1.05 * friction[0]).any() or adapts != "friction"
    assert (friction == friction[0]).all() or adapts == "friction"
    assert (friction <= parameters.get("control.largest_factor", 1.0) * friction[0]).all()
