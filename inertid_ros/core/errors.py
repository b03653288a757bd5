"""Errors that a user can act on.

Every message is one line with what was found, where, and what to do about it. The command line prints it
without a traceback and exits with status 2; nodes log it and answer the request with it.
"""

import re

_LONGEST = 4000  # characters of a message
_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]+")


def one_line(text: str) -> str:
    """A text for a log or a terminal, whatever names and values out of files it quotes.

    Line breaks and tabs become blanks, other control characters are escaped, and a long text loses its middle.
    """
    return _shortened(_UNPRINTABLE.sub(_printable, _shortened(text)))


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} ... {text[-half:]}"


def _printable(found: re.Match[str]) -> str:
    part = found[0]
    return " " if part.isspace() else part.encode("unicode_escape").decode()


class InertidError(Exception):
    """Base of every error that this package raises on purpose; its message is made one line."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(str(message)))


class FormatError(ValueError):
    """Content that is not of its format; who reads a file adds its name and the remedy."""


class ModelError(InertidError):
    """The robot description cannot be used: not XML, absurd inertia, unsupported or unknown joint."""


class RecordingError(InertidError):
    """A recording cannot be used: missing field or joint, non-finite values, broken file, time going backwards."""


class ExcitationError(InertidError):
    """A motion cannot be planned or must not be executed: limits, start pose, missing joint, not at rest."""


class IdentificationError(InertidError):
    """The parameters cannot be solved for, or the solver found no optimum."""


class ConvergenceError(IdentificationError):
    """A solver ends without an optimum, though nothing contradicts."""


class OutputError(InertidError):
    """An output cannot be written at its path, or would replace what this package did not write."""


class ConfigurationError(InertidError):
    """A configuration names an unknown key or holds an impossible value."""
