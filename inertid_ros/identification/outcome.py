"""Outcome of an identification: the estimate with its assessment and provenance, and the rounds so far."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inertid_ros.config.identification import RoundsOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.data.screening.recording_health import RecordingHealth

from .assess import NOT_VALIDATED, Assessment
from .assessment.estimate import Estimate
from .assessment.gate import GateDecision, NextAction, Verdict, next_action
from .assessment.validation import BandErrors, PredictionError, Validation
from .drive_gains import DriveGains
from .provenance import Provenance, peak_memory_mb

CALIBRATED_URDF = "calibrated.urdf"
_STATUS_WORDS = {"passed": "accepted", "not validated": "not validated", "rejected": "rejected"}


@dataclass(frozen=True)
class Round:
    """Torque confidence after a round.

    Attributes
    ----------
    recordings : fitted recordings, including earlier rounds
    deviation : standard deviation of predicted torque as a share of torque, for the most uncertain joint
    """

    recordings: tuple[str, ...]
    deviation: float
    joint: str

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "Round":
        """Read a round from one element of ``rounds`` in a report.

        Raises
        ------
        IdentificationError
            The element is damaged.
        """
        try:
            return cls(tuple(content["recordings"]), float(content["deviation"]), str(content["joint"]))
        except (KeyError, TypeError, ValueError) as error:
            raise IdentificationError(f"rounds: the last report is damaged ({error!r}); start again") from None


@dataclass(frozen=True)
class RoundDecision:
    """Decision for or against another round.

    Attributes
    ----------
    gain : share by which the last round lowered the deviation of torque; NaN in the first round
    reason : reason to stop after this round; empty if another round follows
    """

    gain: float
    reason: str


def decide(rounds: Sequence[Round], options: RoundsOptions, usable: bool = True) -> RoundDecision:
    """Decide whether another round of excitation and identification follows.

    Rounds end when predicted torque is accurate enough or stops improving, or after the configured number of rounds.

    Parameters
    ----------
    usable : whether the last result may be used; the confidence of an unusable result is unreliable
    """
    if not rounds:
        raise IdentificationError("rounds: there is no round yet; identify first")
    last, count = rounds[-1], len(rounds)
    gain = 1.0 - last.deviation / rounds[-2].deviation if count > 1 and rounds[-2].deviation > 0 else math.nan
    level = f"predicted torque is uncertain by {100 * last.deviation:.2g} % ({last.joint})"
    if usable and last.deviation <= options.wanted_deviation:
        return RoundDecision(gain, f"confidence reached: {level}, required: {100 * options.wanted_deviation:.2g} %")
    if gain < options.least_gain:
        before = f"{100 * rounds[-2].deviation:.2g} % before round {count}"
        return RoundDecision(gain, f"no further gain: {level}, compared with {before}")
    if count >= options.rounds:
        return RoundDecision(gain, f"all rounds are done ({count}): {level}")
    return RoundDecision(gain, "")


@dataclass(frozen=True)
class IdentificationOutcome:
    """Content of the result directory and of the report of one identification.

    Attributes
    ----------
    train, held_out : prepared samples; ``held_out`` may be empty
    validation : errors on held-out data, if there are any
    blocks : Validation or None
        Errors on blocks of the training data, each held out in turn, if ``held_out`` is empty; None for too few data.
    bands : errors below fixed cutoff frequencies, on held-out recordings if there are any, else on fitted recordings
    predictions : errors of predicted base motion and torque of a floating robot, on the same recordings
    rounds : options of the rounds, and the torque confidence after each earlier round
    peak_memory_mb : largest resident memory of this process until the outcome was created [MiB]
    """

    estimate: Estimate
    train: tuple[Samples, ...]
    held_out: tuple[Samples, ...]
    validation: Validation | None
    assessment: Assessment
    provenance: Provenance
    timing: Mapping[str, float]
    blocks: Validation | None = None
    drive_gains: DriveGains | None = None
    bands: tuple[BandErrors, ...] = ()
    predictions: tuple[PredictionError, ...] = ()
    rounds: tuple[RoundsOptions, tuple[Round, ...]] = (RoundsOptions(), ())
    health: tuple[RecordingHealth, ...] = ()
    peak_memory_mb: float = field(default_factory=peak_memory_mb)

    @property
    def gate(self) -> GateDecision:
        """Verdict on the use of the result, with reasons."""
        return self.assessment.gate

    @property
    def urdf(self) -> str:
        return self.assessment.urdf

    @property
    def passed(self) -> bool:
        return self.gate.verdict is not Verdict.REJECT

    @property
    def status(self) -> str:
        """``rejected``, ``not validated`` or ``passed``."""
        if not self.passed:
            return "rejected"
        return "not validated" if self.validation is None else "passed"

    @property
    def message(self) -> str:
        """Status with errors, verdict and gravest reason, in one line."""
        verdict, tested = self.gate.verdict, self.validation or self.blocks
        status = _STATUS_WORDS[self.status] + ("" if verdict is Verdict.USE else f", {verdict.value}")
        errors = "no held-out recording" if tested is None else tested.comparison
        summary = f"; {self.gate.summary}" if self.gate.reasons not in ((), (NOT_VALIDATED,)) else ""
        urdf = "" if self.assessment.realizable else f"; {CALIBRATED_URDF} is the given URDF"
        return f"{status}: {errors}{summary}{urdf}"

    @property
    def next_action(self) -> NextAction:
        return next_action(self.gate, self.provenance.names_in_commands)

    @property
    def history(self) -> tuple[Round, ...]:
        """Torque confidence after each round, this round last; empty on a free base."""
        confidence = self.assessment.confidence
        if confidence is None:
            return ()
        return (*self.rounds[1], Round(self.estimate.recordings, confidence.share, confidence.joint))

    @property
    def decision(self) -> RoundDecision | None:
        """Decision on another round; None on a free base."""
        return decide(self.history, self.rounds[0], self.passed) if self.history else None
