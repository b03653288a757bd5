"""Check efforts against the robot and its motion: find causes whose correction explains the efforts far better."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array, Indices, Mask, one_thread
from inertid_ros.core.findings import CAUSES, Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.drives import DriveMotion
from inertid_ros.robot.model import RobotModel

from .effort_equations import FREE_SPREAD, EffortFit
from .effort_hypotheses import EffortComparison, Hypothesis


class _Thresholds(NamedTuple):
    """Thresholds for the search for causes, their acceptance and their severity.

    Log odds are log-likelihood ratios of the efforts corrected for a cause to the efforts as recorded.
    """

    unexplained_share: float = 0.15  # error over a joint's effort; smaller errors do not start a search
    far_bodies_cost: float = 2.0  # per joint, of bodies unlike the URDF's; a larger cost starts a search
    care_log_odds: float = 10.0  # 2e4 to one: less may be chance
    reject_log_odds: float = 20.0  # 5e8 to one
    refuse_log_odds: float = 60.0  # 1e26 to one
    rival_log_odds: float = 5.0  # to the best cause; a closer cause may be the better first correction
    equal_log_odds: float = 3.0  # to the best cause; a closer cause is named, too
    explained_share: float = 0.5  # remaining error over effort of the joints of a cause
    explained_error_ratio: float = 0.7  # remaining error over error as recorded, of these joints
    shared_cause_share: float = 0.75  # remaining error over effort of all joints, for a cause of all joints
    convincing_error_ratio: float = 0.9  # if a cause leaves a larger share of the error, bodies absorbed the error
    free_error_share: float = 0.05  # error over effort, with any bodies; with less, efforts fit the motion itself
    free_error_ratio: float = 1.5  # error with any bodies, recorded over corrected; with less, both fit equally well
    max_causes: int = 4  # in one recording; more are not single mistakes


_THRESHOLDS = _Thresholds()
# Causes that resemble a URDF with wrong bodies or turned body frames.
_URDF_LIKE_CAUSES = {"effort_current", "effort_sign", "position_offset", "gravity_direction", "gravity_compensated"}
_SHARED_CAUSES = {
    "gravity_compensated", "gravity_not_compensated", "gravity_direction", "effort_unit", "effort_current"}
# Compared samples.
_COMPARED_SAMPLES, _MIN_COMPARED_SAMPLES = 300, 30
_MIN_COMPARED_S = 1.0  # a shorter time covers only one pose
# Efforts that lack the weight on their joint.
_MIN_WEIGHT_RATIO = 3.0  # weight over effort; less may be an error of masses, and friction
_MIN_RANGE = 0.01  # rad or m
_CONSTANT_WEIGHT_SHARE = 0.2  # variation of the weight; a larger variation determines the factor of efforts


@one_thread()
def check_efforts(samples: Samples, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on efforts: signs, exchanges, units, loads, gravity, delay, zeros, couplings.

    All causes are compared by the cost of :class:`~.effort_equations.EffortEquations`. The search is skipped if the
    robot as given, with plausible errors of its URDF and any friction, explains the efforts.

    Parameters
    ----------
    samples : samples of force equations on a fixed base; other samples are not checked.
    model : the robot as given.

    Returns
    -------
    tuple of Finding
        Severity REJECT at odds of at least 5e8 to one, and REFUSE at odds of at least 1e26 to one, unless the cause
        limits the severity.
    """
    comparison = _comparison(samples, model)
    if comparison is None:
        return ()
    light = _lacking_weight(comparison)
    weights = [_weight_finding(comparison, joint, samples.name) for joint in np.flatnonzero(light).tolist()]
    if (comparison.counted & ~light).any():
        comparison = replace(comparison, counted=comparison.counted & ~light)
    findings, as_recorded = list[Finding](), comparison
    for _ in range(_THRESHOLDS.max_causes):
        recorded = comparison.fit(comparison.recorded)
        best = _best(comparison, recorded)
        if best is None:
            break
        hypothesis, fit = best
        findings.append(replace(_finding_of(comparison, hypothesis, (recorded, fit)), recording=samples.name))
        comparison = comparison.corrected(hypothesis)
    if findings:
        findings = _upheld(as_recorded, comparison, findings)
    if not _SHARED_CAUSES & {finding.cause for finding in findings}:
        findings += weights
    return tuple(findings)


