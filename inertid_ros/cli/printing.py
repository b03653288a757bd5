"""Output of the commands: JSON, tables, progress; results as tables."""

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from inertid_ros.core.findings import CAUSES
from inertid_ros.identification.assessment.estimate import VERDICTS
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.report.report_content import plain

_log = logging.getLogger(__name__)
ShowProgress = Callable[[str, float], None]
"""Called with the stage and the fraction done."""
_ERROR_SECTIONS = {  # of a report, the most conclusive first
    "validation": "held-out data",
    "blocks": "blocks of the fitted data, each held out in turn",
    "train": "fitted data",
}
_COMPARED_LINES = 10  # parameters of a comparison


def print_json(content: Any) -> None:
    """Print the one JSON object on stdout."""
    sys.stdout.write(json.dumps(plain(content), indent=1, allow_nan=False) + "\n")


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on stdout; without a terminal it is as wide as its content."""
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
    """Show progress on stderr if that is a terminal; it begins with ``stage``."""
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
    """Warn on stderr if a result is to be used with care; its exit status is 0."""
    if decision.verdict is Verdict.CARE:
        _log.warning("warning: %s: %s", decision.verdict.value, decision.summary)


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with so many significant digits; ``-`` for None."""
    return "-" if value is None else f"{value:.{digits}g}"


def percent(value: float) -> str:
    """Format a fraction as a percentage."""
    return f"{100 * value:.2f} %"


def print_report(report: Mapping[str, Any]) -> None:
    """Print errors before and after, links, joints, rotors and the solution."""
    print_errors(report)
    _print_links(report["links"])
    _print_drives(report["joints"], report["couplings"])
    _print_terms(report.get("terms", ()))
    _print_gains(report.get("drive_gains") or ())
    _print_rotors(report["rotors"])
    if report.get("statements"):
        verdicts = Counter(parameter["verdict"] for parameter in report["statements"])
        print("Parameters: " + ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in reversed(VERDICTS)))
    base, solver = report["base_parameters"], report["solver"]
    print(
        f"{base['count']} base parameters, condition number {number(base['condition_number'])};"
        f" {solver['name']}: {solver['status']} after {solver['iterations']} iterations"
    )
    confidence, rounds = report.get("confidence"), report.get("rounds")
    if confidence:
        share, joint = percent(confidence["deviation"]), confidence["joint"]
        print(f"torque anywhere in the robot's range is known to {share} or better; least known is {joint}")
    for index, done in enumerate(rounds["done"] if rounds else (), start=1):
        gain = "" if done["gain"] is None else f", {percent(done['gain'])} better than before"
        print(f"round {index}: torque known to {percent(done['deviation'])} ({done['joint']}){gain}")
    if rounds and rounds["stopped"]:
        print(f"ended: {rounds['stopped']}")
    print_verdict(report)


def _print_links(links: Sequence[Mapping[str, Any]]) -> None:
    print_table(
        "Links",
        ("link", "mass [kg]", "given", "com [m]", "given", "smallest eigenvalue", "distance to given"),
        (
            (
                link["name"],
                f"{number(link['mass'])} ({number(link['standard_deviation'][0], 2)})",
                number(link["prior"]["mass"]),
                " ".join(number(value, 3) for value in link["com"]),
                " ".join(number(value, 3) for value in link["prior"]["com"]),
                number(link["min_pseudo_inertia_eigenvalue"], 3),
                number(link["geodesic_distance_to_prior"], 3),
            )
            for link in links
        ),
    )


def _print_drives(joints: Sequence[Mapping[str, Any]], couplings: Sequence[Mapping[str, Any]]) -> None:
    """Print drive terms of joints, and of drives that move several joints."""
    terms = list(joints[0]["standard_deviation"]) if joints else []
    if terms:
        print_table(
            "Joints (standard deviation)",
            ("joint", *(term.replace("_", " ") for term in terms)),
            (
                (
                    joint["name"],
                    *(f"{number(joint[term])} ({number(joint['standard_deviation'][term], 2)})" for term in terms),
                )
                for joint in joints
            ),
        )
    for drive in couplings:
        values = ", ".join(
            f"{term.replace('_', ' ')} {number(drive[term])} ({number(deviation, 2)})"
            for term, deviation in drive["standard_deviation"].items()
        )
        print(f"{drive['name']} (turns with {', '.join(drive['joints'])}): {values}")


