"""One descent from one start: gradient steps over shapes that are always within the limits, then a finished plan.

The solver is SciPy's L-BFGS. Limits of position, velocity and acceleration, which would otherwise be thousands of
inequalities at samples, are met by the size of a shape in closed form (:mod:`.feasible_size`), and what
remains are smooth penalties; so the problem is unconstrained, with a few hundred variables, and gradients that cost
three evaluations. For that limited-memory BFGS needs one matrix product per step where sequential quadratic
programming (SLSQP, as in the source's SQP) solves dense systems of all variables and constraints; interior-point
solvers such as IPOPT want second derivatives or approximate them the same way, and would add a dependency. In the end
:func:`finish_plan` proves every limit on the whole interval and shrinks the motion where one does not hold.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.motion_constraints import feasible_share
from inertid_ros.excitation.criteria.criterion import Criterion
from inertid_ros.excitation.limits.constraint import MotionSamples
from inertid_ros.excitation.motions.trajectories import LinearTrajectory, Trajectory
from inertid_ros.excitation.plans.plan import Plan, plan_of

from .feasible_size import scale_to_limits
from .planning_problem import PlanningProblem

_REPORT_EVERY = 5
_NOT_FINITE = 1e100  # replaces an objective that is not finite
_PENALTY_FACTORS = (1.0, 10.0, 100.0, 100.0, 100.0)  # by stage; the last ones where penalties had to be corrected

ShapeReport = Callable[[float, float, Array], None]
"""Called now and then with the fraction done, the best smooth logarithm of the criterion, and its shape."""


@dataclass(frozen=True)
class Candidate:
    """A finished motion and how good it is.

    Attributes
    ----------
    plan : Plan
        The motion.
    shape : ndarray, shape (size, n)
        Parameters of the basis that it was made from.
    value : float
        Exact criterion.
    """

    plan: Plan
    shape: Array
    value: float


class _OutOfTimeError(Exception):
    """The deadline passed inside the optimiser."""


def improve_shape(
    problem: PlanningProblem,
    shape: Array,
    deadline: float = np.inf,
    report: ShapeReport = lambda done, value, shape: None,
) -> Array:
    """The best shape that gradient descent from ``shape`` meets before the deadline.

    Where positions are constrained further than by the limits of single joints, penalties become stricter in stages,
    and are corrected between them: what is left of a violation in the end is as small as the margin in which its
    penalty begins.

    Parameters
    ----------
    problem : PlanningProblem
        Objective; its penalties are corrected.
    shape : ndarray, shape (size, n)
        Where the descent begins.
    deadline : float, optional
        On the monotonic clock [s].
    report : callable, optional
        See :data:`ShapeReport`.

    Returns
    -------
    ndarray, shape (size, n)
        The best shape.
    """
    best, best_value, count, iterations = shape, np.inf, 0, problem.options.iterations
    stages = _PENALTY_FACTORS if problem.position_constrained else _PENALTY_FACTORS[:1]

    def objective(flat: Array) -> tuple[float, Array]:
        nonlocal best, best_value
        if time.monotonic() > deadline:
            raise _OutOfTimeError
        with np.errstate(over="ignore", invalid="ignore"):  # far out, penalties of a line search overflow
            value, gradient = problem.gradient(flat.reshape(shape.shape))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return _NOT_FINITE, np.zeros_like(flat)
        if value < best_value:
            best, best_value = flat.reshape(shape.shape).copy(), value
        return value, gradient.ravel()

    def count_iteration(_flat: Array) -> None:
        nonlocal count
        count += 1
        if count % _REPORT_EVERY == 0:
            report(min(count / iterations, 1.0), best_value, best)

    each = -(-iterations // min(len(stages), 3))
    settings = {"maxiter": each, "maxfun": 3 * each, "maxcor": 20}
    if iterations:
        begin = shape if problem.position_constrained else problem.scaled_to_limits(shape)
        with contextlib.suppress(_OutOfTimeError):
            for stage, penalty_factor in enumerate(stages):
                if stage and not problem.refine_penalties(begin) and penalty_factor == stages[stage - 1]:
                    break
                problem.penalty_factor, best, best_value = penalty_factor, begin, np.inf
                scipy.optimize.minimize(
                    objective, begin.ravel(), jac=True, method="L-BFGS-B", callback=count_iteration, options=settings
                )
                begin = best
    problem.penalty_factor = 1.0
    return best


def finish_plan(problem: PlanningProblem, shape: Array) -> Candidate:
    """The plan of a shape at its exact size, made smaller as a whole until every constraint holds too.

    Raises
    ------
    ExcitationError
        Even a thousandth of the motion violates a constraint.
    """
    options = problem.options
    own = problem.scaled_to_limits(shape) if problem.position_constrained else shape
    trajectory = scale_to_limits(
        LinearTrajectory(problem.basis, problem.start, own),
        problem.planning_limits,
        options.knot_step_s,
        grow=not problem.position_constrained,
    )

    def smaller(share: float) -> LinearTrajectory:
        return replace(trajectory, parameters=share * trajectory.parameters)

    def plan_at(share: float) -> Plan:
        return plan_of(smaller(share), problem.limits, knot_step=options.knot_step_s)

    trajectory = smaller(feasible_share(plan_at, problem.constraints))
    value = criterion_value(problem.criterion, trajectory)
    plan = plan_of(
        trajectory,
        problem.limits,
        knot_step=options.knot_step_s,
        motion_type=options.kind,
        model_hash=problem.model.hash,
        seed=options.seed,
        condition_number=criterion_value(problem.comparison, trajectory),
    )
    return Candidate(plan, shape, value)


def criterion_value(criterion: Criterion, trajectory: Trajectory, step: float = 0.05) -> float:
    """The exact criterion along a motion, sampled every ``step`` [s]."""
    return criterion.value(criterion.evaluate(motion_samples(criterion, trajectory, step)))


def motion_samples(criterion: Criterion, trajectory: Trajectory, step: float = 0.05) -> MotionSamples:
    """Samples of a motion in the middle of steps of ``step`` [s]."""
    instants = np.arange(0.5 * step, trajectory.duration, step)
    return MotionSamples(criterion.measured.chain, *trajectory.sample(instants), step)
