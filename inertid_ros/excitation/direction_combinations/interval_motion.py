"""Motions of two numbers per joint, its start and its range per interval, and the directions that it takes in turn.

Direction combinations are those of [Naveen2019]_ sec. 5.2; the start and the range per interval are its seed parameters
(eqs. 28-37).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.basis_functions import CycloidalBasis, Motion
from inertid_ros.excitation.motions.trajectories import LinearTrajectory

Directions = NDArray[np.int64]
MOST_JOINTS = 40  # beyond, the number of combinations does not fit a machine integer


def direction_combinations(slowness: Sequence[int], most: int) -> Directions:
    """Combinations of +1 and -1, ``(K, n)``, each at most once; all ``2^(n-1)`` where that is not more than ``most``.

    They come in the order of a Gray code: from one interval to the next a single joint reverses. The joint that is
    first in ``slowness`` never does, the next one once, and so on. Slow joints therefore sweep wide ranges, while fast
    ones stay near their start; a shuffled order would keep all joints near theirs, and raise the condition number by a
    factor, since some parameters differ by configuration alone. The source leaves the order open.

    Parameters
    ----------
    slowness : sequence of int
        Every joint's index once, slowest first.
    most : int
        Offered at most; every ``2^(n-1) / most``-th of the code is taken then.
    """
    joints = len(slowness)
    if sorted(slowness) != list(range(joints)) or not 1 <= joints <= MOST_JOINTS:
        raise ValueError(f"slowness {list(slowness)} must name 1 to {MOST_JOINTS} joints once each")
    count = 2 ** (joints - 1)  # a motion and its reverse count once: the first joint's direction is fixed
    index = np.arange(count) if count <= most else (np.arange(most) * count) // most
    code = index ^ (index >> 1)
    bits = (code[:, None] >> np.arange(joints - 1)[::-1]) & 1
    out = np.empty((len(index), joints), dtype=np.int64)
    out[:, slowness[0]] = 1
    out[:, list(slowness[1:])] = 1 - 2 * bits
    return out


@dataclass(frozen=True)
class IntervalMotion:
    """Cycloidal intervals of equal length, whose waypoints follow from start and range ([Naveen2019]_ eqs. 30-31).

    Attributes
    ----------
    directions : ndarray of int, shape (K, n)
        Of +1 and -1.
    start : ndarray, shape (n,)
        First waypoint [rad or m].
    range : ndarray, shape (n,)
        Way of every joint in one interval, positive.
    interval : float
        Length of an interval [s].
    """

    directions: Directions
    start: Array
    range: Array
    interval: float

    @property
    def waypoints(self) -> Array:
        """``(K + 1, n)``."""
        return self.start + _steps(self.directions) * self.range

    @cached_property
    def trajectory(self) -> LinearTrajectory:
        """The motion in the common form ([Naveen2019]_ eqs. 28-29)."""
        count = len(self.directions)
        basis = CycloidalBasis(count * self.interval, count, closed=False)
        return LinearTrajectory(basis, self.start, self.waypoints[1:] - self.start)

    def sample(self, phases: Array) -> Motion:
        """Position, velocity and acceleration ``(K len(phases), n)`` at phases 0 to 1 of every interval in turn."""
        waypoints, phases = self.waypoints, np.asarray(phases)
        way = np.diff(waypoints, axis=0)[:, None]
        angle, joints = 2 * np.pi * phases[:, None], waypoints.shape[1]
        q = waypoints[:-1, None] + way * (phases[:, None] - np.sin(angle) / (2 * np.pi))
        v = way * (1 - np.cos(angle)) / self.interval
        a = way * 2 * np.pi * np.sin(angle) / self.interval**2
        return q.reshape(-1, joints), v.reshape(-1, joints), a.reshape(-1, joints)

    def only(self, kept: Sequence[int]) -> "IntervalMotion":
        """The same start and range with some of the intervals, one after the other."""
        return replace(self, directions=self.directions[list(kept)])


@dataclass(frozen=True)
class IntervalLimits:
    """Bounds and linear constraints on start and range for given directions ([Naveen2019]_ eqs. 33-37).

    ``lower <= start + lowest range`` and ``start + highest range <= upper``, ``0 < range <= largest``.

    Attributes
    ----------
    lowest, highest : ndarray, shape (n,)
        Extremes of the steps from the start, in ranges; not above and not below zero.
    lower, upper : ndarray, shape (n,)
        Limits of position.
    largest : ndarray, shape (n,)
        Of the range.
    """

    lowest: Array
    highest: Array
    lower: Array
    upper: Array
    largest: Array

    @classmethod
    def of(cls, directions: Directions, limits: MotionLimits, interval: float) -> "IntervalLimits":
        """Of combinations in their order.

        A cycloid's peaks are ``2 range / T`` in velocity and ``2 pi range / T^2`` in acceleration ([Naveen2019]_ eqs.
        34-36).
        """
        steps = _steps(directions)
        fast = np.minimum(0.5 * interval * limits.velocity, interval**2 / (2 * np.pi) * limits.acceleration)
        lowest, highest = steps.min(axis=0), steps.max(axis=0)
        room = (limits.upper - limits.lower) / np.maximum(highest - lowest, 1)
        return cls(lowest, highest, limits.lower, limits.upper, np.minimum(fast, room))

    @property
    def matrix(self) -> Array:
        """``(2 n, 2 n)``; its product with (start, range) is at most :attr:`bound`."""
        one = np.eye(len(self.lower))
        return np.block([[one, np.diag(self.highest)], [-one, -np.diag(self.lowest)]])

    @property
    def bound(self) -> Array:
        """``(2 n,)``."""
        return np.concatenate([self.upper, -self.lower])

    def random(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Start and range that keep the limits; ranges between 0.7 and 1 of the largest."""
        ranges = self.largest * rng.uniform(0.7, 1.0, len(self.largest))
        low, high = self.lower - self.lowest * ranges, self.upper - self.highest * ranges
        return rng.uniform(low, np.maximum(low, high)), ranges

    def fit(self, start: Array, ranges: Array) -> tuple[Array, Array]:
        """The nearest start and range within the limits: ranges are reduced, then starts moved."""
        ranges = np.minimum(ranges, self.largest)
        low, high = self.lower - self.lowest * ranges, self.upper - self.highest * ranges
        return np.clip(start, low, np.maximum(low, high)), ranges


def _steps(directions: Directions) -> Array:
    """``(K + 1, n)`` waypoints in ranges from the start."""
    return np.vstack([np.zeros((1, directions.shape[1])), np.cumsum(directions, axis=0)])
