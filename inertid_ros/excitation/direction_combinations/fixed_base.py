"""Direction combinations for a robot on a fixed base, whose joint torques are measured."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.motion_constraints import feasible_share, motion_constraints
from inertid_ros.excitation.criteria.criterion import Criterion, regressor_condition
from inertid_ros.excitation.limits.constraint import Constraint, MotionSamples
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.trajectories import Concatenation, QuinticRamp, Trajectory
from inertid_ros.excitation.planning.descent import criterion_value
from inertid_ros.excitation.plans.plan import Plan, plan_of
from inertid_ros.robot.model import RobotModel

from .interval_motion import IntervalMotion
from .interval_planner import ConditionReport, IntervalPlan, IntervalPlanningProblem, plan_intervals

_RAMP_USE = 0.8  # of the limits, on the way to the first waypoint and back


@dataclass(frozen=True)
class JointTorqueRegressor:
    """Rows of the criterion's regressor, and the joints' velocities; a :class:`~.interval_planner.MotionRegressor`."""

    criterion: Criterion

    def rows(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """See :class:`~.interval_planner.MotionRegressor`."""
        motion = MotionSamples(self.criterion.measured.chain, q, v, a)
        return self.criterion.measured.regressor(motion, self.criterion.columns), v


def fixed_base_problem(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions, constraints: Sequence[Constraint]
) -> IntervalPlanningProblem:
    """The planning problem: start and range of all joints are variables, columns have unit norm."""
    criterion = regressor_condition(model, limits)

    def penalty(q: Array, v: Array, a: Array) -> float:
        motion = MotionSamples(criterion.measured.chain, q, v, a)
        return float(sum(constraint.penalty(motion).value for constraint in constraints))

    inner = limits.scaled(options.limit_use, options.limit_use)
    none = np.full(model.joints, np.nan)
    regressor = JointTorqueRegressor(criterion)
    return IntervalPlanningProblem(regressor, inner, none, options.combinations, penalty, unit_columns=True)


def plan_fixed_base(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions,
    report: ConditionReport = lambda fraction, condition: None,
) -> tuple[Plan, IntervalPlan]:
    """Plan from ``start`` ``(n,)`` to the first waypoint, through the intervals, and back.

    Raises
    ------
    ExcitationError
        The start is outside the limits or violates a constraint, or there are too few combinations.
    """
    constraints = motion_constraints(model, limits, options)
    for constraint in constraints:
        constraint.check_start(start)
    problem = fixed_base_problem(model, limits, options, constraints)
    best = plan_intervals(problem, options.seed, time.monotonic() + options.time_limit_s, report)
    criterion = regressor_condition(model, limits)

    def plan(share: float) -> Plan:
        motion = replace(
            best.motion, start=start + share * (best.motion.start - start), range=share * best.motion.range
        )
        whole = _there_and_back(motion, start, problem.limits)
        return plan_of(
            whole, limits, knot_step=options.knot_step_s, motion_type=options.kind, model_hash=model.hash,
            seed=options.seed, condition_number=criterion_value(criterion, whole),
        )

    return plan(feasible_share(plan, constraints)), best


def _there_and_back(motion: IntervalMotion, start: Array, limits: MotionLimits) -> Trajectory:
    velocity, acceleration = _RAMP_USE * limits.velocity, _RAMP_USE * limits.acceleration
    waypoints = motion.waypoints
    there = QuinticRamp.within(start, waypoints[0], velocity, acceleration)
    back = QuinticRamp.within(waypoints[-1], start, velocity, acceleration)
    return Concatenation([there, motion.trajectory, back])
