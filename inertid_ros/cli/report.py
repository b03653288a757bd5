"""``inertid report``: print a result directory as tables, JSON or one HTML page, or compare two results."""

import argparse

from inertid_ros.cli.printing import deliver, print_comparison, print_report
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
    results = [Result.load(directory) for directory in options.compare or [options.directory]]
    *_, result = results
    with as_written(result.directory / REPORT):
        content = comparison_content(*results) if options.compare else result.report
        if options.html:
            page = render_comparison(content) if options.compare else result.page
            write_file(options.html, page.encode(), options.force)
        show = print_comparison if options.compare else print_report
        return deliver(options, content, lambda: show(content), options.html)
