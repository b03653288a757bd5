"""Random feasible shapes to begin the search with."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.trajectories import Basis, CycloidalBasis

_RISE = 0.15  # of the duration; how fast a Fourier motion may go to the middle of its range
_GRID = 400


def random_shape(basis: Basis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """``(size, n)`` parameters of a random motion from ``start``; to be scaled into the limits."""
    if isinstance(basis, CycloidalBasis):
        return _walk(basis, start, limits, rng)
    return _oscillation(basis, start, limits, rng)


def _oscillation(basis: Basis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """Oscillation about a point between start and middle of the range, so that a start near a limit is no loss."""
    time = np.linspace(0.0, basis.duration, _GRID)
    phi = basis.evaluate(time)[0]
    ramp = np.clip(np.minimum(time, time[::-1]) / (_RISE * basis.duration), 0.0, 1.0)
    towards = np.linalg.lstsq(phi, ramp**3 * (10 - 15 * ramp + 6 * ramp**2), rcond=None)[0]
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    shape = rng.normal(size=(basis.size, len(start)))
    shape *= half * rng.uniform(0.3, 1.0, len(start)) / np.maximum(np.abs(phi @ shape).max(axis=0), 1e-12)
    return shape + np.outer(towards, (middle - start) * rng.uniform(0.0, 1.0, len(start)))


def _walk(basis: CycloidalBasis, start: Array, limits: MotionLimits, rng: np.random.Generator) -> Array:
    """Random waypoints in the box, each within reach of the last and, for a closed motion, of the way back."""
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
