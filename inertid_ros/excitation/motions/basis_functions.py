"""Functions of time that motions are combined from: Fourier series and cycloidal intervals.

Sources: [Ayusawa2017]_ eqs. 48-50 (Fourier series), [Naveen2019]_ eqs. 28-29 (cycloidal intervals).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError

Motion = tuple[Array, Array, Array]
"""Position, velocity and acceleration."""


class Basis(Protocol):
    """Scalar functions of time that a linear motion combines; all vanish with two derivatives at the start."""

    @property
    def duration(self) -> float:
        """Length [s]."""

    @property
    def size(self) -> int:
        """Number of functions."""

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""

    def evaluate(self, t: Array) -> Motion:
        """``(N,)`` times [s] to the functions and their first two derivatives, ``(N, size)`` each."""


@dataclass(frozen=True)
class FourierBasis:
    """Sines and cosines of multiples of a base frequency, combined so that every function is at rest at both ends.

    The functions are an orthonormal basis of the null space of six linear constraints on the coefficients of
    ``1, sin(k w t) / (k w), cos(k w t) / (k w)``: value, velocity and acceleration are zero at 0 and at ``duration``.
    Where the duration holds whole periods, three of the six follow from the others and ``2 harmonics - 2`` functions
    remain; otherwise ``2 harmonics - 5``.

    Attributes
    ----------
    duration : float
        Length of the motion [s].
    harmonics : int
        Number of multiples of the base frequency.
    base_frequency : float
        Base frequency; zero takes one period per duration [Hz].

    Raises
    ------
    ExcitationError
        Too few harmonics to move at all.
    """

    duration: float
    harmonics: int
    base_frequency: float = 0.0

    def __post_init__(self) -> None:
        if self.base_frequency == 0:
            object.__setattr__(self, "base_frequency", 1.0 / self.duration)
        if self.harmonics < 1 or self.size < 1:
            raise ExcitationError(
                f"Fourier motion: {self.harmonics} harmonics leave nothing after rest at both ends; use at least"
                f" {2 if self._periods else 3}"
            )

    @property
    def _periods(self) -> bool:
        cycles = self.duration * self.base_frequency
        return abs(cycles - round(cycles)) < 1e-9

    @property
    def size(self) -> int:
        """Number of functions."""
        return self._combination.shape[1]

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""
        return np.array([0.0, self.duration])

    @cached_property
    def _combination(self) -> Array:
        """``(2 harmonics + 1, size)``."""
        ends = [raw[row] for raw in self._raw(np.array([0.0, self.duration])) for row in (0, 1)]
        scale = np.array([np.abs(row).max() or 1.0 for row in ends])
        _, singular, right = np.linalg.svd(np.array(ends) / scale[:, None])
        rank = int((singular > 1e-9 * singular[0]).sum())
        return right[rank:].T

    def _raw(self, t: Array) -> Motion:
        w = 2 * np.pi * self.base_frequency * np.arange(1, self.harmonics + 1)
        sin, cos = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
        return (
            np.hstack([one, sin / w, cos / w]),
            np.hstack([zero, cos, -sin]),
            np.hstack([zero, -w * sin, -w * cos]),
        )

    def evaluate(self, t: Array) -> Motion:
        """``(N,)`` times [s] to the functions and their first two derivatives, ``(N, size)`` each."""
        q, v, a = self._raw(np.asarray(t, dtype=float))
        return q @ self._combination, v @ self._combination, a @ self._combination


@dataclass(frozen=True)
class CycloidalBasis:
    """Intervals in each of which a joint moves along a cycloid between waypoints ([Naveen2019]_ eqs. 28-29).

    ``q(t) = q_i + (q_f - q_i) (s - sin(2 pi s) / (2 pi))`` with ``s`` from 0 to 1 over the interval: velocity and
    acceleration are zero at every waypoint. Parameters are the waypoints after the first, relative to the start;
    with ``closed`` the last waypoint is the start itself.

    Attributes
    ----------
    duration : float
        Length of the motion [s].
    intervals : int
        Number of intervals of equal length.
    closed : bool
        Whether the motion returns to the start.
    """

    duration: float
    intervals: int
    closed: bool = True

    @property
    def size(self) -> int:
        """Number of functions."""
        return self.intervals - int(self.closed)

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""
        return np.linspace(0.0, self.duration, self.intervals + 1)

    def evaluate(self, t: Array) -> Motion:
        """``(N,)`` times [s] to the functions and their first two derivatives, ``(N, size)`` each."""
        t = np.asarray(t, dtype=float)
        length = self.duration / self.intervals
        index = np.clip((t / length).astype(int), 0, self.intervals - 1)
        s = t / length - index
        shape = (
            s - np.sin(2 * np.pi * s) / (2 * np.pi),
            (1 - np.cos(2 * np.pi * s)) / length,
            2 * np.pi * np.sin(2 * np.pi * s) / length**2,
        )
        rows = np.arange(len(t))
        out = []
        for order, value in enumerate(shape):
            # Column k is waypoint k of intervals + 1; an interval blends its two ends.
            weights = np.zeros((len(t), self.intervals + 1))
            weights[rows, index] = (1.0 if order == 0 else 0.0) - value
            weights[rows, index + 1] = value
            out.append(weights[:, 1 : 1 + self.size])
        return out[0], out[1], out[2]
