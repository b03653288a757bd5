"""Descents from several starts at once, one process each: the answer does not depend on how many.

Every start is improved by itself, so the motion that comes of it is the same wherever that happens. Rounding of linear
algebra depends on its number of threads, and a long descent magnifies it; so a process has one thread, and this process
does the work itself only where it has one too.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.worker import Worker
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.robot.model import RobotModel

from .descent import Candidate, finished, improved
from .planning_problem import Problem

_POLL_S = 0.02
_GRACE_S = 120.0  # after the deadline, for finishing
_STARTUP_S = 4.0  # with less time left a process would have none for its work

Tell = Callable[[int, float, float], None]
"""Called with the index of a start, the fraction done, and the best smooth logarithm of the criterion."""


@dataclass(frozen=True)
class Improvement:
    """One start to improve; everything that another process needs.

    Attributes
    ----------
    shape : ndarray, shape (size, n)
        To begin with.
    deadline : float
        Monotonic, which processes of one machine share [s].
    """

    model: RobotModel
    limits: MotionLimits
    start: Array
    options: ExcitationOptions
    earlier: EarlierInformation | None
    shape: Array
    deadline: float


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


def improve_job(job: Improvement, progress: Callable[[DescentProgress], None]) -> Candidate:
    """Improve and finish one start."""
    problem = Problem(job.model, job.limits, job.start, job.options, job.earlier)
    shape = improved(
        problem, job.shape, job.options, job.deadline,
        lambda fraction, value, best: progress(DescentProgress(fraction, value, best)),
    )  # fmt: skip
    return finished(problem, shape, job.options)


class Descents:
    """Improves shapes; after an interrupt :attr:`interrupted` gives the best of those that had not ended."""

    def __init__(self, problem: Problem, deadline: float) -> None:
        self._problem, self._deadline = problem, deadline
        self._latest: dict[int, tuple[float, Array]] = {}

    def run(self, shapes: Sequence[Array], tell: Tell) -> Iterator[Candidate]:
        """A candidate for each shape, in no order but always the same ones; none begins after the deadline.

        Raises
        ------
        InertidError
            A process died, or no motion fits.
        """
        self._latest.clear()
        workers = min(self._problem.options.workers or len(os.sched_getaffinity(0)), len(shapes))
        short = self._deadline - time.monotonic() < _STARTUP_S
        if short or (workers <= 1 and single_threaded()):
            yield from self._here(shapes, tell)
        else:
            yield from self._elsewhere(shapes, tell, max(workers, 1))

    def interrupted(self) -> Iterator[Candidate]:
        """What there is of the descents that were cut short."""
        for index in sorted(self._latest, key=lambda index: self._latest[index][0])[:1]:
            yield finished(self._problem, self._latest[index][1], self._problem.options)

    def _here(self, shapes: Sequence[Array], tell: Tell) -> Iterator[Candidate]:
        problem, options = self._problem, self._problem.options
        for index, shape in enumerate(shapes):
            if index and time.monotonic() > self._deadline:
                return
            if index and problem.confined:  # a descent corrects its problem's penalties; each begins with new ones
                problem = Problem(problem.model, problem.limits, problem.start, options, problem.earlier)

            def report(done: float, value: float, best: Array, index: int = index) -> None:
                self._latest[index] = value, best
                tell(index, done, value)

            candidate = finished(problem, improved(problem, shape, options, self._deadline, report), options)
            self._latest.pop(index, None)
            tell(index, 1.0, float(np.log(candidate.value)))
            yield candidate

    def _elsewhere(self, shapes: Sequence[Array], tell: Tell, workers: int) -> Iterator[Candidate]:
        waiting, running = list(enumerate(shapes)), dict[int, Worker[DescentProgress, Candidate]]()
        problem = self._problem
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    index, shape = waiting.pop(0)
                    if index and time.monotonic() > self._deadline:
                        waiting.clear()
                        break
                    job = Improvement(
                        problem.model, problem.limits, problem.start, problem.options, problem.earlier, shape,
                        self._deadline,
                    )
                    timeout = max(self._deadline - time.monotonic(), 0.0) + _GRACE_S
                    running[index] = Worker("planning", improve_job, (job,), timeout)
                time.sleep(_POLL_S)
                for index, worker in list(running.items()):
                    ended = worker.poll()
                    if worker.progress is not None:
                        latest = worker.progress
                        self._latest[index] = latest.value, latest.shape
                        tell(index, latest.fraction, latest.value)
                    if ended:
                        del running[index]
                        candidate = worker.result()
                        self._latest.pop(index, None)
                        tell(index, 1.0, float(np.log(candidate.value)))
                        yield candidate
        finally:
            for worker in running.values():
                worker.cancel()


def single_threaded() -> bool:
    """Whether linear algebra in this process has one thread, as far as its environment says."""
    return os.environ.get("OPENBLAS_NUM_THREADS") == "1" or os.cpu_count() == 1
