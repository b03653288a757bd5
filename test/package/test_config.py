"""Parameter files and their reference: exactly the parameters that the nodes declare, with values that they take."""

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping

import attrs
import pytest
import yaml
from support.package_parameters import declared_options, node_names
from support.paths import CONFIG, ROOT

from inertid_ros.config.nodes import NODES, declared
from inertid_ros.config.option_fields import Option, options
from inertid_ros.config.structuring import flat, structure
from inertid_ros.simulation.example_robots import legged_robot

CONTENT = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(CONFIG.glob("*.yaml"))}
BLOCKS = [(file, name) for file, content in CONTENT.items() for name in content]


def parameters(file, name) -> tuple[dict[str, object], dict[str, Option]]:
    """Of a block: the values, and the options of the node, one for every name of a named element."""
    values = dict(flat(CONTENT[file][name]["ros__parameters"]))
    return values, singles(declared_options(name.removeprefix("/**/")).values(), values)


def singles(found: Iterable[Option], values: Mapping[str, object]) -> dict[str, Option]:
    known = {}
    for option in found:
        each = [option.of(element) for element in values.get(option.names, ())] if option.names else [option]
        known |= {single.key: single for single in each}
    return known


def test_every_node_stands_in_a_file():
    named = {name.removeprefix("/**/") for _, name in BLOCKS}
    assert named == set(node_names())


@pytest.mark.parametrize("node", node_names())
def test_the_table_of_nodes_agrees_with_what_they_declare(node):
    assert {option.key for option in declared(node)} == set(declared_options(node))
    assert set(NODES) == set(node_names())


@pytest.mark.parametrize(("file", "name"), BLOCKS)
def test_keys_are_declared(file, name):
    assert name.startswith("/**/"), f"{name} would not hold in a namespace"
    assert set(CONTENT[file][name]) == {"ros__parameters"}
    values, known = parameters(file, name)
    assert set(values) - set(known) == set(), "not declared"
    assert values, "a block without parameters"


@pytest.mark.parametrize("file", CONTENT)
def test_files_are_short_and_explained(file):
    """They hold what users set; the reference has the rest. A comment is the option's description or its beginning."""
    lines = (CONFIG / f"{file}.yaml").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60
    descriptions = {
        re.split("[:;]", option.description)[0]
        for name in CONTENT[file]
        for option in declared_options(name.removeprefix("/**/")).values()
    }
    comments = [line.split("  # ")[1] for line in lines if "  # " in line]
    assert comments
    for comment in comments:
        assert re.split("[:;]", comment)[0] in descriptions, comment


@pytest.mark.parametrize("robot", ["biped", "humanoid"])
def test_plates_of_legged_robots_are_those_of_the_simulator(robot):
    simulated = legged_robot(robot)
    identifier = CONTENT[robot]["/**/identifier"]["ros__parameters"]
    plates = simulated.plate_options()
    assert identifier["robot"]["plates"] == {
        name: {key: list(value) if isinstance(value, tuple) else value for key, value in attrs.asdict(plate).items()}
        for name, plate in plates.items()
    }
    assert identifier["prepare"]["base"]["imu_frame"] == simulated.imu
    wrenches = {plate.name: {"topic": f"{plate.name}/wrench", "frame": plate.name} for plate in simulated.plates}
    assert CONTENT[robot]["/**/recorder"]["ros__parameters"]["wrenches"] == wrenches


@pytest.mark.parametrize(("file", "name"), BLOCKS)
def test_values_have_the_declared_type_and_range(file, name):
    values, known = parameters(file, name)
    for key, value in values.items():
        # ROS does not take a whole number for a double.
        assert known[key].is_list or type(value) is known[key].scalar, f"{key}: {value!r}"
    for tree, prefix in NODES[name.removeprefix("/**/")]:
        own = singles(options(tree, prefix), values)
        in_file = {key.removeprefix(prefix): values[key] for key in own if key in values}
        structure(tree, in_file, f"{file}.yaml", listed=True)


def test_reference_is_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "reference_pages.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("node", node_names())
def test_every_parameter_stands_in_the_reference(node):
    text = (ROOT / "docs" / "reference" / "node_parameters.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition(f"\n## {node}\n")[2], maxsplit=1, flags=re.M)[0]
    rows = dict(re.findall(r"^\| `([^`]+)` \| (\S+) \|", section, flags=re.M))
    types = {"float": "double", "int": "int", "bool": "bool", "str": "string"}
    expected = {
        key: types[option.scalar.__name__] + "[]" * option.is_list for key, option in declared_options(node).items()
    }
    assert rows == expected


@pytest.mark.parametrize("node", node_names())
def test_every_number_has_a_range_and_every_option_a_description(node):
    for option in declared(node):
        assert option.description and not option.description.endswith("."), option.key
        if option.scalar in (int, float):
            assert option.minimum is not None or option.maximum is not None, f"{option.key}: has no range"
