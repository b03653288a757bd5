"""Inspection of a plan: used limits, distances, singular values, and weakly excited parameters with reasons."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import first_few
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.excitation.constraints.constraint import Clearance, Constraint, ConstraintUsage, MotionSamples
from inertid_ros.excitation.constraints.effort import prior_effort
from inertid_ros.excitation.constraints.motion_constraints import Surroundings
from inertid_ros.excitation.execution.horizons import HorizonTable
from inertid_ros.excitation.motion_limits import MotionLimits, usage
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.criterion import Criterion, make_criterion
from inertid_ros.excitation.planning.interval_planner import FloatingMomentum
from inertid_ros.excitation.planning.measurement_regressor import MotionInformation, condition_number
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

USAGE_CHANNELS = ("position", "velocity", "acceleration", "effort")
_TIGHT_USE = 0.9  # used share of a constraint from which the constraint may be the reason for a small motion

WELL_CONDITIONED = 100.0
"""Largest condition number without a finding. With a torque error of 3 % and 200 independent samples (20 s of 5 Hz),
the weakest combination of parameters is then uncertain by 20 %; at a condition number of 500, by its own size."""
_RANDOM_STATES = 300
_MIN_SLOWNESS = 0.01  # slowest speed of random states relative to the fastest
_WIDER_RANGE, _HIGHER_LIMITS = 10.0, 3.0  # factors on ranges of sliding joints and on limits of speed, for comparison
# The motion is the reason if random states improve the condition number by the first factor; limits are the reason if
# wider limits improve it by the second factor.
_MOTION_GAIN, _LIMITS_GAIN = 10.0, 2.0
_MIN_NAMED_SHARE, _MAX_NAMED = 0.1, 4  # named parameters: smallest share relative to the largest, and largest number


@dataclass(frozen=True)
class Inspection:
    """Plan and its properties.

    Attributes
    ----------
    usage : (4, n), used fraction of the limits of :data:`USAGE_CHANNELS`; for position, 0 in the middle of the range.
    effort : (N, n), prior-model effort at the plan's points [N m or N], see :func:`.prior_effort`.
    condition_number : condition number of the column-scaled base regressor.
    spectrum : (r,), singular values of the column-scaled base regressor, largest first; the rows of earlier recordings
        are included.
    longest_stop : longest time from a failure of the sender to rest [s].
    spectrum_before : (r,), singular values of earlier recordings alone, scaled as ``spectrum``; None without them.
    clearance : closest approach; None if contact is impossible.
    findings : unknown surroundings, and weakly excited parameters with reasons.
    surroundings : sentences on floor and obstacles, and on missing checks.
    directions : base parameters with the largest shares of each direction of ``spectrum``, largest first.
    """

    plan: Plan
    limits: MotionLimits
    usage: Array
    effort: Array
    condition_number: float
    spectrum: Array
    longest_stop: float
    spectrum_before: Array | None = None
    clearance: Clearance | None = None
    constraint_usage: tuple[ConstraintUsage, ...] = ()
    findings: tuple[Finding, ...] = ()
    surroundings: tuple[str, ...] = ()
    directions: tuple[tuple[str, ...], ...] = ()


def inspect_plan(
        plan: Plan, model: RobotModel, limits: MotionLimits, constraints: Sequence[Constraint] = (),
        earlier: EarlierInformation | None = None, around: Surroundings | None = None) -> Inspection:
    """Inspect a plan that has passed its checks, and verify every horizon and brake of its execution.

    If the base of the robot floats, singular values refer to the unscaled equations of its momentum.
    """
    usages = _usage(constraints, plan)
    effort = prior_effort(model.commanded, plan.position, plan.velocity, plan.acceleration)
    channel_usage = [*usage(plan.curve, limits), np.abs(effort / limits.effort).max(axis=0)]
    before: Array | None = None
    weak: tuple[Finding, ...] = ()
    if model.free:
        momentum = FloatingMomentum.of(model)
        (values, vectors), names = momentum.information(plan), momentum.column_names
        condition = condition_number(values)
    else:
        criterion = make_criterion(model, limits)
        information = criterion.along(plan)
        weak, condition = weak_parameters(criterion, information, limits, usages), information.condition_number
        if earlier is not None:
            criterion = make_criterion(model, limits, earlier=earlier)
            information = criterion.along(plan)
            alone = information.scaled[-len(criterion.earlier_rows) :]
            before = np.asarray(np.linalg.svd(alone, compute_uv=False), dtype=float)
        values, vectors, names = information.eigenvalues, information.vectors, criterion.column_names
    return Inspection(
        plan, limits, np.array(channel_usage), effort, condition, spectrum=np.sqrt(np.maximum(values[::-1], 0.0)),
        longest_stop=HorizonTable(plan, limits).longest, clearance=_clearance(usages), spectrum_before=before,
        constraint_usage=usages, findings=(*(around.findings if around else ()), *weak),
        surroundings=around.sentences if around else (),
        directions=tuple(_main_parameters(weights, names) for weights in vectors.T[::-1] ** 2))


def motion_findings(
    plan: Plan, model: RobotModel, limits: MotionLimits, constraints: Sequence[Constraint] = ()
) -> tuple[Finding, ...]:
    """Findings of :func:`weak_parameters` on a plan."""
    criterion = make_criterion(model, limits)
    return weak_parameters(criterion, criterion.along(plan), limits, _usage(constraints, plan))


def closest_approach(constraints: Sequence[Constraint], plan: Plan) -> Clearance | None:
    """Closest approach of a motion to other links, obstacles or the floor; None if contact is impossible."""
    return _clearance(_usage(constraints, plan))


def motion_summary(plan: Plan, clearance: Clearance | None, speed_scale: float = 1.0) -> str:
    """One line to read before a robot moves: speed, closest approach, range and peak speed of every joint."""
    speed = np.abs(plan.velocity).max(axis=0)
    joints = (
        f"{name} {plan.position[:, i].min():.2f} to {plan.position[:, i].max():.2f}, at most {speed[i]:.2f}/s"
        for i, name in enumerate(plan.joint_names))
    motion = f"{plan.motion_type} motion of {plan.duration:.1f} s, speed scale {speed_scale:g}"
    return f"{motion}; {clearance or 'distances are not checked'}; {'; '.join(joints)}"


def limb_paths(plan: Plan, model: RobotModel) -> dict[str, Array]:
    """Path ``(N, 3)`` [m] of the last link's origin in the root frame, for every limb, by name of the link."""
    placements = TreeKinematics.of(model).placements(plan.position)
    return {model.link_names[body]: placements[:, body, :3, 3] for body in model.end_bodies}


