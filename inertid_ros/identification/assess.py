"""Assess an estimate on held-out recordings, or on blocks of its own recordings that are held out in turn.

Errors, confidence, verdict and details are computed once and stored. Information is additive: the data without a block
are the sum of all other blocks, so each held-out block costs one more solve but not another pass over the samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.arrays import Array, one_thread
from inertid_ros.core.findings import Finding, Severity, subjects_of
from inertid_ros.core.samples import Samples
from inertid_ros.data.screening.motion_checks import repeated_motion
from inertid_ros.identification.assessment import bodies as of_bodies, curves, gate, validation as errors
from inertid_ros.identification.assessment.changes import check_change, check_unexplained
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence, TorqueScale, torque_confidence
from inertid_ros.identification.assessment.unmodelled import check_gear_play, check_unmodelled
from inertid_ros.identification.information.data_checks import without_outliers
from inertid_ros.identification.information.information import Information, compress, merged
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.identification.map_fit import FitData, MapFit
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.robot.body_changes import write_urdf

NOT_VALIDATED = Finding.with_remedy(
    "not_validated", Severity.CARE, "the result was not tested on a recording of another motion")
HELD_OUT_BLOCKS = 5  # the usual number in cross-validation; each refit has four fifths of the data
_MIN_SAMPLES_PER_BLOCK = 10  # usable samples of a block after its ends are dropped, see _without_ends


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

    train_errors: errors.TorqueErrors
    train_errors_of_prior: errors.TorqueErrors
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


def assess(estimate: Estimate, train: Sequence[Samples], held_out: Sequence[Samples], tested: errors.Validation | None,
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
    findings = [*errors.without_refuted(findings, tested), *solution, *gate.check_borders(estimate, constraints),
        *plausibility(estimate, subjects_of(findings, "undeclared_load"), masses_open),
        *gate.check_excitation(estimate, confidence), *check_unmodelled(estimate.unmodelled, estimate.model),
        *check_gear_play(estimate.unmodelled, estimate.equations, estimate.parameters, train),
        *check_change(estimate, train), *(tested.findings if tested is not None else ()),
        *((NOT_VALIDATED,) if tested is None or tested.blocks else ())]
    decision = gate.GateDecision.from_findings([*findings, *check_unexplained(estimate, train, findings)])
    return Assessment(train_errors=errors.torque_errors(estimate.equations, estimate.parameters, train),
        train_errors_of_prior=errors.torque_errors(estimate.equations, estimate.prior, train), confidence=confidence,
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


@one_thread()
def validate_on_blocks(estimate: Estimate, recordings: Sequence[Samples], options: IdentifyOptions,
        constraints: Constraints) -> errors.Validation | None:
    """Errors on contiguous blocks, each predicted by a fit to all other blocks; None if there is too little data.

    A gap of one period of the filter's cutoff separates a block from the fitted data, since closer samples share
    noise.

    Parameters
    ----------
    recordings : recordings that were fitted, with the delay of effort removed
    """
    residuals = [samples.tau - estimate.torque(samples) for samples in recordings]
    kept, _ = without_outliers(estimate.equations.channels, recordings, residuals, options.outlier_threshold)
    durations = [float(samples.time[-1] - samples.time[0]) for samples in kept]
    length = sum(durations) / HELD_OUT_BLOCKS
    cuts = [max(1, round(duration / length)) if length > 0 else 1 for duration in durations]
    blocks = [block for samples, count in zip(kept, cuts, strict=True) for block in samples.blocks(count)]
    trimmed = [_without_ends(block) for block in blocks]
    if len(blocks) < 2 or any(block.usable.sum() < _MIN_SAMPLES_PER_BLOCK for block in trimmed):
        return None
    if estimate.equations.equation_type == "momentum_change":  # its equations hold for changes from the mean
        blocks, trimmed = ([_centred(block) for block in parts] for parts in (blocks, trimmed))
    information = [compress(estimate.equations, [block]) for block in blocks]
    predictions = []
    for index, block in enumerate(trimmed):
        others = [number for number in range(len(blocks)) if number != index]
        rest, rest_information = [blocks[number] for number in others], merged(information[number] for number in others)
        parameters = refitted(estimate, rest, rest_information, options, constraints)
        predictions.append((parameters, block))
    calibrated = errors.errors_of_each(estimate.equations, predictions)
    prior = errors.errors_of_each(estimate.equations, [(estimate.prior, block) for block in trimmed])
    scale = TorqueScale.from_recordings(estimate.equations, (estimate.prior, estimate.parameters), trimmed)
    findings = errors.check_errors(estimate.equations, calibrated, prior, scale)
    return errors.Validation(calibrated, prior, estimate.model.prior_name, findings, blocks=len(blocks))


def refitted(estimate: Estimate, recordings: Sequence[Samples], information: Information, options: IdentifyOptions,
        constraints: Constraints) -> Array:
    """Fit parameters ``(p,)`` to a part of the data.

    The consistent estimator keeps the channel weights and the prior spread of the whole fit; classical estimators
    estimate weights again.

    Parameters
    ----------
    recordings, information : part of the data; classical estimators and the geodesic regularizer use the recordings
    """
    if options.estimator != "consistent":
        return least_squares(estimate.equations, recordings, options.least_squares).parameters
    information = replace(information, earlier=estimate.information.earlier)
    data = FitData(estimate.equations, tuple(recordings), information, prior_spreads=estimate.own_prior_spreads)
    fit = replace(MapFit.of(data, options, constraints), left_out=estimate.left_out)
    return fit.refitted(estimate)


def _centred(block: Samples) -> Samples:
    """Subtract the mean of the usable samples from the measured side."""
    return replace(block, tau=block.tau - block.tau[block.usable].mean(axis=0))


def _without_ends(block: Samples) -> Samples:
    """Drop the samples of a block that share noise with neighbouring blocks."""
    gap = 1 / block.cutoff_hz if block.cutoff_hz else 0.0
    inside = (block.time >= block.time[0] + gap) & (block.time <= block.time[-1] - gap)
    rows = np.flatnonzero(inside)
    return block.select(slice(rows[0], rows[-1] + 1)) if len(rows) else block.select(slice(0, 0))


@one_thread()
def check_new_motion(estimate: Estimate, recordings: Sequence[Samples], held_out: Sequence[Samples],
        options: IdentifyOptions, constraints: Constraints) -> tuple[Finding, ...]:
    """Report held-out recordings that repeat the motion of fitted recordings.

    If other motions were fitted, too, a repeated motion can still test generalisation. The finding is then only a
    notice if a fit to the other recordings alone predicts the repeated motion.

    Parameters
    ----------
    recordings : recordings that were fitted, with the delay of effort removed
    """
    findings = []
    for samples in held_out:
        repeated = repeated_motion(samples, recordings)
        if repeated.new:
            continue
        names = " and ".join(recordings[index].name for index in repeated.by)
        others = [recording for index, recording in enumerate(recordings) if index not in repeated.by]
        error = _error_of_fit_to(others, estimate, samples, options, constraints) if others else None
        evidence = (
            f"{100 * repeated.share:.0f} % of the motion repeats fitted motion of {names}; after a shift in time they"
            f" differ by {100 * repeated.difference:.2g} %")
        if error is not None:
            evidence += f", and a fit without {names} predicts it with a torque error of {100 * error:.2f} %"
        severity = Severity.CARE if error is None else Severity.NOTICE
        findings.append(Finding.with_remedy("held_out_not_new", severity, evidence, recording=samples.name))
    return tuple(findings)


def _error_of_fit_to(others: Sequence[Samples], estimate: Estimate, samples: Samples, options: IdentifyOptions,
        constraints: Constraints) -> float | None:
    """Relative torque error on ``samples`` of a fit to ``others``; None if the checks of the error fail."""
    equations = estimate.equations
    parameters = refitted(estimate, others, compress(equations, others), options, constraints)
    calibrated, prior = (errors.torque_errors(equations, values, [samples]) for values in (parameters, estimate.prior))
    scale = TorqueScale.from_recordings(equations, (estimate.prior, parameters), [samples])
    findings = errors.check_errors(equations, calibrated, prior, scale)
    return None if any(finding.severity >= Severity.CARE for finding in findings) else calibrated.relative_error
