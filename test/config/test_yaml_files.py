"""Configuration from YAML files, plain ones and ROS parameter files."""

import re
import subprocess
import sys

import pytest
import yaml
from support.paths import CONFIG

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.robot import CouplingOptions, RotorOptions
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import ConfigurationError, InertidError

PLAIN = """
robot:
  locked_joints: {finger_joint1: 0.02}
  gravity: [0, 0, -9.80665]
  couplings:
    wrist: {joints: [joint_5, joint_6], ratios: [1, -0.5]}
  rotors:
    motor: {joint: joint_5, link: arm, ratio: -50, mass: 0.4, radius: 0.03, length: 0.05, axis: [0, 1, 0],
      xyz: [0, 0.1, -0.2]}
prepare: {cutoff_hz: 5}
identify:
  solver: clarabel
"""
NAMES = {"locked_joint_names": ["finger_joint1"], "coupling_names": ["wrist"], "rotor_names": ["motor"]}


def _check_example(config):
    robot = config.robot
    assert robot.locked_joints == {"finger_joint1": 0.02} and robot.gravity == (0.0, 0.0, -9.80665)
    assert robot.couplings == {"wrist": CouplingOptions(("joint_5", "joint_6"), (1.0, -0.5))}
    placed = {"axis": (0.0, 1.0, 0.0), "xyz": (0.0, 0.1, -0.2)}
    assert robot.rotors == {"motor": RotorOptions("joint_5", "arm", -50.0, 0.4, 0.03, 0.05, **placed)}
    assert config.prepare.cutoff_hz == 5.0 and config.identify.solver == "clarabel"


def test_a_plain_file_and_a_ros_parameter_file_mean_the_same(tmp_path):
    (tmp_path / "plain.yaml").write_text(PLAIN)
    _check_example(load_configuration(tmp_path / "plain.yaml"))
    content = yaml.safe_load(PLAIN) | {"tick_s": 0.01, "use_sim_time": True}  # of nodes
    content["robot"] |= NAMES
    (tmp_path / "ros.yaml").write_text(yaml.dump({"/**": {"ros__parameters": content}}))
    _check_example(load_configuration(tmp_path / "ros.yaml"))


def test_in_a_parameter_file_the_node_that_does_the_work_has_the_last_word(tmp_path):
    content = {
        "/**/simulator": {"ros__parameters": {"robot": {"gravity": [0.0, 0.0, -1.0]}}},
        "/**/identifier": {"ros__parameters": {"prepare.cutoff_hz": 7.0, "robot.gravity": [0.0, 0.0, -2.0]}},
        "/**": {"ros__parameters": {"prepare": {"cutoff_hz": 3.0, "filter_order": 2}, "topics": {"joints": [""]}}},
        "/**/excitation": {
            "ros__parameters": {"limits": {"velocity_fraction": 0.5}, "robot": {"gravity": [0.0, 0.0, -3.0]}}
        },
    }
    (tmp_path / "ros.yaml").write_text(yaml.dump(content))
    config = load_configuration(tmp_path / "ros.yaml")
    assert (config.prepare.cutoff_hz, config.prepare.filter_order) == (7.0, 2)
    assert config.robot.gravity == (0.0, 0.0, -2.0) and config.topics.joints == ()
    assert load_configuration(tmp_path / "ros.yaml", ExcitationConfiguration).limits.velocity_fraction == 0.5


def test_one_plain_file_serves_identification_and_excitation(tmp_path):
    text = "prepare: {cutoff_hz: 5}\nexcitation: {seed: 7}\nrobot: {gravity: [0, 0, -9]}\n"
    (tmp_path / "both.yaml").write_text(text)
    assert load_configuration(tmp_path / "both.yaml").prepare.cutoff_hz == 5.0
    planned = load_configuration(tmp_path / "both.yaml", ExcitationConfiguration)
    assert planned.excitation.seed == 7 and planned.robot.gravity == (0.0, 0.0, -9.0)


def test_the_files_that_ship_serve_the_command_line_too():
    files = sorted(CONFIG.glob("*.yaml"))
    assert files
    for path in files:
        assert load_configuration(path).prepare.cutoff_hz >= 0
        load_configuration(path, ExcitationConfiguration)


def test_an_empty_file_is_the_default(tmp_path):
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load_configuration(tmp_path / "empty.yaml") == Configuration()


@pytest.mark.parametrize(
    "text, message",
    [
        ("prepare: {cutof_hz: 5}", "prepare.cutof_hz is not an option; did you mean cutoff_hz"),
        ("prepar: {cutoff_hz: 5}", "prepar.cutoff_hz is not an option"),
        ("prepare: 5", "prepare is 5, expected a mapping of cutoff_hz"),
        ("prepare: {cutoff_hz: five}", "prepare.cutoff_hz is 'five', expected a number"),
        ("identify: {solver: magic}", "identify.solver is 'magic'; choose from"),
        ("robot: {locked_joints: [finger=1]}", "robot.locked_joints is ['finger=1'], expected a mapping of names"),
        ("robot: {gravity: [0, 0]}", "robot.gravity has 2 values; give 3"),
        ("robot: {rotors: {r: {link: b, ratio: 5, mass: 1, radius: 1, length: 1}}}", "robot.rotors.r.joint is missing"),
        ("robot: {wheels: {w: {}}}", "robot.wheels need a floating robot; set base to free"),
        ("constraints: {mass: {a: 1}}", "constraints.mass.a is 1, expected a list of a number"),
        ("constraints: {mass: {a: [2, 1]}}", "constraints.mass.a is 2 to 1; give the lowest first"),
        ("constraints: {mirrored: {a: {link: b, axis: w}}}", "constraints.mirrored.a.axis is 'w'; choose from x, y, z"),
        ("- a\n- b", "holds no keys"),
        ("hello", "holds no keys"),
        ("a: [1, 2", "is not YAML in line"),
        ("/**:\n  ros__parameters:\n    prepare: {x: 1}", "prepare.x is not an option"),
        ("/**:\n  ros__parameters: {robot: {plates: {a: {frame: b}}}}", "robot.plates.a is given, but robot"),
        ("/**: {ros__parameters: 5}", "has no ros__parameters"),
        ("!!python/object/apply:os.system [echo]", "os.system in line 1, which is not allowed"),
    ],
)
def test_bad_files_are_one_line_that_names_file_and_key(text, message, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InertidError, match=re.escape(message)) as caught:
        load_configuration(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(ConfigurationError, match="no such configuration file"):
        load_configuration(tmp_path / "absent.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_configuration(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(bytes(range(256)))
    with pytest.raises(ConfigurationError, match="binary.yaml"):
        load_configuration(tmp_path / "binary.yaml")


def test_it_needs_no_numerics():
    code = "import sys, inertid_ros.config.yaml_files; print({'numpy', 'scipy', 'pinocchio'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
