"""docs/modes.md: keys, commands, nodes, files and tests that its tables name exist."""

import re

import pytest
import yaml
from support.named_tests import assert_test_exists
from support.paths import ROOT

from inertid_ros.config.nodes import declared
from inertid_ros.config.option_fields import Option

TABLES, NOT_THERE = (ROOT / "docs" / "modes.md").read_text(encoding="utf-8").split("\n## Not implemented\n")
HEADER = "method | source | key or command | node or launch file | example | test"
LINES = re.findall(r"^\| (.*) \|$", TABLES, re.M)
ROWS = [line.split(" | ") for line in LINES if line != HEADER]
SOURCE = re.compile(r"(?:algorithm|cor\.|def\.|eqs?\.|fig\.|remark|sec\.|table|thm\.) ")
COMMANDS = (ROOT / "inertid_ros" / "cli" / "main.py").read_text(encoding="utf-8")


def named(cell: str) -> list[str]:
    """Names in backticks; a cell without names says "none"."""
    names = re.findall(r"`([^`]+)`", cell)
    assert names or cell == "none"
    return names


def assert_command(name: str) -> None:
    """Fail unless ``inertid <command> <option> ...`` is a command with these options."""
    _, command, *arguments = name.split()
    _, begin, rest = COMMANDS.partition(f'add("{command}"')
    assert begin, f"no command {command}"
    assert [argument for argument in arguments if f'"{argument}"' not in rest.split(" = add(")[0]] == []


def assert_option(name: str, known: dict[str, Option], is_default: bool) -> None:
    """Fail unless ``key`` or ``key: value`` is an option of a node of the row, with an allowed value."""
    key, _, text = name.partition(": ")
    assert key in known, f"no parameter {key} of these nodes"
    if text:
        value = known[key].converted(yaml.safe_load(text) if known[key].scalar is not str else text)
        value = (value,) if known[key].is_list else value
        known[key].check(key, value)
        assert not is_default or value == known[key].default


def test_every_section_has_one_table_with_the_same_columns() -> None:
    assert {len(row) for row in ROWS} == {6} and len(ROWS) >= 80
    assert LINES.count(HEADER) == TABLES.count("\n## ") == 7
    assert len(re.findall(r"^\* \[\w+\]_ ", NOT_THERE, re.M)) >= 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row: list[str]) -> None:
    _, source, selection, node, example, test = row
    assert SOURCE.match(source)
    nodes = [name for name in named(node) if not (ROOT / "launch" / name).is_file()]
    known = {option.key: option for name in nodes for option in declared(name)}
    if selection.startswith("library: "):  # test_docs.py checks dotted names
        assert re.search(r"`\. [A-Z].*\.$", selection), "a method of the library needs a reason"
        assert [file for file in named(selection) if "/" in file and not (ROOT / file).is_file()] == []
    else:
        assert "always" in selection or named(selection)
        for name in re.findall(r"`([^`]+)`", selection):
            if name.startswith("inertid "):
                assert_command(name)
            else:
                assert_option(name, known, f"`{name}` (default)" in selection)
    assert [file for file in named(example) if not (ROOT / file).is_file()] == []
    assert test != "none" or selection.startswith("library: ")
    for name in named(test):
        assert_test_exists(f"`{name}`")
