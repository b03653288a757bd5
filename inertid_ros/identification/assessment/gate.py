"""The gate: whether a result may be used, and the reasons for it, from all that was found before and after the fit."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from inertid_ros.core.findings import Finding, Severity


class Verdict(Enum):
    """Whether a result may be used; the values are the words of reports and messages."""

    USE = "use"
    CARE = "use with care"
    REJECT = "do not use"


@dataclass(frozen=True)
class GateDecision:
    """Verdict on a result.

    Attributes
    ----------
    verdict : Verdict
        By the gravest finding.
    reasons : tuple of Finding
        Those that stand against using the result, gravest first; empty where the verdict is ``USE``.
    notices : tuple of Finding
        What was found beside them and is only told.
    """

    verdict: Verdict
    reasons: tuple[Finding, ...] = ()
    notices: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "GateDecision":
        """Decision from all findings; one that was made twice counts once."""
        found = tuple(dict.fromkeys(findings))
        gravest = max((finding.severity for finding in found), default=Severity.NOTICE)
        verdict = (
            Verdict.REJECT if gravest >= Severity.REJECT else Verdict.CARE if gravest == Severity.CARE else Verdict.USE
        )
        reasons = sorted((finding for finding in found if finding.severity >= Severity.CARE), key=_gravest_first)
        notices = tuple(finding for finding in found if finding.severity < Severity.CARE)
        return cls(verdict, tuple(reasons), notices)

    @property
    def summary(self) -> str:
        """The gravest reason and the number of the others, in one line; empty without reasons."""
        if not self.reasons:
            return ""
        others = len(self.reasons) - 1
        more = f"; and {others} further reason{'s' if others > 1 else ''}" if others else ""
        return f"{self.reasons[0]}{more}"

    def content(self) -> dict[str, Any]:
        """Return it as plain data, as in ``report.json``."""
        return {
            "verdict": self.verdict.value,
            "reasons": [finding.content() for finding in self.reasons],
            "notices": [finding.content() for finding in self.notices],
        }


def _gravest_first(finding: Finding) -> int:
    return -int(finding.severity)
