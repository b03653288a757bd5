"""Entry point of planning: find an exciting motion by descent from the best of random shapes."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import attrs
import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import Basis, CycloidalBasis
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.planning.descent import Candidate, finish_plan, improve_shapes
from inertid_ros.excitation.planning.interval_planner import plan_fixed_base
from inertid_ros.excitation.planning.planning_problem import PlanningProblem
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.robot.model import RobotModel

_RAMP_SHARE = 0.15  # of the duration, for the ramp of a Fourier motion towards the middle of its range
_RAMP_SAMPLES = 400

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanningProgress:
    """Fraction of planning done, and condition number of the best motion so far.

    ``value`` is the smallest criterion of the best motion and of unfinished descents. ``kept`` is the number of
    combinations of parameters in the criterion.
    """

    fraction: float
    condition_number: float
    value: float = float("nan")
    kept: int = 0


PlanningReport = Callable[[PlanningProgress], None]
"""Called repeatedly during planning; may raise to cancel."""


def refuse_free_base(model: RobotModel) -> None:
    """Reject robots with a free base, as their motion depends on the motion of the base."""
    if model.free:
        raise ExcitationError(
            f"{model.name}: its base is free (robot.base), so its motion cannot be planned; set robot.base to"
            " fixed for a robot whose root link rests on the ground, robot.wheels for a floating robot, or a single"
            " robot.plates for a robot on one foot")


def plan_excitation(
        model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions | None = None,
        report: PlanningReport = lambda progress: None, earlier: EarlierInformation | None = None) -> Plan:
    """Plan a well-exciting motion from ``start`` back to ``start`` within all limits.

    The same options give the same motion for any number of processes, unless the time limit is reached or the user
    interrupts (KeyboardInterrupt); then the best motion so far is returned.

    ExcitationError if the start is outside the limits or violates a constraint, if there is no space to move, or if
    ``options.criterion_bound`` cannot be reached.

    Parameters
    ----------
    start : (n,), pose at which the motion starts and ends [rad or m].
    earlier : information of earlier recordings, which the motion complements; unused for direction combinations.
    """
    options = options or ExcitationOptions()
    if options.kind == "combinations":
        return plan_fixed_base(
            model, limits, start, options,
            lambda fraction, condition: report(PlanningProgress(fraction, condition, condition)))[0]
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
    search.report(1.0)
    return search.best.plan


class _Search:
    """Best motion so far, and reports of progress."""

    def __init__(self, problem: PlanningProblem, deadline: float, report: PlanningReport, first: Candidate) -> None:
        self._problem, self._deadline, self._report = problem, deadline, report
        self._kept = problem.criterion.optimality.kept or problem.criterion.count
        self.best = first

    def descend(self, problem: PlanningProblem, shapes: Sequence[Array]) -> None:
        """Improve every shape and keep the best motion, also if the user interrupts a descent."""
        running: dict[int, tuple[float, Array]] = {}  # value and shape of each descent that has not ended
        done, lowest = np.zeros(len(shapes)), np.inf

        def report(index: int, fraction: float, value: float, shape: Array) -> None:
            nonlocal lowest
            done[index], lowest = fraction, min(lowest, value)
            running[index] = value, shape
            self.report(float(done.mean()), float(np.exp(lowest)))

        try:
            for index, candidate in improve_shapes(problem, shapes, self._deadline, report):
                self.best = min(self.best, candidate, key=lambda motion: motion.value)
                running.pop(index, None)
                done[index] = 1.0
                self.report(float(done.mean()), float(np.exp(lowest)))
        except KeyboardInterrupt:
            if running:
                candidate = finish_plan(problem, min(running.values(), key=lambda descent: descent[0])[1])
                self.best = min(self.best, candidate, key=lambda motion: motion.value)
            raise

    def reduce(self, bound: float) -> None:
        """Drop combinations of parameters until the motion excites the rest well ([Lee2019]_ sec. 4.5.2).

        [Lee2019]_ drops one combination at a time and optimises again. The criterion falls as combinations are dropped,
        so bisection finds their largest number. Every intermediate motion may raise the lower end of the bisection.
        """
        if self.best.value <= bound:
            return
        reduced = self.best
        low, high = self._excited_count(reduced, bound), self._kept - 1
        model, limits, start, options, earlier = self._problem.arguments
        while low < high:
            self._kept = middle = (low + high + 1) // 2
            fewer = PlanningProblem(model, limits, start, attrs.evolve(options, kept_parameters=middle), earlier)
            self.best = finish_plan(fewer, reduced.shape)
            self.descend(fewer, [reduced.shape])
            if self.best.value <= bound:
                low, reduced = max(middle, min(self._excited_count(self.best, bound), high)), self.best
            else:
                high = middle - 1
        if low == 0:
            raise ExcitationError(
                f"excitation.criterion_bound {bound:g} is too low: the criterion stays above it even with only one"
                " combination of parameters left; raise it")
        criterion = self._problem.criterion
        value = replace(criterion.optimality, kept=low).value(criterion.along(reduced.plan).eigenvalues)
        self._kept, self.best = low, replace(reduced, value=value)

    def report(self, fraction: float, value: float = np.inf) -> None:
        condition, value = self.best.plan.condition_number, min(self.best.value, value)
        self._report(PlanningProgress(fraction, condition, value, self._kept))

    def _excited_count(self, candidate: Candidate, bound: float) -> int:
        """Largest number of combinations at which the criterion of a motion is within the bound."""
        values = self._problem.criterion.along(candidate.plan).eigenvalues
        optimality = self._problem.criterion.optimality
        kept = (n for n in range(len(values), 0, -1) if replace(optimality, kept=n).value(values) <= bound)
        return next(kept, 0)


def random_shapes(problem: PlanningProblem, options: ExcitationOptions, deadline: float = np.inf) -> list[Array]:
    """Random shapes ``(size, n)``, the best first; at least one shape, even after the deadline [s, monotonic]."""
    rng = np.random.default_rng(options.seed)
    ranked: list[tuple[float, int, Array]] = []
    for index in range(options.starts):
        shape = problem.initial_shape(random_shape(problem.basis, problem.start, problem.planning_limits, rng))
        ranked.append((problem.value(shape), index, shape))
        if time.monotonic() > deadline:
            break
    return [shape for _, _, shape in sorted(ranked, key=lambda start: start[:2])]


def random_shape(basis: Basis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """Parameters ``(size, n)`` of a random motion from ``start``; to be scaled into the limits.

    Motions other than cycloidal motions oscillate about a point between start and middle of the range, so that a start
    near a limit leaves room.
    """
    if isinstance(basis, CycloidalBasis):
        return _random_waypoints(basis, start, limits, rng)
    grid = np.linspace(0.0, basis.duration, _RAMP_SAMPLES)
    phi = basis.evaluate(grid)[0]
    ramp = np.clip(np.minimum(grid, grid[::-1]) / (_RAMP_SHARE * basis.duration), 0.0, 1.0)
    towards = np.linalg.lstsq(phi, ramp**3 * (10 - 15 * ramp + 6 * ramp**2), rcond=None)[0]
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    shape = rng.normal(size=(basis.size, len(start)))
    shape *= half * rng.uniform(0.3, 1.0, len(start)) / np.maximum(np.abs(phi @ shape).max(axis=0), 1e-12)
    return shape + np.outer(towards, (middle - start) * rng.uniform(0.0, 1.0, len(start)))


def _random_waypoints(basis: CycloidalBasis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """Random waypoints; each can be reached in one interval and, for a closed motion, leaves time for the way back."""
    length = basis.duration / basis.intervals
    # Peaks of a cycloid: velocity 2 d / T, acceleration 2 pi d / T^2.
    step = np.minimum(0.5 * limits.velocity * length, limits.acceleration * length**2 / (2 * np.pi))
    at, points = start, []
    for index in range(basis.size):
        left = basis.intervals - 1 - index if basis.closed else np.inf
        low = np.max([limits.lower, at - step, start - left * step], axis=0)
        high = np.min([limits.upper, at + step, start + left * step], axis=0)
        at = rng.uniform(low, np.maximum(low, high))
        points.append(at - start)
    return np.array(points)
