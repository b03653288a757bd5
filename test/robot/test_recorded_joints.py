"""Names of joints in recordings: translated both ways, and proposed where a recording lacks joints."""

import pytest

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ConfigurationError, RecordingError
from inertid_ros.robot.recorded_joints import RecordedJoints, proposed_names

FER, PANDA = ([f"{arm}_joint{index}" for index in range(1, 8)] for arm in ("fer", "panda"))
LONG = f"axis_3{'0' * 5000}"
UR = ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"]


@pytest.mark.parametrize(
    ("names", "recorded", "own"),
    [
        ({"fer_*": "panda_*"}, (*FER, "gripper"), (*PANDA, "gripper")),
        ({"left/*": "*"}, ("left/a", "left/b", "torso"), ("a", "b", "torso")),
        ({"*": "arm_*"}, ("a", "b"), ("arm_a", "arm_b")),
        ({"j*_pos": "joint_*"}, ("j1_pos", "j2_pos"), ("joint_1", "joint_2")),
        ({"a*": "b*", "a3": "elbow", "*": "c*"}, ("a3", "a4", "x"), ("elbow", "b4", "cx")),
        ({}, ("a",), ("a",)),
    ],
)
def test_names_and_patterns(names, recorded, own):
    joints = RecordedJoints(names=names)
    assert joints.urdf_names(recorded, "bag") == own
    if "left/*" not in names:  # by what stands for any name, torso would be left/torso
        assert joints.recorded(own) == recorded


def test_two_joints_of_one_name_are_refused():
    with pytest.raises(RecordingError, match="^bag: fer_joint1 and panda_joint1 are both mapped to panda_joint1"):
        RecordedJoints(names={"fer_*": "panda_*"}).urdf_names((*FER, *PANDA), "bag")


@pytest.mark.parametrize(
    ("recorded", "joints", "proposed"),
    [
        (FER, PANDA, {"fer_*": "panda_*"}),
        ([*FER, "fer_finger_joint1"], PANDA, {"fer_*": "panda_*"}),
        (FER[::-1], PANDA, {"fer_*": "panda_*"}),  # a pattern does not depend on the order
        ([f"left_{name}" for name in UR], UR, {"left_*": "*"}),
        (UR, [f"robot1/{name}" for name in UR], {"*": "robot1/*"}),
        ([name.removesuffix("_joint") for name in UR], UR, {"*": "*_joint"}),
        (["pan", "lift", "elbow"], UR, dict(zip(["pan", "lift", "elbow"], UR, strict=True))),
        (["axis_1", "axis_2", "grip"], UR, {}),
        (["axis_2", "axis_1", "axis_3"], UR, {}),  # numbers against their order
        (["a", "b", "c"], [], {}),
        (["axis_1", "axis_2", LONG], UR, dict(zip(["axis_1", "axis_2", LONG], UR, strict=True))),
    ],
    ids=str,
)  # fmt: skip
def test_proposed_names(recorded, joints, proposed):
    found = proposed_names(recorded, joints)
    assert found == proposed
    if proposed:
        assert set(RecordedJoints(names=found).urdf_names(recorded, "bag")) >= set(joints)


@pytest.mark.parametrize("names", [{"fer_*": "panda_joint1"}, {"a": "b*"}, {"*_*": "*_*"}, {"a": ""}])
def test_patterns_that_mean_nothing_are_refused(names):
    with pytest.raises(ConfigurationError, match="give two names, or one \\* in both"):
        RobotOptions(joint_names=names)
