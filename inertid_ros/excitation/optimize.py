"""Plan an exciting motion: random feasible starts, then gradient descent over shapes that are always feasible."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.optimize

from ..errors import ExcitationError
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .constraints import tightest_words
from .criteria import ConditionNumber
from .feasible import fitted
from .limits import MotionLimits
from .options import ExcitationOptions
from .plan import Plan, plan_of
from .problem import Problem
from .seeds import random_shape
from .trajectories import LinearTrajectory, Trajectory

_SHRINK_ROUNDS = 12
_REPORT_EVERY = 5


@dataclass(frozen=True)
class PlanningProgress:
    """Where planning is: fraction 0 to 1, best condition number so far, and what holds the best motion back."""

    fraction: float
    condition_number: float
    worst_constraint: str


Progress = Callable[[PlanningProgress], None]
"""Called now and then; may raise to give up."""


def plan_excitation(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions | None = None,
    progress: Progress = lambda report: None,
) -> Plan:
    """Plan a motion from ``start`` ``(n,)`` back to it that keeps its limits everywhere and excites well.

    The same options give the same motion, unless the time limit strikes; then the best motion so far is returned.

    Raises
    ------
    ExcitationError: the start is outside the limits or breaks a constraint, or there is no room to move; joint or
        link and values named.
    """
    options = options or ExcitationOptions()
    deadline = time.monotonic() + options.time_limit_s
    problem = Problem(model, limits, start, options)
    shapes = random_shapes(problem, options, deadline)
    best = finished(problem, shapes[0], options)
    limiting = tightest_words(best, problem.inner, problem.constraints)

    def tell(before: int, done: float, value: float) -> None:
        condition = min(best.condition_number, float(np.exp(value)))
        progress(PlanningProgress((before + done) / options.improved, condition, limiting))

    for index, shape in enumerate(shapes[: options.improved]):
        better = improved(problem, shape, options, deadline, partial(tell, index))
        plan = finished(problem, better, options)
        if plan.condition_number < best.condition_number:
            best, limiting = plan, tightest_words(plan, problem.inner, problem.constraints)
        if time.monotonic() > deadline:
            break
    progress(PlanningProgress(1.0, best.condition_number, limiting))
    return best


def random_shapes(problem: Problem, options: ExcitationOptions, deadline: float = np.inf) -> list[Array]:
    """Random shapes ``(size, n)``, the best first; at least one, whatever the deadline [s, monotonic]."""
    rng = np.random.default_rng(options.seed)
    found: list[tuple[float, int, Array]] = []
    for index in range(options.starts):
        shape = random_shape(problem.basis, problem.start, problem.inner, rng)
        found.append((problem.value(shape), index, shape))
        if time.monotonic() > deadline:
            break
    return [shape for _, _, shape in sorted(found, key=lambda entry: entry[:2])]


class _OutOfTimeError(Exception):
    """The deadline struck inside the optimiser."""


def improved(
    problem: Problem,
    shape: Array,
    options: ExcitationOptions,
    deadline: float = np.inf,
    report: Callable[[float, float], None] = lambda done, value: None,
) -> Array:
    """The best shape that gradient descent from ``shape`` meets before the deadline."""
    best, best_value, count = shape, np.inf, 0

    def objective(flat: Array) -> tuple[float, Array]:
        nonlocal best, best_value
        if time.monotonic() > deadline:
            raise _OutOfTimeError
        value, gradient = problem.gradient(flat.reshape(shape.shape))
        if value < best_value:
            best, best_value = flat.reshape(shape.shape).copy(), value
        return value, gradient.ravel()

    def count_iteration(_flat: Array) -> None:
        nonlocal count
        count += 1
        if count % _REPORT_EVERY == 0:
            report(min(count / options.iterations, 1.0), best_value)

    settings = {"maxiter": options.iterations, "maxfun": 3 * options.iterations, "maxcor": 20}
    if options.iterations:
        begin = problem.sized(shape).ravel()
        with contextlib.suppress(_OutOfTimeError):
            scipy.optimize.minimize(
                objective, begin, jac=True, method="L-BFGS-B", callback=count_iteration, options=settings
            )
    return best


def finished(problem: Problem, shape: Array, options: ExcitationOptions) -> Plan:
    """The plan of a shape at its exact size, made smaller as a whole until every constraint holds too.

    Raises
    ------
    ExcitationError: even a thousandth of the motion breaks a limit.
    """
    trajectory = fitted(
        LinearTrajectory(problem.basis, problem.start, shape), problem.inner, options.knot_step_s
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
    return plan_of(
        trajectory,
        problem.limits,
        knot_step=options.knot_step_s,
        kind=options.kind,
        model_hash=problem.model.hash,
        seed=options.seed,
        condition_number=motion_condition(problem.criterion, trajectory),
    )


def _complaint(problem: Problem, trajectory: LinearTrajectory, options: ExcitationOptions) -> str:
    """The first constraint that does not hold, by the same checks that a plan meets before it is executed."""
    plan = plan_of(trajectory, problem.limits, knot_step=options.knot_step_s)
    try:
        for constraint in problem.constraints:
            constraint.check(plan, problem.limits)
    except ExcitationError as error:
        return str(error)
    return ""


def motion_condition(criterion: ConditionNumber, trajectory: Trajectory, step: float = 0.05) -> float:
    """Condition number along a motion, sampled every ``step`` [s]."""
    instants = np.arange(0.5 * step, trajectory.duration, step)
    return criterion.evaluate(*trajectory.sample(instants)).condition_number
