"""Random feasible shapes to begin the search with."""

import time

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.basis_functions import Basis, CycloidalBasis

from .planning_problem import PlanningProblem

_RISE = 0.15  # of the duration; how fast a Fourier motion may go to the middle of its range
_GRID = 400


def random_shapes(problem: PlanningProblem, options: ExcitationOptions, deadline: float = np.inf) -> list[Array]:
    """Random shapes ``(size, n)`` in the order of their criteria, the best first.

    At least one is returned, whatever the deadline [s, monotonic].
    """
    rng = np.random.default_rng(options.seed)
    ranked: list[tuple[float, int, Array]] = []
    for index in range(options.starts):
        shape = problem.initial_shape(random_shape(problem.basis, problem.start, problem.planning_limits, rng))
        ranked.append((problem.value(shape), index, shape))
        if time.monotonic() > deadline:
            break
    return [shape for _, _, shape in sorted(ranked, key=lambda start: start[:2])]


def random_shape(basis: Basis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """``(size, n)`` parameters of a random motion from ``start``; to be scaled into the limits."""
    if isinstance(basis, CycloidalBasis):
        return _random_waypoints(basis, start, limits, rng)
    return _random_oscillation(basis, start, limits, rng)


def _random_oscillation(basis: Basis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """Oscillation about a point between start and middle of the range, so that a start near a limit is no loss."""
    grid = np.linspace(0.0, basis.duration, _GRID)
    phi = basis.evaluate(grid)[0]
    ramp = np.clip(np.minimum(grid, grid[::-1]) / (_RISE * basis.duration), 0.0, 1.0)
    towards = np.linalg.lstsq(phi, ramp**3 * (10 - 15 * ramp + 6 * ramp**2), rcond=None)[0]
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    shape = rng.normal(size=(basis.size, len(start)))
    shape *= half * rng.uniform(0.3, 1.0, len(start)) / np.maximum(np.abs(phi @ shape).max(axis=0), 1e-12)
    return shape + np.outer(towards, (middle - start) * rng.uniform(0.0, 1.0, len(start)))


def _random_waypoints(basis: CycloidalBasis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """Random waypoints, each attainable within one interval and, for a closed motion, with the way back in time."""
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
