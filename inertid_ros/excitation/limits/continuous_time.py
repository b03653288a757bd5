"""Proof that a function of a motion stays at or above zero on the whole of it, not only where it is sampled.

A function that changes by no more than ``rate`` per second cannot fall below ``(f0 + f1 - rate h) / 2`` between two
instants ``h`` apart at which it is ``f0`` and ``f1``. Where that bound is positive, the interval is proven; elsewhere
it is halved, until every part is proven or the function is negative at some instant. The rates come from
the motion's own derivatives, bounded on every interval through the Bernstein form of its polynomial.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.motions.quintic import PiecewiseQuintic
from inertid_ros.excitation.motions.trajectories import Trajectory, knot_times

_HALVINGS = 16
_MOST = 400_000  # undecided parts; more would take too long to decide
_KNOT_STEP = 0.01  # s


@dataclass(frozen=True)
class DerivativeBounds:
    """Bounds of the absolute derivatives of a motion on M segments.

    Attributes
    ----------
    velocity, acceleration, jerk : ndarray, shape (M, n)
        Largest absolute values.
    """

    velocity: Array
    acceleration: Array
    jerk: Array

    def rows(self, index: Array) -> "DerivativeBounds":
        """Those of some of the segments."""
        return DerivativeBounds(self.velocity[index], self.acceleration[index], self.jerk[index])


class Slack(Protocol):
    """Functions of a motion, numbered by channel, that shall not be negative."""

    def values(self, q: Array, v: Array, a: Array, channels: Array) -> Array:
        """``(K,)`` values of one channel each at ``(K, n)`` samples."""

    def rates(self, speeds: DerivativeBounds, channels: Array) -> Array:
        """``(K,)`` bounds of how fast one channel each can change on K segments [1/s]."""


@dataclass(frozen=True)
class Violation:
    """Where a function is negative, or (``value`` not negative) so close to zero that it cannot be proven positive."""

    time: float
    channel: int
    value: float


def executed_curve(trajectory: Trajectory) -> PiecewiseQuintic:
    """The curve that is executed: that of a plan's own knots, or of close knots on another motion."""
    curve = getattr(trajectory, "curve", None)
    if isinstance(curve, PiecewiseQuintic):
        return curve
    time = knot_times(trajectory, _KNOT_STEP)
    return PiecewiseQuintic(time, *trajectory.sample(time))


def derivative_bounds(curve: PiecewiseQuintic) -> DerivativeBounds:
    """Bounds of a curve on the segments between its knots, ``M = knots - 1``."""
    return DerivativeBounds(*(np.abs(curve.control_points(order)).max(axis=1) for order in (1, 2, 3)))


def find_violation(
    curve: PiecewiseQuintic, slack: Slack, bounds: DerivativeBounds, segments: NDArray[Any], channels: NDArray[Any]
) -> Violation | None:
    """The worst instant at which a channel is negative, or ``None`` if it is proven that there is none.

    Parameters
    ----------
    curve : PiecewiseQuintic
        The motion.
    slack : Slack
        Functions that shall not be negative.
    bounds : DerivativeBounds
        Of the curve, see :func:`derivative_bounds`.
    segments, channels : ndarray of int, shape (K,)
        Segments of the curve, and the channel to check on each.
    """
    left, right = curve.time[segments], curve.time[segments + 1]
    rates = slack.rates(bounds.rows(segments), channels)
    low, high = _at_knots(curve, slack, segments, channels)
    for _ in range(_HALVINGS):
        worst = _worst(left, right, low, high, channels)
        if worst is None or worst.value < 0:
            return worst
        open_ = 0.5 * (low + high - rates * (right - left)) < 0
        if not open_.any():
            return None
        left, right, low, high, rates, channels = (
            values[open_] for values in (left, right, low, high, rates, channels)
        )
        if len(left) > _MOST:
            break
        middle = 0.5 * (left + right)
        between = slack.values(*curve.sample(middle), channels)
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        low, high = np.concatenate([low, between]), np.concatenate([between, high])
        rates, channels = np.tile(rates, 2), np.tile(channels, 2)
    return _worst(left, right, low, high, channels)


def _at_knots(curve: PiecewiseQuintic, slack: Slack, segments: Array, channels: Array) -> tuple[Array, Array]:
    """Values at both ends of segments, of which adjacent ones share one."""
    keys = np.concatenate([segments, segments + 1]), np.tile(channels, 2)
    (knots, at), back = np.unique(np.array(keys), axis=1, return_inverse=True)
    values = slack.values(curve.position[knots], curve.velocity[knots], curve.acceleration[knots], at)
    low, high = values[back.ravel()].reshape(2, -1)
    return low, high


def _worst(left: Array, right: Array, low: Array, high: Array, channels: Array) -> Violation | None:
    if not len(left):
        return None
    values, times = (low, left) if low.min() < high.min() else (high, right)
    worst = int(np.argmin(values))
    return Violation(float(times[worst]), int(channels[worst]), float(values[worst]))


def find_anywhere(curve: PiecewiseQuintic, slack: Slack, count: int) -> Violation | None:
    """:func:`find_violation` on all segments of a curve with all of ``count`` channels."""
    pieces = len(curve.time) - 1
    channels, segments = np.tile(np.arange(count), pieces), np.repeat(np.arange(pieces), count)
    return find_violation(curve, slack, derivative_bounds(curve), segments, channels)
