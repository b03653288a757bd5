"""Whether efforts are those of this robot on this motion: the cause that explains them far better than as recorded."""

from collections.abc import Callable, Iterator, Sequence
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

_COMPARED_SAMPLES, _MIN_COMPARED_SAMPLES = 300, 30
_MIN_COMPARED_S = 1.0  # less shows nothing but one pose
_UNEXPLAINED_SHARE = 0.15  # of a joint's effort; what is explained better by the robot as given needs no other cause
_FAR_BODIES_COST = 2.0  # per joint: cost of bodies that are unlike the URDF's, from which on other causes are looked for
_EXPLAINED_SHARE, _EXPLAINED_ERROR_RATIO = 0.5, 0.7  # of their effort, and of the error before: what is left to the joints of a cause
_SHARED_CAUSE_SHARE = 0.75  # of the efforts of all joints: a cause that all share and that leaves more explains nothing
_CARE_LOG_ODDS, _REJECT_LOG_ODDS, _REFUSE_LOG_ODDS = 10.0, 20.0, 60.0  # log-likelihood ratios: odds of 2e4, 5e8 and 1e26 to one
_RIVAL_LOG_ODDS = 5.0  # log-likelihood ratio to the best cause, within which others may be the better beginning
_MAX_CAUSES = 4  # causes in one recording
_MIN_WEIGHT_RATIO = 3.0  # times the effort: less may be an error of masses, and friction
_CONSTANT_WEIGHT_SHARE = 0.2  # of a weight; what varies more shows in the efforts, and their factor with it
_SHARED_CAUSES = {"gravity_compensated", "gravity_direction", "effort_unit", "effort_current"}  # causes that all joints share
_CONVINCING_ERROR_RATIO = 0.9  # of the error as recorded; more would not convince
_UNIT_LOG_SPREAD = np.log(2.0)  # factors of joints that lie within this of a power of ten are a unit, not currents
_MAX_SEVERITY = {"coupling": Severity.REJECT, "counterbalance": Severity.REJECT, "undeclared_load": Severity.NOTICE}
_NOTICE_FACTOR, _CARE_FACTOR = 2.0, 3.0  # factors nearer to one are rather, or may as well be, errors of the URDF's masses


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
    for _ in range(_MAX_CAUSES):
        recorded = comparison.fit(comparison.recorded)
        best = _best(comparison, recorded)
        if best is None:
            break
        hypothesis, fit = best
        ratio = recorded.cost - fit.cost
        severity = Severity.REFUSE if ratio > _REFUSE_LOG_ODDS else Severity.REJECT if ratio > _REJECT_LOG_ODDS else Severity.CARE
        finding = finding_of(hypothesis, (recorded, fit), comparison.counted, model.joint_names)
        findings.append(replace(finding, severity=min(severity, finding.severity), recording=samples.name))
        comparison = replace(comparison, recorded=hypothesis.found)
    if not _SHARED_CAUSES & {finding.cause for finding in findings}:
        findings += weights
    return tuple(findings)


def _lacking_weight(comparison: EffortComparison, model: RobotModel) -> NDArray[np.bool_]:
    """``(n,)`` joints under a constant weight, as that of a lift is, which their effort never comes near.

    No factor of the effort shows there: an offset would explain it, and bodies without mass as well.
    """
    own = {term.joint for term in model.layout.terms}
    declared = np.array([name in own for name in model.joint_names])
    least, most = comparison.weights
    constant = most - least < _CONSTANT_WEIGHT_SHARE * most
    return comparison.counted & ~declared & constant & (least > _MIN_WEIGHT_RATIO * comparison.sizes)


def _weight_finding(comparison: EffortComparison, joint: int, recording: str, model: RobotModel) -> Finding:
    name, weight, size = model.joint_names[joint], comparison.weights[0][joint], comparison.sizes[joint]
    evidence = f"effort of {name} is at most {size:.3g} N m or N, the weight of the URDF's bodies on it {weight:.3g}"
    remedy = remedy_for("lacks_weight", joint=name)
    return Finding("lacks_weight", Severity.REJECT, evidence, remedy, (name,), recording)


def _best(comparison: EffortComparison, recorded: EffortFit) -> tuple[Hypothesis, EffortFit] | None:
    """The hypothesis of the least cost, if it explains what was recorded far better."""
    found = _likely(comparison, recorded)
    rivals = [each for each in found if each[1].cost < found[0][1].cost + _RIVAL_LOG_ODDS]
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
            explains = bool((after < _EXPLAINED_SHARE).all() and (after < _EXPLAINED_ERROR_RATIO * before).any())
        else:
            explains = float(np.sqrt(np.mean(fit.share[comparison.counted] ** 2))) < _SHARED_CAUSE_SHARE
        if explains and fit.cost < recorded.cost - _CARE_LOG_ODDS:
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
    """Of evenly chosen samples; None where no joint torques are measured, or wrenches on a free base act beside."""
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


def finding_of(
    hypothesis: Hypothesis,
    fits: tuple[EffortFit, EffortFit],
    counted: NDArray[np.bool_],
    names: Sequence[str],
) -> Finding:
    """The finding of a cause, as grave as it can be: no coupling, gain or load makes a recording worthless.

    Parameters
    ----------
    hypothesis : Hypothesis
    fits : tuple of EffortFit
        As recorded, and without the cause.
    counted : ndarray of bool, shape (n,)
        Joints whose efforts were compared.
    names : sequence of str
        Of the joints.
    """
    about = list(hypothesis.joints) or np.flatnonzero(counted).tolist()
    subjects = (hypothesis.link,) if hypothesis.link else tuple(names[joint] for joint in hypothesis.joints)
    before, after = (float(np.sqrt(np.mean(fit.share[about] ** 2))) for fit in fits)
    cause, what, remedy = _DESCRIPTIONS[hypothesis.cause](hypothesis, [names[joint] for joint in about])
    gravest = _MAX_SEVERITY.get(cause, Severity.REFUSE)
    if cause == "effort_current" and _largest(hypothesis.amount) < _CARE_FACTOR:
        gravest = Severity.CARE if _largest(hypothesis.amount) > _NOTICE_FACTOR else Severity.NOTICE
    if after < _CONVINCING_ERROR_RATIO * before:
        evidence = f"{what}: error of {100 * before:.0f} % as recorded, {100 * after:.0f} % without"
    else:  # what it explains is in the bodies
        evidence = f"{what}; as recorded, only bodies unlike the URDF's explain them"
    return Finding(cause, gravest, evidence, remedy, subjects)


