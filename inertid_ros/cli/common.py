"""What the commands share: configuration, models, recordings, progress and output."""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import yaml

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.schema.structuring import changed, structure
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.atomic_files import write_file
from inertid_ros.core.errors import ConfigurationError, InertidError
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.report.report_content import plain

T = TypeVar("T", Configuration, ExcitationConfiguration)
ShowProgress = Callable[[str, float], None]


def set_up_logging(options: argparse.Namespace) -> None:
    """Notices of the library as lines on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("inertid: %(message)s"))
    logger = logging.getLogger(__package__.partition(".")[0])
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.ERROR if options.quiet else logging.INFO)


def configuration(options: argparse.Namespace, tree: type[T], given: Mapping[str, object] | None = None) -> T:
    """Of ``--config``, then what other options stand for, then ``--set``, then ``--lock``."""
    config = load_configuration(options.config, tree) if options.config else tree()
    values = attrs.asdict(config)
    for key, value in (given or {}).items():
        changed(values, key, value)
    for entry in options.set:
        key, _, text = entry.partition("=")
        try:
            changed(values, key, yaml.safe_load(text))
        except yaml.YAMLError:
            raise ConfigurationError(f"--set {entry}: value is not YAML; write KEY=VALUE") from None
    if options.lock:
        values["robot"]["locked_joints"] = {**config.robot.locked_joints, **named_numbers(options.lock, "--lock")}
    return structure(tree, values, options.config or "command line")


def named_numbers(texts: Sequence[str], name: str) -> dict[str, float]:
    """``JOINT=POSITION`` each, of a command line option.

    Raises
    ------
    ConfigurationError
        Not of that form.
    """
    found = {}
    for text in texts:
        joint, _, position = (part.strip() for part in text.partition("="))
        try:
            found[joint] = float(position)
        except ValueError:
            joint = ""
        if not joint:
            raise ConfigurationError(f"{name}: '{text}' is not JOINT=POSITION; write for example finger_joint1=0.02")
    return found


def recordings_from(paths: Sequence[str], config: Configuration, joints: Sequence[str]) -> list[Recording]:
    """All recordings, in order; ``joints`` are those of the robot."""
    return [load_recording(path, config.topics, joints) for path in paths]


def print_json(content: Any) -> None:
    """The one JSON object on stdout."""
    sys.stdout.write(json.dumps(plain(content), indent=1, allow_nan=False) + "\n")


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout, as wide as its content where stdout is no terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(header):
        table.add_column(Text(name), justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@contextmanager
def progress_bar(options: argparse.Namespace) -> Iterator[ShowProgress]:
    """Progress on stderr where that is a terminal, nothing elsewhere."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda stage, fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda stage, fraction: bar.update(task, description=stage, completed=fraction)


def write_text(path: Path, text: str, force: bool) -> None:
    """Write a file atomically.

    Raises
    ------
    InertidError: it exists and ``force`` is false, or it cannot be written.
    """
    if path.exists() and not force:
        raise InertidError(f"{path}: exists already; choose another path, or replace it with --force")
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise InertidError(f"{path}: cannot be written ({error.strerror}); choose another path") from None


def number(value: float | None, digits: int = 4) -> str:
    """For tables."""
    return "-" if value is None else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """A share for tables."""
    return f"{100 * value:.2f} %"
