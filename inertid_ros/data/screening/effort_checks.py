"""Whether efforts are those of this robot on this motion: the cause that explains them far better than as recorded."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.core.samples import Samples
from inertid_ros.robot.drives import dry_friction_columns
from inertid_ros.robot.model import RobotModel

from .effort_equations import EffortFit, Motion
from .effort_hypotheses import EffortComparison, Hypothesis

# Which samples are compared.
_COMPARED_SAMPLES, _MIN_COMPARED_SAMPLES = 300, 30
_MIN_COMPARED_S = 1.0  # less shows nothing but one pose
# When causes are looked for.
_UNEXPLAINED_SHARE = 0.15  # of a joint's effort; what the robot as given explains better needs no other cause
_FAR_BODIES_COST = 2.0  # per joint, of bodies unlike the URDF's
# When a cause counts. Log-likelihood ratios: odds of 2e4, 5e8 and 1e26 to one.
_CARE_LOG_ODDS, _REJECT_LOG_ODDS, _REFUSE_LOG_ODDS = 10.0, 20.0, 60.0
_RIVAL_LOG_ODDS = 5.0  # to the best cause, within which others may be the better beginning
_EXPLAINED_SHARE, _EXPLAINED_ERROR_RATIO = 0.5, 0.7  # error that its joints may keep, of their effort and as recorded
_SHARED_CAUSE_SHARE = 0.75  # error of all joints that a cause of all joints may keep
_SHARED_CAUSES = {"gravity_compensated", "gravity_direction", "effort_unit", "effort_current"}
_MAX_CAUSES = 4  # in one recording
# Efforts that lack the weight on their joint.
_MIN_WEIGHT_RATIO = 3.0  # weight over effort; less may be an error of masses, and friction
_CONSTANT_WEIGHT_SHARE = 0.2  # variation of the weight; a larger one shows in the efforts, and their factor with it
# How a cause is described.
_CONVINCING_ERROR_RATIO = 0.9  # error without the cause over that as recorded
_UNIT_LOG_SPREAD = np.log(2.0)  # factors of joints this close to a power of ten are a unit, not currents
_MAX_SEVERITY = {"coupling": Severity.REJECT, "counterbalance": Severity.REJECT, "undeclared_load": Severity.NOTICE}
_NOTICE_FACTOR, _CARE_FACTOR = 2.0, 3.0  # factors of efforts that wrong masses of the URDF do, or may, explain


@one_thread()
def check_efforts(samples: Samples, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on efforts: signs, exchanges, units, loads, gravity, delay, zeros, couplings.

    All causes are compared by one cost, that of :class:`~.effort_equations.EffortEquations`. No cause is looked for if
    the robot as given, with plausible errors of its URDF and any friction, explains the efforts.

    Parameters
    ----------
    samples : Samples
        Prepared for equations of forces on a fixed base; others are not checked.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
        Rejected from odds of 5e8 to one, refused from odds of 1e26.
    """
    comparison = _comparison(samples, model)
    if comparison is None:
        return ()
    light = _lacking_weight(comparison, model)
    weights = [_weight_finding(comparison, joint, samples.name, model) for joint in np.flatnonzero(light).tolist()]
    if (comparison.counted & ~light).any():
        comparison = replace(comparison, counted=comparison.counted & ~light)
    findings: list[Finding] = []
    for _ in range(_MAX_CAUSES):
        recorded = comparison.fit(comparison.recorded)
        best = _best(comparison, recorded)
        if best is None:
            break
        hypothesis, fit = best
        ratio = recorded.cost - fit.cost
        severity = Severity.REJECT if ratio > _REJECT_LOG_ODDS else Severity.CARE
        severity = Severity.REFUSE if ratio > _REFUSE_LOG_ODDS else severity
        finding = _finding_of(hypothesis, (recorded, fit), comparison.counted, model.joint_names)
        findings.append(replace(finding, severity=min(severity, finding.severity), recording=samples.name))
        comparison = replace(comparison, recorded=hypothesis.as_recorded)
    if not _SHARED_CAUSES & {finding.cause for finding in findings}:
        findings += weights
    return tuple(findings)


def _lacking_weight(comparison: EffortComparison, model: RobotModel) -> NDArray[np.bool_]:
    """Joints ``(n,)`` under a constant weight, such as a lift's, which their effort never comes near.

    A factor of the effort does not show there: an offset would explain it, and bodies without mass as well.
    """
    with_terms = {term.joint for term in model.layout.terms}
    declared = np.array([name in with_terms for name in model.joint_names])
    least, most = comparison.weights
    constant = most - least < _CONSTANT_WEIGHT_SHARE * most
    return comparison.counted & ~declared & constant & (least > _MIN_WEIGHT_RATIO * comparison.sizes)


