"""Output of the commands: JSON, tables, progress; results as tables."""

import argparse
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from inertid_ros.core.errors import one_line, printable
from inertid_ros.core.findings import CAUSES
from inertid_ros.identification.assessment.estimate import VERDICTS
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.report.report_content import ERROR_SECTIONS, json_text, prior_label, section_of_errors

from .stopping import DONE

if TYPE_CHECKING:
    from inertid_ros.payload.payload import Quantity

_log = logging.getLogger(__name__)
ShowProgress = Callable[[str, float], None]
"""Called with the stage and the completed fraction."""
Cell = str | float | None
"""Content of a table: text, a whole number, or a number that is printed with four digits."""
Columns = Sequence[tuple[str, str | Callable[[Mapping[str, Any]], Cell]]]
"""Title of each column, and a key of the records or a function from a record to the cell."""
_COMPARED_LINES = 10  # parameters shown in a comparison


def deliver(options: argparse.Namespace, content: Any, show: Callable[[], None], written: object = "",
        warnings: Iterable[str] = (), status: int = DONE) -> int:
    """Print ``content`` as JSON, or call ``show`` and print the output path; then log warnings. Return ``status``."""
    try:
        if options.json:
            raw(sys.stdout).write(json_text(content))
        else:
            show()
            if written:
                print(f"written to {written}")
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()
    for warning in warnings:
        _log.warning("warning: %s", warning)
    return status


