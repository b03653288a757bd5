"""Motions as closed-form functions of time; velocity and acceleration are zero at both ends.

Fourier ([Ayusawa2017]_ eqs. 48-50), cycloidal ([Naveen2019]_ eqs. 28-29) and B-spline ([Lee2019]_ sec. 4.4) motions are
linear in their parameters, ``q(t) = start + Phi(t) @ parameters``; the basis ``Phi`` depends on time only. A factor on
the parameters scales excursion, velocity and acceleration equally. The derivative with respect to the parameters is
``Phi``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError

_SPLINE_DEGREE = 5  # jerk is continuous, and the plan's quintics between knots equal the motion
_END_POINTS = 3  # control points at each end that fix position, velocity and acceleration there

Motion = tuple[Array, Array, Array]
"""Position, velocity and acceleration."""


@dataclass(frozen=True)
class FourierBasis:
    """Sines and cosines of multiples of a base frequency [Hz], combined to be at rest at both ends.

    The functions are an orthonormal basis of the null space of six linear constraints on the coefficients of
    ``1, sin(k w t) / (k w), cos(k w t) / (k w)``: value, velocity and acceleration are zero at 0 and at ``duration``.
    If the duration is a multiple of the period, three of the six constraints are redundant and ``2 harmonics - 2``
    functions remain; otherwise ``2 harmonics - 5``.
    """

    duration: float
    harmonics: int
    base_frequency: float

    def __post_init__(self) -> None:
        if self.harmonics < 1 or self.size < 1:
            cycles = self.duration * self.base_frequency
            raise ExcitationError(
                f"Fourier motion: {self.harmonics} harmonics are too few for rest at both ends; use at least"
                f" {2 if abs(cycles - round(cycles)) < 1e-9 else 3}")

    @property
    def size(self) -> int:
        return self._combination.shape[1]

    @property
    def breaks(self) -> Array:
        return np.array([0.0, self.duration])

    @cached_property
    def _combination(self) -> Array:
        """Coefficients ``(2 harmonics + 1, size)`` of the basis functions."""
        ends = [raw[row] for raw in self._raw(np.array([0.0, self.duration])) for row in (0, 1)]
        scale = np.array([np.abs(row).max() or 1.0 for row in ends])
        _, singular, right = np.linalg.svd(np.array(ends) / scale[:, None])
        null_space = right[int((singular > 1e-9 * singular[0]).sum()) :].T
        # The SVD leaves its rotation open, and kernels of linear algebra differ in it: take the basis nearest to fixed
        # vectors (orthogonal Procrustes problem), so that parameters mean the same motion on every processor.
        reference = np.random.default_rng(0).normal(size=null_space.shape)
        outer, _, inner = np.linalg.svd(null_space.T @ reference)
        return null_space @ outer @ inner

    def _raw(self, t: Array) -> Motion:
        w = 2 * np.pi * self.base_frequency * np.arange(1, self.harmonics + 1)
        sin, cos = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
        return np.hstack([one, sin / w, cos / w]), np.hstack([zero, cos, -sin]), np.hstack([zero, -w * sin, -w * cos])

    def evaluate(self, t: Array) -> Motion:
        q, v, a = self._raw(np.asarray(t, dtype=float))
        return q @ self._combination, v @ self._combination, a @ self._combination


@dataclass(frozen=True)
class CycloidalBasis:
    """Cycloidal motion from waypoint to waypoint, one interval each ([Naveen2019]_ eqs. 28-29).

    ``q(t) = q_i + (q_f - q_i) (s - sin(2 pi s) / (2 pi))`` with ``s`` from 0 to 1 over the interval: velocity and
    acceleration are zero at every waypoint. Parameters are the waypoints after the first, relative to the start;
    if ``closed``, the last waypoint is the start itself. Intervals have equal length; ``duration`` is in seconds.
    """

    duration: float
    intervals: int
    closed: bool = True

    @property
    def size(self) -> int:
        return self.intervals - int(self.closed)

    @property
    def breaks(self) -> Array:
        return np.linspace(0.0, self.duration, self.intervals + 1)

    def evaluate(self, t: Array) -> Motion:
        t = np.asarray(t, dtype=float)
        length = self.duration / self.intervals
        index = np.clip((t / length).astype(int), 0, self.intervals - 1)
        s = t / length - index
        shape = (s - np.sin(2 * np.pi * s) / (2 * np.pi), (1 - np.cos(2 * np.pi * s)) / length,
                 2 * np.pi * np.sin(2 * np.pi * s) / length**2)
        rows = np.arange(len(t))
        weights = np.zeros((3, len(t), self.intervals + 1))
        for order, value in enumerate(shape):  # column k is waypoint k; an interval blends its two ends
            weights[order, rows, index] = (1.0 if order == 0 else 0.0) - value
            weights[order, rows, index + 1] = value
        q, v, a = weights[:, :, 1 : 1 + self.size]
        return q, v, a


@dataclass(frozen=True)
class SplineBasis:
    """Quintic B-splines with uniform knots, without the splines that would move the ends.

    Position, velocity and acceleration at a clamped end depend on the three control points next to it. At both ends
    these points are fixed at the start pose, so the motion is closed and starts and ends at rest. Parameters are the
    other ``intervals - 1`` control points, relative to the start.
    """

    duration: float
    intervals: int

    @property
    def size(self) -> int:
        return self.intervals + _SPLINE_DEGREE - 2 * _END_POINTS

    @property
    def breaks(self) -> Array:
        return np.linspace(0.0, self.duration, self.intervals + 1)

    @cached_property
    def _functions(self) -> tuple["scipy.interpolate.BSpline", ...]:
        ends = np.full(_SPLINE_DEGREE, self.duration)
        knots = np.concatenate([0 * ends, self.breaks, ends])
        free = np.eye(self.intervals + _SPLINE_DEGREE)[:, _END_POINTS:-_END_POINTS]
        spline = scipy.interpolate.BSpline(knots, free, _SPLINE_DEGREE)
        return spline, spline.derivative(1), spline.derivative(2)

    def evaluate(self, t: Array) -> Motion:
        q, v, a = (np.asarray(function(t), dtype=float) for function in self._functions)
        return q, v, a


Basis = FourierBasis | CycloidalBasis | SplineBasis
"""Basis functions of a linear motion; their values and first two derivatives are zero at the start.

