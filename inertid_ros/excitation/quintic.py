"""Piecewise quintic motion through knots of position, velocity and acceleration, and its exact extremes.

A JointTrajectoryController interpolates its points with this curve, so bounds on the curve also bound the command.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array, Mask

_MAX_HALVINGS = 40


@dataclass(frozen=True)
class PiecewiseQuintic:
    """Curve with continuous acceleration through knots ``(N, n)`` at N >= 2 strictly increasing times ``(N,)`` [s]."""

    time: Array
    position: Array
    velocity: Array
    acceleration: Array

    @property
    def duration(self) -> float:
        """Time of the last knot [s]; the duration of a curve that begins at zero."""
        return float(self.time[-1])

    def knots(self, rows: slice | Mask) -> Array:
        """Position, velocity and acceleration ``(3, P, n)`` at some of the knots."""
        return np.array([self.position[rows], self.velocity[rows], self.acceleration[rows]])

    @cached_property
    def coefficients(self) -> Array:
        """Coefficients ``(N - 1, 6, n)`` of ``q = sum_k c_k x^k``; ``x`` is the time since the knot before [s]."""
        h = np.diff(self.time)[:, None]
        (q0, v0, a0), (q1, v1, a1) = self.knots(slice(-1)), self.knots(slice(1, None))
        # Error of the quadratic terms at the segment's end, to be removed by the higher terms; in units of position.
        dq = q1 - q0 - h * v0 - 0.5 * h**2 * a0
        dv = h * (v1 - v0 - h * a0)
        da = h**2 * (a1 - a0)
        c3 = (10 * dq - 4 * dv + 0.5 * da) / h**3
        c4 = (-15 * dq + 7 * dv - da) / h**4
        c5 = (6 * dq - 3 * dv + 0.5 * da) / h**5
        return np.stack([q0, v0, 0.5 * a0, c3, c4, c5], axis=1)

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration ``(M, n)`` at times ``(M,)`` [s], clipped to the range of the knots."""
        t = np.clip(np.asarray(t, dtype=float), self.time[0], self.time[-1])
        index = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2)
        x = (t - self.time[index])[:, None]
        c = self.coefficients[index]
        q, v, a = c[:, 5], 5 * c[:, 5], 20 * c[:, 5]
        for k in (4, 3, 2, 1, 0):
            q = q * x + c[:, k]
            if k >= 1:
                v = v * x + k * c[:, k]
            if k >= 2:
                a = a * x + k * (k - 1) * c[:, k]
        return q, v, a

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration ``(n,)`` at one time [s].

        Five times as fast as :meth:`sample`, for use at every joint state.
        """
        t = min(max(t, self._times[0]), self._times[-1])
        index = min(bisect_right(self._times, t), len(self._times) - 1) - 1
        x = t - self._times[index]
        powers = ((1.0, x, x**2, x**3, x**4, x**5), (0.0, 1.0, 2 * x, 3 * x**2, 4 * x**3, 5 * x**4),
                  (0.0, 0.0, 2.0, 6 * x, 12 * x**2, 20 * x**3))
        q, v, a = np.array(powers) @ self.coefficients[index]
        return q, v, a

    @cached_property
    def _times(self) -> list[float]:
        return self.time.tolist()

    def control_points(self, order: int) -> Array:
        """Bernstein coefficients ``(N - 1, 6 - order, n)`` of a derivative, which bound it on each segment."""
        return control_points(np.diff(self.time)[:, None], self.knots(slice(-1)), self.knots(slice(1, None)), order)

    def _maximum(self, order: int, joint: int, sign: float) -> tuple[float, float]:
        """Upper bound on ``sign`` times a derivative of one joint over the whole curve, and the maximum's time [s].

        Segments with a Bernstein coefficient above the largest value so far are halved (de Casteljau).
        """
        points = sign * self.control_points(order)[:, :, joint]
        left, width = self.time[:-1].copy(), np.diff(self.time)
        best, where = -np.inf, float(self.time[0])
        scale = float(np.abs(points).max(initial=0.0))
        for _ in range(_MAX_HALVINGS):
            for column, at in ((0, left), (-1, left + width)):
                top = int(np.argmax(points[:, column]))
                if points[top, column] > best:
                    best, where = float(points[top, column]), float(at[top])
            keep = points.max(axis=1) > best + 1e-13 * scale
            if not keep.any():
                break
            points, left, width = _halved(points[keep]), left[keep], 0.5 * width[keep]
            left, width = np.concatenate([left, left + width]), np.tile(width, 2)
        return max(best, float(points.max(initial=-np.inf)) if keep.any() else best), where

    def extremes(self, order: int) -> tuple[Array, Array]:
        """Smallest and largest derivative of an order over the whole curve, and their times [s], ``(2, n)`` each."""
        joints, signs = range(self.position.shape[1]), (-1.0, 1.0)
        found = np.array([[self._maximum(order, joint, sign) for joint in joints] for sign in signs])
        return found[..., 0] * np.array(signs)[:, None], found[..., 1]


def control_points(h: Array, begin: Sequence[Array] | Array, end: Sequence[Array] | Array, order: int) -> Array:
    """Bernstein coefficients ``(..., 6 - order, n)`` of a derivative of quintics that last ``h`` [s].

    ``begin`` and ``end`` each hold position, velocity and acceleration, ``(..., n)``.
    """
    (q0, v0, a0), (q1, v1, a1) = begin, end
    third, fourth = q0 + 2 * h * v0 / 5 + h**2 * a0 / 20, q1 - 2 * h * v1 / 5 + h**2 * a1 / 20
    points = np.stack([q0, q0 + h * v0 / 5, third, fourth, q1 - h * v1 / 5, q1], axis=-2)
    for degree in range(5, 5 - order, -1):
        points = degree * np.diff(points, axis=-2) / h[..., None]
    return points


def exceeds(points: Array, bound: float, rounds: int = 30) -> Mask:
    """Mask ``(M,)`` of the polynomials that exceed ``bound`` on their segment, from Bernstein coefficients ``(M, d)``.

    Undecided parts are halved. A polynomial undecided after all rounds counts as exceeding, so ``False`` is a proof.
    """
    out = np.zeros(len(points), dtype=bool)
    owner = np.arange(len(points))
    for _ in range(rounds):
        over = (points[:, 0] > bound) | (points[:, -1] > bound)
        out[owner[over]] = True
        keep = (points.max(axis=1) > bound) & ~out[owner]
        if not keep.any():
            return out
        points, owner = _halved(points[keep]), np.tile(owner[keep], 2)
    out[owner] = True
    return out


def _halved(points: Array) -> Array:
    """``(2 M, d)`` Bernstein coefficients of all first halves of ``(M, d)`` segments, then of all second halves."""
    first, last = [points[:, 0]], [points[:, -1]]
    row = points
    for _ in range(points.shape[1] - 1):
        row = 0.5 * (row[:, :-1] + row[:, 1:])
        first.append(row[:, 0])
        last.append(row[:, -1])
    return np.concatenate([np.stack(first, 1), np.stack(last[::-1], 1)])
