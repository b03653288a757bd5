"""Assessment of an estimate: errors, confidence, verdict and details, computed once and stored."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.findings import Finding, Severity, subjects_of
from inertid_ros.core.samples import Samples
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.robot.body_changes import write_urdf

from . import bodies as of_bodies, curves, gate
from .changes import check_change, check_unexplained
from .estimate import Estimate
from .plausibility import plausibility
from .torque_confidence import TorqueConfidence, torque_confidence
from .unmodelled import check_gear_play, check_unmodelled
from .validation import TorqueErrors, Validation, torque_errors, without_refuted

NOT_VALIDATED = Finding.with_remedy(
    "not_validated", Severity.CARE, "the result was not tested on a recording of another motion")


@dataclass(frozen=True)
class Assessment:
    """Content of a report on an estimate, besides the parameters; see also the classes of the attributes.

    Attributes
    ----------
    train_errors, train_errors_of_prior : errors on the fitted data, of the estimate and of the URDF as given
    confidence : uncertainty of torque over the robot's range; None on a free base
    gate : verdict on the use of the result, with reasons
    realizable : whether every body, also without the links behind locked joints, is physically consistent
    urdf : calibrated URDF, or the given URDF if parameters are not consistent: simulators would reject the result
    predictions : curves of every held-out recording, or of the fitted recordings if none was held out
    """

    train_errors: TorqueErrors
    train_errors_of_prior: TorqueErrors
    confidence: TorqueConfidence | None
    gate: gate.GateDecision
    realizable: bool
    urdf: str
    bodies: tuple[of_bodies.BodyIntervals, ...]
    ellipsoids: tuple[of_bodies.InertiaEllipsoids, ...]
    feasibility: tuple[of_bodies.FeasibilityMargin, ...]
    correlated: tuple[of_bodies.CorrelatedPair, ...]
    predictions: tuple[curves.PredictionCurves, ...]
    friction: tuple[curves.FrictionCurve, ...]
    coverage: tuple[curves.JointCoverage, ...]


def assess(
        estimate: Estimate, train: Sequence[Samples], held_out: Sequence[Samples], tested: Validation | None,
        findings: Sequence[Finding], constraints: Constraints) -> Assessment:
    """Assess an estimate.

    Parameters
    ----------
    train, held_out : fitted and held-out samples with the delay of effort removed; ``held_out`` may be empty
    tested : errors on held-out recordings, or on blocks of the fitted recordings; None if there was too little data
    findings : findings on the recordings
    constraints : constraints of the fit, beyond physical consistency
    """
    confidence = None if estimate.model.free else torque_confidence(estimate)
    solution = tuple(gate.check_solution(estimate))
    realizable = all(finding.cause != "inconsistent" for finding in solution)
    masses_open = any(finding.cause == "effort_current" for finding in findings)
    findings = [
        *without_refuted(findings, tested), *solution, *gate.check_borders(estimate, constraints),
        *plausibility(estimate, subjects_of(findings, "undeclared_load"), masses_open),
        *gate.check_excitation(estimate, confidence), *check_unmodelled(estimate.unmodelled, estimate.model),
        *check_gear_play(estimate.unmodelled, estimate.equations, estimate.parameters, train),
        *check_change(estimate, train),
        *(tested.findings if tested is not None else ()),
        *((NOT_VALIDATED,) if tested is None or tested.blocks else ())]
    decision = gate.GateDecision.from_findings([*findings, *check_unexplained(estimate, train, findings)])
    return Assessment(
        train_errors=torque_errors(estimate.equations, estimate.parameters, train),
        train_errors_of_prior=torque_errors(estimate.equations, estimate.prior, train), confidence=confidence,
        gate=decision, realizable=realizable, urdf=_calibrated_urdf(estimate) if realizable else estimate.model.urdf,
        bodies=of_bodies.body_intervals(estimate), ellipsoids=of_bodies.inertia_ellipsoids(estimate),
        feasibility=of_bodies.feasibility_margins(estimate), correlated=of_bodies.correlated_pairs(estimate),
        predictions=curves.prediction_curves(estimate, held_out or train),
        friction=curves.friction_curves(estimate, train),
        coverage=curves.motion_coverage(estimate.model, train, confidence))


def _calibrated_urdf(estimate: Estimate) -> str:
    """URDF with the bodies and the friction of an estimate; joints without measured torque keep their friction."""
    fitted = estimate.equations.of_joints(estimate.effective_counts) > 0
    friction = {}
    for term in ("viscous", "coulomb"):
        identified = term in estimate.layout.drive_terms
        values = estimate.drive(term) if identified else estimate.model.drive_prior[term]
        # Classical least squares may find friction below zero, which is invalid in a URDF.
        friction[term] = np.where(fitted, np.maximum(values, 0.0), np.nan)
    return write_urdf(estimate.model, estimate.bodies, friction)