def _comparison(samples: Samples, model: RobotModel) -> EffortComparison | None:
    """Comparison on evenly chosen samples; None without enough samples of joint torques on a fixed base."""
    if model.free or samples.channels != model.velocities:
        return None
    valid, efforts = samples.valid, samples.tau
    counted = (valid.sum(axis=0) > 0.5 * samples.usable.sum()) & (np.std(efforts, axis=0) > 0)
    rows = np.flatnonzero(valid[:, counted].all(axis=1) & samples.usable)
    if not counted.any() or len(rows) < _MIN_COMPARED_SAMPLES or np.ptp(samples.time[rows]) < _MIN_COMPARED_S:
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _COMPARED_SAMPLES).astype(int))]
    motion = DriveMotion.from_samples(model.layout, samples).select(rows)

    def after(lag: float) -> Array:
        if not lag:
            return efforts[rows]
        return np.stack([np.interp(samples.time[rows] + lag, samples.time, column) for column in efforts.T], axis=1)

    return EffortComparison(Hypothesis.as_recorded(model, motion), after, counted)


def _lacking_weight(comparison: EffortComparison) -> Mask:
    """Flag joints ``(n,)`` under a constant weight, such as a lift, whose effort stays far below this weight.

    The factor of such an effort cannot be estimated: an offset, or bodies without mass, explain the effort equally
    well.
    """
    with_terms = {term.joint for term in comparison.robot.layout.terms}
    declared = np.array([name in with_terms for name in comparison.names])
    least, most = comparison.weights
    constant = most - least < _CONSTANT_WEIGHT_SHARE * most
    moves = np.ptp(comparison.recorded.equations.motion.q, axis=0) > _MIN_RANGE  # else stiction may carry the weight
    return comparison.counted & ~declared & constant & moves & (least > _MIN_WEIGHT_RATIO * comparison.sizes)


def _weight_finding(comparison: EffortComparison, joint: int, recording: str) -> Finding:
    name, weight, size = comparison.names[joint], comparison.weights[0][joint], comparison.sizes[joint]
    evidence = f"effort of {name} is at most {size:.3g} N m or N, the weight of the URDF's bodies on it {weight:.3g}"
    return Finding.with_remedy("lacks_weight", Severity.REJECT, evidence, name, recording=recording, joint=name)


def _best(comparison: EffortComparison, recorded: EffortFit) -> tuple[Hypothesis, EffortFit] | None:
    """Hypothesis of least cost, if it explains the recorded efforts far better; its remedy names equal hypotheses."""
    likely = _likely(comparison, recorded)
    rivals = [pair for pair in likely if pair[1].cost < likely[0][1].cost + _THRESHOLDS.rival_log_odds]
    if len(rivals) < 2:
        return next(iter(likely), None)
    # With two causes at once, the best single cause may be neither of them.
    gains = [_next_gain(comparison, *rival) for rival in rivals]
    gain, (best, fit) = min(zip(gains, rivals, strict=True), key=lambda pair: pair[1][1].cost - pair[0])
    remedies = {(best.cause, best.joints): best.remedy}
    for other, (rival, other_fit) in zip(gains, rivals, strict=True):
        alone = not gain and not other and rival.gravest > Severity.NOTICE
        if alone and other_fit.cost < fit.cost + _THRESHOLDS.equal_log_odds:
            words = f"or, as likely, {rival.evidence} ({CAUSES[rival.cause].meaning}): {rival.remedy}"
            remedies.setdefault((rival.cause, rival.joints), words)
    best = replace(best, remedy="; ".join(remedies.values()))
    return best, fit


