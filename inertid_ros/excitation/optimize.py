"""Plan an exciting motion: random feasible starts, the best of them improved by descent, the best of those returned."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..robot.model import RobotModel
from ..robot.parameters import Array
from .constraints import tightest_words
from .improve import finished, improved
from .known import KnownInformation
from .limits import MotionLimits
from .options import ExcitationOptions
from .plan import Plan
from .problem import Problem
from .seeds import random_shape


@dataclass(frozen=True)
class PlanningProgress:
    """Where planning is: fraction 0 to 1, best condition number so far, and what holds the best motion back.

    Attributes
    ----------
    value: best criterion so far; the condition number itself where that is the criterion and nothing is known before.
    """

    fraction: float
    condition_number: float
    worst_constraint: str
    value: float = float("nan")


Progress = Callable[[PlanningProgress], None]
"""Called now and then; may raise to give up."""


def plan_excitation(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions | None = None,
    progress: Progress = lambda report: None,
    known: KnownInformation | None = None,
) -> Plan:
    """Plan a motion from ``start`` ``(n,)`` back to it that keeps its limits everywhere and excites well.

    The same options give the same motion, unless the time limit strikes; then the best motion so far is returned.

    Parameters
    ----------
    known: what earlier recordings said; the motion then asks for what they left open.

    Raises
    ------
    ExcitationError: the start is outside the limits or breaks a constraint, or there is no room to move; joint or
        link and values named.
    """
    options = options or ExcitationOptions()
    deadline = time.monotonic() + options.time_limit_s
    problem = Problem(model, limits, start, options, known)
    shapes = random_shapes(problem, options, deadline)
    best = finished(problem, shapes[0], options)
    limiting = tightest_words(best.plan, problem.inner, problem.constraints)

    def tell(fraction: float, value: float) -> None:
        progress(PlanningProgress(fraction, best.plan.condition_number, limiting, min(best.value, value)))

    for index, shape in enumerate(shapes[: options.improved]):

        def report(done: float, value: float, _shape: Array, before: int = index) -> None:
            tell((before + done) / options.improved, float(np.exp(value)))

        candidate = finished(problem, improved(problem, shape, options, deadline, report), options)
        if candidate.value < best.value:
            best, limiting = candidate, tightest_words(candidate.plan, problem.inner, problem.constraints)
        if time.monotonic() > deadline:
            break
    tell(1.0, best.value)
    return best.plan


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
