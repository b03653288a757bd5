"""Whether efforts are those of this robot on this motion: the cause that explains them far better than as recorded."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.friction import dry_friction_columns
from inertid_ros.robot.model import RobotModel

from .comparison import EffortComparison
from .equations import EffortFit
from .findings import finding_of
from .hypotheses import Hypothesis
from .torque_columns import Motion

_ROWS, _FEW = 300, 30
_SHORTEST_S = 1.0  # less shows nothing but one pose
_UNEXPLAINED = 0.15  # of a joint's effort; what is explained better by the robot as given needs no other cause
_FAR = 2.0  # per joint: cost of bodies that are unlike the URDF's, from which on other causes are looked for
_EXPLAINED, _FEWER = 0.5, 0.7  # of their effort, and of the error before: what is left to the joints of a cause
_OF_MOST = 0.75  # of the efforts of all joints: a cause that all share and that leaves more explains nothing
_LIKELY, _STRONG, _CERTAIN = 10.0, 20.0, 60.0  # log-likelihood ratios: odds of 2e4, 5e8 and 1e26 to one
_RIVALS = 5.0  # log-likelihood ratio to the best cause, within which others may be the better beginning
_MOST = 4  # causes in one recording
_WEIGHT = 3.0  # times the effort: less may be an error of masses, and friction
_CONSTANT = 0.2  # of a weight; what varies more shows in the efforts, and their factor with it
_OF_ALL = {"gravity_compensated", "gravity_direction", "effort_unit", "effort_current"}  # causes that all joints share


@one_thread()
def check_efforts(samples: Samples, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on the efforts of a recording: signs, exchanges, units, loads, gravity, delay, zeros, couplings.

    All causes are compared by one cost, that of :class:`~.equations.EffortEquations`; where the robot as given, with
    plausible errors of its URDF and any friction, explains the efforts, none is looked for.

    Parameters
    ----------
    samples : Samples
        Prepared for equations of forces on a fixed base; others are not checked.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
        Rejected from odds of 5e8 to one on, refused from odds of 1e26 on.
    """
    comparison = _comparison(samples, model)
    if comparison is None:
        return ()
    light = _lacking_weight(comparison, model)
    weights = [_weight_finding(comparison, joint, samples.name, model) for joint in np.flatnonzero(light).tolist()]
    if (comparison.counted & ~light).any():
        comparison = replace(comparison, counted=comparison.counted & ~light)
    findings: list[Finding] = []
    for _ in range(_MOST):
        recorded = comparison.fit(comparison.recorded)
        best = _best(comparison, recorded)
        if best is None:
            break
        hypothesis, fit = best
        ratio = recorded.cost - fit.cost
        severity = Severity.REFUSE if ratio > _CERTAIN else Severity.REJECT if ratio > _STRONG else Severity.CARE
        finding = finding_of(hypothesis, (recorded, fit), comparison.counted, model.joint_names)
        findings.append(replace(finding, severity=min(severity, finding.severity), recording=samples.name))
        comparison = replace(comparison, recorded=hypothesis.found)
    if not _OF_ALL & {finding.cause for finding in findings}:
        findings += weights
    return tuple(findings)


def _lacking_weight(comparison: EffortComparison, model: RobotModel) -> NDArray[np.bool_]:
    """``(n,)`` joints under a constant weight, as that of a lift is, which their effort never comes near.

    No factor of the effort shows there: an offset would explain it, and bodies without mass as well.
    """
    own = {term.joint for term in model.layout.terms}
    declared = np.array([name in own for name in model.joint_names])
    least, most = comparison.weights
    constant = most - least < _CONSTANT * most
    return comparison.counted & ~declared & constant & (least > _WEIGHT * comparison.sizes)


def _weight_finding(comparison: EffortComparison, joint: int, recording: str, model: RobotModel) -> Finding:
    name, weight, size = model.joint_names[joint], comparison.weights[0][joint], comparison.sizes[joint]
    evidence = f"effort of {name} is at most {size:.3g} N m or N, the weight of the URDF's bodies on it {weight:.3g}"
    remedy = remedy_for("lacks_weight", joint=name)
    return Finding("lacks_weight", Severity.REJECT, evidence, remedy, (name,), recording)


