"""Parameters of nodes from option classes: types, ranges, named elements, and what tools see of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import numpy as np
import pytest
import yaml

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import (  # noqa: E402
    Parameter,
    parameter_dict_from_yaml_file,
    parameter_value_to_python,
)
from support.paths import CONFIG  # noqa: E402

from inertid_ros.config.configuration import Configuration  # noqa: E402
from inertid_ros.config.nodes import NODES, MotionOptions  # noqa: E402
from inertid_ros.config.option_fields import named, option, section  # noqa: E402
from inertid_ros.config.robot import PlateOptions, RobotOptions  # noqa: E402
from inertid_ros.config.yaml_files import load_configuration, write_joint_names  # noqa: E402
from inertid_ros.core.errors import ConfigurationError  # noqa: E402
from inertid_ros.ros.node_parameters import declare, guard, read  # noqa: E402


@attrs.frozen
class Options:
    rate_hz: float = option(1.0, "a rate [Hz]", minimum=0.0, maximum=10.0)
    numbers: tuple[float, ...] = option((), "some numbers", of=tuple[float, ...])
    counts: tuple[int, ...] = option((), "some whole numbers", of=tuple[int, ...])
    terms: tuple[str, ...] = option(("a", "b"), "some terms", choices=("a", "b"))
    highest: Mapping[str, float] = named(float, "a value", "highest_names", minimum=0.0)
    robot: RobotOptions = section(RobotOptions)


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.setenv("ROS_DOMAIN_ID", "86")
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF")
    context = rclpy.Context()
    rclpy.init(context=context)
    yield context
    rclpy.shutdown(context=context)


@pytest.fixture
def make(context, tmp_path):
    """Makes a node with values as ``--ros-args --params-file`` gives them."""
    nodes = []

    def node(text: str = "", path: Path | None = None, name: str = "options", **values) -> Node:
        if text:
            path = tmp_path / "parameters.yaml"
            path.write_text(f"/**:\n  ros__parameters:\n{text}")
        arguments = ["--ros-args", "--params-file", str(path)] if path else []
        given = [Parameter(name, value=value) for name, value in values.items()]
        nodes.append(
            Node(name, context=context, cli_args=arguments, parameter_overrides=given, use_global_arguments=False)
        )
        return nodes[-1]

    yield node
    for made in nodes:
        made.destroy_node()


def test_every_parameter_has_a_value_and_its_type(make):
    node = make()
    assert declare(node, Configuration) == Configuration()
    assert declare(node, Options, prefix="x.") == Options()
    unset = [name for name, parameter in node._parameters.items() if parameter.type_ == Parameter.Type.NOT_SET]
    assert unset == []
    types = {
        "numbers": Parameter.Type.DOUBLE_ARRAY,
        "counts": Parameter.Type.INTEGER_ARRAY,
        "terms": Parameter.Type.STRING_ARRAY,
        "robot.plate_names": Parameter.Type.STRING_ARRAY,
    }
    assert {name: node.get_parameter(f"x.{name}").type_ for name in types} == types
    described = node.describe_parameter("x.numbers")
    assert described.read_only and described.type == Parameter.Type.DOUBLE_ARRAY.value
    # As `ros2 param dump` asks for them.
    values = [parameter.get_parameter_value() for parameter in node.get_parameters(list(node._parameters))]
    assert all(value.type != Parameter.Type.NOT_SET.value for value in values)


def dump(node: Node, path: Path) -> Path:
    """As `ros2 param dump` does, but for the nesting of names."""
    values = {parameter.name: parameter_value_to_python(parameter.get_parameter_value())
              for parameter in node.get_parameters(list(node._parameters))}  # fmt: skip
    path.write_text(yaml.dump({"/options": {"ros__parameters": values}}))
    return path


def load(node: Node, path: Path) -> dict[str, str]:
    """As `ros2 param load` and the parameter service of a node do; why which value was refused."""
    parameters = [Parameter.from_parameter_msg(message) for message in parameter_dict_from_yaml_file(path).values()]
    results = {parameter.name: node.set_parameters_atomically([parameter]) for parameter in parameters}
    return {name: result.reason for name, result in results.items() if not result.successful}


@pytest.mark.parametrize("name", NODES)
def test_what_a_node_dumps_it_loads(make, tmp_path, name):
    needed = {"replay": {"bag": "bag"}}.get(name, {})
    node = make(**needed, **{"robot.locked_joints.finger": 1e-6} if name == "identifier" else {})
    for tree, prefix in NODES[name]:
        declare(node, tree, read_only=tree is not MotionOptions, prefix=prefix)
    guard(node, MotionOptions, lambda: "armed") if name == "excitation" else None
    path = dump(node, tmp_path / "dump.yaml")
    before = path.read_text()
    assert load(node, path) == {}
    assert dump(node, path).read_text() == before


def test_a_dump_with_other_values_changes_what_may_change(make, tmp_path):
    node = make()
    declare(node, Options, read_only=False)
    path = tmp_path / "dump.yaml"
    text = {"rate_hz": 1e-6, "numbers": [1e-6, float("inf")], "terms": [], "highest_names": ["a"]}
    path.write_text(yaml.dump({"/options": {"ros__parameters": text}}))
    assert list(load(node, path)) == ["highest_names"]
    assert (node.get_parameter("rate_hz").value, list(node.get_parameter("numbers").value)) == (1e-6, [1e-6, np.inf])
    assert node.get_parameter("terms").value == []


def test_an_empty_list_in_a_file_is_one(make):
    node = make("    terms: []\n    numbers: []\n    robot: {drive_terms: ['']}\n")
    options = declare(node, Options)
    assert options.terms == () and options.numbers == () and options.robot.drive_terms == ()
    assert node.get_parameter("terms").type_ == Parameter.Type.STRING_ARRAY


@pytest.mark.parametrize(
    "text, expected", [("''", ()), ("day", ("day",)), ("[]", ()), ("['']", ()), ("[a, b]", ("a", "b"))])
def test_a_list_that_was_a_text_takes_both(make, text, expected):
    """Parameter files of earlier versions have a text."""
    node = make(f"    identify: {{prior: {text}}}\n")
    assert declare(node, Configuration).identify.prior == expected
    assert node.get_parameter("identify.prior").type_ == Parameter.Type.STRING_ARRAY


def test_named_elements_are_declared_by_the_list_of_names(make):
    node = make(
        "    highest_names: [link.m]\n    highest: {link.m: 2.0}\n"
        "    robot:\n      plate_names: [left]\n      plates: {left: {frame: left_foot, xyz: [0.0, 0.1, 0.0]}}\n"
    )
    options = declare(node, Options)
    assert options.highest == {"link.m": 2.0}
    assert options.robot.plates == {"left": PlateOptions("left_foot", (0.0, 0.1, 0.0))}
    assert node.get_parameter("robot.plates.left.measures").value == "wrench"
    frame = node.describe_parameter("robot.plates.left.frame")
    assert frame.description == "frame of the robot that stands on the plate"


@pytest.mark.parametrize("names", ["", "locked_joint_names: [], ", "locked_joint_names: [''], "])
def test_single_values_by_name_need_no_list_of_names(make, names):
    node = make(f"    robot: {{{names}locked_joints: {{a.b: 0.0, c: 1.0}}, joint_names: {{'fer_*': 'panda_*'}}}}\n")
    options = declare(node, Options)
    assert options.robot.locked_joints == {"a.b": 0.0, "c": 1.0}
    assert options.robot.joint_names == {"fer_*": "panda_*"}
    assert node.get_parameter("robot.locked_joint_names").value == ["a.b", "c"]


def test_names_of_joints_as_launch_files_give_them(make, tmp_path):
    file = write_joint_names("{fer_*: panda_*, '*': left_*}", tmp_path)
    assert declare(make(path=file), Options).robot.joint_names == {"fer_*": "panda_*", "*": "left_*"}
    assert declare(make(path=write_joint_names("", tmp_path)), Options).robot.joint_names == {}
    assert declare(make(path=file), Options).robot.joint_names  # the other mapping of the launch has not replaced it
    for wrong in ("fer_*", "{fer_*: 1}", "{fer", "[a, b]"):
        with pytest.raises(ConfigurationError, match="joint_names:=.* is not a mapping of names to names; write"):
            write_joint_names(wrong, tmp_path)


@pytest.mark.parametrize(
    "text, message",
    [
        ("    robot: {plates: {left: {frame: a}}}\n", "left.frame is 'a', but robot.plate_names lists none"),
        ("    robot: {plate_names: [a], plates: {a: {fram: a}}}\n", "robot.plates.a.fram.*correct the field"),
        ("    robot: {plate_names: [left]}\n", "robot.plates.left.frame is missing"),
        ("    highest_names: [a]\n", "highest_names lists a, but highest.a is missing"),
        ("    highest_names: [a]\n    highest: {a: -1.0}\n", "highest.a"),
        ("    rate_hz: 11.0\n", "rate_hz"),
        ("    rate_hz: fast\n", "rate_hz"),
    ],
)
def test_impossible_values_are_one_line(make, text, message):
    with pytest.raises(ConfigurationError, match=message) as caught:
        declare(make(text), Options)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("/options: ")


def test_values_are_guarded_while_the_node_runs(make):
    node, busy = make(highest_names=["a"], **{"highest.a": 1.0}), ""
    declare(node, Options, read_only=False)
    guard(node, Options, lambda: busy)

    def set_to(name, value):
        return node.set_parameters([Parameter(name, value=value)])[0]

    assert set_to("highest.a", 3.0).successful and read(node, Options).highest == {"a": 3.0}
    assert set_to("numbers", [1.0]).successful and read(node, Options).numbers == (1.0,)
    refused = set_to("terms", ["c"])
    assert not refused.successful and refused.reason == "/options: terms is 'c'; choose from a, b"
    assert "read-only" in set_to("highest_names", ["b"]).reason
    for text in ("!!bool x", '!!int ""', "!!timestamp x", "[" * 5000, f"[1{'0' * 400}]"):  # each ended the node
        assert not set_to("numbers", text).successful
    busy = "a goal is active"
    assert set_to("rate_hz", 2.0).reason == busy


@pytest.mark.parametrize("file, node", [("biped", "identifier"), ("simulate", "identifier")])
def test_a_file_that_ships_means_the_same_here(make, file, node):
    path = CONFIG / f"{file}.yaml"
    assert declare(make(path=path, name=node), Configuration) == load_configuration(path)
