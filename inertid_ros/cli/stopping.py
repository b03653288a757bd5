"""Exit statuses of commands, and handling of SIGINT and SIGTERM."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

DONE, BROKEN, BAD_INPUT, REJECTED = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143


class StoppedError(BaseException):
    """Message and exit status of a stopped run; handlers of ordinary errors do not catch it."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into an exception, so that incomplete files are removed before the exit.

    SIGINT does not raise KeyboardInterrupt, as Python may remember that it was caught, and exit by the signal itself.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise StoppedError(*(("interrupted", INTERRUPTED) if number == signal.SIGINT else ("terminated", TERMINATED)))

    with _handled(stop, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def ends_early() -> Iterator[None]:
    """Turn SIGINT into KeyboardInterrupt, for a search that then returns its best solution so far.

    Raises StoppedError: there is no solution yet.
    """
    with _handled(signal.default_int_handler, signal.SIGINT):
        try:
            yield
        except KeyboardInterrupt:
            raise StoppedError("interrupted", INTERRUPTED) from None


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], Any], *numbers: signal.Signals) -> Iterator[None]:
    """Install a signal handler in the main thread; other threads may not install handlers."""
    before = {}
    with contextlib.suppress(ValueError):
        before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
