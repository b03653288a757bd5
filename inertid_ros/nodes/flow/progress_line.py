"""Progress of long steps for the user: one line that changes on a terminal, a few lines in a log."""

import shutil
import sys
from typing import TextIO

_WIDTH = 30
_LOG_STEP = 0.25


class ProgressLine:
    """Writes to ``stream``; on a terminal the last line is rewritten as the fraction grows."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._terminal = self._stream.isatty()
        self._open = False
        self._label, self._shown = "", -1.0
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
        if self._terminal:
            line = f"{label:<28.28s} [{'#' * round(_WIDTH * done):<{_WIDTH}}] {percent:<5s}"
            room = max(shutil.get_terminal_size().columns - len(line) - 2, 0)
            beside = f" {note:.{room}s}"
            self._stream.write(f"\r{line}{beside:<{self._note}}")
            self._note = len(beside)
            self._stream.flush()
            self._open = True
        elif label != self._label or done >= self._shown + _LOG_STEP:
            text = f"{label}: {percent.strip()}" if percent else label
            print(f"{text}, {note}" if note else text, file=self._stream, flush=True)
            self._shown = done
        self._label = label

    def print(self, message: str) -> None:
        """Print a line that stays."""
        self.end()
        print(message, file=self._stream, flush=True)

    def end(self) -> None:
        """End the changing line."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
        self._open, self._label, self._shown, self._note = False, "", -1.0, 0
