"""Options that guides and remedies name are options of the configuration, and files that guides show can be read."""

import re

import pytest
from support.guides import PAGES

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.option_fields import options
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.findings import CAUSES

TREES = (Configuration, ExcitationConfiguration)
KEYS = {option.key.split("<")[0].rstrip(".") for tree in TREES for option in options(tree)}
SECTIONS = "|".join(sorted({key.partition(".")[0] for key in KEYS}))
NAMED = re.compile(rf"(?<![\w./])((?:{SECTIONS})(?:\.[a-z_]+)+)(?!\w*\()")


def unknown(text: str) -> set[str]:
    """Keys in a text that are neither an option, nor a group of options, nor an element of one that is a map."""
    files = (".py", ".yaml", ".npz", ".urdf", ".xacro", ".html")
    found = {name for name in NAMED.findall(text) if not name.endswith(files)}
    return {name for name in found if not any(_within(name, key) or _within(key, name) for key in KEYS)}


def _within(name: str, group: str) -> bool:
    return f"{name}.".startswith(f"{group}.")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_of_pages(page) -> None:
    assert unknown(page.read_text(encoding="utf-8")) == set()


def test_of_remedies() -> None:
    text = "\n".join(remedy for cause in CAUSES.values() for remedy in cause.remedies.values())
    assert unknown(text) == set()
    assert unknown("set robot.effort_skale") == {"robot.effort_skale"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configurations_of_pages_can_be_read(page, tmp_path) -> None:
    for number, text in enumerate(re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text, encoding="utf-8")
        for tree in TREES:
            load_configuration(file, tree)