def _sign(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    remedy = remedy_for("effort_sign", scales=_mapping(dict.fromkeys(names, -1.0)))
    whose = names[0] if hypothesis.joints else "all joints"
    return "effort_sign", f"effort of {whose} opposes what the URDF predicts", remedy


def _exchange(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"efforts of {names[0]} and {names[1]} fit one another's motion"
    return "effort_exchange", what, remedy_for("effort_exchange", one=names[0], other=names[1])


def _joints(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"positions and efforts of {names[0]} and {names[1]} fit one another's place in the URDF"
    return "joint_exchange", what, remedy_for("joint_exchange", one=names[0], other=names[1])


def _factors(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    factors = np.array(hypothesis.amount)
    known = np.isfinite(factors)
    power = 10.0 ** np.round(np.log10(np.median(np.abs(factors[known]))))
    if power != 1.0 and np.mean(np.abs(np.log(factors[known] / power)) < _UNIT_LOG_SPREAD) > 0.75 and power in (1e3, 1e-3):
        return _unit(hypothesis, names)
    shown = dict(zip(names, 1 / factors[known], strict=False)) if len(names) == known.sum() else {}
    listed = ", ".join(f"{factor:.3g}" for factor in factors[known])
    what = f"efforts are {listed} times the torques that the URDF predicts"
    return "effort_current", what, _gains(_mapping(shown) if shown else "")


def _unit(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    power = float(10.0 ** np.round(np.log10(np.nanmedian(np.abs(hypothesis.amount)))))
    unit = {1e3: "N mm or mN m", 1e-3: "kN m"}.get(power)
    if unit is None:
        what = f"efforts are about {power:g} times the torques that the URDF predicts, which is no unit of torque"
        return "effort_current", what, _gains(f"{1 / power:g}")
    what = f"efforts are {power:g} times the torques that the URDF predicts (they look like {unit})"
    return "effort_unit", what, remedy_for("effort_unit", scales=_mapping(dict.fromkeys(names, 1 / power)))


def _gains(scales: str) -> str:
    return remedy_for("effort_current", "estimated" if scales else "", scales=scales)


def _compensated(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    return "gravity_compensated", "efforts lack the torque of gravity", remedy_for("gravity_compensated")


def _gravity(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    vector = "[" + ", ".join(f"{round(x, 2) + 0.0:g}" for x in hypothesis.amount) + "]"
    what = f"efforts fit a gravity of {vector} in the root frame"
    return "gravity_direction", what, remedy_for("gravity_direction", vector=vector)


def _delay(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    milliseconds = 1e3 * hypothesis.amount[0]
    order = "after" if milliseconds > 0 else "before"
    what = f"efforts are stamped about {abs(milliseconds):.0f} ms {order} the motion"
    return "delay", what, remedy_for("delay")


def _coupling(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"efforts of {names[0]} and {names[1]} follow the {'sum' if hypothesis.amount[1] > 0 else 'difference'} of"
    ratios = ", ".join(f"{ratio:g}" for ratio in hypothesis.amount)
    drive = f"{{wrist: {{joints: [{', '.join(names)}], ratios: [{ratios}]}}}}"
    return "coupling", f"{what} their speeds", remedy_for("coupling", drive=drive)


def _counterbalance(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"a torque that follows the position of {names[0]} acts beside the URDF's bodies"
    return "counterbalance", what, remedy_for("counterbalance", joint=names[0])


def _offset(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    turn = hypothesis.amount[0]
    what = f"gravity of {names[0]} fits positions that are {-turn:g} degrees further"
    return "position_offset", what, remedy_for("position_offset", turn=f"{turn:g}", joint=names[0])


def _degrees(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    return "position_unit", "efforts fit positions in degrees", remedy_for("position_unit", "by_effort")


def _load(hypothesis: Hypothesis, names: list[str]) -> tuple[str, str, str]:
    what = f"{hypothesis.link} carries about {hypothesis.amount[0]:.2g} kg more than in the URDF"
    return "undeclared_load", what, remedy_for("undeclared_load")


def _mapping(values: dict[str, float]) -> str:
    return "{" + ", ".join(f"{name}: {value:.3g}" for name, value in values.items()) + "}"


def _largest(factors: Sequence[float]) -> float:
    """Largest factor or its inverse."""
    size = np.abs(np.log(np.abs(np.array(factors))))
    return float(np.exp(np.nanmax(size)))


_DESCRIPTIONS: dict[str, Callable[[Hypothesis, list[str]], tuple[str, str, str]]] = {
    "effort_sign": _sign,
    "effort_exchange": _exchange,
    "joint_exchange": _joints,
    "effort_current": _factors,
    "effort_unit": _unit,
    "gravity_compensated": _compensated,
    "gravity_direction": _gravity,
    "delay": _delay,
    "coupling": _coupling,
    "counterbalance": _counterbalance,
    "undeclared_load": _load,
    "position_offset": _offset,
    "position_unit": _degrees,
}