def _weight_finding(comparison: EffortComparison, joint: int, recording: str, model: RobotModel) -> Finding:
    name, weight, size = model.joint_names[joint], comparison.weights[0][joint], comparison.sizes[joint]
    evidence = f"effort of {name} is at most {size:.3g} N m or N, the weight of the URDF's bodies on it {weight:.3g}"
    remedy = remedy_for("lacks_weight", joint=name)
    return Finding("lacks_weight", Severity.REJECT, evidence, remedy, (name,), recording)


def _best(comparison: EffortComparison, recorded: EffortFit) -> tuple[Hypothesis, EffortFit] | None:
    """Hypothesis of least cost, if it explains the recorded efforts far better."""
    likely = _likely(comparison, recorded)
    rivals = [(hypothesis, fit) for hypothesis, fit in likely if fit.cost < likely[0][1].cost + _RIVAL_LOG_ODDS]
    if len(rivals) < 2:
        return next(iter(likely), None)
    # Of two causes at once, the one that explains most by itself need not be among them.
    return min(rivals, key=lambda rival: rival[1].cost - _next_gain(comparison, *rival))


def _likely(comparison: EffortComparison, recorded: EffortFit) -> list[tuple[Hypothesis, EffortFit]]:
    """Hypotheses that explain the recorded efforts far better, the best first."""
    likely = []
    for hypothesis in _candidates(comparison, recorded):
        fit = comparison.fit(hypothesis)
        about = list(hypothesis.joints)
        after, before = fit.share[about], recorded.share[about]
        if about:
            explains = bool((after < _EXPLAINED_SHARE).all() and (after < _EXPLAINED_ERROR_RATIO * before).any())
        else:
            explains = float(np.sqrt(np.mean(fit.share[comparison.counted] ** 2))) < _SHARED_CAUSE_SHARE
        if explains and fit.cost < recorded.cost - _CARE_LOG_ODDS:
            likely.append((hypothesis, fit))
    return sorted(likely, key=lambda pair: pair[1].cost)


def _next_gain(comparison: EffortComparison, hypothesis: Hypothesis, fit: EffortFit) -> float:
    """How much less the best second cause costs together with a first one; zero if there is none."""
    after = replace(comparison, recorded=hypothesis.as_recorded)
    recorded = replace(fit, cost=fit.cost - hypothesis.penalty)
    likely = _likely(after, recorded)
    return recorded.cost - likely[0][1].cost if likely else 0.0


def _candidates(comparison: EffortComparison, recorded: EffortFit) -> Iterator[Hypothesis]:
    counted = comparison.counted
    unexplained = counted & (recorded.share > _UNEXPLAINED_SHARE)
    far = recorded.far > _FAR_BODIES_COST * counted.sum()
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
    """Comparison on evenly chosen samples; None without joint torques of a fixed base."""
    if model.free or samples.channels != model.velocities:
        return None
    joints = slice(model.velocities - model.joints, None)
    valid, efforts = samples.valid[:, joints], samples.tau[:, joints]
    counted = (valid.sum(axis=0) > 0.5 * samples.usable.sum()) & (np.std(efforts, axis=0) > 0)
    rows = np.flatnonzero(valid[:, counted].all(axis=1) & samples.usable)
    if not counted.any() or len(rows) < _MIN_COMPARED_SAMPLES or np.ptp(samples.time[rows]) < _MIN_COMPARED_S:
        return None
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, _COMPARED_SAMPLES).astype(int))]
    direction, _ = dry_friction_columns(model.layout, samples)
    motion = Motion(samples.q[rows], samples.v[rows], samples.a[rows], direction[rows])

    def after(lag: float) -> Array:
        if not lag:
            return efforts[rows]
        return np.stack([np.interp(samples.time[rows] + lag, samples.time, column) for column in efforts.T], axis=1)

    recorded = Hypothesis("", np.eye(model.joints), motion, np.array(model.options.gravity, dtype=float))
    return EffortComparison(model, after, counted, recorded)


def _finding_of(
    hypothesis: Hypothesis,
    fits: tuple[EffortFit, EffortFit],
    counted: NDArray[np.bool_],
    names: Sequence[str],
) -> Finding:
    """Describe a cause, as severe as its kind can be: no coupling, gain or load makes a recording worthless.

    ``fits`` are those as recorded and without the cause, ``counted (n,)`` the joints whose efforts are compared.
    """
    about = list(hypothesis.joints) or np.flatnonzero(counted).tolist()
    subjects = (hypothesis.link,) if hypothesis.link else tuple(names[joint] for joint in hypothesis.joints)
    before, after = (float(np.sqrt(np.mean(fit.share[about] ** 2))) for fit in fits)
    cause, what, remedy = _description(hypothesis, [names[joint] for joint in about])
    gravest = _MAX_SEVERITY.get(cause, Severity.REFUSE)
    if cause == "effort_current" and _largest(hypothesis.amount) < _CARE_FACTOR:
        gravest = Severity.CARE if _largest(hypothesis.amount) > _NOTICE_FACTOR else Severity.NOTICE
    if after < _CONVINCING_ERROR_RATIO * before:
        evidence = f"{what}: torque error {100 * before:.0f} % as recorded, {100 * after:.0f} % when corrected"
    else:  # what it explains is in the bodies
        evidence = f"{what}; as recorded, only bodies unlike the URDF's explain them"
    return Finding(cause, gravest, evidence, remedy, subjects)


