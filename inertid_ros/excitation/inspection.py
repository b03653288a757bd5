"""Inspection of a plan: limits used, distances kept, condition number and singular values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding
from inertid_ros.excitation.constraints.collision.surroundings import Surroundings
from inertid_ros.excitation.constraints.effort import prior_effort
from inertid_ros.excitation.criteria.criterion import make_criterion, regressor_condition
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.criteria.weak_parameters import mostly_of, weak_parameters
from inertid_ros.excitation.execution.horizons import HorizonTable
from inertid_ros.excitation.limits.constraint import Clearance, Constraint, ConstraintUsage
from inertid_ros.excitation.limits.motion_limits import MotionLimits, usage
from inertid_ros.excitation.planning.descent import motion_samples
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
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
