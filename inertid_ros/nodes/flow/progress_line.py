"""Progress of long steps for the user: one line that changes on a terminal, a few lines in a log."""

import math
import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

_WIDTH = 30
_LOG_STEP = 0.25
_LOG_S = 20.0  # from one line of a step to the next
_STAGE_S = 5.0  # from one step's last line to the next step's first


class ProgressLine:
    """Progress on a terminal, whose last line is rewritten as the fraction grows, or else in a log.

    Parameters
    ----------
    log : callable
        Takes a line where ``stream`` is no terminal.
    stream : TextIO, optional
        Default the standard output.
    """

    def __init__(self, log: Callable[[str], object], stream: TextIO | None = None) -> None:
        self._log, self._stream = log, stream or sys.stdout
        self.on_terminal = self._stream.isatty()
        self._open = False
        self._label, self._shown, self._logged_at = "", -1.0, -math.inf  # of the last line of the log
        self._note = 0  # length of the note that the terminal shows

    def show(self, label: str, fraction: float | None, note: str = "") -> None:
        """Show the label of a step, the fraction of it that is done, 0 to 1, and a note beside it.

        Parameters
        ----------
        fraction : float or None
            None where it is not known.
        note : str
            Shortened to what is left of the terminal's line.
        """
        done = 0.0 if fraction is None else min(max(fraction, 0.0), 1.0)
        percent = "" if fraction is None else f"{100 * done:3.0f} %"
        if self.on_terminal:
            line = f"{label:<28.28s} [{'#' * round(_WIDTH * done):<{_WIDTH}}] {percent:<5s}"
            room = max(shutil.get_terminal_size().columns - len(line) - 2, 0)
            beside = f" {note:.{room}s}"
            self._stream.write(f"\r{line}{beside:<{self._note}}")
            self._note = len(beside)
            self._stream.flush()
            self._open = True
        elif label != self._label or done >= self._shown + _LOG_STEP:
            now = time.monotonic()
            if now < self._logged_at + (_LOG_S if label == self._label else _STAGE_S):
                return
            text = f"{label}: {percent.strip()}" if percent else label
            self._log(f"{text}, {note}" if note else text)
            self._label, self._shown, self._logged_at = label, done, now

    def print(self, message: str) -> None:
        """Print a line that stays."""
        self.end()
        if self.on_terminal:
            print(message, file=self._stream, flush=True)
        else:
            self._log(message)

    def end(self) -> None:
        """End the changing line."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
        self._open, self._label, self._shown, self._note = False, "", -1.0, 0
        self._logged_at = -math.inf
