"""Motions as exact functions of time: position, velocity and acceleration without differences.

Every motion starts and ends at rest: velocity and acceleration are zero at both ends by construction, so that
motions can be concatenated, repeated and entered by a robot at rest.

Fourier, cycloidal and B-spline motions are linear in their parameters, ``q(t) = start + Phi(t) @ parameters``; the
basis ``Phi`` depends on time alone. Scaling the parameters therefore scales the excursion, the velocity and the
acceleration alike, and the derivative of the motion with respect to its parameters is the basis itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError

from .basis_functions import Basis, Motion


class Trajectory(Protocol):
    """What every motion offers."""

    @property
    def duration(self) -> float:
        """Length [s]."""

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""

    def sample(self, t: Array) -> Motion:
        """``(N,)`` times [s] to position, velocity and acceleration, ``(N, n)`` each; held outside [0, duration]."""


@dataclass(frozen=True)
class LinearTrajectory:
    """``q(t) = start + Phi(t) @ parameters``.

    Attributes
    ----------
    basis : Basis
        The functions of time.
    start : ndarray, shape (n,)
        Pose at time zero [rad or m].
    parameters : ndarray, shape (basis.size, n)
        Coefficients of the functions.
    """

    basis: Basis
    start: Array
    parameters: Array

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.basis.duration

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""
        return self.basis.breaks

    def sample(self, t: Array) -> Motion:
        """``(N,)`` times [s] to position, velocity and acceleration, ``(N, n)`` each; held outside [0, duration]."""
        q, v, a = self.basis.evaluate(np.clip(np.asarray(t, dtype=float), 0.0, self.duration))
        return self.start + q @ self.parameters, v @ self.parameters, a @ self.parameters


@dataclass(frozen=True)
class QuinticRamp:
    """Minimum-jerk motion between two poses at rest, all joints in step: ``10 s^3 - 15 s^4 + 6 s^5``.

    Attributes
    ----------
    start, end : ndarray, shape (n,)
        Poses [rad or m].
    duration : float
        Length of the motion; equal poses make it a pause [s].
    """

    start: Array
    end: Array
    duration: float

    # Peaks of the unit ramp: velocity at s = 1/2, acceleration at s = 1/2 - sqrt(3)/6.
    PEAK_VELOCITY = 15.0 / 8.0
    PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.start).all() and np.isfinite(self.end).all()):
            raise ExcitationError("ramp: a pose is not finite; give finite numbers")
        if not (np.isfinite(self.duration) and self.duration > 0):
            raise ExcitationError(f"ramp: duration is {self.duration} s; give a positive one")

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
        """Times [s] at which the third derivative may jump, both ends included."""
        return np.array([0.0, self.duration])

    def sample(self, t: Array) -> Motion:
        """``(N,)`` times [s] to position, velocity and acceleration, ``(N, n)`` each; held outside [0, duration]."""
        s = np.clip(np.asarray(t, dtype=float) / self.duration, 0.0, 1.0)[:, None]
        step = self.end - self.start
        return (
            self.start + step * s**3 * (10 - 15 * s + 6 * s**2),
            step * 30 * s**2 * (1 - s) ** 2 / self.duration,
            step * 60 * s * (1 - s) * (1 - 2 * s) / self.duration**2,
        )


@dataclass(frozen=True)
class Concatenation:
    """Motions one after the other.

    Raises
    ------
    ExcitationError
        One does not begin where its predecessor ended.
    """

    parts: Sequence[Trajectory]

    def __post_init__(self) -> None:
        for index in range(1, len(self.parts)):
            before = self.parts[index - 1]
            gap = self.parts[index].sample(np.zeros(1))[0][0] - before.sample(np.array([before.duration]))[0][0]
            joint = int(np.argmax(np.abs(gap)))
            if abs(gap[joint]) > 1e-9:
                raise ExcitationError(
                    f"concatenation: motion {index} begins {gap[joint]:g} away from the end of its predecessor in joint"
                    f" {joint}; put a ramp between them"
                )

    @cached_property
    def _starts(self) -> Array:
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])])

    @property
    def duration(self) -> float:
        """Length [s]."""
        return float(self._starts[-1])

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""
        pieces = [start + part.breaks[:-1] for start, part in zip(self._starts, self.parts, strict=False)]
        return np.concatenate([*pieces, self._starts[-1:]])

    def sample(self, t: Array) -> Motion:
        """``(N,)`` times [s] to position, velocity and acceleration, ``(N, n)`` each; held outside [0, duration]."""
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
    """Times that hold every break of the motion and are at most ``step`` [s] apart."""
    breaks = trajectory.breaks
    pieces = [
        np.linspace(a, b, max(int(np.ceil((b - a) / step - 1e-9)), 1), endpoint=False)
        for a, b in zip(breaks[:-1], breaks[1:], strict=True)
    ]
    return np.concatenate([*pieces, breaks[-1:]])
