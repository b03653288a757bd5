"""Outcome of an identification: the estimate with its errors, its confidence, and whether it is accepted."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from inertid_ros.core.findings import Finding
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence, torque_confidence
from inertid_ros.identification.assessment.validation import TorqueErrors, Validation, torque_errors
from inertid_ros.robot.bodies.inertial_parameters import is_consistent
from inertid_ros.robot.urdf_writing import write_urdf

from .provenance import Provenance, peak_memory_mb
from .rounds import Round, RoundDecision, RoundsOptions, decide

URDF = "calibrated.urdf"


@dataclass(frozen=True)
class IdentificationOutcome:
    """One identification with all that a result directory and a report message are made from.

    Attributes
    ----------
    estimate : Estimate
        Parameters and their uncertainty.
    train, held_out : tuple of Samples
        Prepared samples; ``held_out`` is empty where nothing was held out.
    validation : Validation or None
        Errors on held-out data; None where nothing was held out.
    provenance : Provenance
        Recordings, robot, configuration and versions.
    timing : mapping
        Stage to seconds.
    rounds : tuple
        Options of the rounds that this is one of, and the torque confidence after each round before it.
    findings : tuple of Finding
        On the recordings, before the fit.
    """

    estimate: Estimate
    train: tuple[Samples, ...]
    held_out: tuple[Samples, ...]
    validation: Validation | None
    provenance: Provenance
    timing: Mapping[str, float]
    rounds: tuple[RoundsOptions, tuple[Round, ...]] = (RoundsOptions(), ())
    findings: tuple[Finding, ...] = ()

    @cached_property
    def train_errors(self) -> TorqueErrors:
        """Errors of the estimate on the data it was fitted to."""
        return torque_errors(self.estimate.equations, self.estimate.parameters, self.train)

    @cached_property
    def train_errors_of_prior(self) -> TorqueErrors:
        """Errors of the URDF as given on the same data."""
        return torque_errors(self.estimate.equations, self.estimate.prior, self.train)

    @property
    def passed(self) -> bool:
        """Whether the parameters are physically consistent and pass validation, if there is held-out data."""
        return self.realizable and (self.validation is None or self.validation.passed)

    @property
    def realizable(self) -> bool:
        """Whether every body, and what it has beyond links behind locked joints, is physically consistent."""
        estimate = self.estimate
        own = estimate.bodies - estimate.model.body_locked
        return estimate.consistent and bool((is_consistent(own) | ~own.any(axis=1)).all())

    @cached_property
    def urdf(self) -> str:
        """The calibrated URDF; the one given where parameters are not consistent, which no simulator accepts."""
        model = self.estimate.model
        return write_urdf(model, self.estimate.bodies) if self.realizable else model.urdf

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
        """The status with its reason, in one line."""
        if self.validation is not None and not self.validation.passed:
            return self.validation.message
        if not self.realizable:
            return f"rejected: no real bodies have these parameters; {URDF} is the one given"
        return "not validated: no held-out recording" if self.validation is None else self.validation.message

    @cached_property
    def confidence(self) -> TorqueConfidence | None:
        """Uncertainty of torque over the robot's range; None on a free base."""
        return None if self.estimate.model.free else torque_confidence(self.estimate)

    @property
    def history(self) -> tuple[Round, ...]:
        """Torque confidence after each round, this one last; empty on a free base."""
        if self.confidence is None:
            return ()
        return (*self.rounds[1], Round.of(self.estimate.recordings, self.confidence))

    @property
    def decision(self) -> RoundDecision | None:
        """Whether another round pays; None on a free base."""
        return decide(self.history, self.rounds[0]) if self.history else None
