"""Write the tables of docs/reference: commands.md, configuration.md, node_parameters.md.

    python scripts/reference_pages.py            write
    python scripts/reference_pages.py --check    exit status 1 if a page is out of date

The text of a page before its first section is written by hand.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.nodes import NODES, declared
from inertid_ros.config.option_fields import REQUIRED, Option, options
from inertid_ros.config.structuring import flow

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
PLAIN_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text"}
ROS_TYPES = {bool: "bool", int: "int", float: "double", str: "string"}


def configuration() -> Iterator[str]:
    """Yield lines for the keys of plain YAML."""
    trees = (Configuration, ExcitationConfiguration)
    fields = {field.name: field for tree in trees for field in attrs.fields(attrs.resolve_types(tree))}
    for field in fields.values():
        entries = [entry for entry in options(field.type, f"{field.name}.") if not entry.lists]
        yield from (f"## {field.name}", "", str(field.type.__doc__).partition("\n")[0], "")
        yield from (*table(entries, "key", plain_type), "")


def node_parameters() -> Iterator[str]:
    """Yield lines for the ROS parameters of every node."""
    for node in NODES:
        yield from (f"## {node}", "", *table(declared(node), "parameter", ros_type), "")


def commands() -> Iterator[str]:
    """Yield lines for the arguments of every command, with examples."""
    from inertid_ros.cli.main import EXAMPLES, command_parser

    (choices,) = (action for action in command_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in choices.choices.items():
        yield from (f"## {name}", "", command.description, "", "```bash", *EXAMPLES[name], "```", "")
        yield from ("| argument | description |", "|---|---|")
        for action in command._actions:
            if action.dest in ("help", "json", "quiet", "debug"):
                continue
            metavars = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "",)
            values = [*(action.choices or metavars)] if action.nargs != 0 else []
            names = " or ".join(action.option_strings)
            words = f"{names} {('|' if action.choices else ' ').join(values)}"
            about = f"{action.help or ''}{' (required)' if action.required and action.option_strings else ''}"
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{words.strip()}`", about)) + " |"
        yield ""


def table(entries: Iterable[Option], first: str, type_of: Callable[[Option], str]) -> Iterator[str]:
    yield from (f"| {first} | type | default | range | unit | description |", "|---|---|---|---|---|---|")
    for entry in entries:
        default = "required" if entry.default is REQUIRED else flow(entry.default)
        cells = (f"`{entry.key}`", type_of(entry), f"`{default}`", allowed(entry), entry.unit, entry.description)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def plain_type(entry: Option) -> str:
    return ("list of " if entry.is_list else "") + PLAIN_TYPES[entry.scalar]


def ros_type(entry: Option) -> str:
    return ROS_TYPES[entry.scalar] + ("[]" if entry.is_list else "")


def allowed(entry: Option) -> str:
    """Choices or range; empty if every value is allowed."""
    if entry.choices:
        return ", ".join(choice or "''" for choice in entry.choices)
    if entry.minimum is None and entry.maximum is None:
        return ""
    if entry.minimum is None or entry.maximum is None:
        return f"from {entry.minimum:g}" if entry.maximum is None else f"up to {entry.maximum:g}"
    return f"{entry.minimum:g} to {entry.maximum:g}"


def main() -> int:
    """Write or check the pages; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit status 1 if a page is out of date")
    check, status = parser.parse_args().check, 0
    for sections in (commands, configuration, node_parameters):
        file = FOLDER / f"{sections.__name__}.md"
        text = file.read_text(encoding="utf-8")
        page = text[: text.index("\n## ") + 1] + "\n".join(sections())
        if not check:
            file.write_text(page, encoding="utf-8")
        elif page != text:
            print(f"{file.name}: out of date; run python scripts/reference_pages.py", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
