"""Inspection of a plan: limits used, distances kept, condition number and singular values."""
# DOC What a motion does not excite, and why: the motion itself, the robot's limits, or its geometry.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.excitation.constraints.constraint import Clearance, Constraint, ConstraintUsage, MotionSamples
from inertid_ros.excitation.constraints.effort import prior_effort
from inertid_ros.excitation.constraints.motion_constraints import Surroundings
from inertid_ros.excitation.execution.horizons import HorizonTable
from inertid_ros.excitation.motion_limits import MotionLimits, usage
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.criterion import Criterion, EarlierInformation, make_criterion, regressor_condition
from inertid_ros.excitation.planning.descent import motion_samples
from inertid_ros.excitation.planning.measurement_regressor import MotionInformation
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

_TIGHT = 0.9  # of what a constraint allows
CHANNELS = ("position", "velocity", "acceleration", "effort")


@dataclass(frozen=True)
class Inspection:
    """A plan and its properties.

    Attributes
    ----------
    limits : MotionLimits
        Limits of the robot.
    usage : ndarray, shape (4, n)
        Fraction of the limits of position (half the range, about its middle), velocity, acceleration and prior-model
        effort that the motion uses.
    effort : ndarray, shape (N, n)
        Prior-model effort at the plan's points [N m or N], see :func:`.prior_effort`.
    condition_number : float
        Condition number of the column-scaled base regressor.
    spectrum : ndarray, shape (r,)
        Singular values of that regressor, with the rows of earlier recordings below it where there are some, the
        largest first; their squares add up to the number of columns.
    longest_stop : float
        Longest time from a failure of the sender to rest [s].
    spectrum_before : ndarray, shape (r,) or None
        Singular values of earlier recordings alone in the same scaling; None where there are none.
    clearance : Clearance or None
        Where it comes closest to what it must keep clear of; None where nothing can meet.
    constraint_usage : tuple of ConstraintUsage
        Usage of each constraint beside the limits of position, velocity, acceleration.
    findings : tuple of Finding
        What the motion may meet, and what it does not excite, and why.
    directions : tuple of tuple of str
        Base parameters that each direction of ``spectrum`` is mostly of, most first.
    surroundings : tuple of str
        What the motion keeps clear of, and what was not looked at; sentences.
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
    plan: Plan,
    model: RobotModel,
    limits: MotionLimits,
    constraints: Sequence[Constraint] = (),
    earlier: EarlierInformation | None = None,
    around: Surroundings | None = None,
) -> Inspection:
    """Inspect a plan that has passed its checks; every horizon and brake that execution would send is verified too.

    Raises
    ------
    ExcitationError
        The plan cannot be executed from some phase within the limits.
    """
    used_by = _usage(constraints, plan)
    effort = prior_effort(model, plan.position, plan.velocity, plan.acceleration)
    used = [*usage(plan.curve, limits), np.abs(effort / limits.effort).max(axis=0)]
    criterion = regressor_condition(model, limits)
    information = criterion.evaluate(motion_samples(criterion, plan))
    after, before, directions = _spectra(plan, model, limits, earlier)
    return Inspection(
        plan=plan,
        limits=limits,
        usage=np.array(used),
        effort=effort,
        condition_number=information.condition_number,
        spectrum=after,
        longest_stop=HorizonTable(plan, limits).longest,
        clearance=_clearance(used_by),
        spectrum_before=before,
        constraint_usage=used_by,
        findings=(
            *(around.findings if around else ()),
            *weak_parameters(criterion, information, model, limits, _tightest(used_by)),
        ),
        surroundings=around.sentences if around else (),
        directions=directions,
    )


def motion_findings(
    plan: Plan, model: RobotModel, limits: MotionLimits, constraints: Sequence[Constraint] = ()
) -> tuple[Finding, ...]:
    """What a motion does not excite, and why; see :func:`.weak_parameters`."""
    criterion = regressor_condition(model, limits)
    information = criterion.evaluate(motion_samples(criterion, plan))
    used_by = _usage(constraints, plan)
    return weak_parameters(criterion, information, model, limits, _tightest(used_by))


def closest_approach(constraints: Sequence[Constraint], plan: Plan) -> Clearance | None:
    """Where a motion comes closest to what it must keep clear of; None where nothing can meet."""
    return _clearance(_usage(constraints, plan))


def motion_summary(plan: Plan, clearance: Clearance | None, speed_scale: float = 1.0) -> str:
    """One line to read before a robot moves: speed, closest approach, range and peak speed of every joint."""
    speed = np.abs(plan.velocity).max(axis=0)
    joints = (
        f"{name} {plan.position[:, i].min():.2f} to {plan.position[:, i].max():.2f}, at most {speed[i]:.2f}/s"
        for i, name in enumerate(plan.joint_names)
    )
    near = str(clearance) if clearance is not None else "distances are not checked"
    kind, seconds = plan.motion_type, plan.duration
    return f"{kind} motion of {seconds:.1f} s, speed scale {speed_scale:g}; {near}; {'; '.join(joints)}"


def limb_paths(plan: Plan, model: RobotModel) -> Mapping[str, Array]:
    """Way of the origin of the last link of every limb in the root frame, ``(N, 3)`` [m], by the link's name."""
    parents = {int(parent) for parent in model.pinocchio.parents[2:]}
    last = [body for body in range(model.joints) if body + 1 not in parents]
    placements = TreeKinematics.of(model).placements(plan.position)
    return {model.link_names[body]: placements[:, body, :3, 3] for body in last}


