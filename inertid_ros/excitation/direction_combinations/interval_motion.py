"""Motions of two numbers per joint: where it starts, and how far it goes in every interval (B 28-37)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.basis_functions import CycloidalBasis, Motion
from inertid_ros.excitation.motions.trajectories import LinearTrajectory

from .directions import Directions


@dataclass(frozen=True)
class IntervalMotion:
    """Cycloidal intervals of equal length, whose waypoints follow from seed parameters (B 30-31).

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

    def __post_init__(self) -> None:
        joints = self.directions.shape[1]
        if self.start.shape != (joints,) or self.range.shape != (joints,) or not self.interval > 0:
            raise ExcitationError(
                f"interval motion: start {self.start.shape} and range {self.range.shape} do not fit {joints} joints, or"
                f" the interval {self.interval} s is not positive"
            )

    @property
    def waypoints(self) -> Array:
        """``(K + 1, n)``."""
        return self.start + _steps(self.directions) * self.range

    @cached_property
    def trajectory(self) -> LinearTrajectory:
        """The motion as every other (B 28-29)."""
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
        """The same seeds with some of the intervals, one after the other."""
        return replace(self, directions=self.directions[list(kept)])


@dataclass(frozen=True)
class SeedLimits:
    """What limits of motion leave to the seeds of given combinations: linear constraints and bounds (B 33-37).

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
    def of(cls, directions: Directions, limits: MotionLimits, interval: float) -> "SeedLimits":
        """Of combinations in their order.

        A cycloid's peaks are ``2 range / T`` in velocity and ``2 pi range / T^2`` in acceleration (B 34-36).
        """
        steps = _steps(directions)
        fast = np.minimum(0.5 * interval * limits.velocity, interval**2 / (2 * np.pi) * limits.acceleration)
        lowest, highest = steps.min(axis=0), steps.max(axis=0)
        room = (limits.upper - limits.lower) / np.maximum(highest - lowest, 1)
        return cls(lowest, highest, limits.lower, limits.upper, np.minimum(fast, room))

    @property
    def matrix(self) -> Array:
        """``(2 n, 2 n)``; times the seeds (start, range) it is at most :attr:`bound`."""
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
        """The nearest seeds within the limits: ranges cut, then starts moved."""
        ranges = np.minimum(ranges, self.largest)
        low, high = self.lower - self.lowest * ranges, self.upper - self.highest * ranges
        return np.clip(start, low, np.maximum(low, high)), ranges


def _steps(directions: Directions) -> Array:
    """``(K + 1, n)`` waypoints in ranges from the start."""
    return np.vstack([np.zeros((1, directions.shape[1])), np.cumsum(directions, axis=0)])
