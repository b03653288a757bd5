"""Outcome of an identification: the estimate with its errors, its confidence, the verdict, and the rounds so far."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from inertid_ros.config.identification import RoundsOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.findings import Finding, Severity, remedy_for, subjects_of
from inertid_ros.core.samples import Samples
from inertid_ros.data.screening.recording_health import RecordingHealth
from inertid_ros.identification.assessment.bodies import (
    BodyIntervals,
    CorrelatedPair,
    FeasibilityMargin,
    InertiaEllipsoids,
    body_intervals,
    correlated_pairs,
    feasibility_margins,
    inertia_ellipsoids,
)
from inertid_ros.identification.assessment.curves import (
    FrictionCurve,
    JointCoverage,
    PredictionCurves,
    friction_curves,
    motion_coverage,
    prediction_curves,
)
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.gate import (
    GateDecision,
    NextAction,
    Verdict,
    check_borders,
    check_excitation,
    check_solution,
    next_action,
    plausibility,
)
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence, torque_confidence
from inertid_ros.identification.assessment.validation import BandErrors, TorqueErrors, Validation, torque_errors
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.robot.urdf_writing import write_urdf

from .drive_gains import DriveGains
from .provenance import Provenance, peak_memory_mb

CALIBRATED_URDF = "calibrated.urdf"
_STATUS_WORDS = {"passed": "accepted", "not validated": "not validated", "rejected": "rejected"}
_NOT_VALIDATED = Finding(
    "not_validated",
    Severity.CARE,
    "no recording of another motion was held out",
    remedy_for("not_validated"),
)


@dataclass(frozen=True)
class Round:
    """Torque confidence after a round.

    Attributes
    ----------
    recordings : tuple of str
        Recordings fitted, those of earlier rounds included.
    deviation : float
        Standard deviation of predicted torque, as a share of torque, of the joint with the largest one.
    joint : str
        That joint.
    """

    recordings: tuple[str, ...]
    deviation: float
    joint: str

    @classmethod
    def from_confidence(cls, recordings: Sequence[str], confidence: TorqueConfidence) -> "Round":
        """Round of an estimate's confidence."""
        return cls(tuple(recordings), confidence.share, confidence.joint)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "Round":
        """Round of one element of ``rounds`` in a report.

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
    """Whether another round follows.

    Attributes
    ----------
    gain : float
        Share by which the last round lowered the deviation; NaN in the first.
    reason : str
        Reason to stop after this round; empty if another one follows.
    """

    gain: float
    reason: str


def decide(rounds: Sequence[Round], options: RoundsOptions, usable: bool = True) -> RoundDecision:
    """Decide whether another round of excitation and identification follows.

    Rounds end when torque is known well enough, or no better any more, see :class:`.TorqueConfidence`.

    Parameters
    ----------
    usable : bool
        Whether the last result may be used; the confidence of one that may not is unreliable.

    Raises
    ------
    IdentificationError
        There is no round.
    """
    if not rounds:
        raise IdentificationError("rounds: there is no round yet; identify first")
    last, count = rounds[-1], len(rounds)
    gain = 1.0 - last.deviation / rounds[-2].deviation if count > 1 and rounds[-2].deviation > 0 else math.nan
    level = f"torque is known to {100 * last.deviation:.2g} % ({last.joint})"
    if usable and last.deviation <= options.wanted_deviation:
        return RoundDecision(gain, f"confidence reached: {level}, {100 * options.wanted_deviation:.2g} % was wanted")
    if gain < options.least_gain:
        return RoundDecision(gain, f"nothing more is gained: round {count} made it {100 * gain:.0f} % better; {level}")
    if count >= options.rounds:
        return RoundDecision(gain, f"all rounds are done ({count}): {level}")
    return RoundDecision(gain, "")


@dataclass(frozen=True)
class ResultDetails:
    """Details of an estimate for reports; every attribute is described by its class.

    Attributes
    ----------
    predictions : tuple of PredictionCurves
        Of every held-out recording, or of those fitted if nothing was held out.
    friction : tuple of FrictionCurve
        With the data that were fitted.
    """

    bodies: tuple[BodyIntervals, ...]
    ellipsoids: tuple[InertiaEllipsoids, ...]
    predictions: tuple[PredictionCurves, ...]
    friction: tuple[FrictionCurve, ...]
    coverage: tuple[JointCoverage, ...]
    feasibility: tuple[FeasibilityMargin, ...]
    correlated: tuple[CorrelatedPair, ...]

    @classmethod
    def from_estimate(
        cls,
        estimate: Estimate,
        train: Sequence[Samples],
        held_out: Sequence[Samples],
        confidence: TorqueConfidence | None,
    ) -> "ResultDetails":
        """Derive details from an estimate and the samples it was fitted to and validated on, without delay."""
        return cls(
            body_intervals(estimate),
            inertia_ellipsoids(estimate),
            prediction_curves(estimate, held_out or train),
            friction_curves(estimate, train),
            motion_coverage(estimate.model, train, confidence),
            feasibility_margins(estimate),
            correlated_pairs(estimate),
        )


@dataclass(frozen=True)
class IdentificationOutcome:
    """One identification with the content of its result directory and report message.

    Attributes
    ----------
    train, held_out : tuple of Samples
        Prepared samples; ``held_out`` may be empty.
    validation : Validation or None
        Errors on held-out data, if there are any.
    timing : mapping
        Stage to seconds.
    findings : tuple of Finding
        Findings on the recordings before the fit.
    constraints : Constraints
        Constraints of the fit, beyond physical consistency.
    blocks : Validation or None
        Errors on blocks of the training data, each held out in turn, if no recording was; None also of too little data.
    drive_gains : DriveGains or None
        If the options ask for them.
    bands : tuple of BandErrors
        Errors in fixed bands, on held-out recordings, or on those fitted if nothing was held out.
    rounds : tuple
        Options of the rounds that this is one of, and the torque confidence after each round before it.
    health : tuple of RecordingHealth
        Health of every recording, those fitted first.
    """

    estimate: Estimate
    train: tuple[Samples, ...]
    held_out: tuple[Samples, ...]
    validation: Validation | None
    provenance: Provenance
    timing: Mapping[str, float]
    findings: tuple[Finding, ...] = ()
    constraints: Constraints = field(default_factory=Constraints)
    blocks: Validation | None = None
    drive_gains: DriveGains | None = None
    bands: tuple[BandErrors, ...] = ()
    rounds: tuple[RoundsOptions, tuple[Round, ...]] = (RoundsOptions(), ())
    health: tuple[RecordingHealth, ...] = ()

    @cached_property
    def train_errors(self) -> TorqueErrors:
        """Errors of the estimate on the data it was fitted to."""
        return torque_errors(self.estimate.equations, self.estimate.parameters, self.train)

    @cached_property
    def train_errors_of_prior(self) -> TorqueErrors:
        """Errors of the URDF as given on the data fitted."""
        return torque_errors(self.estimate.equations, self.estimate.prior, self.train)

    @cached_property
    def gate(self) -> GateDecision:
        """Whether the result may be used, and why not."""
        estimate, tested = self.estimate, self.validation or self.blocks
        return GateDecision.from_findings(
            [
                *self.findings,
                *check_solution(estimate),
                *check_borders(estimate, self.constraints),
                *plausibility(estimate, subjects_of(self.findings, "undeclared_load")),
                *check_excitation(estimate, self.confidence),
                *(tested.findings if tested is not None else ()),
                *((_NOT_VALIDATED,) if self.validation is None else ()),
            ]
        )

    @property
    def passed(self) -> bool:
        """Whether the result may be used, possibly with care."""
        return self.gate.verdict is not Verdict.REJECT

    @property
    def realizable(self) -> bool:
        """Whether every body, also without the links behind locked joints, is physically consistent."""
        return all(finding.cause != "inconsistent" for finding in check_solution(self.estimate))

    @cached_property
    def urdf(self) -> str:
        """The calibrated URDF; the one given if parameters are not consistent, which no simulator accepts."""
        model = self.estimate.model
        return write_urdf(model, self.estimate.bodies, self._friction) if self.realizable else model.urdf

    @property
    def _friction(self) -> Mapping[str, Array]:
        """``viscous`` and ``coulomb`` ``(n,)`` for the URDF; NaN if the torque of a joint was not fitted.

        Classical least squares may find friction below zero, which a URDF must not have.
        """
        estimate, prior = self.estimate, self.estimate.model.drive_prior
        fitted = estimate.equations.of_joints(estimate.effective_counts) > 0
        friction = {}
        for term in ("viscous", "coulomb"):
            values = estimate.drive(term) if term in estimate.layout.drive_terms else prior[term]
            friction[term] = np.where(fitted, np.maximum(values, 0.0), np.nan)
        return friction

    @cached_property
    def peak_memory_mb(self) -> float:
        """Largest resident memory of this process until this is first read [MiB]."""
        return peak_memory_mb()

    @property
    def status(self) -> str:
        """``rejected``, ``not validated`` or ``passed``."""
        if not self.passed:
            return "rejected"
        return "not validated" if self.validation is None else "passed"

    @property
    def message(self) -> str:
        """The status with errors, verdict and gravest reason, in one line."""
        verdict = self.gate.verdict
        tested = self.validation or self.blocks
        parts = [
            _STATUS_WORDS[self.status] + ("" if verdict is Verdict.USE else f", {verdict.value}"),
            "no held-out recording" if tested is None else tested.comparison,
        ]
        summary = self.gate.summary if self.gate.reasons != (_NOT_VALIDATED,) else ""
        kept = "" if self.realizable else f"; {CALIBRATED_URDF} is the one given"
        return ": ".join(parts) + (f"; {summary}" if summary else "") + kept

    @cached_property
    def confidence(self) -> TorqueConfidence | None:
        """Uncertainty of torque over the robot's range; None on a free base."""
        return None if self.estimate.model.free else torque_confidence(self.estimate)

    @cached_property
    def details(self) -> ResultDetails:
        """Intervals of bodies, ellipsoids, curves, coverage and margins, for reports."""
        return ResultDetails.from_estimate(self.estimate, self.train, self.held_out, self.confidence)

    @property
    def next_action(self) -> NextAction:
        return next_action(self.gate, self.provenance.names_in_commands)

    @property
    def history(self) -> tuple[Round, ...]:
        """Torque confidence after each round, this one last; empty on a free base."""
        if self.confidence is None:
            return ()
        return (*self.rounds[1], Round.from_confidence(self.estimate.recordings, self.confidence))

    @property
    def decision(self) -> RoundDecision | None:
        """Whether another round pays; None on a free base."""
        return decide(self.history, self.rounds[0], self.passed) if self.history else None