def _usage(constraints: Sequence[Constraint], plan: Plan) -> tuple[ConstraintUsage, ...]:
    """Usage of the constraints that the motion uses (``used > 0``)."""
    usages = (constraint.usage(plan) for constraint in constraints)
    return tuple(usage for usage in usages if usage.used > 0)


def _clearance(usages: Sequence[ConstraintUsage]) -> Clearance | None:
    return next((usage.clearance for usage in usages if usage.clearance is not None), None)


def weak_parameters(
    criterion: Criterion, information: MotionInformation, limits: MotionLimits, usages: Sequence[ConstraintUsage] = ()
) -> tuple[Finding, ...]:
    """Findings on weakly excited parameters of a motion, with reasons; empty if the condition number is good.

    ``criterion`` is the default of :func:`.make_criterion`, and ``information`` its evaluation of the motion. A
    constraint in ``usages`` may be the reason for a small motion.
    """
    findings = [_hidden_columns(criterion, limits)]
    if not information.condition_number <= WELL_CONDITIONED:
        tight = (usage for usage in usages if usage.used >= _TIGHT_USE)
        tightest = max(tight, key=lambda usage: usage.used, default=None)
        findings.append(_weak_combinations(criterion, information, limits, tightest))
    return tuple(finding for finding in findings if finding is not None)


def _hidden_columns(criterion: Criterion, limits: MotionLimits) -> Finding | None:
    """Finding on parameters that are not identifiable by any motion within the position limits."""
    model = criterion.measured.model
    columns = np.intersect1d(base_parameters_of_robot(model).independent, criterion.measured.columns)
    missing = len(columns) - criterion.count
    if missing <= 0:
        return None
    hidden = np.setdiff1d(columns, criterion.measured.columns[criterion.columns])
    narrow = int(np.argmin(limits.upper - limits.lower))
    evidence = (
        f"{missing} of {len(columns)} base parameters cannot be excited within the position limits, such as"
        f" {first_few([model.layout.names[column] for column in hidden])}")
    joint = limits.joint_names[narrow]
    return Finding.with_remedy("not_excited", Severity.CARE, evidence, joint, case="positions", joint=joint)