def leave_stdout() -> None:
    """Discard further output after its reader has gone; otherwise, flushing the buffer at exit raises again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), raw(sys.stdout).fileno())


def quantity_row(name: str, quantity: "Quantity", digits: int = 3) -> tuple[str, str, str, str]:
    """Row of a table: name, value, standard deviation and 95 % interval."""
    low, high = (number(end, digits) for end in quantity.interval)
    return name, number(quantity.value), number(quantity.deviation, 2), f"{low} to {high}"


def print_table(title: str, header: Sequence[str], rows: Iterable[Iterable[Cell]]) -> None:
    """Print a table on stdout; without a terminal, the table is at most 160 columns wide."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    class TableConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the process with status 1

    stream = raw(sys.stdout)
    encoding = stream.encoding or "utf-8"

    def cell(content: Cell) -> Text:
        text = str(content) if isinstance(content, str | int) else number(content)
        return Text(one_line(text).encode(encoding, "backslashreplace").decode(encoding))

    table = Table(title=cell(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(header):
        table.add_column(cell(name), justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    TableConsole(file=stream, width=None if sys.stdout.isatty() else 160).print(table)


def print_records(title: str, columns: Columns, records: Iterable[Mapping[str, Any]]) -> None:
    """Print a table with a row per record."""
    rows = ([record[cell] if isinstance(cell, str) else cell(record) for _, cell in columns] for record in records)
    print_table(title, [name for name, _ in columns], rows)


@contextmanager
def progress_bar(options: argparse.Namespace, stage: str = "reading") -> Iterator[ShowProgress]:
    """Show progress on stderr if stderr is a terminal; the first stage is ``stage``."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda stage, fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=raw(sys.stderr)), transient=True) as bar:
        task = bar.add_task(stage, total=1.0)
        yield lambda now, fraction: bar.update(task, description=one_line(now), completed=fraction)


class PrintableStream:
    """Text stream that escapes control characters; names in untrusted files may contain them."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        encoding = self.stream.encoding or "utf-8"  # ASCII on some terminals
        self.stream.write(printable(text).encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def raw(stream: Any) -> TextIO:
    """Return the stream that a :class:`PrintableStream` wraps, for libraries that move the cursor."""
    return stream.stream if isinstance(stream, PrintableStream) else stream


def care(decision: GateDecision, options: argparse.Namespace) -> list[str]:
    """Return the warning for the verdict "use with care", else nothing; the exit status stays 0 with this verdict."""
    reasons = decision.summary if options.json else "the verdict above lists the reasons"  # printed once
    return [f"{decision.verdict.value}: {reasons}"] if decision.verdict is Verdict.CARE else []


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with ``digits`` significant digits; ``-`` for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """Format a fraction as a percentage."""
    return f"{100 * value:.2f} %"


def _uncertain(value: float | None, deviation: float | None) -> str:
    return "from prior" if value is None else f"{number(value)} ({number(deviation, 2)})"


def _uncertain_mass(body: Mapping[str, Any]) -> str:
    return _uncertain(body["mass"], body["standard_deviation"][0])


def _numbers(values: Iterable[float]) -> str:
    return " ".join(number(value, 3) for value in values)


_LINK_COLUMNS: Columns = (
    ("link", "name"),
    ("mass [kg]", _uncertain_mass),
    ("given", lambda link: link["prior"]["mass"]),
    ("com [m]", lambda link: _numbers(link["com"])),
    ("given", lambda link: _numbers(link["prior"]["com"])),
    ("smallest eigenvalue", lambda link: number(link["min_pseudo_inertia_eigenvalue"], 3)),
    ("distance to given", lambda link: number(link["geodesic_distance_to_prior"], 3)))
_ROTOR_COLUMNS: Columns = (
    ("rotor", "name"), ("turns with", "joint"), ("on", "link"), ("ratio", "ratio"), ("mass [kg]", _uncertain_mass),
    ("com [m]", lambda rotor: _numbers(rotor["com"])),
    ("largest inertia [kg m^2]", lambda rotor: number(max(rotor["inertia"][k][k] for k in range(3)), 3)))
_COMPENSATION_COLUMNS: Columns = (
    ("link", "name"), ("mass [kg]", _uncertain_mass), ("com [m]", lambda link: _numbers(link["com"])))
_GAIN_COLUMNS: Columns = (
    ("joint", "joint"),
    ("gain", "gain"),
    ("95 % interval", lambda gain: " to ".join(map(number, gain["interval"]))),
    ("", lambda gain: "identified" if gain["identified"] else "not identifiable from the loads"))
_TERM_COLUMNS: Columns = (
    ("term", "name"),
    ("joint", "joint"),
    ("torque (standard deviation)", lambda term: _formula(term) or "left out"),
    ("reduction of squared error in held-out blocks", lambda term: _if_known(term["held_out_gain"], percent)),
    ("log-odds by the bodies", lambda term: _if_known(term.get("body_log_odds"), lambda odds: number(odds, 2))))


def _if_known(value: float | None, show: Callable[[float], str]) -> str:
    return "" if value is None else show(value)


def _formula(term: Mapping[str, Any]) -> str:
    values = zip(term["expressions"], term["values"], term["standard_deviation"], strict=False)
    return ", ".join(f"{_uncertain(value, deviation)} {text}" for text, value, deviation in values)


def print_report(report: Mapping[str, Any]) -> None:
    """Print errors before and after calibration, links, joints, rotors, the solution and the verdict."""
    print_errors(report)
    if earlier := report["provenance"].get("earlier"):
        print(f"continues {earlier['directory']}: its recordings count as if they were fitted again")
    if prior_label(report) == "prior":
        print(f"prior: {report['prior']['name']}")
    effort = report["provenance"]["configuration"].get("robot", {}).get("effort", "torque")
    if effort != "torque":
        print(f"efforts: {effort} (robot.effort)")
    print_records("Links", _LINK_COLUMNS, report["links"])
    _print_drives(report["joints"], report["couplings"])
    if report.get("terms"):
        print_records("Terms", _TERM_COLUMNS, report["terms"])
    if gains := report.get("drive_gains"):
        print_records("Gains of drives", _GAIN_COLUMNS, gains)
        for key in ("command_kp", "command_kd") if "command_kp" in gains[0] else ("effort_scale",):
            values = ", ".join(f"{gain['joint']}: {gain[key]:.6g}" for gain in gains)
            print(f"for later recordings: robot.{key}: {{{values}}}")
    if report["rotors"]:
        print_records("Rotors (standard deviation)", _ROTOR_COLUMNS, report["rotors"])
    if report.get("compensation"):
        print_records("Model whose gravity the efforts lack (standard deviation)", _COMPENSATION_COLUMNS,
            report["compensation"])
    if report.get("statements"):
        verdicts = Counter(parameter["verdict"] for parameter in report["statements"])
        print("Parameters: " + ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in reversed(VERDICTS)))
    if cutoff := report["provenance"].get("cutoff_hz"):
        print(f"all channels are low-passed at {number(cutoff)} Hz (prepare.cutoff_hz)")
    base, solver = report["base_parameters"], report["solver"]
    print(f"{base['count']} base parameters, condition number {number(base['condition_number'])};"
        f" {solver['name']}: {solver['status']} after {solver['iterations']} iterations")
    confidence, rounds = report.get("confidence"), report.get("rounds")
    if confidence:
        share, joint = percent(confidence["deviation"]), confidence["joint"]
        print(f"predicted torque is uncertain by at most {share} (1 sigma) over the robot's range; worst: {joint}")
    for index, done in enumerate(rounds["done"] if rounds else (), start=1):
        print(f"round {index}: torque uncertain by {percent(done['deviation'])} ({done['joint']})")
    if rounds and rounds["stopped"]:
        print(f"ended: {rounds['stopped']}")
    print_verdict(report)


def _print_drives(joints: Sequence[Mapping[str, Any]], couplings: Sequence[Mapping[str, Any]]) -> None:
    """Print drive terms of joints, and of drives that move several joints."""
    if terms := list(joints[0]["standard_deviation"]) if joints else []:
        rows = [(joint["name"], *(_uncertain(joint[term], joint["standard_deviation"][term]) for term in terms))
            for joint in joints]
        print_table("Joints (standard deviation)", ("joint", *(term.replace("_", " ") for term in terms)), rows)
    for drive in couplings:
        values = ", ".join(f"{term.replace('_', ' ')} {_uncertain(drive[term], deviation)}"
            for term, deviation in drive["standard_deviation"].items())
        print(f"{drive['name']} (turns with {', '.join(drive['joints'])}): {values}")


def print_verdict(report: Mapping[str, Any]) -> None:
    """Print notices, reasons for the verdict with their remedies, and the message."""
    for notice in report.get("notices", ()):
        print(f"noticed: {notice['message']}")
    if report.get("reasons"):
        print(f"Verdict: {report['verdict']}, because")
        for reason in report["reasons"]:
            where = f"{reason['recording']}: " if reason["recording"] else ""
            name = reason["cause"]
            cause = CAUSES[name].meaning if name in CAUSES else name
            print(f"- {where}{reason['evidence']} ({cause}) [{name}]\n    {reason['remedy']}")
    print(report["message"])


_PREDICTION_COLUMNS: Columns = (
    ("quantity", lambda error: f"{error['quantity']} [{error['unit']}]"),
    ("measured", "measured"),
    ("error of the prior", "prior"),
    ("calibrated", "calibrated"))


def print_errors(report: Mapping[str, Any]) -> None:
    """Print torque errors of given and calibrated parameters, over all joints and per joint."""
    section = section_of_errors(report)
    prior, errors = report["prior"][section], report[section]
    channels = report.get("channels", report["joint_names"])
    rows = list(zip(channels, errors["rms_torque"], prior["rms_error"], errors["rms_error"], strict=True))
    rows.append(("all, relative", "", percent(prior["relative_error"]), percent(errors["relative_error"])))
    quantity, unit = errors.get("quantity", "torque"), errors.get("unit", "N m or N")  # missing in older reports
    header = ("channel", quantity, prior_label(report), "calibrated")
    print_table(f"{quantity.capitalize()} error on {ERROR_SECTIONS[section]} (RMS, {unit})", header, rows)
    if report.get("predictions"):
        print_records(f"Predictions on {ERROR_SECTIONS[section]} (RMS)", _PREDICTION_COLUMNS, report["predictions"])


_COMPARED_LINK_COLUMNS: Columns = (
    ("link", "name"),
    ("mass A [kg]", lambda link: link["mass"][0]),
    ("mass B [kg]", lambda link: link["mass"][1]),
    ("com A [m]", lambda link: _numbers(link["com"][0])),
    ("com B [m]", lambda link: _numbers(link["com"][1])),
    ("geodesic distance", lambda link: number(link["distance"], 3)))
_DIFFERENCE_COLUMNS: Columns = (
    ("parameter", "name"), ("A", "first"), ("B", "second"),
    ("standard deviations", lambda change: number(change["deviations"], 2)))


def print_comparison(content: Mapping[str, Any]) -> None:
    """Print both verdicts and errors, the difference of torque, links, and the parameters that differ most."""
    for name, result in zip("AB", content["results"], strict=True):
        error, recordings = percent(result["relative_error"]), ", ".join(result["recordings"])
        print(f"{name}: {result['directory']}: {result['verdict']}, relative error {error} on {recordings}")
    if not content["same_data"]:
        print("the errors are on different data, or at different cutoffs, and cannot be compared with each other")
    if content["torque_difference"]:
        rows = [(joint, percent(share)) for joint, share in content["torque_difference"].items()]
        print_table("Difference of predicted torque over the robot's range", ("joint", "of torque"), rows)
    print_records("Links", _COMPARED_LINK_COLUMNS, content["links"])
    print_records("Parameters that differ most", _DIFFERENCE_COLUMNS, content["parameters"][:_COMPARED_LINES])
