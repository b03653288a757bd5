"""Findings of checks. Their causes and remedies for messages and documentation are in causes.yaml."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path

from .formats import read_yaml


@dataclass(frozen=True)
class Cause:
    """Likely cause of findings.

    Attributes
    ----------
    meaning : one clause, without punctuation at its end.
    remedies : Mapping[str, str]
        Case, mapped to an imperative; messages fill in the words in braces. The empty case has the default remedy.
    command : name of the next command in ``identification/assessment/gate.py``.
    """

    meaning: str
    remedies: Mapping[str, str]
    command: str


def _cause(meaning: str, remedy: str = "", command: str = "look", **cases: str) -> Cause:
    return Cause(meaning, {**({"": remedy} if remedy else {}), **cases}, command)


SYMPTOMS: Mapping[str, Mapping[str, Cause]] = {
    symptom: {name: _cause(**entry) for name, entry in causes.items()} for symptom, causes
    in read_yaml(Path(__file__).with_name("causes.yaml").read_text(encoding="utf-8")).items()}
"""Causes of each symptom, by name."""

CAUSES: Mapping[str, Cause] = {name: cause for causes in SYMPTOMS.values() for name, cause in causes.items()}


def causes_of_symptom(cause: str) -> frozenset[str]:
    """Names of all causes that share the symptom of ``cause``, itself included."""
    return next(frozenset(causes) for causes in SYMPTOMS.values() if cause in causes)


def remedy_for(cause: str, case: str = "", **values: object) -> str:
    """Remedy of a cause, with ``values`` in place of the words in braces.

    Raises
    ------
    KeyError
        The cause or the case is unknown, or a word in braces lacks a value.
    """
    return CAUSES[cause].remedies[case].format(**values)


class Severity(IntEnum):
    """Consequence of a finding, in ascending order."""

    NOTICE = 0  # it is only reported
    CARE = 1  # use the result with care
    REJECT = 2  # the result must not be used
    REFUSE = 3  # the recording is not fitted


@dataclass(frozen=True)
class Finding:
    """Problem that a check found.

    Attributes
    ----------
    cause : likely cause, a key of :data:`CAUSES`; ValueError for other keys.
    severity : Severity
    evidence : observation, its place and its size, as a clause that begins with its subject.
    remedy : imperative from :func:`remedy_for`, with the option to change, if any.
    subjects : joints, links or contacts concerned; empty for all.
    recording : name of the recording; empty for a finding about a result.
    """

    cause: str
    severity: Severity
    evidence: str
    remedy: str
    subjects: tuple[str, ...] = ()
    recording: str = ""

    def __post_init__(self) -> None:
        if self.cause not in CAUSES:
            raise ValueError(f"unknown cause '{self.cause}'")

    @classmethod
    def with_remedy(cls, cause: str, severity: Severity, evidence: str, *subjects: str, recording: str = "",
            case: str = "", **values: object) -> "Finding":
        """Finding with the remedy of its cause; :func:`remedy_for` gets ``case`` and ``values``."""
        return cls(cause, severity, evidence, remedy_for(cause, case, **values), subjects, recording)

    def content(self) -> dict[str, object]:
        """Plain data for JSON; ``message`` is the one-line message."""
        plain = {**asdict(self), "severity": self.severity.name.lower(), "subjects": list(self.subjects)}
        return {**plain, "message": str(self)}

    def __str__(self) -> str:
        where = f"{self.recording}: " if self.recording else ""
        return f"{where}{self.evidence} ({CAUSES[self.cause].meaning}); {self.remedy}"


def subjects_of(findings: Iterable[Finding], cause: str) -> frozenset[str]:
    """Subjects of all findings of a cause."""
    return frozenset(subject for finding in findings if finding.cause == cause for subject in finding.subjects)
