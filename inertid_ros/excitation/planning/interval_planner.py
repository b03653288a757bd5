"""Planning of direction combinations: optimise start and ranges, prune intervals, optimise again.

The steps follow [Naveen2019]_ sec. 5.1. The problem has two variables per joint, linear constraints and a smooth
cost. Exact derivatives of the cost would need derivatives of a floating base's motion. An evaluation takes tens of
milliseconds, so finite differences over a dozen variables are cheap. The solver, as in [Naveen2019]_, is sequential
quadratic programming (SciPy's SLSQP), which keeps linear constraints.

The planner serves robots on a fixed base (:func:`plan_fixed_base`), and floating robots with reaction wheels and
conserved momentum (:func:`floating_problem`).
"""

import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import attrs
import numpy as np
import scipy

from inertid_ros.config.excitation import CombinationOptions, ExcitationOptions
from inertid_ros.core.arrays import Array, Indices, IntArray
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.constraint import Constraint, MotionSamples
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.motions import Concatenation, QuinticRamp
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning import interval_motion as intervals
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.excitation.planning.descent import OutOfTimeError, feasible_share, plan_with
from inertid_ros.excitation.planning.measurement_regressor import right_spectrum
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.regressors.whole_body_equations import momentum_regressor
from inertid_ros.robot.floating_base_motion import BaseMotion
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

_MIN_RANGE_SHARE = 1e-3  # of the largest range
_ENDLESS = 1e6  # rad; range of a wheel
_RAMP_LIMIT_USE = 0.8  # on the way to the first waypoint and back

ConditionReport = Callable[[float, float], None]
"""Called with the fraction done and the best condition number so far."""


MotionPenalty = Callable[[Array, Array, Array], float]

MotionRegressor = Callable[[Array, Array, Array], tuple[Array, Array, float]]
"""Computes equations ``(N, r, p)`` of a motion ``(N, n)`` in independent columns, measured velocities ``(N, t)``, and
the penalty of violated constraints."""


