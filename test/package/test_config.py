"""Parameter files and their reference: exactly the parameters that the nodes declare, with values that they take."""

import re
from collections.abc import Iterable, Mapping

import pytest
import yaml
from support.package_parameters import declared_options, node_names
from support.paths import CONFIG, ROOT

from inertid_ros.config.nodes import NODES, declared
from inertid_ros.config.option_fields import Option, options
from inertid_ros.config.structuring import flat, structure
from inertid_ros.nodes.tools.parameter_files import FILES, PAGES, render

COMMAND = "run: python -m inertid_ros.nodes.tools.parameter_files config --docs docs/reference"
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


@pytest.mark.parametrize("file", FILES)
def test_files_are_short(file):
    """They hold what users set; the reference has the rest."""
    assert len(render(file).splitlines()) <= 60


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


@pytest.mark.parametrize("file", FILES)
def test_files_are_up_to_date(file):
    assert (CONFIG / f"{file}.yaml").read_text(encoding="utf-8") == render(file), COMMAND


@pytest.mark.parametrize("page", PAGES)
def test_reference_is_up_to_date(page):
    assert (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8") == PAGES[page](), COMMAND


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
