"""Nodes refuse parameters that they would ignore: slips, those of other nodes, and those without effect."""

import random
import re
from collections.abc import Iterator

import pytest
import yaml

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
from hypothesis import (  # noqa: E402
    HealthCheck,
    given,
    settings,
    strategies as st,  # noqa: E402
)
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from support.nodes.processes import NodeProcess  # noqa: E402
from support.wrong_settings import (  # noqa: E402
    NAME,
    applies,
    misspelt,
    named_both,
    nested,
    other_value,
    without_effect,
)

from inertid_ros.config.nodes import NODE_EFFECTS, NODES, declared  # noqa: E402
from inertid_ros.config.yaml_files import known_keys  # noqa: E402
from inertid_ros.core.errors import ConfigurationError  # noqa: E402
from inertid_ros.nodes import MODULES  # noqa: E402
from inertid_ros.ros.node_parameters import check_given_parameters, declare  # noqa: E402

SEEDS = st.integers(0, 2**32 - 1)
DRAWS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
PLACES = [(kind, entry) for kind in NODES for entry in declared(kind)]
CONTRADICTIONS = [
    (kind, effect, option)
    for kind in NODES
    for effect in NODE_EFFECTS
    for option in effect.options
    if applies(effect, option, {entry.key: entry for entry in declared(kind)})
]


@pytest.fixture(scope="module")
def context() -> Iterator[object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", "86")
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF")
        context = rclpy.Context()
        rclpy.init(context=context)
        yield context
        rclpy.shutdown(context=context)


def node_of(context, kind, values, arguments=()) -> Node:
    """A node with the parameters of one of the package's nodes."""
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    node = Node(kind, context=context, cli_args=list(arguments), parameter_overrides=overrides,
                use_global_arguments=False)  # fmt: skip
    for tree, prefix in NODES[kind]:
        declare(node, tree, read_only=False, prefix=prefix)
    return node


@pytest.fixture(scope="module")
def nodes(context) -> Iterator[dict[str, Node]]:
    made = {kind: node_of(context, kind, {}) for kind in NODES}
    yield made
    for node in made.values():
        node.destroy_node()


def as_parameters(kind, values):
    """With the lists of names that belong to named elements."""
    lists = {entry.names: [NAME] for entry in declared(kind) if entry.names and _starts(values, entry)}
    return {**values, **lists}


def _starts(values, entry):
    return any(key.startswith(entry.key.partition("<name>")[0]) for key in values)


def test_what_is_declared_is_left_alone(nodes):
    for node in nodes.values():
        check_given_parameters(node, [])


@DRAWS
@given(place=st.sampled_from(PLACES), seed=SEEDS)
def test_a_slip_in_a_parameter(nodes, place, seed):
    rng = random.Random(seed)
    kind, entry = place
    wrong, node = misspelt(entry.key, rng), nodes[kind]
    if wrong in known_keys():
        return
    node._parameter_overrides[wrong] = Parameter(wrong, value=other_value(entry, rng))
    try:
        with pytest.raises(ConfigurationError, match=re.escape(wrong.split(f".{NAME}")[0])) as caught:
            check_given_parameters(node, [])
    finally:
        del node._parameter_overrides[wrong]
    assert str(caught.value).startswith(f"/{kind}: ") and "\n" not in str(caught.value)


@DRAWS
@given(place=st.sampled_from(PLACES), to_all=st.booleans(), seed=SEEDS)
def test_a_slip_in_the_parameter_file_of_a_node(nodes, tmp_path, place, to_all, seed):
    rng = random.Random(seed)
    kind, entry = place
    wrong = misspelt(entry.key, rng)
    if wrong in known_keys("" if to_all else kind):
        return
    file = tmp_path / "parameters.yaml"
    block = "/**" if to_all else f"/**/{kind}"
    file.write_text(yaml.safe_dump({block: {"ros__parameters": nested({wrong: other_value(entry, rng)})}}))
    with pytest.raises(ConfigurationError, match=re.escape(wrong.split(f".{NAME}")[0])):
        check_given_parameters(nodes[kind], ["node", "--ros-args", "--params-file", str(file)])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(case=st.sampled_from(CONTRADICTIONS), seed=SEEDS)
def test_a_parameter_without_effect_beside_another_one(context, case, seed):
    kind, effect, option = case
    known = {entry.key: entry for entry in declared(kind) if not entry.lists}
    values = without_effect(effect, option, known, random.Random(seed))
    node = node_of(context, kind, as_parameters(kind, values))
    try:
        with pytest.raises(ConfigurationError, match="has no effect while") as caught:
            check_given_parameters(node, [])
    finally:
        node.destroy_node()
    assert any(named_both(str(caught.value), key, NODE_EFFECTS) for key in values), str(caught.value)


def test_a_node_of_somebody_else_is_asked_for_its_own_parameters_alone(context):
    node = Node("mine", context=context, use_global_arguments=False, parameter_overrides=[Parameter("gain", value=1.0)])
    node.declare_parameter("gain", 0.5)
    check_given_parameters(node, [])
    node._parameter_overrides["gian"] = Parameter("gian", value=1.0)
    with pytest.raises(ConfigurationError, match="^/mine: gian is not an option"):
        check_given_parameters(node, [])
    node.destroy_node()


def test_those_of_all_nodes_and_of_rclpy_are_left_alone(nodes):
    node = nodes["recorder"]
    given_ = ("monitor.max_age_s", "robot.locked_joints.a", "robot.plates.left.frame", "qos_overrides./clock.history")
    node._parameter_overrides |= {name: Parameter(name, value=1.0) for name in given_}
    check_given_parameters(node, [])
    with pytest.raises(ConfigurationError, match="max_age_s is a parameter of excitation and adaptation, not of recor"):
        check_given_parameters(node, ["recorder", "--ros-args", "-p", "monitor.max_age_s:=0.1"])
    for name in given_:
        del node._parameter_overrides[name]


@pytest.mark.parametrize(
    ("kind", "parameter", "message"),
    [
        ("excitation", "excitation.mountin:=wall", "did you mean excitation.mounting?"),
        ("calibrate", "speed_scal:=0.1", "did you mean speed_scale?"),
    ],
)
def test_real_nodes_do_not_start(tmp_path, kind, parameter, message):
    """A node, and a flow."""
    process = NodeProcess(kind, tmp_path, script=(MODULES[kind], "--ros-args", "-p", parameter))
    name = parameter.partition(":=")[0]
    assert process.process.wait(60) == 2
    assert f"/{kind}: {name} is not an option; {message}" in process.log()
    assert "Traceback" not in process.log()


@pytest.mark.parametrize("kind", ["recorder", "calibrate"])
def test_a_parameter_file_that_rcl_cannot_read_is_one_line(tmp_path, kind):
    """A node, and a flow."""
    file = tmp_path / "parameters.yaml"
    file.write_text("/**:\n  ros__parameters:\n    one: &name [a]\n    other: *name\n")
    process = NodeProcess(kind, tmp_path, script=(MODULES[kind], "--ros-args", "--params-file", str(file)))
    assert process.process.wait(60) == 2
    assert "error: ROS arguments: " in process.log() and str(file) in process.log()
    assert "Traceback" not in process.log()
