"""Output of the commands: JSON, tables, progress."""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.report.report_content import plain

_log = logging.getLogger(__name__)
ShowProgress = Callable[[str, float], None]
"""Called with the stage and the fraction done."""


def print_json(content: Any) -> None:
    """Print the one JSON object on stdout."""
    sys.stdout.write(json.dumps(plain(content), indent=1, allow_nan=False) + "\n")


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on stdout, as wide as its content where stdout is no terminal."""
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
def progress_bar(options: argparse.Namespace, stage: str = "reading") -> Iterator[ShowProgress]:
    """Progress on stderr where that is a terminal, nothing elsewhere; it begins with ``stage``."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda stage, fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(stage, total=1.0)
        yield lambda now, fraction: bar.update(task, description=now, completed=fraction)


def warn_of_care(decision: GateDecision) -> None:
    """Warn on stderr where a result is to be used with care: its exit status is that of one without reservation."""
    if decision.verdict is Verdict.CARE:
        _log.warning("warning: %s: %s", decision.verdict.value, decision.summary)


def number(value: float | None, digits: int = 4) -> str:
    """A number for tables, with so many significant digits; ``-`` for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """A fraction for tables, as a percentage."""
    return f"{100 * value:.2f} %"