def _usage(constraints: Sequence[Constraint], plan: Plan) -> tuple[ConstraintUsage, ...]:
    """How much a plan uses of all constraints but those that have nothing to constrain."""
    return tuple(used for used in (constraint.usage(plan) for constraint in constraints) if used.used > 0)


def _clearance(used: Sequence[ConstraintUsage]) -> Clearance | None:
    return next((usage.clearance for usage in used if usage.clearance is not None), None)


def _tightest(used: Sequence[ConstraintUsage]) -> ConstraintUsage | None:
    """Use of the constraint that a motion uses most, if nearly whole."""
    most = max(used, key=lambda usage: usage.used, default=None)
    return most if most is not None and most.used >= _TIGHT else None


def _spectra(
    plan: Plan, model: RobotModel, limits: MotionLimits, earlier: EarlierInformation | None
) -> tuple[Array, Array | None, tuple[tuple[str, ...], ...]]:
    """Singular values with the motion, and of earlier recordings alone, in columns of unit norm with the motion; and
    the base parameters that the directions of the first are mostly of."""
    criterion = make_criterion(model, limits, earlier=earlier)
    information = criterion.evaluate(motion_samples(criterion, plan))
    after = np.sqrt(np.maximum(information.eigenvalues[::-1], 0.0))
    names = criterion.column_names
    directions = tuple(mostly_of(weights, names) for weights in information.vectors.T[::-1] ** 2)
    if earlier is None:
        return after, None, directions
    earlier_rows = information.scaled[len(information.rows) - len(criterion.earlier_rows) :]
    return after, np.asarray(np.linalg.svd(earlier_rows, compute_uv=False), dtype=float), directions


WELL_CONDITIONED = 100.0
"""Condition number up to which nothing is told. Where the torque has an error of 3 % and 200 independent samples (20 s
of 5 Hz), the weakest combination of parameters is then known to 20 %, beyond 500 of it to no more than its own size."""
_PROBES = 300
_SHARE = 0.1  # of a weak combination that a parameter has at least to be named
_NAMED = 4
_SLOWEST = 0.01  # of the speeds of random states
_WIDER, _FASTER = 10.0, 3.0  # factors on ranges of joints that slide and on limits of speed, for comparison
_MUCH = 10.0  # factor by which random states are better at least for the motion to be the first reason
_NOTABLE = 2.0  # factor that other limits gain at least for these to be the reason


def weak_parameters(
    criterion: Criterion,
    information: MotionInformation,
    model: RobotModel,
    limits: MotionLimits,
    constrained: ConstraintUsage | None = None,
) -> tuple[Finding, ...]:
    """Findings on parameters that barely show in a motion; none where its condition number is good.

    Parameters
    ----------
    criterion : Criterion
        Of :func:`~.criterion.regressor_condition`.
    information : MotionInformation
        Of the motion by this criterion.
    limits : MotionLimits
        Limits that the motion keeps.
    constrained : ConstraintUsage, optional
        Use of what constrains it beside these, where something does.
    """
    found = [_hidden_columns(criterion, model, limits)]
    if not information.condition_number <= WELL_CONDITIONED:
        found.append(_weak_combinations(criterion, information, model, limits, constrained))
    return tuple(finding for finding in found if finding is not None)


def _hidden_columns(criterion: Criterion, model: RobotModel, limits: MotionLimits) -> Finding | None:
    """Parameters of the robot that no motion within its position limits shows."""
    columns = np.intersect1d(base_parameters_of_robot(model).independent, criterion.measured.columns)
    missing = len(columns) - criterion.count
    if missing <= 0 or not len(criterion.measured.joints):
        return None
    hidden = np.setdiff1d(columns, criterion.measured.columns[criterion.columns])
    narrow = int(np.argmin(limits.upper - limits.lower))
    return Finding(
        "not_excited",
        Severity.CARE,
        f"{missing} of {len(columns)} base parameters cannot show within the limits of position, such as"
        f" {_few([model.layout.names[column] for column in hidden])}",
        remedy_for("not_excited", "positions", joint=limits.joint_names[narrow]),
        (limits.joint_names[narrow],),
    )


