"""One descent from one start: gradient steps over shapes that are always within the limits, then a finished plan.

The solver is SciPy's L-BFGS. Limits of position, velocity and acceleration, which an optimiser would otherwise carry as
thousands of inequalities at samples, are met by the size of a shape in closed form (:mod:`~..planning.feasible`), and
what remains are smooth penalties; so the problem has no constraints left, a few hundred variables, and gradients that
cost three evaluations. For that limited-memory BFGS needs one matrix product per step where sequential quadratic
programming (SLSQP, as in the source's SQP) solves dense systems of all variables and constraints; interior-point
solvers such as IPOPT want second derivatives or approximate them the same way, and would add a dependency. The last
word has :func:`finished`, which proves every limit on the whole interval and shrinks what does not hold.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.criteria.criterion import Criterion
from inertid_ros.excitation.limits.constraint import MotionSamples
from inertid_ros.excitation.motions.trajectories import LinearTrajectory, Trajectory
from inertid_ros.excitation.plans.plan import Plan, plan_of

from .feasible_size import fitted
from .planning_problem import Problem

_SHRINK_ROUNDS = 12
_REPORT_EVERY = 5
_FAR_OUT = 1e100  # stands for an objective that is no number
_STAGES = (1.0, 10.0, 100.0, 100.0, 100.0)  # strictness; the last ones where penalties had to be corrected

Report = Callable[[float, float, Array], None]
"""Called now and then with the fraction done, the best smooth logarithm of the criterion, and its shape."""


@dataclass(frozen=True)
class Candidate:
    """A finished motion and how good it is.

    Attributes
    ----------
    shape : ndarray, shape (size, n)
        Parameters of the basis that it came from.
    value : float
        Exact criterion.
    """

    plan: Plan
    shape: Array
    value: float


class _OutOfTimeError(Exception):
    """The deadline struck inside the optimiser."""


def improved(
    problem: Problem,
    shape: Array,
    options: ExcitationOptions,
    deadline: float = np.inf,
    report: Report = lambda done, value, shape: None,
) -> Array:
    """The best shape that gradient descent from ``shape`` meets before the deadline [s, monotonic].

    Where more than limits of single joints confines the motion, penalties become stricter in stages, and are
    corrected between them: what is left of a broken constraint in the end is as small as the room in which its
    penalty begins.
    """
    best, best_value, count = shape, np.inf, 0
    stages = _STAGES if problem.confined else _STAGES[:1]

    def objective(flat: Array) -> tuple[float, Array]:
        nonlocal best, best_value
        if time.monotonic() > deadline:
            raise _OutOfTimeError
        with np.errstate(over="ignore", invalid="ignore"):  # far out, penalties of a line search overflow
            value, gradient = problem.gradient(flat.reshape(shape.shape))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return _FAR_OUT, np.zeros_like(flat)
        if value < best_value:
            best, best_value = flat.reshape(shape.shape).copy(), value
        return value, gradient.ravel()

    def count_iteration(_flat: Array) -> None:
        nonlocal count
        count += 1
        if count % _REPORT_EVERY == 0:
            report(min(count / options.iterations, 1.0), best_value, best)

    each = -(-options.iterations // min(len(stages), 3))
    settings = {"maxiter": each, "maxfun": 3 * each, "maxcor": 20}
    if options.iterations:
        begin = shape if problem.confined else problem.sized(shape)
        with contextlib.suppress(_OutOfTimeError):
            for stage, strictness in enumerate(stages):
                if stage and not problem.refine(begin) and strictness == stages[stage - 1]:
                    break
                problem.strictness, best, best_value = strictness, begin, np.inf
                scipy.optimize.minimize(
                    objective, begin.ravel(), jac=True, method="L-BFGS-B", callback=count_iteration, options=settings
                )
                begin = best
    problem.strictness = 1.0
    return best


def finished(problem: Problem, shape: Array, options: ExcitationOptions) -> Candidate:
    """The plan of a shape at its exact size, made smaller as a whole until every constraint holds too.

    Raises
    ------
    ExcitationError
        Even a thousandth of the motion breaks a limit.
    """
    own = problem.sized(shape) if problem.confined else shape
    trajectory = fitted(
        LinearTrajectory(problem.basis, problem.start, own),
        problem.inner,
        options.knot_step_s,
        grow=not problem.confined,
    )
    complaint = _complaint(problem, trajectory, options)
    if complaint:
        low, high, whole = 0.0, 1.0, trajectory.parameters
        for _ in range(_SHRINK_ROUNDS):
            middle = 0.5 * (low + high)
            held = not _complaint(problem, replace(trajectory, parameters=middle * whole), options)
            low, high = (middle, high) if held else (low, middle)
        if low == 0:
            raise ExcitationError(f"no motion fits at the start pose: {complaint}")
        trajectory = replace(trajectory, parameters=low * whole)
    value = motion_value(problem.criterion, trajectory)
    plan = plan_of(
        trajectory,
        problem.limits,
        knot_step=options.knot_step_s,
        motion_type=options.kind,
        model_hash=problem.model.hash,
        seed=options.seed,
        condition_number=motion_value(problem.comparison, trajectory),
    )
    return Candidate(plan, shape, value)


def motion_value(criterion: Criterion, trajectory: Trajectory, step: float = 0.05) -> float:
    """The exact criterion along a motion, sampled every ``step`` [s]."""
    return criterion.value(criterion.evaluate(along(criterion, trajectory, step)))


def along(criterion: Criterion, trajectory: Trajectory, step: float = 0.05) -> MotionSamples:
    """Samples of a motion in the middle of steps of ``step`` [s]."""
    instants = np.arange(0.5 * step, trajectory.duration, step)
    return MotionSamples(criterion.measured.chain, *trajectory.sample(instants), step)


def _complaint(problem: Problem, trajectory: LinearTrajectory, options: ExcitationOptions) -> str:
    """The first constraint that does not hold, by the same checks that a plan meets before it is executed."""
    plan = plan_of(trajectory, problem.limits, knot_step=options.knot_step_s)
    try:
        for constraint in problem.constraints:
            constraint.check(plan, problem.limits)
    except ExcitationError as error:
        return str(error)
    return ""
