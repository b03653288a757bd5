"""Differences between two URDFs of one robot."""

import pytest
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.robot.urdf.changes import urdf_changes

ROBOT = """<robot name="r"><link name="base"/><link name="arm">{inertial}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/>{dynamics}</joint></robot>"""
INERTIAL = """<inertial><origin xyz="0 0 {z}" rpy="0 0 0"/><mass value="{mass}"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>"""


def text(mass="2", z="0.1", dynamics=""):
    return ROBOT.format(inertial=INERTIAL.format(mass=mass, z=z), dynamics=dynamics)


def test_attributes_that_differ_are_listed():
    changes = urdf_changes(text(), text(mass="2.5", dynamics='<dynamics damping="0.3" friction="0"/>'))
    assert [(each.name, each.attribute, each.before, each.after) for each in changes] == [
        ("arm", "inertial/mass value", "2", "2.5"),
        ("j", "dynamics damping", "", "0.3"),
    ]


@pytest.mark.parametrize("same", ["2.0", "2e0", "2.0000000000001"])
def test_how_a_number_is_written_is_no_change(same):
    assert urdf_changes(text(), text(mass=same)) == ()


def test_a_calibration_changes_inertials_and_dynamics():
    case, outcome = calibrated_case()
    changes = urdf_changes(case.given.urdf, outcome.urdf)
    assert {each.element for each in changes} == {"link", "joint"}
    assert {each.name for each in changes} <= {*case.given.link_names, *case.given.joint_names}
