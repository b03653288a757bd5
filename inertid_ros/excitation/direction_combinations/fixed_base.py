"""Direction combinations for a robot on a fixed base, judged by its joint torques as other motions are."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.criteria.criterion import Criterion, regressor_condition
from inertid_ros.excitation.limits.constraint import Constraint, MotionSamples
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.trajectories import Concatenation, QuinticRamp, Trajectory
from inertid_ros.excitation.planning.descent import criterion_value
from inertid_ros.excitation.plans.plan import Plan, plan_of
from inertid_ros.robot.model import RobotModel

from .interval_motion import IntervalMotion
from .interval_planner import IntervalPlan, IntervalProblem, plan_intervals

_SHRINK_ROUNDS = 12
_RAMP_USE = 0.8  # of the limits, on the way to the first waypoint and back
Report = Callable[[float, float], None]


@dataclass(frozen=True)
class TorqueRows:
    """Rows of the criterion's regressor; what noise blurs are the joints' velocities."""

    criterion: Criterion

    def rows(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """See :class:`~.rows.MotionRows`."""
        motion = MotionSamples(self.criterion.measured.chain, q, v, a)
        return self.criterion.measured.regressor(motion, self.criterion.columns), v


def torque_problem(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions, constraints: Sequence[Constraint]
) -> IntervalProblem:
    """What planning solves: all seeds are to be found, columns have unit norm."""
    criterion = regressor_condition(model, limits)

    def penalty(q: Array, v: Array, a: Array) -> float:
        motion = MotionSamples(criterion.measured.chain, q, v, a)
        return float(sum(constraint.penalty(motion).value for constraint in constraints))

    inner = limits.scaled(options.limit_use, options.limit_use)
    given = np.full(model.joints, np.nan)
    return IntervalProblem(TorqueRows(criterion), inner, given, options.combinations, penalty, unit_columns=True)


def plan_combinations(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions,
    report: Report = lambda fraction, condition: None,
) -> tuple[Plan, IntervalPlan]:
    """Plan from ``start`` to the first waypoint, through the intervals, and back.

    Raises
    ------
    ExcitationError
        The start is outside the limits or breaks a constraint, or there are too few combinations.
    """
    constraints = motion_constraints(model, limits, options)
    for constraint in constraints:
        constraint.check_start(start)
    problem = torque_problem(model, limits, options, constraints)
    found = plan_intervals(problem, options.seed, time.monotonic() + options.time_limit_s, report)

    def plan(share: float) -> Plan:
        motion = replace(
            found.motion, start=start + share * (found.motion.start - start), range=share * found.motion.range
        )
        whole = _there_and_back(motion, start, problem.limits)
        return plan_of(
            whole, limits, knot_step=options.knot_step_s, motion_type=options.kind, model_hash=model.hash,
            seed=options.seed,
            condition_number=criterion_value(problem.rows.criterion, whole) if isinstance(problem.rows, TorqueRows)
            else float("nan"),
        )

    complaint = _complaint(plan(1.0), limits, constraints)
    if not complaint:
        return plan(1.0), found
    low, high = 0.0, 1.0
    for _ in range(_SHRINK_ROUNDS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _complaint(plan(middle), limits, constraints) else (middle, high)
    if low == 0:
        raise ExcitationError(f"no motion fits at the start pose: {complaint}")
    return plan(low), found


def _there_and_back(motion: IntervalMotion, start: Array, limits: MotionLimits) -> Trajectory:
    velocity, acceleration = _RAMP_USE * limits.velocity, _RAMP_USE * limits.acceleration
    waypoints = motion.waypoints
    there = QuinticRamp.within(start, waypoints[0], velocity, acceleration)
    back = QuinticRamp.within(waypoints[-1], start, velocity, acceleration)
    return Concatenation([there, motion.trajectory, back])


def _complaint(plan: Plan, limits: MotionLimits, constraints: Sequence[Constraint]) -> str:
    """The first constraint that does not hold."""
    try:
        for constraint in constraints:
            constraint.check(plan, limits)
    except ExcitationError as error:
        return str(error)
    return ""
