"""Errors that a user can act on.

Every message is one line with what was found, where, and what to do about it. The command line prints it
without a traceback and exits with status 2; nodes log it and answer the request with it.
"""


class InertidError(Exception):
    """Base of every error that this package raises on purpose."""


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



class ConfigurationError(InertidError):
    """A configuration names an unknown key or holds an impossible value."""
