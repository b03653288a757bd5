"""What holds for every reader of content from outside, and the check of it for one input."""

import contextlib
import gc
import resource
import signal
import time
import unicodedata
from collections.abc import Callable, Iterator

from inertid_ros.core.errors import InertidError

SECONDS = 2.0  # of the processor; other processes do not count
_WAIT_S = 120.0  # for what waits in place of computing; a busy machine may run nothing for half a minute
_BREAKING = ("Cc", "Cs", "Zl", "Zp")  # categories of control characters, halves of characters, ends of lines
MEMORY = 512 * 2**20  # bytes beyond what the process has before


class BrokenBoundError(AssertionError):
    """A reader raised something else than an error of the package, or one of several lines, or took too long."""


class LateError(BaseException):
    """Time is up; no handler of the reader catches it."""


def check(read: Callable[[bytes], object], content: bytes) -> bool:
    """Whether a reader accepts the content; it returns or raises an InertidError of one line, within the bounds.

    Raises
    ------
    BrokenBoundError
        It does neither.
    """
    started = time.process_time()
    try:
        with time_limit(SECONDS), memory_limit():
            read(content)
        accepted = True
    except InertidError as error:
        check_message(str(error))
        accepted = False
    except LateError:
        raise BrokenBoundError(f"takes longer than {SECONDS:g} s") from None
    except MemoryError:
        gc.collect()
        raise BrokenBoundError(f"takes more than {MEMORY // 2**20} MiB") from None
    taken = time.process_time() - started
    if taken > SECONDS:
        raise BrokenBoundError(f"takes {taken:.1f} s")
    return accepted


def check_message(text: str) -> None:
    """Raise BrokenBoundError unless a message is one printable line."""
    if not text or len(text) > 10_000 or any(unicodedata.category(each) in _BREAKING for each in text):
        raise BrokenBoundError(f"message is not one line: {text[:300]!r}")


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise LateError after this time of the processor, or after a longer wait."""

    def end(_number: int, _frame: object) -> None:
        raise LateError

    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, _WAIT_S))
    before = [(number, signal.signal(number, end)) for _, number, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, _, _ in timers:
            signal.setitimer(timer, 0)
        for number, handler in before:
            signal.signal(number, handler)


@contextlib.contextmanager
def memory_limit() -> Iterator[None]:
    """Address space that the process has now, and the bound."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
