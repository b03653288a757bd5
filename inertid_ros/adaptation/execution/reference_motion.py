"""The reference of a controlled arm: at rest, along a trajectory, or braking on it. Times are given by the caller."""

import numpy as np

from inertid_ros.adaptation.control.tracking import Reference
from inertid_ros.config.execution import BrakeOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.quintic import PiecewiseQuintic

_STRENGTH = 0.95  # of the acceleration limits that a brake uses; the rest is for its steps in time
_SHORTEST_REST_S = 0.05  # in which a motion that is hardly one comes to rest
_PEAK = 1.5  # peak over mean deceleration of a velocity that falls along a cubic
_AT_REST = 1e-5  # rate of a brake that has ended


class ReferenceMotion:
    """What the arm is asked for, as a function of time.

    A brake slows down the motion along its path, as those of plans do (:mod:`inertid_ros.excitation.execution.brake`):
    with ``q = curve(s)`` acceleration is ``curve'(s) s'' + curve''(s) s'^2``, and at every step the strongest ``s''``
    that keeps all joints within their acceleration limits is used, with a bounded rate of change. So the arm stays on
    a path that was checked, and within all limits.

    Parameters
    ----------
    limits : MotionLimits
        Of accelerations, and of positions at which the arm may come to rest.
    position, velocity : ndarray, shape (n,)
        From where it comes to rest.
    now : float
        [s]
    brake : BrakeOptions, optional
        How hard brakes may be.
    """

    def __init__(
        self, limits: MotionLimits, position: Array, velocity: Array, now: float, brake: BrakeOptions | None = None
    ) -> None:
        options = brake or BrakeOptions()
        self._limits = limits
        self._strongest, self._change = 1.0 / options.shortest_s, 1.0 / (options.shortest_s * options.rise_s)
        self.rest_from(position, velocity, now)

    @property
    def end(self) -> float:
        """When it is at rest, unless it brakes [s]."""
        return self._start + self._curve.duration

    @property
    def braking(self) -> bool:
        """Whether a brake has begun."""
        return self._braking

    def at_rest(self, now: float) -> bool:
        """Return whether the reference does not move any more at ``now``."""
        self._advance(now)
        return self._rate == 0.0 or self._phase >= self._curve.duration

    def at(self, now: float) -> Reference:
        """Return the reference at ``now``, which must not go back between calls."""
        self._advance(now)
        q, v, a = self._curve.at(self._phase)
        return Reference(q, v * self._rate, a * self._rate**2 + v * self._slowing)

    def rest_from(self, position: Array, velocity: Array, now: float) -> None:
        """Come to rest from a state ``(n,)``, within the acceleration limits and, where that is possible, in range."""
        duration = max(_SHORTEST_REST_S, float(np.max(_PEAK * np.abs(velocity) / self._limits.acceleration)))
        lower, upper = np.minimum(self._limits.lower, position), np.maximum(self._limits.upper, position)
        end = np.clip(position + 0.5 * duration * velocity, lower, upper)
        zero = np.zeros_like(end)
        ends = [np.array(pair, dtype=float) for pair in ((position, end), (velocity, zero), (zero, zero))]
        self.follow(PiecewiseQuintic(np.array([0.0, duration]), *ends), now)

    def follow(self, curve: PiecewiseQuintic, start: float) -> None:
        """Go along a curve that begins at zero, from ``start`` on; it is to be continuous with what was before."""
        self._curve, self._start = curve, start
        self._phase, self._rate, self._slowing, self._braking = 0.0, 1.0, 0.0, False
        self._advanced = start

    def brake(self) -> None:
        """Slow down along the path, until the arm is at rest."""
        self._braking = True

    def delay(self, pause: float) -> None:
        """Go on from where it was, after a pause [s] in which nobody asked."""
        self._start += pause
        self._advanced += pause

    def _advance(self, now: float) -> None:
        step = now - self._advanced
        if step <= 0:
            return
        self._advanced = now
        if not self._braking:
            self._phase = min(now - self._start, self._curve.duration)
            return
        wanted = -min(self._allowed(), self._strongest, float(np.sqrt(2 * self._change * self._rate)))
        self._slowing = max(wanted, self._slowing - self._change * step)
        rate = max(self._rate + self._slowing * step, 0.0)
        self._phase = min(self._phase + 0.5 * (self._rate + rate) * step, self._curve.duration)
        self._rate = rate if rate > _AT_REST and self._phase < self._curve.duration else 0.0
        if self._rate == 0.0:
            self._slowing = 0.0

    def _allowed(self) -> float:
        """Largest deceleration of the phase [1/s] that keeps every joint within its acceleration limit."""
        _, v, a = self._curve.at(self._phase)
        room = np.maximum(_STRENGTH * self._limits.acceleration + np.sign(v) * a * self._rate**2, 0.0)
        return float(np.min(room / np.maximum(np.abs(v), 1e-9)))

