"""The progress of a step: a fraction only where one is known."""

import io

from inertid_ros.nodes.flow.progress_line import ProgressLine


def test_log_has_few_lines_and_no_percentage_of_what_has_none():
    stream = io.StringIO()
    line = ProgressLine(stream)
    line.show("training: checking", None)
    line.show("training: checking", None)
    for fraction in (0.0, 0.1, 0.26, 0.3, 1.0):
        line.show("training: planning", fraction)
    line.show("training: checking", None)
    assert stream.getvalue().splitlines() == [
        "training: checking",
        "training: planning: 0 %",
        "training: planning: 26 %",
        "training: planning: 100 %",
        "training: checking",
    ]


def test_terminal_shows_no_bar_of_what_has_no_fraction():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    line = ProgressLine(stream)
    line.show("training: planning", 1.0)
    line.show("training: checking", None)
    planning, checking = stream.getvalue().split("\r")[1:]
    assert planning.count("#") == 30 and planning.endswith("100 %")
    assert "#" not in checking and "%" not in checking and len(checking) == len(planning)
