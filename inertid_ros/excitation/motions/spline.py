"""Quintic B-splines with uniform knots: motions of control points with local effect ([Lee2019]_ sec. 4.4)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core.arrays import Array

from .basis_functions import Motion

_DEGREE = 5  # jerk is continuous, and the plan's quintics between knots are the motion itself
_AT_REST = 3  # control points at either end that hold position, velocity and acceleration


@dataclass(frozen=True)
class SplineBasis:
    """Quintic B-splines on intervals of equal length, those left out that would move the ends.

    A spline's position at its clamped end is its last control point, and velocity and acceleration are differences of
    the last three; with three points at the start pose on either end the motion is at rest there and closed. Parameters
    are the points between, relative to the start.

    Attributes
    ----------
    duration : float
        Length of the motion [s].
    intervals : int
        Number of intervals between knots, at least 2; ``intervals - 1`` functions remain.
    """

    duration: float
    intervals: int

    @property
    def size(self) -> int:
        """Number of functions."""
        return self.intervals + _DEGREE - 2 * _AT_REST

    @property
    def breaks(self) -> Array:
        """Times [s] at which the third derivative may jump, both ends included."""
        return np.linspace(0.0, self.duration, self.intervals + 1)

    @cached_property
    def _functions(self) -> tuple["scipy.interpolate.BSpline", ...]:
        ends = np.full(_DEGREE, self.duration)
        knots = np.concatenate([0 * ends, self.breaks, ends])
        free = np.eye(self.intervals + _DEGREE)[:, _AT_REST:-_AT_REST]
        spline = scipy.interpolate.BSpline(knots, free, _DEGREE)
        return spline, spline.derivative(1), spline.derivative(2)

    def evaluate(self, t: Array) -> Motion:
        """See :class:`.Basis`."""
        t = np.asarray(t, dtype=float)
        q, v, a = (np.asarray(function(t), dtype=float) for function in self._functions)
        return q, v, a
