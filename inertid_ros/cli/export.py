"""``inertid export``: write a result for a simulator, as a table, or as samples for domain randomisation."""

import argparse
from collections.abc import Iterable
from typing import Any

import numpy as np

from inertid_ros.core.errors import ConfigurationError
from inertid_ros.core.formats import csv_text
from inertid_ros.core.inertial_parameters import NAMES
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.identification.assessment.posterior import sample_parameters
from inertid_ros.report.results import REPORT, Result, as_written
from inertid_ros.simulation.export import Export, export

from .printing import deliver, percent, print_table
from .settings import inputs, rejection

_HEADER = ("without counterpart", "N m or N", "worst joint", "of its torque")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.onto and options.to != "mjcf":
        raise ConfigurationError("--onto works only with --to mjcf; leave --onto out, or set --to mjcf")
    check_file(options.output, options.force, inputs(options))
    result = Result.load(options.result)
    exported, content = None, {"output": options.output, "verdict": result.report.get("verdict")}
    if options.samples:
        posterior = result.model, result.parameters, result.covariance
        samples = sample_parameters(*posterior, options.samples, np.random.default_rng(0))
        text = csv_text([result.model.layout.names, *samples.tolist()])
    elif options.to == "csv":
        text = csv_text(_table(result))
    else:
        exported = export(result, options.to, options.onto)
        text = exported.text
        content |= {"joint_names": result.model.joint_names, "torque": exported.torque, "error": exported.error,
            "lost": exported.lost}
    write_file(options.output, text.encode(), options.force)
    return deliver(options, content, lambda: _show(options.to, result, exported), options.output, rejection(result))


def _show(name: str, result: Result, exported: Export | None) -> None:
    if exported is None:
        return
    scale, rows = np.maximum(exported.torque, 1e-3 * exported.torque.max()), []
    for cause, values in {**exported.lost, "all together": exported.error}.items():
        worst = int(np.argmax(values / scale))
        rows.append((cause, values[worst], result.model.joint_names[worst], percent(values[worst] / scale[worst])))
    print_table(f"Torque that {name} lacks, over random states (RMS)", _HEADER, rows)


def _table(result: Result) -> Iterable[Iterable[Any]]:
    """Rows of parameters with 95 % intervals; gravity compensation and user terms have no interval."""
    intervals, deviation = dict[str, Any](), np.sqrt(np.maximum(np.diagonal(result.covariance), 0.0))
    with as_written(result.directory / REPORT):
        for body in (*result.report["links"], *result.report["rotors"]):
            intervals |= {f"{body['name']}.{name}": ends for name, ends in zip(NAMES, body["interval"], strict=True)}
        for drive in (*result.report["joints"], *result.report["couplings"]):
            intervals |= {f"{drive['name']}.{term}": ends for term, ends in drive["interval"].items()}
    yield "parameter", "value", "standard_deviation", "lower", "upper", "prior"
    columns = result.model.layout.names, result.parameters.tolist(), deviation.tolist(), result.prior.tolist()
    for name, value, spread, prior in zip(*columns, strict=True):
        yield name, value, spread, *(intervals.get(name) or (None, None)), prior
