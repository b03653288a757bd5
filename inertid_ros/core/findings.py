"""Findings: what a check saw in a recording or in a result, how grave it is, its likely cause and the remedy."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from .causes import table

CAUSES = {name: cause.meaning for name, cause in table.CAUSES.items()}
"""Cause to one line about it; the only causes that findings may have."""


class Severity(IntEnum):
    """What follows from a finding, in ascending order."""

    NOTICE = 0
    """It is reported, nothing else."""
    CARE = 1
    """The result is to be used with care."""
    REJECT = 2
    """The result is not to be used."""
    REFUSE = 3
    """Nothing is fitted to the recording."""


@dataclass(frozen=True)
class Finding:
    """One finding of one check.

    Attributes
    ----------
    cause : str
        The likely cause, a key of :data:`CAUSES`.
    severity : Severity
        What follows from it.
    evidence : str
        What was found, where and by how much, as a clause that begins with its subject.
    remedy : str
        What to do, as an imperative, by :func:`~.causes.table.remedy_for`; names the option that cures it where there
        is one.
    subjects : tuple of str
        Joints, links or contacts that it is about; empty where it is about all.
    recording : str
        Name of the recording; empty where it is about a result.

    Raises
    ------
    ValueError
        The cause is not in :data:`CAUSES`.
    """

    cause: str
    severity: Severity
    evidence: str
    remedy: str
    subjects: tuple[str, ...] = ()
    recording: str = ""

    def __post_init__(self) -> None:
        if self.cause not in CAUSES:
            raise ValueError(f"no cause '{self.cause}'")

    def content(self) -> dict[str, Any]:
        """Return it as plain data; ``message`` is the one-line message."""
        plain = {**asdict(self), "severity": self.severity.name.lower(), "subjects": list(self.subjects)}
        return {**plain, "message": str(self)}

    def __str__(self) -> str:
        where = f"{self.recording}: " if self.recording else ""
        return f"{where}{self.evidence} ({CAUSES[self.cause]}); {self.remedy}"


def subjects_of(findings: Iterable[Finding], cause: str) -> frozenset[str]:
    """Return the subjects of all findings of a cause."""
    return frozenset(subject for finding in findings if finding.cause == cause for subject in finding.subjects)
