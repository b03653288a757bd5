"""What surrounds a robot unless it is told: a floor where its base ends, none where its legs hang below."""

import attrs
import numpy as np
import pytest

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions, LimitOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints, rest_pose, surroundings
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.robot.model import load_model

OPTIONS = ExcitationOptions(duration_s=10.0, starts=2, improved=0, constraint_samples=100)
ARM = """<robot name="arm">
  <link name="base"><collision><origin xyz="0 0 -0.1"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="pole"><collision><origin xyz="0 0 -0.5" rpy="0 0.5 0"/><geometry><cylinder radius="0.1" length="1"/>
    </geometry></collision></link>
  <joint name="fixed" type="fixed"><parent link="base"/><child link="pole"/></joint>
  <link name="upper"><inertial><mass value="2"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="60"/></joint>
</robot>"""


def around(model, **options):
    return surroundings(model, motion_limits(model), attrs.evolve(OPTIONS, **options))


def test_floor_is_where_the_base_ends():
    found = around(load_model(ARM))
    lowest = -0.5 - 0.5 * np.cos(0.5) - 0.1 * np.sin(0.5)
    assert found.floor_m == pytest.approx(lowest, abs=1e-3)  # a cylinder's rim is a polygon around it
    assert not found.unknown and not found.findings
    assert found.floor.startswith(f"clearance of 50 mm to a floor at {found.floor_m:.3f} m, the lowest point of 'pole'")
    bare = "links without collision geometry, checked at most as lines between joints: upper"
    assert found.sentences[1:] == ("obstacles: none configured", bare)


@pytest.mark.parametrize(
    ("file", "height"),
    [
        ("ur_description/urdf/ur10_robot.urdf", 0.0),
        ("baxter_description/urdf/baxter.urdf", -0.924),
        ("tiago_pro_description/robots/tiago_pro.urdf", 0.0),  # its base hangs between its wheels
        ("go2_description/urdf/go2.urdf", None),
        ("talos_data/robots/talos_left_arm.urdf", None),
        ("g1_description/urdf/g1_29dof_rev_1_0.urdf", None),
    ],
)
def test_robots_as_published(robots, file, height):
    found = around(load_model(robots / file))
    if height is None:
        (finding,) = found.findings
        assert found.floor_m == -np.inf and finding.cause == "unknown_floor" and "excitation.floor_m" in str(finding)
    else:
        assert found.floor_m == pytest.approx(height, abs=2e-3) and not found.findings


def test_what_is_told_counts():
    model = load_model(ARM)
    assert around(model, floor_m=-0.2).floor_m == -0.2 and around(model, mounting="none").floor_m == -np.inf
    assert not around(model, mounting="none").findings
    hanging = load_model(ARM, RobotOptions(gravity=(0.0, 0.0, 9.81)))
    assert "clearance of 50 mm to the ceiling" in around(hanging, mounting="ceiling").floor
    with pytest.raises(ExcitationError, match=r"'floor', but robot.gravity is \[0.0, 0.0, 9.81\].* on a ceiling"):
        around(hanging)
    sideways = load_model(ARM, RobotOptions(gravity=(9.81, 0.0, 0.0)))
    with pytest.raises(ExcitationError, match="as on a wall"):
        around(sideways, mounting="ceiling")
    assert around(load_model(ARM, RobotOptions(gravity=(0.0, 0.0, 0.0)))).floor_m > -1.0


def test_the_stock_arm_stays_above_its_table(robots):
    """The default plan of a UR10 had its wrist a metre below the table that it stands on."""
    model = load_model(robots / "ur_description/urdf/ur10_robot.urdf")
    limits = motion_limits(model, LimitOptions())
    options = attrs.evolve(OPTIONS, collision=CollisionOptions(self_collision=False))  # the floor alone
    constraints = motion_constraints(model, limits, options)
    middle = 0.5 * (limits.lower + limits.upper)
    start = rest_pose(model, limits, constraints, middle, np.zeros(model.joints, dtype=bool))
    plan = plan_excitation(model, limits, start, options)
    check_plan(plan, model, limits, constraints=constraints)
    pin = pytest.importorskip("pinocchio")
    robot, data = model.pinocchio, model.pinocchio.createData()
    lowest = np.inf
    for q in plan.position[::10]:
        pin.forwardKinematics(robot, data, q)
        lowest = min(lowest, *(data.oMi[joint].translation[2] for joint in range(1, robot.njoints)))
    assert lowest > 0.0
