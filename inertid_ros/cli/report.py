"""``inertid report``: a result directory as tables, JSON or one HTML page."""

import argparse
from pathlib import Path

from inertid_ros.report.results import REPORT, as_written, read_result

from .printing.output import print_json, write_text
from .printing.report_tables import print_report


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    result = read_result(options.directory)
    if options.html:
        write_text(Path(options.html), result.page, options.force)
    if options.json:
        print_json(result.report)
    else:
        with as_written(result.directory / REPORT):
            print_report(result.report)
        if options.html:
            print(f"written to {options.html}")
    return 0
