"""ParallelDescents from several starts at once, one process each: the answer does not depend on how many.

Every start is improved by itself, so the motion that comes of it is the same wherever that happens. Rounding of linear
algebra depends on its number of threads, and a long descent magnifies it; so a process has one thread, and this process
does the work itself only where it has one too.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.worker import Worker

from .descent import Candidate, finish_plan, improve_shape
from .planning_problem import PlanningArguments, PlanningProblem

_POLL_S = 0.02
_GRACE_S = 120.0  # after the deadline, for finishing
_STARTUP_S = 4.0  # with less time left a process would have none for its work

DescentReport = Callable[[int, float, float], None]
"""Called with the index of a start, the fraction done, and the best smooth logarithm of the criterion."""


@dataclass(frozen=True)
class DescentProgress:
    """How far one descent has come.

    Attributes
    ----------
    fraction : float
        Of the descent, 0 to 1.
    value : float
        Smooth logarithm of the criterion of the best shape so far.
    shape : ndarray, shape (size, n)
        The best so far.
    """

    fraction: float
    value: float
    shape: Array


def run_descent(
    arguments: PlanningArguments, shape: Array, deadline: float, progress: Callable[[DescentProgress], None]
) -> Candidate:
    """Improve and finish one start ``(size, n)``; ``deadline`` [s] is on the monotonic clock, which processes share.

    It is for a process of its own, in which notices are not logged: who asked for the plan has told them already.
    """
    logging.getLogger(__package__.partition(".")[0]).setLevel(logging.ERROR)
    problem = PlanningProblem(*arguments)
    better = improve_shape(problem, shape, deadline, lambda *best: progress(DescentProgress(*best)))
    return finish_plan(problem, better)


class ParallelDescents:
    """Improves shapes; after an interrupt :attr:`interrupted` gives the best of those that had not ended."""

    def __init__(self, problem: PlanningProblem, deadline: float) -> None:
        self._problem, self._deadline = problem, deadline
        self._latest: dict[int, tuple[float, Array]] = {}

    def run(self, shapes: Sequence[Array], report: DescentReport) -> Iterator[Candidate]:
        """A candidate for each shape, always the same ones but in any order; none begins after the deadline.

        Raises
        ------
        InertidError
            A process failed, or no motion fits.
        """
        self._latest.clear()
        workers = min(self._problem.options.workers or len(os.sched_getaffinity(0)), len(shapes))
        short = self._deadline - time.monotonic() < _STARTUP_S
        if short or (workers <= 1 and single_threaded()):
            yield from self._in_this_process(shapes, report)
        else:
            yield from self._in_workers(shapes, report, max(workers, 1))

    def interrupted(self) -> Iterator[Candidate]:
        """The best of the descents that were interrupted, finished; nothing where none was."""
        for index in sorted(self._latest, key=lambda index: self._latest[index][0])[:1]:
            yield finish_plan(self._problem, self._latest[index][1])

    def _in_this_process(self, shapes: Sequence[Array], report: DescentReport) -> Iterator[Candidate]:
        problem = self._problem
        for index, shape in enumerate(shapes):
            if index and time.monotonic() > self._deadline:
                return
            if index and problem.position_constrained:  # a descent corrects penalties; each begins with new ones
                problem = PlanningProblem(*problem.arguments)

            def report_shape(done: float, value: float, best: Array, index: int = index) -> None:
                self._latest[index] = value, best
                report(index, done, value)

            better = improve_shape(problem, shape, self._deadline, report_shape)
            candidate = finish_plan(problem, better)
            self._latest.pop(index, None)
            report(index, 1.0, float(np.log(candidate.value)))
            yield candidate

    def _in_workers(self, shapes: Sequence[Array], report: DescentReport, workers: int) -> Iterator[Candidate]:
        waiting, running = list(enumerate(shapes)), dict[int, Worker[DescentProgress, Candidate]]()
        problem = self._problem
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    index, shape = waiting.pop(0)
                    if index and time.monotonic() > self._deadline:
                        waiting.clear()
                        break
                    timeout = max(self._deadline - time.monotonic(), 0.0) + _GRACE_S
                    job = (problem.arguments, shape, self._deadline)
                    running[index] = Worker("planning", run_descent, job, timeout)
                time.sleep(_POLL_S)
                for index, worker in list(running.items()):
                    ended = worker.poll()
                    if worker.progress is not None:
                        latest = worker.progress
                        self._latest[index] = latest.value, latest.shape
                        report(index, latest.fraction, latest.value)
                    if ended:
                        del running[index]
                        candidate = worker.result()
                        self._latest.pop(index, None)
                        report(index, 1.0, float(np.log(candidate.value)))
                        yield candidate
        finally:
            for worker in running.values():
                worker.cancel()


def single_threaded() -> bool:
    """Whether linear algebra in this process has one thread, according to its environment."""
    return os.environ.get("OPENBLAS_NUM_THREADS") == "1" or os.cpu_count() == 1