def _best(comparison: EffortComparison, recorded: EffortFit) -> tuple[Hypothesis, EffortFit] | None:
    """The hypothesis of the least cost, if it explains what was recorded far better."""
    found = _likely(comparison, recorded)
    rivals = [each for each in found if each[1].cost < found[0][1].cost + _RIVALS]
    if len(rivals) < 2:
        return next(iter(found), None)
    # Of two causes at once, the one that explains most by itself need not be among them.
    return min(rivals, key=lambda each: each[1].cost - _next_gain(comparison, *each))


def _likely(comparison: EffortComparison, recorded: EffortFit) -> list[tuple[Hypothesis, EffortFit]]:
    """Hypotheses that explain what was recorded far better, the best ones first."""
    found = []
    for hypothesis in _candidates(comparison, recorded):
        fit = comparison.fit(hypothesis)
        about = list(hypothesis.joints)
        after, before = fit.share[about], recorded.share[about]
        if about:
            explains = bool((after < _EXPLAINED).all() and (after < _FEWER * before).any())
        else:
            explains = float(np.sqrt(np.mean(fit.share[comparison.counted] ** 2))) < _OF_MOST
        if explains and fit.cost < recorded.cost - _LIKELY:
            found.append((hypothesis, fit))
    return sorted(found, key=lambda each: each[1].cost)


def _next_gain(comparison: EffortComparison, hypothesis: Hypothesis, fit: EffortFit) -> float:
    """How much less the best second cause costs beside a first one; zero where there is none."""
    after = replace(comparison, recorded=hypothesis.found)
    recorded = replace(fit, cost=fit.cost - hypothesis.penalty)
    found = _likely(after, recorded)
    return recorded.cost - found[0][1].cost if found else 0.0


def _candidates(comparison: EffortComparison, recorded: EffortFit) -> Iterator[Hypothesis]:
    counted = comparison.counted
    unexplained = counted & (recorded.share > _UNEXPLAINED)
    far = recorded.far > _FAR * counted.sum()
    if not unexplained.any() and not far:
        return
    joints = np.flatnonzero(counted if far else unexplained).tolist()
    yield from comparison.loads()
    yield from comparison.signs(joints)
    yield from comparison.exchanges(joints)
    yield from comparison.factors()
    yield from comparison.gravities()
    yield from comparison.delays()
    yield from comparison.couplings(joints)
    yield from comparison.counterbalances(joints)
    yield from comparison.motions(joints)


def _comparison(samples: Samples, model: RobotModel) -> EffortComparison | None:
    """Of evenly chosen samples; None where no joint torques are measured, or wrenches on a free base act beside."""
    if model.free or samples.channels != model.velocities:
        return None
    joints = slice(model.velocities - model.joints, None)
    valid, efforts = samples.valid[:, joints], samples.tau[:, joints]
    counted = (valid.sum(axis=0) > 0.5 * samples.usable.sum()) & (np.std(efforts, axis=0) > 0)
    rows = np.flatnonzero(valid[:, counted].all(axis=1) & samples.usable)
    if not counted.any() or len(rows) < _FEW or np.ptp(samples.time[rows]) < _SHORTEST_S:
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _ROWS).astype(int))]
    direction, _ = dry_friction_columns(model.layout, samples)
    motion = Motion(samples.q[rows], samples.v[rows], samples.a[rows], direction[rows])

    def after(lag: float) -> Array:
        if not lag:
            return efforts[rows]
        return np.stack([np.interp(samples.time[rows] + lag, samples.time, column) for column in efforts.T], axis=1)

    recorded = Hypothesis("", np.eye(model.joints), motion, np.array(model.options.gravity, dtype=float))
    return EffortComparison(model, after, counted, recorded)
