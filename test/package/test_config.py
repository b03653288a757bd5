"""Parameter files: exactly the parameters that the nodes declare, with values that they take."""

import pytest
import yaml
from support.package_parameters import declared_options, node_names
from support.paths import CONFIG

from inertid_ros.config.options import flatten
from inertid_ros.nodes.parameter_files import FILES, NODES, declared, render

CONTENT = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted(CONFIG.glob("*.yaml"))}
BLOCKS = [(file, name) for file, content in CONTENT.items() for name in content]


def test_every_node_stands_in_a_file():
    named = {name.removeprefix("/**/") for _, name in BLOCKS}
    assert named == set(node_names())


@pytest.mark.parametrize("node", node_names())
def test_the_table_of_nodes_agrees_with_what_they_declare(node):
    assert {option.key for option in declared(node)} == set(declared_options(node))
    assert set(NODES) == set(node_names())


@pytest.mark.parametrize(("file", "name"), BLOCKS)
def test_keys_are_exactly_the_declared_ones(file, name):
    assert name.startswith("/**/"), f"{name} would not hold in a namespace"
    assert set(CONTENT[file][name]) == {"ros__parameters"}
    keys = set(flatten(CONTENT[file][name]["ros__parameters"]))
    known = set(declared_options(name.removeprefix("/**/")))
    assert keys - known == set(), "not declared"
    assert known - keys == set(), "missing in the file"


@pytest.mark.parametrize(("file", "name"), BLOCKS)
def test_values_have_the_declared_type_and_range(file, name):
    known = declared_options(name.removeprefix("/**/"))
    for key, value in flatten(CONTENT[file][name]["ros__parameters"]).items():
        converted = known[key].convert(value, f"{file}.yaml")
        # ROS knows no whole numbers where it was told a double.
        assert known[key].is_list or type(value) is known[key].kind, f"{key}: {converted!r}"


@pytest.mark.parametrize("file", FILES)
def test_files_are_up_to_date(file):
    text = (CONFIG / f"{file}.yaml").read_text(encoding="utf-8")
    assert text == render(file), "run: python -m inertid_ros.nodes.parameter_files config"
