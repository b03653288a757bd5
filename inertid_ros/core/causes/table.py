"""All causes that findings may have, by symptom; the remedies of messages and of docs/guides/bad_result.md."""

from collections.abc import Mapping

from . import of_recordings, of_results
from .cause import Cause

SYMPTOMS: Mapping[str, Mapping[str, Cause]] = {**of_recordings.SYMPTOMS, **of_results.SYMPTOMS}
"""Symptom to its causes, by name."""

CAUSES: Mapping[str, Cause] = {name: cause for causes in SYMPTOMS.values() for name, cause in causes.items()}


def remedy_for(cause: str, case: str = "", **values: object) -> str:
    """What to do about a cause, with what was found filled in.

    Parameters
    ----------
    cause : str
        Key of :data:`CAUSES`.
    case : str
        One of its cases.
    **values : object
        For the words in braces.

    Raises
    ------
    KeyError
        No such cause or case, or a word without a value.
    """
    return CAUSES[cause].remedies[case].format(**values)
