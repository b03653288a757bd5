"""``inertid init``: what it sees of published robots, the file that it writes, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.nodes.two_links import URDF
from support.recordings.message_bag import MessageBag

from inertid_ros.calibration.robot_setup import known_driver
from inertid_ros.cli.main import main
from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import ModelError
from inertid_ros.data.files.loading import load_recording, write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import load_model


def init(*arguments: object) -> int:
    return main(["init", *map(str, arguments)])


def told(capsys: pytest.CaptureFixture[str]) -> dict:
    return json.loads(capsys.readouterr().out)


def test_the_file_of_a_panda_serves_identification_and_motion(robots: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    urdf, file = robots / "panda_description" / "urdf" / "panda.urdf", tmp_path / "panda.yaml"
    assert init(urdf, "--output", file, "--json") == 0
    content = told(capsys)
    assert content["joints"] == [f"panda_joint{number}" for number in range(1, 8)]
    assert any("franka_ros2" in note for note in content["notes"])
    for tree in (Configuration, ExcitationConfiguration):
        config = load_configuration(file, tree)
        assert config.robot.locked_joints == {"panda_finger_joint1": 0.0}
        assert load_model(urdf, config.robot).joints == 7
    assert load_configuration(file, ExcitationConfiguration).excitation.mounting == "floor"
    assert list(yaml.safe_load(file.read_text())) == ["/**"]  # all nodes take it


@pytest.mark.parametrize(
    ("path", "joints", "held", "note"),
    [
        ("ur_description/urdf/ur10_robot.urdf", 6, 0, "currents: give gear ratio times torque constant"),
        ("so_arm_description/urdf/so101.urdf", 5, 1, "torque follows from position commands"),
        ("so_arm_description/urdf/so100.urdf", 6, 0, "a joint and a link share a name"),
        ("allegro_hand_description/urdf/allegro_right_hand.urdf", 16, 0, "friction of its <dynamics>, 12 N m"),
        ("finger_edu_description/robots/finger_edu.urdf", 3, 0, "assumed to be torque"),  # a finger is all that it has
        ("g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf", 29, 14, "limbs begin at its base"),
    ],
)
def test_what_is_seen_of_published_robots(path: str, joints: int, held: int, note: str, robots: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    assert init(robots / path, "--output", tmp_path / "robot.yaml", "--json") == 0
    content = told(capsys)
    assert len(content["joints"]) == joints
    assert sum(setting["key"] == "robot.locked_joints" for setting in content["settings"]) == held
    assert any(note in each for each in content["notes"]), content["notes"]


def test_choices_of_the_user_and_names_of_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str],
        recording_of_two_links: Path) -> None:
    urdf, file = tmp_path / "robot.urdf", tmp_path / "mine.yaml"
    urdf.write_text(URDF)
    choices = ("--mounting", "none", "--effort", "torque", "--recording", recording_of_two_links)
    assert init(urdf, *choices, "--output", file) == 0
    text = capsys.readouterr().out
    assert "excitation.mounting: none  (as given; the floor is not checked" in text
    assert "efforts: torque in N m or N\n" in text
    assert dict(load_configuration(file).robot.joint_names) == {"left_*": "*"}


def test_drives_that_follow_commands_are_set_up_with_the_gains_left_open(tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    urdf, file = tmp_path / "robot.urdf", tmp_path / "mine.yaml"
    urdf.write_text(URDF)
    assert init(urdf, "--effort", "position_command", "--output", file) == 0
    assert "give the gains of every joint in robot.command_kp" in capsys.readouterr().out
    options = load_configuration(file).robot
    assert options.effort == "position_command"
    with pytest.raises(ModelError, match="robot.command_kp: lacks the gain of shoulder, elbow"):
        _ = load_model(urdf, options).command_gains
    servos = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
    assert known_driver("so101", servos).effort == "position_command"
    assert known_driver("ur5e", servos) is None


def test_the_only_joint_states_of_a_bag_are_taken_whatever_their_topic(tmp_path: Path) -> None:
    urdf, file, bag = (tmp_path / name for name in ("robot.urdf", "mine.yaml", "bag"))
    urdf.write_text(URDF)
    with MessageBag(bag) as messages:
        for stamp in range(10**9, 2 * 10**9, 10**7):
            messages.joint_state(stamp, ("arm_shoulder", "arm_elbow"), *np.zeros((3, 2)), topic="/arm/joint_states")
    assert init(urdf, "--recording", bag, "--output", file) == 0
    configuration = load_configuration(file)
    assert configuration.topics.joint_states == "/arm/joint_states"
    assert dict(configuration.robot.joint_names) == {"arm_*": "*"}
    load_recording(bag, configuration.topics)


def recording_of(joints: list[str], path: Path) -> Path:
    time, rng = np.arange(0.0, 5.0, 0.01), np.random.default_rng(0)
    channels = rng.normal(size=(2, len(time), len(joints)))
    return write_npz(Recording(tuple(joints), time, *channels), path)


def test_a_recording_of_one_arm_holds_the_rest_of_the_robot(robots: Path, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    urdf, file = robots / "tiago_description" / "robots" / "tiago.urdf", tmp_path / "tiago.yaml"
    joints = ["torso_lift_joint", *(f"arm_{number}_joint" for number in range(1, 8))]
    assert init(urdf, "--recording", recording_of(joints, tmp_path / "arm.npz"), "--output", file, "--json") == 0
    content = told(capsys)
    assert content["joints"] == joints
    held = {name for setting in content["settings"] if setting["reason"] == "not in the recording"
            for name in setting["value"]}  # fmt: skip
    assert {"head_1_joint", "head_2_joint"} <= held
    part = recording_of(joints[3:], tmp_path / "part.npz")  # the joints before move those
    assert init(urdf, "--recording", part, "--output", tmp_path / "part.yaml") == 2
    assert "the recording lacks torso_lift_joint, arm_1_joint, arm_2_joint" in capsys.readouterr().err


@pytest.fixture
def recording_of_two_links(tmp_path: Path) -> Path:
    time = np.linspace(0, 1, 101)
    zero = np.zeros((101, 2))
    return write_npz(Recording(("left_shoulder", "left_elbow"), time, zero, zero), tmp_path / "run.npz")


XACRO = """<robot name="two_links" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="2"/>
""" + URDF.partition("\n")[2].replace('<mass value="2"/>', '<mass value="${2 * $(arg mass)}"/>')


def test_xacro_is_expanded_where_it_is_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xacro", reason="xacro is not installed: pip install xacro")
    file = tmp_path / "robot.urdf.xacro"
    file.write_text(XACRO)
    assert init(file, "--output", tmp_path / "robot.yaml") == 2
    assert "if you trust it, expand it with --xacro" in capsys.readouterr().err
    assert init(file, "--output", tmp_path / "robot.yaml", "--xacro", "mass:=3") == 0
    assert load_model(tmp_path / "robot.urdf").body_prior[0, 0] == 6.0
    assert (tmp_path / "robot.yaml").exists()
    for wrong in (("--lock", "thumb=0"), ("--recording", tmp_path / "absent")):
        assert init(file, "--output", tmp_path / "again.yaml", "--xacro", "mass:=3", *wrong) == 2
        assert not list(tmp_path.glob("again.*"))
    file.write_text(XACRO.replace("${2", "${nobody + 2"))
    assert init(file, "--output", tmp_path / "other.yaml", "--xacro") == 2
    error = capsys.readouterr().err.splitlines(keepends=True)[-1]
    assert "xacro cannot expand this file" in error and "nobody" in error and error.count("\n") == 1
    assert not list(tmp_path.glob("other.*"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--lock", "thumb=0"), "locked joint 'thumb': the URDF has no movable joint of this name"),
        (("--xacro", "mass=3"), "'mass=3' is not NAME:=VALUE"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(arguments: tuple[str, ...], line: str, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(URDF)
    assert init(urdf, "--output", tmp_path / "arm.yaml", *arguments) == 2
    error = capsys.readouterr().err
    assert line in error and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["robot.urdf"]


@pytest.mark.parametrize(
    "body, told",
    [
        ("<xacro:macro name='arm'/>", "expand it first: inertid init FILE --xacro"),
        ("<xacro:arm/>", "expand it first: inertid init FILE --xacro"),
        ("", "expanded first: inertid init"),
        ("<link name='${prefix}arm'/>", "expand it first: inertid init FILE --xacro"),
    ],
)
def test_a_xacro_file_without_links_is_told_what_it_is(body: str, told: str, tmp_path: Path,
        capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(f'<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">{body}</robot>')
    assert main(["info", str(file)]) == 2
    assert told in capsys.readouterr().err


def test_leftovers_of_xacro_are_no_robot_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urdf = tmp_path / "robot.urdf"
    include = 'xmlns:xacro="http://www.ros.org/wiki/xacro" name="two_links"><xacro:include filename="hand.xacro"/>'
    urdf.write_text(URDF.replace('name="two_links">', include))
    assert main(["info", str(urdf)]) == 2
    assert "has <xacro:include> in line 1; expand it first: inertid init FILE --xacro" in capsys.readouterr().err
