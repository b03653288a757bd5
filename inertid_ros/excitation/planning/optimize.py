"""Motions that are linear in their parameters: the best of random starts are improved by descent, the best is kept."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import attrs
import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.motion_constraints import limiting_constraint
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.robot.model import RobotModel

from .descent import Candidate, finish_plan
from .parallel_descents import ParallelDescents
from .planning_problem import PlanningProblem
from .random_starts import random_shapes
from .reduced_excitation import reduce_excitation

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanningProgress:
    """How far planning has come.

    Attributes
    ----------
    fraction : float
        Of the whole, 0 to 1.
    condition_number : float
        Of the best motion so far.
    worst_constraint : str
        The limit or constraint that it comes closest to.
    value : float
        Its criterion, or that of a descent which is not finished yet.
    kept : int
        Number of combinations of parameters in the criterion.
    """

    fraction: float
    condition_number: float
    worst_constraint: str
    value: float = float("nan")
    kept: int = 0


PlanningReport = Callable[[PlanningProgress], None]
"""Called now and then; may raise to cancel."""


def optimize_motion(
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    options: ExcitationOptions,
    report: PlanningReport = lambda progress: None,
    earlier: EarlierInformation | None = None,
) -> Plan:
    """See :func:`inertid_ros.excitation.planner.plan_excitation`, for motions that are linear in their parameters."""
    deadline = time.monotonic() + options.time_limit_s
    problem = PlanningProblem(model, limits, start, options, earlier)
    shapes = random_shapes(problem, options, deadline)
    search = _Search(problem, deadline, report, finish_plan(problem, shapes[0]))
    try:
        search.descend(problem, shapes[: options.improved])
        if np.isfinite(options.criterion_bound):
            search.reduce(options.criterion_bound)
    except KeyboardInterrupt:
        _log.warning("planning: interrupted; going on with the best motion so far")
        search.finish_interrupted()
    search.report(1.0)
    return search.best.plan


class _Search:
    """The best motion so far, and reports of it."""

    def __init__(self, problem: PlanningProblem, deadline: float, report: PlanningReport, first: Candidate) -> None:
        self._problem, self._deadline, self._report = problem, deadline, report
        self._kept = problem.criterion.optimality.kept or problem.criterion.count
        self._descents = ParallelDescents(problem, deadline)
        self.best = first
        self._limiting = self._limiting_constraint(first)

    def descend(self, problem: PlanningProblem, shapes: Sequence[Array]) -> None:
        """Improve every shape; the best motion is kept."""
        self._descents = ParallelDescents(problem, self._deadline)
        done = np.zeros(len(shapes))
        lowest = np.inf

        def report(index: int, fraction: float, value: float) -> None:
            nonlocal lowest
            done[index], lowest = fraction, min(lowest, value)
            self.report(float(done.mean()), float(np.exp(lowest)))

        for candidate in self._descents.run(shapes, report):
            self._keep_better(candidate)

    def reduce(self, bound: float) -> None:
        """Drop combinations of parameters until the bound is kept ([Lee2019]_ sec. 4.5.2)."""
        problem = self._problem

        def improve(kept: int, begin: Candidate) -> Candidate:
            model, limits, start, options, earlier = problem.arguments
            fewer = PlanningProblem(model, limits, start, attrs.evolve(options, kept_parameters=kept), earlier)
            self._kept, self.best = kept, finish_plan(fewer, begin.shape)
            self.descend(fewer, [begin.shape])
            return self.best

        self._kept, self.best = reduce_excitation(problem.criterion, self.best, bound, improve)
        self._limiting = self._limiting_constraint(self.best)

    def finish_interrupted(self) -> None:
        """Finish the best shape of the descents that were interrupted."""
        for candidate in self._descents.interrupted():
            self._keep_better(candidate)

    def report(self, fraction: float, value: float = np.inf) -> None:
        """Report how far planning has come."""
        best = self.best
        self._report(
            PlanningProgress(
                fraction, best.plan.condition_number, self._limiting, min(best.value, value), self._kept
            )
        )

    def _keep_better(self, candidate: Candidate) -> None:
        if candidate.value < self.best.value:
            self.best, self._limiting = candidate, self._limiting_constraint(candidate)

    def _limiting_constraint(self, candidate: Candidate) -> str:
        return limiting_constraint(candidate.plan, self._problem.planning_limits, self._problem.constraints)
