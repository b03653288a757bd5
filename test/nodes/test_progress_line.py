"""The progress of a step: a fraction only where one is known."""

import io

from inertid_ros.nodes.flow_client import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_log_has_few_lines_and_no_percentage_of_what_has_none(monkeypatch):
    said: list[str] = []
    line = ProgressLine(said.append, io.StringIO())
    for second in range(121):
        monkeypatch.setattr("time.monotonic", lambda second=second: float(second))
        if 1 <= second < 80:
            line.show("training: planning", second / 80)
        elif second > 80:
            line.show("training: moving", (second - 80) / 40)
        else:
            line.show("training: checking", None)
    assert said == [
        "training: checking",
        "training: planning: 25 %",
        "training: planning: 50 %",
        "training: planning: 75 %",
        "training: checking",
        "training: moving: 50 %",
        "training: moving: 100 %",
    ]


def test_a_log_shows_no_progress_right_after_another_line(monkeypatch):
    said: list[str] = []
    line = ProgressLine(said.append, io.StringIO())
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    line.print("excitation is armed")
    monkeypatch.setattr("time.monotonic", lambda: 119.0)
    line.show("training: planning", 0.0)
    assert said == ["excitation is armed"]


def test_notes_are_in_the_few_lines_of_a_log(monkeypatch):
    said: list[str] = []
    line = ProgressLine(said.append, io.StringIO())
    for second, fraction, note in ((0, 0.0, ""), (20, 0.1, "known to 40 %"), (40, 0.3, "known to 20 %")):
        monkeypatch.setattr("time.monotonic", lambda second=second: float(second))
        line.show("training: moving", fraction, note)
    moving = "training: moving:"
    assert said == [f"{moving} 0 %", f"{moving} 10 %, known to 40 %", f"{moving} 30 %, known to 20 %"]


def test_a_note_keeps_to_the_line_of_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    stream = Terminal()
    line = ProgressLine(lambda line: None, stream)
    line.show("training: moving", 0.1, "known to 40 %; " + 10 * "still needs motion, ")
    line.show("training: moving", 0.2, "known")
    line.show("training: moving", 0.3)
    longest, short, none = stream.getvalue().split("\r")[1:]
    assert len(longest) < 90 and "known to 40 %" in longest
    assert len(short) == len(longest) and short.rstrip().endswith("known")  # what stood there is gone
    assert none.rstrip().endswith("%") and len(none) >= len(short.rstrip())


def test_terminal_shows_no_bar_of_what_has_no_fraction():
    stream = Terminal()
    line = ProgressLine(lambda line: None, stream)
    line.show("training: planning", 1.0)
    line.show("training: checking", None)
    planning, checking = stream.getvalue().split("\r")[1:]
    assert planning.count("#") == 30 and planning.rstrip().endswith("100 %")
    assert "#" not in checking and "%" not in checking and len(checking) == len(planning)