def _print_rotors(rotors: Sequence[Mapping[str, Any]]) -> None:
    if not rotors:
        return
    print_table(
        "Rotors (standard deviation)",
        ("rotor", "turns with", "on", "ratio", "mass [kg]", "com [m]", "largest inertia [kg m^2]"),
        (
            (
                rotor["name"],
                rotor["joint"],
                rotor["link"],
                number(rotor["ratio"]),
                f"{number(rotor['mass'])} ({number(rotor['standard_deviation'][0], 2)})",
                " ".join(number(value, 3) for value in rotor["com"]),
                number(max(rotor["inertia"][k][k] for k in range(3)), 3),
            )
            for rotor in rotors
        ),
    )


def _print_terms(terms: Sequence[Mapping[str, Any]]) -> None:
    """Print user terms, with the evidence of held-out blocks and of the bodies."""
    rows = []
    for term in terms:
        values = zip(term["expressions"], term["values"], term["standard_deviation"], strict=False)
        shown = ", ".join(f"{number(value)} ({number(deviation, 2)}) {text}" for text, value, deviation in values)
        gain = "" if term["held_out_gain"] is None else percent(term["held_out_gain"])
        odds = "" if term.get("body_log_odds") is None else number(term["body_log_odds"], 2)
        rows.append((term["name"], term["joint"], shown or "left out", gain, odds))
    if rows:
        held_out = "less squared error in held-out blocks"
        header = ("term", "joint", "torque (standard deviation)", held_out, "log-odds by the bodies")
        print_table("Terms", header, rows)


def _print_gains(gains: Sequence[Mapping[str, Any]]) -> None:
    """Print gains of drives, and the option that applies them to later recordings."""
    if not gains:
        return
    rows = [
        (
            gain["joint"],
            number(gain["gain"]),
            f"{number(gain['interval'][0])} to {number(gain['interval'][1])}",
            "identified" if gain["identified"] else "not shown by the loads",
        )
        for gain in gains
    ]
    print_table("Gains of drives", ("joint", "gain", "95 % interval", ""), rows)
    scales = ", ".join(f"{gain['joint']}: {gain['effort_scale']:.6g}" for gain in gains)
    print(f"for later recordings: robot.effort_scale: {{{scales}}}")


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
            print(f"- {where}{reason['evidence']} ({cause})\n    {reason['remedy']}")
    print(report["message"])


def print_errors(report: Mapping[str, Any]) -> None:
    """Print torque errors of the given and the calibrated parameters, over all joints and per joint."""
    section = next((name for name in _ERROR_SECTIONS if name in report), "train")
    prior, errors = report["prior"][section], report[section]
    rows = [
        (name, number(torque), number(before), number(after))
        for name, torque, before, after in zip(
            report.get("channels", report["joint_names"]),
            errors["rms_torque"],
            prior["rms_error"],
            errors["rms_error"],
            strict=True,
        )
    ]
    rows.append(("all, relative", "", percent(prior["relative_error"]), percent(errors["relative_error"])))
    quantity, unit = errors.get("quantity", "torque"), errors.get("unit", "N m or N")  # not in older reports
    header = ("channel", quantity, "URDF as given", "calibrated")
    print_table(f"{quantity.capitalize()} error on {_ERROR_SECTIONS[section]} (RMS, {unit})", header, rows)


def print_comparison(content: Mapping[str, Any]) -> None:
    """Print verdicts and errors, torque, links, and the parameters that differ most."""
    results = content["results"]
    for name, result in zip("AB", results, strict=True):
        error = percent(result["relative_error"])
        on = ", ".join(result["recordings"])
        print(f"{name}: {result['directory']}: {result['verdict']}, relative error {error} on {on}")
    if not content["same_data"]:
        print("their errors are on different data, and cannot be compared with each other")
    if content["torque_difference"]:
        rows = [(joint, percent(share)) for joint, share in content["torque_difference"].items()]
        print_table("Difference of predicted torque over the robot's range", ("joint", "of torque"), rows)
    print_table(
        "Links",
        ("link", "mass A [kg]", "mass B [kg]", "com A [m]", "com B [m]", "geodesic distance"),
        (
            (
                link["name"],
                *(number(mass) for mass in link["mass"]),
                *(" ".join(number(value, 3) for value in com) for com in link["com"]),
                number(link["distance"], 3),
            )
            for link in content["links"]
        ),
    )
    print_table(
        "Parameters that differ most",
        ("parameter", "A", "B", "standard deviations"),
        (
            (change["name"], number(change["first"]), number(change["second"]), number(change["deviations"], 2))
            for change in content["parameters"][:_COMPARED_LINES]
        ),
    )