def _description(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    """Cause, evidence and remedy of a hypothesis on joints with ``names``."""
    cause, amount = hypothesis.cause, hypothesis.amount
    if cause in ("effort_current", "effort_unit"):
        return _factor_description(cause, np.array(amount), names)
    if cause == "effort_sign":
        whose = names[0] if hypothesis.joints else "all joints"
        remedy = remedy_for(cause, scales=_mapping(dict.fromkeys(names, -1.0)))
        return cause, f"effort of {whose} opposes what the URDF predicts", remedy
    if cause == "effort_exchange":
        what = f"efforts of {names[0]} and {names[1]} fit one another's motion"
        return cause, what, remedy_for(cause, one=names[0], other=names[1])
    if cause == "joint_exchange":
        what = f"positions and efforts of {names[0]} and {names[1]} fit one another's place in the URDF"
        return cause, what, remedy_for(cause, one=names[0], other=names[1])
    if cause == "gravity_compensated":
        return cause, "efforts lack the torque of gravity", remedy_for(cause)
    if cause == "gravity_direction":
        vector = "[" + ", ".join(f"{round(x, 2) + 0.0:g}" for x in amount) + "]"
        return cause, f"efforts fit a gravity of {vector} in the root frame", remedy_for(cause, vector=vector)
    if cause == "delay":
        order = "after" if amount[0] > 0 else "before"
        return cause, f"efforts are stamped about {abs(1e3 * amount[0]):.0f} ms {order} the motion", remedy_for(cause)
    if cause == "coupling":
        what = f"efforts of {names[0]} and {names[1]} follow the {'sum' if amount[1] > 0 else 'difference'} of"
        ratios = ", ".join(f"{ratio:g}" for ratio in amount)
        drive = f"{{wrist: {{joints: [{', '.join(names)}], ratios: [{ratios}]}}}}"
        return cause, f"{what} their speeds", remedy_for(cause, drive=drive)
    if cause == "counterbalance":
        what = f"a torque that follows the position of {names[0]} acts beside the URDF's bodies"
        return cause, what, remedy_for(cause, joint=names[0])
    if cause == "undeclared_load":
        what = f"{hypothesis.link} carries about {amount[0]:.2g} kg more than in the URDF"
        return cause, what, remedy_for(cause)
    if cause == "position_offset":
        what = f"gravity of {names[0]} fits positions that are {-amount[0]:g} degrees further"
        return cause, what, remedy_for(cause, turn=f"{amount[0]:g}", joint=names[0])
    return "position_unit", "efforts fit positions in degrees", remedy_for("position_unit", "by_effort")


def _factor_description(cause: str, factors: Array, names: list[str]) -> tuple[str, str, str]:
    """Description of efforts that are factors ``(n,)`` times the torques: a unit, currents, or gains."""
    finite = factors[np.isfinite(factors)]
    power = float(10.0 ** np.round(np.log10(np.median(np.abs(finite)))))
    unit = {1e3: "N mm or mN m", 1e-3: "kN m"}.get(power)
    alike = np.mean(np.abs(np.log(finite / power)) < _UNIT_LOG_SPREAD) > 0.75
    if unit and (alike or cause == "effort_unit"):
        what = f"efforts are {power:g} times the torques that the URDF predicts (they look like {unit})"
        return "effort_unit", what, remedy_for("effort_unit", scales=_mapping(dict.fromkeys(names, 1 / power)))
    if cause == "effort_unit":
        what = f"efforts are about {power:g} times the torques that the URDF predicts, which is no unit of torque"
        scales = f"{1 / power:g}"
    else:
        what = f"efforts are {', '.join(f'{x:.3g}' for x in finite)} times the torques that the URDF predicts"
        scales = _mapping(dict(zip(names, 1 / finite, strict=False))) if len(names) == len(finite) else ""
    return "effort_current", what, remedy_for("effort_current", "estimated" if scales else "", scales=scales)


def _mapping(values: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {value:.3g}" for name, value in values.items()) + "}"


def _largest(factors: Sequence[float]) -> float:
    """Largest factor or inverse factor."""
    size = np.abs(np.log(np.abs(np.array(factors))))
    return float(np.exp(np.nanmax(size)))