def _upheld(recorded: EffortComparison, corrected: EffortComparison, findings: list[Finding]) -> list[Finding]:
    """Findings that a fit with any bodies, independent of the URDF's, does not contradict.

    If bodies exist that explain the recorded efforts far better than the corrected efforts, the recorded efforts were
    right, and only notices remain. If recorded and corrected efforts fit equally well, the URDF may be wrong instead:
    findings that a wrong URDF could cause become CARE at most, and a coupling, which never fits worse, is dropped.
    """
    before, after = (comparison.fit(comparison.recorded, FREE_SPREAD) for comparison in (recorded, corrected))
    error = _error(before, recorded.joints)
    if error > _THRESHOLDS.free_error_share:
        return findings
    if error < _THRESHOLDS.explained_share * _error(after, recorded.joints):
        return [finding for finding in findings if finding.severity is Severity.NOTICE]
    if (before.share > _THRESHOLDS.free_error_ratio * after.share).any():
        return findings
    instead = "; or the URDF is wrong instead: other bodies explain the recorded efforts equally well"
    return [
        replace(finding, severity=min(finding.severity, Severity.CARE), evidence=finding.evidence + instead)
        if finding.cause in _URDF_LIKE_CAUSES else finding
        for finding in findings if finding.cause != "coupling"]


def _likely(comparison: EffortComparison, recorded: EffortFit) -> list[tuple[Hypothesis, EffortFit]]:
    """Hypotheses that explain the recorded efforts far better, the best first."""
    counted = comparison.counted
    unexplained = counted & (recorded.share > _THRESHOLDS.unexplained_share)
    far = recorded.far > _THRESHOLDS.far_bodies_cost * counted.sum()
    if not unexplained.any() and not far:
        return []
    likely = []
    for hypothesis in comparison.hypotheses(np.flatnonzero(counted if far else unexplained).tolist()):
        fit = comparison.fit(hypothesis)
        if fit.cost < recorded.cost - _THRESHOLDS.care_log_odds and _explains(hypothesis, fit, recorded, counted):
            likely.append((hypothesis, fit))
    return sorted(likely, key=lambda pair: pair[1].cost)


def _explains(hypothesis: Hypothesis, fit: EffortFit, recorded: EffortFit, counted: Mask) -> bool:
    """True if a hypothesis leaves little error in the joints that it affects."""
    if not hypothesis.joints:
        return _error(fit, np.flatnonzero(counted)) < _THRESHOLDS.shared_cause_share
    joints = list(hypothesis.joints)
    after, before = fit.share[joints], recorded.share[joints]
    lower = (after < _THRESHOLDS.explained_error_ratio * before).any()
    return bool((after < _THRESHOLDS.explained_share).all() and lower)


def _error(fit: EffortFit, joints: Indices) -> float:
    """RMS of the error relative to the effort, over some joints."""
    return float(np.sqrt(np.mean(fit.share[joints] ** 2)))


def _next_gain(comparison: EffortComparison, hypothesis: Hypothesis, fit: EffortFit) -> float:
    """Cost reduction by the best second cause after a first cause; zero without a second cause."""
    recorded = replace(fit, cost=fit.cost - hypothesis.penalty)
    likely = _likely(comparison.corrected(hypothesis), recorded)
    return recorded.cost - likely[0][1].cost if likely else 0.0


def _finding_of(comparison: EffortComparison, hypothesis: Hypothesis, fits: tuple[EffortFit, EffortFit]) -> Finding:
    """Finding on a cause; ``fits`` are the fit as recorded and the fit without the cause."""
    joints = np.array(hypothesis.joints or comparison.joints.tolist())
    names = tuple(comparison.names[joint] for joint in hypothesis.joints)
    before, after = (_error(fit, joints) for fit in fits)
    if after < _THRESHOLDS.convincing_error_ratio * before:
        shown = f": torque error {100 * before:.0f} % as recorded, {100 * after:.0f} % when corrected"
    else:  # the bodies absorbed the error
        shown = "; as recorded, only bodies unlike the URDF's explain the efforts"
    log_odds = fits[0].cost - fits[1].cost
    severity = Severity.REJECT if log_odds > _THRESHOLDS.reject_log_odds else Severity.CARE
    severity = Severity.REFUSE if log_odds > _THRESHOLDS.refuse_log_odds else severity
    subjects, severity = (hypothesis.link,) if hypothesis.link else names, min(severity, hypothesis.gravest)
    shown += f", log odds {log_odds:.0f}"
    return Finding(hypothesis.cause, severity, hypothesis.evidence + shown, hypothesis.remedy, subjects)
