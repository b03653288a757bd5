"""Motions of cycloidal intervals with two parameters per joint (start, range per interval), and pruning of intervals.

In each interval every joint moves in one direction, given by a direction combination ([Naveen2019]_ sec. 5.2). Start
and range are the seed parameters of [Naveen2019]_ (eqs. 28-37); pruning is its algorithm 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array, IntArray, r_factor
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import CycloidalBasis, LinearTrajectory, Motion

_MAX_COMBINED_JOINTS = 40  # with more joints, the number of combinations does not fit a machine integer



def direction_combinations(slowness: Sequence[int], most: int) -> IntArray:
    """Distinct combinations of +1 and -1, ``(K, n)``: all ``2^(n-1)``, or ``most`` evenly spaced combinations.

    The combinations are in the order of a Gray code: if all are returned, a single joint reverses from one interval to
    the next; if only ``most`` are returned, several joints may reverse at once. ``slowness`` holds the index of every
    joint, slowest first: the first joint never reverses, the second joint reverses once, and so on. Slow joints sweep
    wide ranges, and fast joints stay near their start. A shuffled order, which [Naveen2019]_ allows, would keep all
    joints near their start; but only different poses separate some parameters, so the condition number would be far
    higher.
    """
    joints = len(slowness)
    if sorted(slowness) != list(range(joints)) or not 1 <= joints <= _MAX_COMBINED_JOINTS:
        raise ValueError(f"slowness is {list(slowness)}; give 0 to n - 1 once each, n <= {_MAX_COMBINED_JOINTS} joints")
    count = 2 ** (joints - 1)  # a motion and its reverse count once, so the first joint's direction is fixed
    index = np.arange(count) if count <= most else (np.arange(most) * count) // most
    code = index ^ (index >> 1)
    bits = (code[:, None] >> np.arange(joints - 1)[::-1]) & 1
    out = np.empty((len(index), joints), dtype=np.int64)
    out[:, slowness[0]] = 1
    out[:, list(slowness[1:])] = 1 - 2 * bits
    return out


@dataclass(frozen=True)
class IntervalMotion:
    """Cycloidal intervals of equal length [s], with waypoints from start and range ([Naveen2019]_ eqs. 30-31).

    Directions ``(K, n)`` are +1 or -1. ``start`` is the first waypoint, and ``range`` the positive distance of every
    joint per interval, ``(n,)`` each [rad or m].
    """

    directions: IntArray
    start: Array
    range: Array
    interval: float

    @property
    def waypoints(self) -> Array:
        """Waypoints ``(K + 1, n)``."""
        return self.start + _steps(self.directions) * self.range

    @cached_property
    def trajectory(self) -> LinearTrajectory:
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

    def only(self, intervals: Sequence[int]) -> "IntervalMotion":
        """Motion from the same start with a subset of the intervals in sequence."""
        return replace(self, directions=self.directions[list(intervals)])


def range_by_speed(limits: MotionLimits, interval: float) -> Array:
    """Largest range per interval ``(n,)`` within the limits of velocity and acceleration ([Naveen2019]_ eqs. 34-36)."""
    # Peaks of a cycloid: velocity 2 range / T, acceleration 2 pi range / T^2.
    return np.minimum(0.5 * interval * limits.velocity, interval**2 / (2 * np.pi) * limits.acceleration)


@dataclass(frozen=True)
class IntervalLimits:
    """Bounds and linear constraints on start and range for given directions ([Naveen2019]_ eqs. 33-37).

    ``lower <= start + lowest range`` and ``start + highest range <= upper``, ``0 < range <= largest``, ``(n,)`` each;
    ``lowest`` and ``highest`` are the extremes of the waypoints relative to the start, in multiples of the range.
    """

    lowest: Array
    highest: Array
    lower: Array
    upper: Array
    largest: Array

    @classmethod
    def from_directions(cls, directions: IntArray, limits: MotionLimits, interval: float) -> "IntervalLimits":
        steps, fast = _steps(directions), range_by_speed(limits, interval)
        lowest, highest = steps.min(axis=0), steps.max(axis=0)
        room = (limits.upper - limits.lower) / np.maximum(highest - lowest, 1)
        return cls(lowest, highest, limits.lower, limits.upper, np.minimum(fast, room))

    @property
    def matrix(self) -> Array:
        """``(2 n, 2 n)``; its product with (start, range) must not exceed :attr:`bound` ``(2 n,)``."""
        one = np.eye(len(self.lower))
        return np.block([[one, np.diag(self.highest)], [-one, -np.diag(self.lowest)]])

    @property
    def bound(self) -> Array:
        return np.concatenate([self.upper, -self.lower])

    def random(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Random start and range within the limits; ranges are 0.7 to 1 of the largest."""
        ranges = self.largest * rng.uniform(0.7, 1.0, len(self.largest))
        return rng.uniform(*self._starts(ranges)), ranges

    def fit(self, start: Array, ranges: Array) -> tuple[Array, Array]:
        """Nearest start and range within the limits: reduce ranges, then move starts."""
        ranges = np.minimum(ranges, self.largest)
        return np.clip(start, *self._starts(ranges)), ranges

    def _starts(self, ranges: Array) -> tuple[Array, Array]:
        low, high = self.lower - self.lowest * ranges, self.upper - self.highest * ranges
        return low, np.maximum(low, high)


