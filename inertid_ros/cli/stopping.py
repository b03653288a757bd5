"""How a command ends on SIGINT and SIGTERM: incomplete files are removed, or what has been found so far is used."""

import contextlib
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

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

    before = {}
    with contextlib.suppress(ValueError):  # only the main thread may
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ends_early() -> Iterator[None]:
    """Turn SIGINT into KeyboardInterrupt meanwhile, for a search that answers it with the best that it has found.

    Raises
    ------
    StoppedError
        Nothing had been found yet.
    """
    before = None
    with contextlib.suppress(ValueError):  # only the main thread may
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError("interrupted", INTERRUPTED) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
