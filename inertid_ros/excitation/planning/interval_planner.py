"""Planning of direction combinations: optimise start and ranges, prune intervals, optimise again.

The steps are those of [Naveen2019]_ sec. 5.1. The problem has two variables per joint, linear constraints and a smooth
cost. Exact derivatives of the cost would need derivatives of a floating base's motion. An evaluation takes some tens of
milliseconds, so finite differences over a dozen variables are cheap. The solver, as in [Naveen2019]_, is sequential
quadratic programming (SciPy's SLSQP), which keeps linear constraints.

The planner serves robots on a fixed base (:func:`plan_fixed_base`), and floating robots with reaction wheels and
conserved momentum (:func:`floating_problem`).
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.config.excitation import CombinationOptions, ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.constraint import Constraint, MotionSamples
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.motions import Concatenation, QuinticRamp
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning import interval_motion as intervals
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.excitation.planning.descent import OutOfTimeError, feasible_share, plan_with
from inertid_ros.identification.base_parameters.closed_form import closed_form_base_parameters
from inertid_ros.regressors.momentum_equations import momentum_regressor
from inertid_ros.robot.floating_base_motion import BaseMotion
from inertid_ros.robot.model import RobotModel

_MIN_RANGE_SHARE = 1e-3  # of the largest range
_RAMP_LIMIT_USE = 0.8  # on the way to the first waypoint and back

ConditionReport = Callable[[float, float], None]
"""Called with the fraction done and the best condition number so far."""


MotionRegressor = Callable[[Array, Array, Array], tuple[Array, Array, float]]
"""Computes equations ``(N, r, p)`` of a motion ``(N, n)`` in independent columns, measured velocities ``(N, t)``, and
the penalty of violated constraints."""


@dataclass(frozen=True)
class IntervalPlan:
    """Planned motion, and the motion of all combinations before pruning (``whole``).

    ``condition_number`` and the number of ``significant`` singular values are those of the equations under the prior.
    """

    motion: intervals.IntervalMotion
    condition_number: float
    significant: int
    whole: intervals.IntervalMotion


@dataclass(frozen=True)
class IntervalPlanningProblem:
    """Problem of planning directions, starts and ranges.

    Attributes
    ----------
    fixed_range : (n,), fixed range per interval of a joint, or NaN if start and range are variables; a joint of fixed
        range starts at zero without position limits.
    unit_columns : whether columns are scaled to unit norm for the condition number, unlike in [Naveen2019]_.
    """

    regressor: MotionRegressor
    limits: MotionLimits
    fixed_range: Array
    options: CombinationOptions
    unit_columns: bool = False

    @property
    def free(self) -> np.ndarray:
        """Joints ``(n,)`` whose start and range are variables."""
        return np.isnan(self.fixed_range)

    def motion(self, directions: intervals.Directions, start: Array, ranges: Array) -> intervals.IntervalMotion:
        """Motion of all joints from start and range of the free joints."""
        starts, all_ranges = np.zeros(len(self.fixed_range)), np.where(self.free, 0.0, self.fixed_range)
        starts[self.free], all_ranges[self.free] = start, ranges
        return intervals.IntervalMotion(directions, starts, all_ranges, self.options.interval_s)

    def evaluate(self, motion: intervals.IntervalMotion) -> tuple[Array, float]:
        """Equations ``(K, s r, p)`` of K intervals with s samples each, and the cost ([Naveen2019]_ eq. 32).

        Columns are scaled if ``unit_columns``. The cost is multiplied by one plus the penalty.
        """
        count = self.options.samples
        rows, velocities, penalty = self.regressor(*motion.sample((np.arange(count) + 0.5) / count))
        blocks = rows.reshape(len(motion.directions), -1, rows.shape[-1])
        if self.unit_columns:
            blocks = blocks / np.maximum(np.sqrt(np.sum(blocks**2, axis=(0, 1))), 1e-300)
        values = np.linalg.eigvalsh(np.einsum("krp,krc->pc", blocks, blocks, optimize=True))
        condition = np.sqrt(values[-1] / max(values[0], 1e-15 * values[-1]))
        reward = self.options.velocity_reward * velocities.size / max(float(np.sum(velocities**2)), 1e-12)
        return blocks, float((condition + reward) * (1 + penalty))

    def interval_limits(self, directions: intervals.Directions) -> intervals.IntervalLimits:
        """Limits of start and range of the free joints."""
        whole = intervals.IntervalLimits.from_directions(directions, self.limits, self.options.interval_s)
        bounds = (whole.lowest, whole.highest, whole.lower, whole.upper, whole.largest)
        return intervals.IntervalLimits(*(bound[self.free] for bound in bounds))


def plan_intervals(
    problem: IntervalPlanningProblem, seed: int, deadline: float = np.inf,
    report: ConditionReport = lambda fraction, condition: None,
) -> IntervalPlan:
    """Plan with several orders of the combinations, and take the best plan.

    The same ``seed`` gives the same motion unless the deadline [s, monotonic] passes; at least one order is tried.
    """
    options, rng, joints = problem.options, np.random.default_rng(seed), np.arange(len(problem.free))
    plans: list[IntervalPlan] = []
    while not plans or (len(plans) < options.orders and time.monotonic() <= deadline):
        # Slowest first; joints of fixed range reverse most often, as they have no position limits.
        order = [*rng.permutation(joints[problem.free]).tolist(), *rng.permutation(joints[~problem.free]).tolist()]
        plans.append(_with_order(problem, order, rng, deadline))
        report(len(plans) / options.orders, min(plan.condition_number for plan in plans))
    return min(plans, key=lambda plan: plan.condition_number)


def _with_order(
    problem: IntervalPlanningProblem, order: Sequence[int], rng: np.random.Generator, deadline: float
) -> IntervalPlan:
    """Plan with one order of the joints, in the three steps of [Naveen2019]_ sec. 5.1."""
    options = problem.options
    directions = intervals.direction_combinations(order, options.offered)
    whole = improve_motion(problem, _best_start(problem, directions, rng), options.iterations // 4, deadline)
    blocks, _ = problem.evaluate(whole)
    kept = intervals.prune_to(blocks, options.most or len(blocks), options.significant, options.neutral)
    pruned = whole.only(kept)
    start = _best_start(problem, pruned.directions, rng, pruned)
    motion = improve_motion(problem, start, options.iterations, deadline)
    rows = np.concatenate(list(problem.evaluate(motion)[0]))
    count, condition = intervals.rank_and_condition(rows, options.significant)
    return IntervalPlan(motion, condition, count, whole)


def _best_start(
    problem: IntervalPlanningProblem, directions: intervals.Directions, rng: np.random.Generator,
    previous: intervals.IntervalMotion | None = None,
) -> intervals.IntervalMotion:
    """Best motion among random starts and ranges, and the feasible start and range nearest to ``previous``."""
    limits, free = problem.interval_limits(directions), problem.free
    starts = [limits.random(rng) for _ in range(problem.options.starts)]
    if previous is not None:
        starts.append(limits.fit(previous.start[free], previous.range[free]))
    motions = [problem.motion(directions, *start) for start in starts]
    costs = [problem.evaluate(motion)[1] for motion in motions]
    return motions[int(np.argmin(costs))]


def improve_motion(
    problem: IntervalPlanningProblem, motion: intervals.IntervalMotion, iterations: int, deadline: float
) -> intervals.IntervalMotion:
    """Best motion with the same directions, by sequential quadratic programming until the deadline."""
    limits, free = problem.interval_limits(motion.directions), problem.free
    count = int(free.sum())
    unit = np.concatenate([np.full(count, 1.0), limits.largest])
    best, best_cost = motion, np.inf

    def cost(scaled: Array) -> float:
        nonlocal best, best_cost
        if time.monotonic() > deadline:
            raise OutOfTimeError
        start, ranges = limits.fit(*np.split(scaled * unit, 2))
        here = problem.motion(motion.directions, start, ranges)
        value = problem.evaluate(here)[1]
        if value < best_cost:
            best, best_cost = here, value
        return value

    begin = np.concatenate([motion.start[free], motion.range[free]]) / unit
    bounds = [*zip(limits.lower, limits.upper, strict=True), *[(_MIN_RANGE_SHARE, 1.0)] * count]
    linear = scipy.optimize.LinearConstraint(limits.matrix * unit, ub=limits.bound)
    settings = {"maxiter": iterations, "ftol": 1e-4}
    if iterations:
        with contextlib.suppress(OutOfTimeError):
            scipy.optimize.minimize(cost, begin, method="SLSQP", bounds=bounds, constraints=[linear], options=settings)
    return best


def fixed_base_problem(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions, constraints: Sequence[Constraint]
) -> IntervalPlanningProblem:
    """Planning problem of a fixed base: start and range of all joints are variables, columns have unit norm."""
    criterion = make_criterion(model, limits)

    def regressor(q: Array, v: Array, a: Array) -> tuple[Array, Array, float]:
        motion = MotionSamples(criterion.measured.chain, q, v, a)
        penalty = float(sum(constraint.penalty(motion).value for constraint in constraints))
        return criterion.measured.regressor(motion, criterion.columns), v, penalty

    inner = limits.scaled(options.limit_use, options.limit_use)
    no_range = np.full(model.joints, np.nan)
    return IntervalPlanningProblem(regressor, inner, no_range, options.combinations, unit_columns=True)


def plan_fixed_base(
    model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions,
    report: ConditionReport = lambda fraction, condition: None,
) -> tuple[Plan, IntervalPlan]:
    """Plan from ``start`` ``(n,)`` to the first waypoint, through the intervals, and back."""
    constraints = motion_constraints(model, limits, options)
    for constraint in constraints:
        constraint.check_start(start)
    criterion = make_criterion(model, limits)
    problem = fixed_base_problem(model, limits, options, constraints)
    best = plan_intervals(problem, options.seed, time.monotonic() + options.time_limit_s, report)

    def plan(share: float) -> Plan:
        begin = start + share * (best.motion.start - start)
        motion = replace(best.motion, start=begin, range=share * best.motion.range)
        there = _ramp(start, motion.waypoints[0], problem.limits)
        back = _ramp(motion.waypoints[-1], start, problem.limits)
        whole = Concatenation([there, motion.trajectory, back])
        candidate = plan_with(options, model, whole, limits)
        return replace(candidate, condition_number=criterion.value(criterion.along(whole)))

    return plan(feasible_share(plan, constraints)), best


def _ramp(start: Array, end: Array, limits: MotionLimits) -> QuinticRamp:
    return QuinticRamp.within(start, end, _RAMP_LIMIT_USE * limits.velocity, _RAMP_LIMIT_USE * limits.acceleration)


def _with_wheels(limits: MotionLimits, model: RobotModel, options: CombinationOptions) -> MotionLimits:
    """Limits of joints and wheels; wheel limits are wide enough for the wheel range in every interval."""
    count = len(model.wheels.names)
    wide = np.full(count, (options.offered + 1) * options.wheel_range)
    fast = np.full(count, 2 * options.wheel_range / options.interval_s)
    of_joints = (limits.lower, limits.upper, limits.velocity, limits.acceleration, limits.effort)
    of_wheels = (-wide, wide, fast, np.pi / options.interval_s * fast, np.full(count, 1e9))
    bounds = map(np.concatenate, zip(of_joints, of_wheels, strict=True))
    return MotionLimits(limits.joint_names + model.wheels.names, *bounds)


def floating_problem(model: RobotModel, limits: MotionLimits, options: CombinationOptions) -> IntervalPlanningProblem:
    """Planning problem of a floating base: start and range of the wheels are fixed ([Naveen2019]_ sec. 6.2.2).

    ExcitationError if the robot has no wheels.
    """
    if not model.wheels.names:
        raise ExcitationError(
            f"robot '{model.name}': floats without reaction wheels, so momentum determines parameters only up to a"
            " common factor; define robot.wheels"
        )
    columns = closed_form_base_parameters(model).independent
    columns = columns[columns < model.layout.body_size]
    fixed_range = np.concatenate([np.full(model.joints, np.nan), np.full(len(model.wheels.names), options.wheel_range)])
    base, joints = BaseMotion(model.tree, model.body_prior, model.wheels), model.joints

    def regressor(q: Array, v: Array, a: Array) -> tuple[Array, Array, float]:
        # A floating robot that starts at rest has zero momentum ([Naveen2019]_ eq. 26). The prior predicts the motion
        # of the base. Rows are in the base frame, about its origin; in an inertial frame, their singular values would
        # be nearly equal.
        q, v, speeds = q[:, :joints], v[:, :joints], v[:, joints:]
        twist = base.twist(q, v, speeds)
        return momentum_regressor(model.tree, twist, q, v)[:, :, columns], np.hstack([twist, v]), 0.0

    return IntervalPlanningProblem(regressor, _with_wheels(limits, model, options), fixed_range, options)


def plan_floating_base(
    model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions, report: ConditionReport
) -> tuple[Plan, IntervalPlan]:
    """Plan from ``start`` ``(n,)`` to the first waypoint, and through the intervals; wheels begin at zero."""
    problem = floating_problem(model, limits.scaled(options.limit_use, options.limit_use), options.combinations)
    best = plan_intervals(problem, options.seed, time.monotonic() + options.time_limit_s, report)
    whole, first = _with_wheels(limits, model, options.combinations), best.motion.waypoints[0]
    ramp = _ramp(np.concatenate([start, first[model.joints :]]), first, whole)
    plan = plan_with(options, model, Concatenation([ramp, best.motion.trajectory]), whole)
    check_curve(plan.curve, whole)
    return replace(plan, condition_number=best.condition_number), best
