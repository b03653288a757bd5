"""How a command ends on SIGINT and SIGTERM: incomplete files are removed, or what has been found so far is used."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 130, 143


class StoppedError(BaseException):
    """Message and exit status of a run that is stopped; no handler of ordinary errors catches it."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into an exception, so that incomplete files are removed before the exit.

    KeyboardInterrupt would do for SIGINT, but Python may remember one that was caught and end by the signal itself.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise StoppedError(*(("interrupted", INTERRUPTED) if number == signal.SIGINT else ("terminated", TERMINATED)))

    with _handled(stop, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def ends_early() -> Iterator[None]:
    """Turn SIGINT into KeyboardInterrupt meanwhile, for a search that answers it with the best that it has found.

    Raises
    ------
    StoppedError
        Nothing had been found yet.
    """
    with _handled(signal.default_int_handler, signal.SIGINT):
        try:
            yield
        except KeyboardInterrupt:
            raise StoppedError("interrupted", INTERRUPTED) from None


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], Any], *numbers: signal.Signals) -> Iterator[None]:
    """Have signals handled so meanwhile, where this is the main thread; no other may."""
    before = {}
    with contextlib.suppress(ValueError):
        before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)
