"""Plan an exciting motion: random feasible starts, the best of them improved by descent, the best of those returned."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.motion_constraints import limiting_constraint
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.robot.model import RobotModel

from .descent import Candidate, finished
from .parallel_descents import Descents
from .planning_problem import Problem
from .random_starts import random_shape
from .reduced_excitation import reduced

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanningProgress:
    """Where planning is.

    Attributes
    ----------
    fraction : float
        0 to 1.
    condition_number : float
        Of the best motion so far.
    worst_constraint : str
        What holds it back.
    value : float
        Its criterion, or what a descent has come to that is not finished yet.
    kept : int
        Combinations of parameters that the criterion counts.
    """

    fraction: float
    condition_number: float
    worst_constraint: str
    value: float = float("nan")
    kept: int = 0


Progress = Callable[[PlanningProgress], None]
"""Called now and then; may raise to give up."""


def optimize_motion(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions,
    progress: Progress = lambda report: None,
    earlier: EarlierInformation | None = None,
) -> Plan:
    """See :func:`inertid_ros.excitation.planner.plan_excitation`, for motions that are linear in their parameters."""
    deadline = time.monotonic() + options.time_limit_s
    problem = Problem(model, limits, start, options, earlier)
    shapes = random_shapes(problem, options, deadline)
    planning = _Planning(problem, deadline, progress, finished(problem, shapes[0], options))
    try:
        planning.descend(problem, shapes[: options.improved])
        if np.isfinite(options.criterion_bound):
            planning.reduce(options.criterion_bound)
    except KeyboardInterrupt:
        _log.warning("planning: interrupted; going on with the best motion so far")
        planning.interrupted()
    planning.report(1.0)
    return planning.best.plan


class _Planning:
    """The best motion so far, and how it is told."""

    def __init__(self, problem: Problem, deadline: float, progress: Progress, first: Candidate) -> None:
        self._problem, self._deadline, self._progress = problem, deadline, progress
        self._kept = problem.criterion.optimality.kept or problem.criterion.count
        self._descents = Descents(problem, deadline)
        self.best = first
        self._limiting = self._words(first)

    def descend(self, problem: Problem, shapes: Sequence[Array]) -> None:
        """Improve every shape; the best motion stays."""
        self._descents = Descents(problem, self._deadline)
        done = np.zeros(len(shapes))
        lowest = np.inf

        def tell(index: int, fraction: float, value: float) -> None:
            nonlocal lowest
            done[index], lowest = fraction, min(lowest, value)
            self.report(float(done.mean()), float(np.exp(lowest)))

        for candidate in self._descents.run(shapes, tell):
            self._take(candidate)

    def reduce(self, bound: float) -> None:
        """Leave out combinations of parameters until the bound is kept (C 4.5.2)."""
        problem = self._problem

        def improve(kept: int, begin: Candidate) -> Candidate:
            options = replace(problem.options, kept_parameters=kept)
            fewer = Problem(problem.model, problem.limits, problem.start, options, problem.earlier)
            self._kept, self.best = kept, finished(fewer, begin.shape, options)
            self.descend(fewer, [begin.shape])
            return self.best

        self._kept, self.best = reduced(problem.criterion, self.best, bound, improve)
        self._limiting = self._words(self.best)

    def interrupted(self) -> None:
        """Take what the descents had come to."""
        for candidate in self._descents.interrupted():
            self._take(candidate)

    def report(self, fraction: float, value: float = np.inf) -> None:
        """Tell how far planning has come."""
        best = self.best
        self._progress(
            PlanningProgress(
                fraction, best.plan.condition_number, self._limiting, min(best.value, value), self._kept
            )
        )

    def _take(self, candidate: Candidate) -> None:
        if candidate.value < self.best.value:
            self.best, self._limiting = candidate, self._words(candidate)

    def _words(self, candidate: Candidate) -> str:
        return limiting_constraint(candidate.plan, self._problem.inner, self._problem.constraints)


def random_shapes(problem: Problem, options: ExcitationOptions, deadline: float = np.inf) -> list[Array]:
    """Random shapes ``(size, n)``, the best first; at least one, whatever the deadline [s, monotonic]."""
    rng = np.random.default_rng(options.seed)
    found: list[tuple[float, int, Array]] = []
    for index in range(options.starts):
        shape = problem.settled(random_shape(problem.basis, problem.start, problem.inner, rng))
        found.append((problem.value(shape), index, shape))
        if time.monotonic() > deadline:
            break
    return [shape for _, _, shape in sorted(found, key=lambda entry: entry[:2])]
