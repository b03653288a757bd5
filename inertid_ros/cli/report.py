"""``inertid report``: a result directory as tables, JSON or one HTML page; or two of them compared."""

import argparse

from inertid_ros.cli.printing import print_comparison, print_json, print_report
from inertid_ros.core.errors import InertidError
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.report.results import REPORT, Result, as_written, comparison_content, render_comparison

from .settings import inputs


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if bool(options.directory) == bool(options.compare):
        raise InertidError("inertid report: name one result directory, or two with --compare")
    if options.html:
        check_file(options.html, options.force, inputs(options))
    return _compare(options) if options.compare else _show(options)


def _show(options: argparse.Namespace) -> int:
    result = Result.load(options.directory)
    if options.html:
        with as_written(result.directory / REPORT):
            page = result.page
        write_file(options.html, page.encode(), options.force)
    if options.json:
        print_json(result.report)
    else:
        with as_written(result.directory / REPORT):
            print_report(result.report)
        if options.html:
            print(f"written to {options.html}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    first, second = map(Result.load, options.compare)
    with as_written(second.directory / REPORT):
        content = comparison_content(first, second)
    if options.html:
        write_file(options.html, render_comparison(content).encode(), options.force)
    if options.json:
        print_json(content)
    else:
        print_comparison(content)
        if options.html:
            print(f"written to {options.html}")
    return 0
