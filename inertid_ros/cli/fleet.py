"""``inertid fleet``: calibrate the robots of a catalogue; write tables and an overview page."""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from inertid_ros.cli.printing import Columns, deliver, number, print_records, progress_bar
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.fleet.catalogue import optional, read_catalogue
from inertid_ros.fleet.cluster import cluster
from inertid_ros.fleet.jobs import fleet_configuration
from inertid_ros.fleet.results import FLEET_PAGE, TABLES, fleet_content, fleet_tables, render_fleet_page, write_tables
from inertid_ros.fleet.run import run_fleet
from inertid_ros.report.report_content import json_text, plain

from .settings import configuration, inputs
from .stopping import BAD_INPUT, DONE, REJECTED

_JSON = "fleet.json"
_MAX_LINES = 20  # per table

_ROBOT_COLUMNS: Columns = (("robot", "serial"), ("parameter", "parameter"))
_OUTLYING_COLUMNS: Columns = (*_ROBOT_COLUMNS, ("change", lambda row: number(row["change"], 3)),
    ("standard deviation", lambda row: number(row["deviation"], 2)))
_CHANGE_COLUMNS: Columns = (*_ROBOT_COLUMNS, ("between", lambda row: f"{row['after'][:10]} to {row['before'][:10]}"),
    ("change", lambda row: number(row["change"], 3)))
_DRIFT_COLUMNS: Columns = (*_ROBOT_COLUMNS, ("per year", lambda row: number(row["trend"], 3)),
    ("95 % interval", lambda row: f"{row['trend_low']:.3g} to {row['trend_high']:.3g}"))

_log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> int:
    """Run the command; exit status 2 if an input could not be used, 3 if a result must not be used."""
    for package in ("dask", "distributed", "fsspec", "pyarrow"):
        optional(package)  # a missing package raises here, before any work
    config = fleet_configuration(configuration(options, Configuration))
    catalogue = read_catalogue(options.catalogue)
    directory = Path(options.output)
    for name in (_JSON, FLEET_PAGE, *(f"{table}.parquet" for table in TABLES)):
        check_file(directory / name, True, inputs(options))
    with cluster(options.scheduler, options.workers) as dask, progress_bar(options) as progress:
        if dask.dashboard:
            _log.info("dashboard: %s", dask.dashboard)
        outcome = run_fleet(catalogue, config, directory, dask, progress)
        dashboard = dask.dashboard
    tables = fleet_tables(outcome)
    content = plain(fleet_content(outcome, tables, dashboard))
    write_tables(tables, directory)
    write_file(directory / _JSON, json_text(content).encode(), force=True)
    write_file(directory / FLEET_PAGE, render_fleet_page(content).encode(), force=True)
    deliver(options, {**content, "directory": str(directory)}, lambda: _print(content), directory)
    for problem in outcome.problems:
        sys.stderr.write(f"inertid: {problem}\n")
    return BAD_INPUT if outcome.failed else REJECTED if outcome.rejected else DONE


def _print(content: dict[str, Any]) -> None:
    print(f"{content['robots_estimated']} of {content['robots']} robots estimated,"
        f" {content['bags_used']} of {content['bags']} bags used, {content['bags_computed']} computed in this run")
    changed = [{**row, **change} for row in content["changed"] for change in row["changes"]]
    for title, columns, records in (("Outlying robots", _OUTLYING_COLUMNS, content["outlying"]),
            ("Changes", _CHANGE_COLUMNS, changed), ("Drift", _DRIFT_COLUMNS, content["drifting"])):
        if records:
            more = f", the first {_MAX_LINES} of {len(records)}" if len(records) > _MAX_LINES else ""
            print_records(f"{title}{more}", columns, records[:_MAX_LINES])
