"""Options as data, and the configuration tree made of them."""

from dataclasses import dataclass, fields, is_dataclass
from typing import get_type_hints

import pytest
import yaml
from support.paths import CONFIG

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.options import ConfigurationError, build, option, options
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import InertidError
from inertid_ros.robot.bodies.layout import Coupling
from inertid_ros.robot.bodies.rotors import Rotor


@dataclass(frozen=True)
class Inner:
    rate_hz: float = option(1.0, "a rate", minimum=0.0, maximum=10.0)
    order: int = option(4, "an order", minimum=1)
    names: tuple[str, ...] = option((), "some names", choices=("a", "b"))


@dataclass(frozen=True)
class Outer:
    inner: Inner
    on: bool = option(True, "a switch")


def test_options_are_listed_with_key_type_range_and_description():
    found = {entry.key: entry for entry in options(Inner, "x.")}
    assert list(found) == ["x.rate_hz", "x.order", "x.names"]
    rate = found["x.rate_hz"]
    assert (rate.kind, rate.is_list, rate.default, rate.minimum, rate.maximum) == (float, False, 1.0, 0.0, 10.0)
    assert found["x.names"].is_list and found["x.names"].kind is str


def test_values_are_built_and_the_rest_keeps_its_default():
    built = build(Inner, {"rate_hz": 3, "names": ["a", "b"]})
    assert built == Inner(3.0, 4, ("a", "b")) and isinstance(built.rate_hz, float)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"rate": 1.0}, "^file: rate is not an option; did you mean rate_hz"),
        ({"zzz": 1.0}, "^file: zzz is not an option; known are rate_hz, order, names"),
        ({"rate_hz": "1"}, "^file: rate_hz is '1', expected a number"),
        ({"rate_hz": True}, "^file: rate_hz is True, expected a number"),
        ({"rate_hz": None}, "^file: rate_hz is None, expected a number"),
        ({"rate_hz": -1.0}, "^file: rate_hz is -1.0; it must lie between 0 and 10"),
        ({"rate_hz": float("nan")}, "^file: rate_hz is nan; it must lie between 0 and 10"),
        ({"rate_hz": float("inf")}, "^file: rate_hz is inf; it must lie"),
        ({"order": 1.5}, "^file: order is 1.5, expected a whole number"),
        ({"order": 0}, "^file: order is 0; it must lie at or above 1"),
        ({"names": "a"}, "^file: names is 'a', expected a list of text"),
        ({"names": ["c"]}, "^file: names is 'c'; choose from a, b"),
        ({"names": [1]}, "^file: names is 1, expected text"),
    ],
)
def test_bad_values_are_one_line_with_file_key_and_what_is_allowed(values, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        build(Inner, values, "file")
    assert "\n" not in str(caught.value)


def test_an_option_without_description_is_a_mistake_of_the_programmer():
    @dataclass(frozen=True)
    class Bare:
        value: float = 1.0

    with pytest.raises(TypeError, match="Bare.value: has no description"):
        list(options(Bare))


def test_every_option_of_the_configuration_has_a_default_that_it_allows():
    for entry in (*options(Configuration), *options(ExcitationConfiguration)):
        assert entry.description and not entry.description.endswith(".")
        default = list(entry.default) if entry.is_list else entry.default
        assert entry.convert(default, "default") == entry.default
    assert build(Configuration, {entry.key: entry.default for entry in options(Configuration)}) == Configuration()


def test_every_section_is_a_dataclass_of_options():
    for tree in (Configuration, ExcitationConfiguration):
        hints = get_type_hints(tree)
        assert all(is_dataclass(hints[entry.name]) for entry in fields(tree))


PLAIN = """
robot:
  locked_joints: [finger_joint1=0.02]
  gravity: [0, 0, -9.80665]
  couplings: ["wrist=joint_5:1,joint_6:-0.5"]
  rotors: ["motor=joint:joint_5,link:arm,ratio:-50,mass:0.4,radius:0.03,length:0.05,axis:0 1 0,xyz:0 0.1 -0.2"]
prepare: {cutoff_hz: 5}
identify:
  solver: clarabel
"""


def _check_example(config):
    robot = config.robot.model_options()
    assert robot.locked_joints == {"finger_joint1": 0.02} and robot.gravity == (0.0, 0.0, -9.80665)
    assert robot.couplings == (Coupling("wrist", ("joint_5", "joint_6"), (1.0, -0.5)),)
    placed = {"axis": (0.0, 1.0, 0.0), "xyz": (0.0, 0.1, -0.2)}
    assert robot.rotors == (Rotor.cylinder("motor", "joint_5", "arm", -50.0, 0.4, (0.03, 0.05), **placed),)
    assert config.prepare.cutoff_hz == 5.0 and config.identify.solver == "clarabel"


def test_a_plain_file_and_a_ros_parameter_file_mean_the_same(tmp_path):
    (tmp_path / "plain.yaml").write_text(PLAIN)
    _check_example(load_configuration(tmp_path / "plain.yaml"))
    content = yaml.safe_load(PLAIN) | {"rate_of_some_node": 5.0}
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
    folder = CONFIG
    files = sorted(folder.glob("*.yaml"))
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
        ("prepare: {cutof_hz: 5}", "prepare.cutof_hz is not an option; did you mean prepare.cutoff_hz"),
        ("prepar: {cutoff_hz: 5}", "prepar.cutoff_hz is not an option"),
        ("prepare: 5", "prepare is not an option"),
        ("prepare: {cutoff_hz: five}", "prepare.cutoff_hz is 'five', expected a number"),
        ("identify: {solver: magic}", "identify.solver is 'magic'; choose from"),
        ("robot: {locked_joints: [finger]}", "robot.locked_joints: 'finger' is not JOINT=POSITION; write for example"),
        ("robot: {locked_joints: ['=1']}", "robot.locked_joints: '=1' is not JOINT=POSITION"),
        ("robot: {gravity: [0, 0]}", "robot.gravity has 2 numbers"),
        ("robot: {couplings: ['w=a:1']}", "robot.couplings: 'w=a:1' is not NAME=JOINT:RATIO,JOINT:RATIO"),
        ("robot: {couplings: ['w=a:1,a:2']}", "robot.couplings"),
        ("robot: {rotors: ['r=joint:a,link:b,ratio:5,mass:1']}", "robot.rotors: 'r=.*' is not NAME=FIELD:VALUE"),
        ("robot: {rotors: ['r=joint:a,link:b,ratio:5,mass:1,radius:1,length:1,inertia:1 0 0 1 0 1']}", "is not NAME="),
        ("robot: {rotors: ['r=joint:a,link:b,ratio:5,mass:1,radius:1,length:1,colour:red']}", "is not NAME="),
        ("robot: {rotors: ['r=link:b,ratio:5,mass:1,radius:1,length:1']}", "is not NAME="),
        ("robot: {rotors: ['r=joint:a,link:b,ratio:0,mass:1,radius:1,length:1']}", "robot.rotors: rotor 'r': ratio"),
        ("robot: {rotors: ['r=joint:a,link:b,ratio:5,mass:1,inertia:1 2']}", "robot.rotors: rotor 'r': inertia has 2"),
        ("constraints: {mass: ['a=1']}", "constraints.mass: 'a=1' is not LINK=LOWEST:HIGHEST"),
        ("constraints: {mirrored: ['a=b:w']}", "constraints.mirrored: 'a=b:w' is not LINK=LINK:AXIS"),
        ("constraints: {equal: ['a']}", "constraints.equal: 'a' is not PARAMETER=PARAMETER"),
        ("constraints: {at_most: ['a=x']}", "constraints.at_most: 'a=x' is not PARAMETER=VALUE"),
        ("- a\n- b", "holds no keys"),
        ("hello", "holds no keys"),
        ("a: [1, 2", "is not YAML in line"),
        ("/**:\n  ros__parameters:\n    prepare: {x: 1}", "prepare.x is not an option"),
        ("/**: {ros__parameters: 5}", "has no ros__parameters"),
        ("!!python/object/apply:os.system [echo]", "is not YAML"),
    ],
)
def test_bad_files_are_one_line_that_names_file_and_key(text, message, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(InertidError, match=message.replace("[", r"\[")) as caught:
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