def _weak_combinations(
    criterion: Criterion, information: MotionInformation, limits: MotionLimits, constrained: ConstraintUsage | None
) -> Finding:
    values = np.sqrt(np.maximum(information.eigenvalues, 0.0))
    weak = values * WELL_CONDITIONED < values[-1]
    weights = (information.vectors[:, weak] ** 2).sum(axis=1)
    names = list(_main_parameters(weights, criterion.column_names, len(weights)))
    reason, case, subjects = _reason(criterion, information.condition_number, limits, constrained)
    evidence = (
        f"condition number {information.condition_number:.3g}: {int(weak.sum())} of {criterion.count} combinations of"
        f" base parameters are excited by less than a hundredth of the best, mainly {first_few(names)}; {reason}")
    option = constrained.option if constrained else ""
    return Finding.with_remedy("not_excited", Severity.CARE, evidence, *subjects, case=case, option=option)


def _main_parameters(weights: Array, names: Sequence[str], count: int = _MAX_NAMED) -> tuple[str, ...]:
    """Names of at most ``count`` parameters with the largest squared weights ``(r,)``, largest first."""
    order = np.argsort(-weights)[:count]
    return tuple(names[int(k)] for k in order if weights[k] >= _MIN_NAMED_SHARE * weights.max())


def _reason(
    criterion: Criterion, achieved: float, limits: MotionLimits, constrained: ConstraintUsage | None
) -> tuple[str, str, tuple[str, ...]]:
    """Reason for weak combinations, case of the remedy, and affected joints, from random states with wider limits."""
    model = criterion.measured.model
    joints, within = np.arange(model.joints), _random_condition(criterion, limits)
    if within <= WELL_CONDITIONED or _MOTION_GAIN * within <= achieved:
        why = f", which is limited by the {constrained.description}" if constrained else ""
        case = "room" if constrained and constrained.option else "motion"
        shown = f"random states within the limits excite them better (condition number {within:.3g})"
        return f"{shown} than this motion{why}", case, ()
    turned = _random_condition(criterion, _widened(model, limits, joints >= 0))
    if _LIMITS_GAIN * turned <= within:
        alone = [_random_condition(criterion, _widened(model, limits, joints == joint)) for joint in joints]
        best, subject, decisive = int(np.argmin(alone)), "several joints", tuple[str, ...]()
        if _LIMITS_GAIN * alone[best] <= within:
            turned, decisive = alone[best], (limits.joint_names[best],)
            subject = f"joint '{limits.joint_names[best]}'"
        hidden = f"the position limits of {subject} hide them: random states reach {within:.3g} within the limits"
        return f"{hidden}, {turned:.3g} with a whole turn", "ranges", decisive
    fast = _random_condition(criterion, limits.scaled(_HIGHER_LIMITS, _HIGHER_LIMITS))
    if _LIMITS_GAIN * fast <= within:
        hidden = f"velocity and acceleration limits hide them: random states reach {within:.3g} within the limits"
        return f"{hidden}, {fast:.3g} with limits {_HIGHER_LIMITS:g} times as high", "speeds", ()
    locked = ", ".join(list(model.options.locked_joints)[:_MAX_NAMED])
    hidden = f"the geometry of the robot{f' with {locked} held' if locked else ''} hides them"
    return f"{hidden}: random states reach {min(within, turned, fast):.3g} even with wider limits", "geometry", ()


def _random_condition(criterion: Criterion, limits: MotionLimits) -> float:
    """Condition number of random states within limits; slow states are included, as fast states alone hide gravity."""
    rng, size = np.random.default_rng(0), (_RANDOM_STATES, len(limits.lower))
    slower = _MIN_SLOWNESS ** rng.uniform(size=(_RANDOM_STATES, 1))
    q = rng.uniform(limits.lower, limits.upper, size)
    v, a = (bound * rng.uniform(-1, 1, size) for bound in (limits.velocity, limits.acceleration))
    return criterion.evaluate(MotionSamples(criterion.measured.chain, q, slower * v, slower**2 * a)).condition_number


def _widened(model: RobotModel, limits: MotionLimits, joints: Mask) -> MotionLimits:
    """Limits with a whole turn for the joints of a mask ``(n,)``, or with a wider range if a joint slides."""
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    half = np.where(joints, np.where(model.slides, _WIDER_RANGE * half, np.maximum(half, np.pi)), half)
    return replace(limits, lower=middle - half, upper=middle + half)
