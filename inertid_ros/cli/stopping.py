"""Exit statuses of commands, and handling of SIGINT and SIGTERM."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

DONE, BROKEN, BAD_INPUT, REJECTED = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143


class StoppedError(BaseException):
    """A signal stopped the run. Arguments: message, exit status. Handlers of ``Exception`` do not catch this error."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into StoppedError, so that incomplete files are removed before the exit.

    SIGINT does not raise KeyboardInterrupt: even if it is caught, Python may exit by the signal, not with the status.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise StoppedError(*(("interrupted", INTERRUPTED) if number == signal.SIGINT else ("terminated", TERMINATED)))

    with _handled(stop, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def ends_early() -> Iterator[None]:
    """Turn SIGINT into KeyboardInterrupt, for a search that catches it and returns its best solution so far.

    Raises StoppedError if the search has no solution yet.
    """
    with _handled(signal.default_int_handler, signal.SIGINT):
        try:
            yield
        except KeyboardInterrupt:
            raise StoppedError("interrupted", INTERRUPTED) from None


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], Any], *numbers: signal.Signals) -> Iterator[None]:
    """Install a signal handler until the context is left; only in the main thread, as Python forbids it in others."""
    before = {}
    with suppress(ValueError):
        before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