``evaluate(t)`` returns the functions and their first two derivatives, ``(N, size)`` each, at times ``(N,)`` [s];
``breaks`` are the times [s] at which the third derivative may jump, both ends included.
"""


class Trajectory(Protocol):
    """Motion of n joints; its third derivative may jump at ``breaks`` [s], both ends included."""

    @property
    def duration(self) -> float: ...

    @property
    def breaks(self) -> Array: ...

    def sample(self, t: Array) -> Motion:
        """Position, velocity and acceleration, ``(N, n)`` each, at times ``(N,)`` [s], clipped to [0, duration]."""


@dataclass(frozen=True)
class LinearTrajectory:
    """``q(t) = start + Phi(t) @ parameters``, with ``start`` ``(n,)`` [rad or m] and parameters ``(size, n)``."""

    basis: Basis
    start: Array
    parameters: Array

    @property
    def duration(self) -> float:
        return self.basis.duration

    @property
    def breaks(self) -> Array:
        return self.basis.breaks

    def sample(self, t: Array) -> Motion:
        q, v, a = self.basis.evaluate(np.clip(np.asarray(t, dtype=float), 0.0, self.duration))
        return self.start + q @ self.parameters, v @ self.parameters, a @ self.parameters


@dataclass(frozen=True)
class QuinticRamp:
    """Minimum-jerk motion between poses ``(n,)`` with synchronised joints: ``10 s^3 - 15 s^4 + 6 s^5``."""

    start: Array
    end: Array
    duration: float

    # Peaks of the unit ramp: velocity at s = 1/2, acceleration at s = 1/2 - sqrt(3)/6.
    PEAK_VELOCITY = 15.0 / 8.0
    PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)

    @classmethod
    def within(
        cls, start: Array, end: Array, velocity: Array, acceleration: Array, minimum_duration: float = 0.1
    ) -> "QuinticRamp":
        """Fastest ramp whose peak velocity and acceleration stay within ``(n,)`` limits (per s, per s^2)."""
        start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
        distance = np.abs(end - start)
        by_velocity = np.max(cls.PEAK_VELOCITY * distance / velocity, initial=0.0)
        by_acceleration = np.sqrt(np.max(cls.PEAK_ACCELERATION * distance / acceleration, initial=0.0))
        return cls(start, end, float(max(by_velocity, by_acceleration, minimum_duration)))

    @property
    def breaks(self) -> Array:
        return np.array([0.0, self.duration])

    def sample(self, t: Array) -> Motion:
        s, step = np.clip(np.asarray(t, dtype=float) / self.duration, 0.0, 1.0)[:, None], self.end - self.start
        q, v = self.start + step * s**3 * (10 - 15 * s + 6 * s**2), step * 30 * s**2 * (1 - s) ** 2 / self.duration
        return q, v, step * 60 * s * (1 - s) * (1 - 2 * s) / self.duration**2


@dataclass(frozen=True)
class Concatenation:
    """Motions in sequence; each part begins at the final pose of the previous part."""

    parts: Sequence[Trajectory]

    @cached_property
    def _starts(self) -> Array:
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])])

    @property
    def duration(self) -> float:
        return float(self._starts[-1])

    @property
    def breaks(self) -> Array:
        pieces = [start + part.breaks[:-1] for start, part in zip(self._starts, self.parts, strict=False)]
        return np.concatenate([*pieces, self._starts[-1:]])

    def sample(self, t: Array) -> Motion:
        t = np.asarray(t, dtype=float)
        owner = np.clip(np.searchsorted(self._starts, t, side="right") - 1, 0, len(self.parts) - 1)
        width = self.parts[0].sample(np.zeros(1))[0].shape[1]
        out = np.zeros((3, len(t), width))
        for index, part in enumerate(self.parts):
            rows = owner == index
            if rows.any():
                out[:, rows] = np.stack(part.sample(t[rows] - self._starts[index]))
        return out[0], out[1], out[2]


def knot_times(trajectory: Trajectory, step: float) -> Array:
    """Times at most ``step`` [s] apart, including every break of the motion."""
    breaks = trajectory.breaks
    pieces = [
        np.linspace(a, b, max(int(np.ceil((b - a) / step - 1e-9)), 1), endpoint=False)
        for a, b in zip(breaks[:-1], breaks[1:], strict=True)]
    return np.concatenate([*pieces, breaks[-1:]])