def _weak_combinations(
    criterion: Criterion,
    information: MotionInformation,
    model: RobotModel,
    limits: MotionLimits,
    constrained: ConstraintUsage | None,
) -> Finding:
    values = np.sqrt(np.maximum(information.eigenvalues, 0.0))
    weak = values * WELL_CONDITIONED < values[-1]
    weights = (information.vectors[:, weak] ** 2).sum(axis=1)
    names = list(mostly_of(weights, criterion.column_names, len(weights)))
    reason, remedy, subjects = _reason(criterion, information.condition_number, model, limits, constrained)
    return Finding(
        "not_excited",
        Severity.CARE,
        f"condition number {information.condition_number:.3g}: {int(weak.sum())} of {criterion.count} combinations of"
        f" base parameters show less than a hundredth of the best, mostly of {_few(names)}; {reason}",
        remedy,
        subjects,
    )


def mostly_of(weights: Array, names: Sequence[str], most: int = _NAMED) -> tuple[str, ...]:
    """Names of the parameters that a combination with squared weights ``(r,)`` is mostly of, most first."""
    order = np.argsort(-weights)[:most]
    return tuple(names[int(k)] for k in order if weights[k] >= _SHARE * weights.max())


def _reason(
    criterion: Criterion, achieved: float, model: RobotModel, limits: MotionLimits, constrained: ConstraintUsage | None
) -> tuple[str, str, tuple[str, ...]]:
    """Why combinations are weak, what to do, and the joints that it is about; by random states with other limits."""
    joints, within = np.arange(model.joints), _random_condition(criterion, limits)
    if within <= WELL_CONDITIONED or _MUCH * within <= achieved:
        why = f", which the {constrained.description} keeps small" if constrained else ""
        room = constrained.option if constrained else ""
        return (
            f"random states within the limits show them better (condition number {within:.3g}) than this motion{why}",
            remedy_for("not_excited", "room", option=room) if room else remedy_for("not_excited", "motion"),
            (),
        )
    turned = _random_condition(criterion, _widened(model, limits, joints >= 0))
    if _NOTABLE * turned <= within:
        alone = [_random_condition(criterion, _widened(model, limits, joints == joint)) for joint in joints]
        best = int(np.argmin(alone))
        decisive = _NOTABLE * alone[best] <= within
        name = limits.joint_names[best]
        whose, widened = (f"joint '{name}'", alone[best]) if decisive else ("several joints", turned)
        return (
            f"the position limits of {whose} hide them: random states have {within:.3g} within the limits,"
            f" {widened:.3g} with a whole turn",
            remedy_for("not_excited", "ranges"),
            (name,) if decisive else (),
        )
    fast = _random_condition(criterion, limits.scaled(_FASTER, _FASTER))
    if _NOTABLE * fast <= within:
        return (
            f"the limits of velocity and acceleration hide them: random states have {within:.3g} within the limits,"
            f" {fast:.3g} where all are {_FASTER:g} times as high",
            remedy_for("not_excited", "speeds"),
            (),
        )
    held = ", ".join(list(model.options.locked_joints)[:_NAMED])
    return (
        f"the geometry of the robot{f' with {held} held' if held else ''} hides them: random states have"
        f" {min(within, turned, fast):.3g} even with wider limits",
        remedy_for("not_excited", "geometry"),
        (),
    )


def _random_condition(criterion: Criterion, limits: MotionLimits) -> float:
    """Condition number of random states within limits, slow ones among them: fast ones alone hide gravity."""
    rng, size = np.random.default_rng(0), (_PROBES, len(limits.lower))
    slower = _SLOWEST ** rng.uniform(size=(_PROBES, 1))
    q = rng.uniform(limits.lower, limits.upper, size)
    v, a = (bound * rng.uniform(-1, 1, size) for bound in (limits.velocity, limits.acceleration))
    return criterion.evaluate(MotionSamples(criterion.measured.chain, q, slower * v, slower**2 * a)).condition_number


def _widened(model: RobotModel, limits: MotionLimits, joints: NDArray[np.bool_]) -> MotionLimits:
    """The limits with a whole turn for some joints; with more of the range for those that slide."""
    slides = model.axes[model.free :, :3].any(axis=1)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    half = np.where(joints, np.where(slides, _WIDER * half, np.maximum(half, np.pi)), half)
    return replace(limits, lower=middle - half, upper=middle + half)


def _few(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} others" if len(names) > _NAMED else "")