def _steps(directions: IntArray) -> Array:
    """Waypoints ``(K + 1, n)`` relative to the start, in multiples of the range."""
    return np.vstack([np.zeros((1, directions.shape[1])), np.cumsum(directions, axis=0)])


def prune(blocks: Sequence[Array] | Array, significant: float = 1 / 300, neutral: int = 5) -> tuple[int, ...]:
    """Go through the intervals in order and keep the useful intervals; return their indices, ascending.

    ``blocks`` are equations ``(rows, p)`` of each interval. The first intervals are kept until there are more rows
    than columns. Each further interval is kept if it raises the number of significant singular values, or if it lowers
    the condition number. Singular values above the fraction
    ``significant`` (delta) of the largest value are significant. Up to ``neutral`` (u_max) other intervals are kept
    too, so that the motion depends less on the prior. The count of neutral intervals restarts when the number of
    significant values rises, as in the text of [Naveen2019]_; the listing there restarts it after every dropped
    interval, which would keep at least six of seven intervals.

    Raises
    ------
    ExcitationError
        All intervals together have at most as many rows as columns.
    """
    columns = blocks[0].shape[1]
    rows = np.cumsum([len(block) for block in blocks])
    if rows[-1] <= columns:
        raise ExcitationError(
            f"excitation: {len(blocks)} intervals have {rows[-1]} equations for {columns} parameters; raise"
            " excitation.combinations.offered or excitation.combinations.samples")
    kept = list(range(int(np.argmax(rows > columns)) + 1))
    factor = r_factor(np.vstack([blocks[index] for index in kept]))
    count, condition = rank_and_condition(factor, significant)
    without_gain = 0
    for index in range(len(kept), len(blocks)):
        longer = r_factor(np.vstack([factor, blocks[index]]))
        count_now, condition_now = rank_and_condition(longer, significant)
        if count_now > count:
            without_gain = 0
        elif condition_now >= condition:
            if count_now < count or without_gain >= neutral:
                continue
            without_gain += 1
        kept.append(index)
        factor, count, condition = longer, count_now, condition_now
    return tuple(kept)


def rank_and_condition(rows: Array, significant: float) -> tuple[int, float]:
    """Number of significant singular values, and condition number (infinite below full column rank)."""
    values = np.linalg.svd(rows, compute_uv=False)
    if values[0] == 0:
        return 0, float("inf")
    full = len(values) == rows.shape[1] and values[-1] > 0
    return int((values > significant * values[0]).sum()), float(values[0] / values[-1]) if full else float("inf")
