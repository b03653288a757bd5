"""Gradient descent over shapes of motions within the limits, from one or several start shapes to a plan.

The solver is SciPy's L-BFGS. Each shape is scaled in closed form to the limits of position, velocity and acceleration
(:mod:`.planning_problem`); all other constraints are smooth penalties. So the problem is unconstrained, with a few
hundred variables, and a gradient costs as much as three evaluations. Sequential quadratic programming, as in
[Lee2019]_ sec. 4.6, would solve dense systems of all variables and constraints. :func:`finish_plan` then proves every
limit over the whole motion, and shrinks the motion if a limit does not hold.

The motion from a start shape does not depend on the number of processes. Rounding errors of linear algebra depend on
its number of threads, and a long descent magnifies them. So each worker process uses one thread, and this process
descends itself only if it also uses one thread or too little time is left to start a worker.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.worker import Worker
from inertid_ros.excitation.constraints.constraint import Constraint, first_problem
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import LinearTrajectory, Trajectory
from inertid_ros.excitation.plan import Plan, plan_of
from inertid_ros.excitation.planning.planning_problem import PlanningArguments, PlanningProblem, scale_to_limits
from inertid_ros.robot.model import RobotModel

_SHRINK_BISECTIONS = 12
_ITERATIONS_PER_REPORT = 5
_INFINITE_OBJECTIVE = 1e100  # replaces an objective that is not finite
_PENALTY_FACTORS = (1.0, 10.0, 100.0, 100.0, 100.0)  # by stage; the last two only if penalties were corrected
_WORKER_POLL_S = 0.02
_FINISHING_TIME_S = 120.0  # from the deadline until a worker must have finished its plan
_MIN_WORKER_TIME_S = 4.0  # with less time left, this process descends itself, as starting a worker takes long


ShapeReport = Callable[[float, float, Array], None]
"""Called every few iterations with the fraction done, the best value of the objective, and its shape."""


@dataclass(frozen=True)
class Candidate:
    """Finished motion, with its shape ``(size, n)`` and its exact criterion."""

    plan: Plan
    shape: Array
    value: float


class OutOfTimeError(Exception):
    """The deadline passed inside the optimiser."""


def improve_shape(
        problem: PlanningProblem, shape: Array, deadline: float = np.inf, report: ShapeReport = lambda done, value,
        shape: None) -> Array:
    """Best shape of a gradient descent from ``shape`` until the deadline [s, monotonic].

    If constraints other than joint limits restrict positions, penalties become stricter in stages, and ``problem``
    corrects them between stages. A remaining violation is then as small as the margin at which the penalty begins.
    """
    best, best_value, count, iterations = shape, np.inf, 0, problem.options.iterations
    stages = _PENALTY_FACTORS if problem.position_constrained else _PENALTY_FACTORS[:1]

    def objective(flat: Array) -> tuple[float, Array]:
        nonlocal best, best_value
        if time.monotonic() > deadline:
            raise OutOfTimeError
        with np.errstate(over="ignore", invalid="ignore"):  # penalties overflow if a line search goes far out
            value, gradient = problem.gradient(flat.reshape(shape.shape))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return _INFINITE_OBJECTIVE, np.zeros_like(flat)
        if value < best_value:
            best, best_value = flat.reshape(shape.shape).copy(), value
        return value, gradient.ravel()

    def count_iteration(_flat: Array) -> None:
        nonlocal count
        count += 1
        if count % _ITERATIONS_PER_REPORT == 0:
            report(min(count / iterations, 1.0), best_value, best)

    per_stage = -(-iterations // min(len(stages), 3))
    settings = {"maxiter": per_stage, "maxfun": 3 * per_stage, "maxcor": 20}
    if iterations:
        begin = shape if problem.position_constrained else problem.scaled_to_limits(shape)
        with contextlib.suppress(OutOfTimeError):
            for stage, penalty_factor in enumerate(stages):
                if stage and not problem.refine_penalties(begin) and penalty_factor == stages[stage - 1]:
                    break
                problem.penalty_factor, best, best_value = penalty_factor, begin, np.inf
                scipy.optimize.minimize(
                    objective, begin.ravel(), jac=True, method="L-BFGS-B", callback=count_iteration, options=settings)
                begin = best
    problem.penalty_factor = 1.0
    return best


def finish_plan(problem: PlanningProblem, shape: Array) -> Candidate:
    """Plan of a shape, scaled exactly to the joint limits, then down as a whole until every constraint holds."""
    options = problem.options
    scaled = problem.scaled_to_limits(shape) if problem.position_constrained else shape
    trajectory = LinearTrajectory(problem.basis, problem.start, scaled)
    largest = scale_to_limits(
        trajectory, problem.planning_limits, options.knot_step_s, grow=not problem.position_constrained)

    def plan_at(share: float) -> Plan:
        smaller = replace(largest, parameters=share * largest.parameters)
        return plan_with(options, problem.model, smaller, problem.limits)

    share = feasible_share(plan_at, problem.constraints)
    motion = replace(largest, parameters=share * largest.parameters)
    condition, value = (
        criterion.value(criterion.along(motion)) for criterion in (problem.comparison, problem.criterion))
    return Candidate(replace(plan_at(share), condition_number=condition), shape, value)


def plan_with(options: ExcitationOptions, model: RobotModel, trajectory: Trajectory, limits: MotionLimits) -> Plan:
    """Plan along a trajectory, with the kind, knots and seed of the options."""
    return plan_of(
        trajectory, limits, knot_step=options.knot_step_s, motion_type=options.kind, model_hash=model.hash,
        seed=options.seed)


def feasible_share(plan: Callable[[float], Plan], constraints: Sequence[Constraint]) -> float:
    """Largest share of a motion at which ``plan(share)`` keeps every constraint, by bisection from the whole motion.

    ExcitationError if even a thousandth of the motion violates a constraint.
    """

    def violation(share: float) -> str:
        candidate = plan(share)
        return first_problem(constraints, lambda constraint: constraint.check(candidate))

    if not (message := violation(1.0)):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_SHRINK_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if violation(middle) else (middle, high)
    if low == 0:
        raise ExcitationError(f"even a tiny motion from the start pose violates a constraint: {message}")
    return low


DescentReport = Callable[[int, float, float, Array], None]
"""Called with the index of a start shape and the arguments of :data:`ShapeReport`."""


def run_descent(
        arguments: PlanningArguments, shape: Array, deadline: float,
        progress: Callable[[tuple[float, float, Array]], None]) -> Candidate:
    """Improve and finish one start shape ``(size, n)`` in a worker process; the deadline [s] is on the parent's clock.

    Notices are not logged, as the parent process has logged them already.
    """
    logging.getLogger(__package__.partition(".")[0]).setLevel(logging.ERROR)
    problem = PlanningProblem(*arguments)
    better = improve_shape(problem, shape, deadline, lambda *best: progress(best))
    return finish_plan(problem, better)


def improve_shapes(
    problem: PlanningProblem, shapes: Sequence[Array], deadline: float, report: DescentReport
) -> Iterator[tuple[int, Candidate]]:
    """Improve start shapes and yield index and candidate of each, in any order.

    After the deadline only the first descent may begin; shapes that have not begun yield nothing.
    """
    workers = min(problem.options.workers or len(os.sched_getaffinity(0)), len(shapes))
    short = deadline - time.monotonic() < _MIN_WORKER_TIME_S
    # Whether linear algebra in this process uses one thread, according to the environment.
    single = os.environ.get("OPENBLAS_NUM_THREADS") == "1" or os.cpu_count() == 1
    if not short and (workers > 1 or not single):
        yield from _in_workers(problem, shapes, deadline, report, max(workers, 1))
        return
    for index, shape in enumerate(shapes):
        if index and time.monotonic() > deadline:
            return
        if index and problem.position_constrained:  # a descent needs fresh penalties and corrects them
            problem = PlanningProblem(*problem.arguments)
        yield index, finish_plan(problem, improve_shape(problem, shape, deadline, partial(report, index)))


def _in_workers(
    problem: PlanningProblem, shapes: Sequence[Array], deadline: float, report: DescentReport, workers: int
) -> Iterator[tuple[int, Candidate]]:
    waiting, running = list(enumerate(shapes)), dict[int, Worker[tuple[float, float, Array], Candidate]]()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                index, shape = waiting.pop(0)
                if index and time.monotonic() > deadline:
                    waiting.clear()
                    break
                timeout = max(deadline - time.monotonic(), 0.0) + _FINISHING_TIME_S
                running[index] = Worker("planning", run_descent, (problem.arguments, shape, deadline), timeout)
            time.sleep(_WORKER_POLL_S)
            for index, worker in list(running.items()):
                ended = worker.poll()
                if worker.progress is not None:
                    report(index, *worker.progress)
                if ended:
                    del running[index]
                    yield index, worker.result()
    finally:
        for worker in running.values():
            worker.cancel()
