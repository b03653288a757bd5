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
HAND, PAYLOAD = "control.masses.panda_link7", 1.0  # kg


@pytest.mark.parametrize(
    ("parameters", "adapts"),
    [
        (
            {"control.controller_type": "computed_torque", "control.law": "pullback", "control.speed": 1.0}
            | {HAND: [1.3, 1.7]},
            "bodies",
        ),
        (
            {"control.friction_weight": 0.5, "control.inside_links": True, "control.largest_factor": 3.0}
            | {"urdf": str(example_urdf())},  # the topic does not tell where meshes are
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
        arm.grip(PAYLOAD)
        arm.undisturbed()
        arm.sway(period=3.0)
        arm.until_moving(0.3)
        arm.until_rest()
        assert np.abs(arm.position - START).max() < 0.15, arm.log()
        ends = (messages[0], messages[-1])
        masses, viscous = (
            [np.array([getattr(entry, key) for entry in getattr(message, field)]) for message in ends]
            for field, key in (("links", "mass"), ("joints", "viscous"))
        )
        assert bool(np.abs(masses[1] - masses[0]).max() > 0.02) is (adapts != "nothing")
        assert bool(np.abs(viscous[1] - viscous[0]).max() > 1e-3) is (adapts == "friction")
        lightest, heaviest = parameters.get(HAND, (0.0, np.inf))
        assert lightest <= masses[1][-1] <= heaviest