@dataclass(frozen=True)
class IntervalPlan:
    """Planned motion, and the motion of all combinations before pruning (``whole``).

    ``condition_number`` and the number of ``significant`` singular values refer to the equations under the prior.
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
    limits : limits of the ``free`` joints.
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

    def motion(self, directions: IntArray, start: Array, ranges: Array) -> intervals.IntervalMotion:
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

    def interval_limits(self, directions: IntArray) -> intervals.IntervalLimits:
        """Limits of start and range of the free joints."""
        return intervals.IntervalLimits.from_directions(directions[:, self.free], self.limits, self.options.interval_s)


def plan_intervals(
        problem: IntervalPlanningProblem, seed: int, deadline: float = np.inf,
        report: ConditionReport = lambda fraction, condition: None) -> IntervalPlan:
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
    whole = improve_motion(problem, best_start(problem, directions, rng), options.iterations // 4, deadline)
    blocks, _ = problem.evaluate(whole)
    # Too many useful intervals are cut off at the end: later ones, from far more combinations, are no better.
    kept = intervals.prune(blocks, options.significant, options.neutral)[: options.most or None]
    pruned = whole.only(kept)
    start = best_start(problem, pruned.directions, rng, pruned)
    motion = improve_motion(problem, start, options.iterations, deadline)
    rows = np.concatenate(list(problem.evaluate(motion)[0]))
    count, condition = intervals.rank_and_condition(rows, options.significant)
    return IntervalPlan(motion, condition, count, whole)


def best_start(
        problem: IntervalPlanningProblem, directions: IntArray, rng: np.random.Generator,
        previous: intervals.IntervalMotion | None = None) -> intervals.IntervalMotion:
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


def _penalty(constraints: Sequence[Constraint], motion: MotionSamples) -> float:
    return float(sum(constraint.penalty(motion).value for constraint in constraints))


def fixed_base_problem(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions, constraints: Sequence[Constraint]
) -> IntervalPlanningProblem:
    """Planning problem of a fixed base: start and range of all joints are variables, columns have unit norm."""
    criterion = make_criterion(model, limits)

    def regressor(q: Array, v: Array, a: Array) -> tuple[Array, Array, float]:
        motion = MotionSamples(criterion.measured.chain, q, v, a)
        return criterion.measured.regressor(motion, criterion.columns), v, _penalty(constraints, motion)

    inner, no_range = limits.scaled(options.limit_use, options.limit_use), np.full(model.joints, np.nan)
    return IntervalPlanningProblem(regressor, inner, no_range, options.combinations, unit_columns=True)


def plan_fixed_base(
        model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions,
        report: ConditionReport = lambda fraction, condition: None) -> tuple[Plan, IntervalPlan]:
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
        there, back = _ramp(start, begin, problem.limits), _ramp(motion.waypoints[-1], start, problem.limits)
        whole = Concatenation([there, motion.trajectory, back])
        candidate = plan_with(options, model, whole, limits)
        return replace(candidate, condition_number=criterion.value(criterion.along(whole)))

    return plan(feasible_share(plan, constraints)), best


def _ramp(start: Array, end: Array, limits: MotionLimits) -> QuinticRamp:
    return QuinticRamp.within(start, end, _RAMP_LIMIT_USE * limits.velocity, _RAMP_LIMIT_USE * limits.acceleration)


def floating_problem(
    model: RobotModel, limits: MotionLimits, options: CombinationOptions, penalty: MotionPenalty = lambda q, v, a: 0.0
) -> IntervalPlanningProblem:
    """Planning problem of a floating base: start and range of the wheels are fixed ([Naveen2019]_ sec. 6.2.2).

    ``penalty`` grows with the violation of constraints by a motion of joints and wheels. ExcitationError if the robot
    has no wheels.
    """
    if not model.wheels.names:
        raise ExcitationError(
            f"robot '{model.name}': floats without reaction wheels, so momentum determines parameters only up to a"
            " common factor; define robot.wheels")
    fixed_range = np.concatenate([np.full(model.joints, np.nan), np.full(len(model.wheels.names), options.wheel_range)])
    momentum = FloatingMomentum.of(model)

    def regressor(q: Array, v: Array, a: Array) -> tuple[Array, Array, float]:
        return *momentum.rows(q, v), penalty(q, v, a)

    return IntervalPlanningProblem(regressor, limits, fixed_range, options)


@dataclass(frozen=True)
class FloatingMomentum:
    """Equations of momentum in the independent ``columns`` of the layout, for a base that moves as the prior predicts.

    A floating robot that starts at rest has zero momentum ([Naveen2019]_ eq. 26).
    """

    model: RobotModel
    base: BaseMotion
    columns: Indices

    @classmethod
    def of(cls, model: RobotModel) -> "FloatingMomentum":
        columns = base_parameters_of_robot(model).independent
        columns = columns[columns < model.layout.body_size]
        return cls(model, BaseMotion(model.tree, model.body_prior, model.wheels), columns)

    def rows(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Equations of momentum ``(N, 6, r)``, and rates of base and joints ``(N, 6 + n)``.

        ``q`` and ``v`` hold joints, then wheels. Rows are in the base frame, about its origin.
        """
        joints = self.model.joints
        q, v, speeds = q[:, :joints], v[:, :joints], v[:, joints:]
        twist = self.base.twist(q, v, speeds)
        return momentum_regressor(self.model.tree, twist, q, v)[:, :, self.columns], np.hstack([twist, v])

    def information(self, plan: Plan, step: float = 0.05) -> tuple[Array, Array]:
        """Ascending eigenvalues ``(r,)`` of the information of a plan, and eigenvectors ``(r, r)``."""
        plan = plan.ordered(self.model.joint_names + self.model.wheels.names)
        q, v, _ = plan.sample(np.arange(0.5 * step, plan.duration, step))
        return right_spectrum(np.sqrt(step) * self.rows(q, v)[0].reshape(-1, len(self.columns)))

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the ``r`` columns, such as ``forearm.mcx``."""
        return tuple(self.model.layout.names[column] for column in self.columns)


def wheel_limits(
    limits: MotionLimits, wheels: Sequence[str], options: CombinationOptions, accelerated: Collection[str]
) -> MotionLimits:
    """Limits of commanded joints in which wheels turn without end.

    Wheels accelerate as their range per interval needs, except wheels in ``accelerated``, whose limit is given.
    """
    turning = np.isin(limits.joint_names, wheels)
    needed = 2 * np.pi * options.wheel_range / options.interval_s**2
    free = turning & ~np.isin(limits.joint_names, list(accelerated))
    return replace(
        limits, lower=np.where(turning, -_ENDLESS, limits.lower), upper=np.where(turning, _ENDLESS, limits.upper),
        acceleration=np.where(free, np.maximum(limits.acceleration, 2 * needed), limits.acceleration))


def plan_floating_base(
        model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions,
        constraints: Sequence[Constraint] = (), report: ConditionReport = lambda fraction, condition: None) -> Plan:
    """Plan from ``start`` to the first waypoint of the joints, and through the intervals.

    Plan, ``limits``, ``start`` ``(n + w)`` and ``constraints`` have the joints of ``model.commanded``. The wheels
    turn as far in each interval as the options say, or less if they would be too fast.
    """
    joints = limits.ordered(model.joint_names).scaled(options.limit_use, options.limit_use)
    wheels = limits.ordered(model.wheels.names).scaled(options.limit_use, options.limit_use)
    slowest = float(intervals.range_by_speed(wheels, options.combinations.interval_s).min())
    combinations = attrs.evolve(options.combinations, wheel_range=min(options.combinations.wheel_range, slowest))
    chain, own = TreeKinematics.of(model.commanded), model.joint_names + model.wheels.names
    order = [own.index(name) for name in limits.joint_names]

    def penalty(q: Array, v: Array, a: Array) -> float:
        return _penalty(constraints, MotionSamples(chain, q[:, order], v[:, order], a[:, order]))

    problem = floating_problem(model, joints, combinations, penalty)
    best = plan_intervals(problem, options.seed, time.monotonic() + options.time_limit_s, report)
    begin, whole = start[[limits.joint_names.index(name) for name in own]], limits.ordered(own)
    first = np.where(problem.free, best.motion.start, begin)  # only the speed of a wheel matters, not its angle

    def plan(share: float) -> Plan:
        motion = replace(best.motion, start=begin + share * (first - begin), range=share * best.motion.range)
        both = Concatenation([_ramp(begin, motion.waypoints[0], whole), motion.trajectory])
        return plan_with(options, model.commanded, both, whole).ordered(limits.joint_names)

    planned = plan(feasible_share(plan, constraints))
    check_curve(planned.curve, limits)
    return replace(planned, condition_number=best.condition_number)
