"""Errors that a user can act on, and the log of notices on recordings.

Every message is one line: the problem, its place, and the remedy. The command line prints it
without a traceback and exits with status 2; nodes log it and answer the request with it.
"""

import importlib
import logging
import re
import resource
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import ModuleType
from typing import TypeVar

_log = logging.getLogger("inertid_ros")
_MAX_MESSAGE_LENGTH = 4000  # characters
_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]+")
_Item = TypeVar("_Item")
_silent = ContextVar("silent", default=False)  # per thread


def one_line(text: str) -> str:
    """Text for a log or a terminal, safe for quoted names and values from files.

    Line breaks and tabs become blanks, other control characters are escaped, and a long text loses its middle.
    """
    text = _UNPRINTABLE.sub(lambda match: " " if match[0].isspace() else _escaped(match[0]), _shortened(text))
    return _shortened(text)


def printable(text: str) -> str:
    """Text of any length for a terminal: control characters except line breaks and tabs are escaped."""
    return _UNPRINTABLE.sub(lambda match: "".join(c if c in "\n\t" else _escaped(c) for c in match[0]), text)


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode()


def _shortened(text: str) -> str:
    if len(text) <= _MAX_MESSAGE_LENGTH:
        return text
    half = _MAX_MESSAGE_LENGTH // 2
    return f"{text[:half]} ... {text[-half:]}"


def first_few(names: Sequence[str], most: int = 4) -> str:
    """List the first ``most`` names, and count the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")



@lru_cache(maxsize=256)
def log_once(message: str, level: int = logging.WARNING) -> None:
    """Log a message about a robot once per process, even if the robot is loaded or planned for again."""
    _log.log(level, "%s", message)


def path_error(error: OSError) -> str:
    """One line for a path that cannot be used, with the remedy."""
    return one_line(f"{error.filename or 'input or output'}: {error.strerror or error}; correct the path")


class InertidError(Exception):
    """Base class of all errors that this package raises on purpose; their messages have one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(str(message)))


def optional_module(name: str, error: InertidError) -> ModuleType:
    """Import a module of an optional package; raise ``error`` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise error from None


def check_address_space(whose: str, least_mib: int) -> None:
    """Raise InertidError if the address space is below ``least_mib`` MiB; ``whose`` names the program in the message.

    Without enough memory some libraries block for ever and ignore signals: OpenBLAS waits for its buffers, and Fast DDS
    waits for threads that it could not start.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < least_mib * 2**20:
        raise InertidError(
            f"the address space is limited to {limit // 2**20} MiB, and {whose} needs {least_mib}; raise ulimit -v")


class FormatError(ValueError):
    """Content that does not follow its format; the caller adds the name of the file and the remedy."""


class ModelError(InertidError):
    """The robot description cannot be used: not XML, absurd inertia, unsupported or unknown joint."""


class RecordingError(InertidError):
    """A recording cannot be used: missing field or joint, non-finite values, broken file, time going backwards."""


class ExcitationError(InertidError):
    """A motion cannot be planned or must not be executed: limits, start pose, missing joint, not at rest."""


class IdentificationError(InertidError):
    """The parameters cannot be solved for, or the solver found no optimum."""


class ConvergenceError(IdentificationError):
    """A solver ends without an optimum, but not because of contradictory constraints."""


class OutputError(InertidError):
    """An output cannot be written at its path, or would replace files that this package did not write."""


class ConfigurationError(InertidError):
    """A configuration names an unknown key or holds an impossible value."""


class NoticeLogger(logging.LoggerAdapter):
    """Logger of notices on recordings, silent within :func:`without_notices`."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802
        return not _silent.get() and super().isEnabledFor(level)


@contextmanager
def without_notices() -> Iterator[None]:
    """Silence notices in this thread, for recordings whose notices are logged already."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def read_silently(items: Iterable[_Item]) -> Iterator[_Item]:
    """Iterate over items; notices are silent while an item is read, but not while the caller uses it."""
    iterator, end = iter(items), object()
    while True:
        with without_notices():
            item = next(iterator, end)
        if item is end:
            return
        yield item  # type: ignore[misc]
