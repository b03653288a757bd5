"""One cause of a finding: what it means, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """A cause that findings may have.

    Attributes
    ----------
    meaning : str
        One clause, without punctuation at its end.
    remedies : Mapping[str, str]
        Case to what is to be done in it, as an imperative; words in braces are filled in by the message. The case is
        empty where there is one alone.
    """

    meaning: str
    remedies: Mapping[str, str]


def cause(meaning: str, remedy: str = "", **cases: str) -> Cause:
    """A cause with one remedy, or one for every case.

    Parameters
    ----------
    meaning : str
    remedy : str, optional
        Of all messages, or of those without a case.
    **cases : str
        Name of a case to its remedy.
    """
    return Cause(meaning, {**({"": remedy} if remedy else {}), **cases})
