"""Reference of a controlled arm: at rest, along a received trajectory, or braking along this trajectory."""

from dataclasses import replace

import numpy as np

from inertid_ros.config.excitation import BrakeOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.quintic import PiecewiseQuintic

from .controller import Reference

_BRAKE_SHARE = 0.95  # share of the acceleration limits; the rest covers the time discretization
_MIN_REST_DURATION_S = 0.05  # shortest time to come to rest
_PEAK_OVER_MEAN = 1.5  # deceleration of a velocity that falls along a cubic
_MIN_BRAKE_RATE = 1e-5  # a brake has ended once the path is followed at a smaller rate
_MAX_LATE_S = 0.2  # a trajectory that began longer ago is late, or its clock differs
_MAX_AHEAD_S = 60.0  # a trajectory that begins later has a different clock
_JOIN_S = 0.1  # time to join a trajectory that has begun
_MIN_SEGMENT_S = 1e-3
_MAX_END_SPEED = 1e-3  # rad/s or m/s, at the last point


class ReferenceMotion:
    """Reference as a function of time.

    A brake slows down the motion along its path, as in :mod:`inertid_ros.excitation.execution.brake`: with
    ``q = curve(s)``, acceleration is ``curve'(s) s'' + curve''(s) s'^2``. At every step, the brake takes the strongest
    deceleration ``s''`` within the acceleration limits and changes it at a bounded rate, so the arm stays on its
    checked path and within all limits.

    At the start, the reference comes to rest from ``position`` and ``velocity (n,)``.
    """

    def __init__(
        self, limits: MotionLimits, position: Array, velocity: Array, now: float, brake: BrakeOptions | None = None
    ) -> None:
        options = brake or BrakeOptions()
        self._limits = limits
        self._strongest, self._change = 1.0 / options.shortest_s, 1.0 / (options.shortest_s * options.rise_s)
        self.rest_from(position, velocity, now)

    def at_rest(self, now: float) -> bool:
        self._advance(now)
        return self._rate == 0.0 or self._phase >= self._curve.duration

    def at(self, now: float) -> Reference:
        """Reference at ``now``, which must not decrease between calls."""
        self._advance(now)
        q, v, a = self._curve.at(self._phase)
        return Reference(q, v * self._rate, a * self._rate**2 + v * self._slowing)

    def rest_from(self, position: Array, velocity: Array, now: float) -> None:
        """Come to rest from a state ``(n,)``, within the acceleration limits and, if possible, within the range."""
        needed = np.max(_PEAK_OVER_MEAN * np.abs(velocity) / self._limits.acceleration)
        duration = max(_MIN_REST_DURATION_S, float(needed))
        lower, upper = np.minimum(self._limits.lower, position), np.maximum(self._limits.upper, position)
        end = np.clip(position + 0.5 * duration * velocity, lower, upper)
        zero = np.zeros_like(end)
        ends = [np.array(pair, dtype=float) for pair in ((position, end), (velocity, zero), (zero, zero))]
        self.follow(PiecewiseQuintic(np.array([0.0, duration]), *ends), now)

    def follow(self, curve: PiecewiseQuintic, start: float) -> None:
        """Follow a curve from ``start`` on. Its time begins at zero; it must continue the previous motion."""
        self._curve, self._start = curve, start
        self._phase, self._rate, self._slowing, self._braking = 0.0, 1.0, 0.0, False
        self._advanced = start

    def brake(self) -> None:
        """Slow down along the path, until the arm is at rest."""
        self._braking = True

    def delay(self, pause: float) -> None:
        """Shift the motion by a pause [s] without calls of :meth:`at`, so that it continues where it stopped."""
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
        self._rate = rate if rate > _MIN_BRAKE_RATE and self._phase < self._curve.duration else 0.0
        if self._rate == 0.0:
            self._slowing = 0.0

    def _allowed(self) -> float:
        """Largest deceleration of the phase [1/s] that keeps every joint within its acceleration limit."""
        _, v, a = self._curve.at(self._phase)
        room = np.maximum(_BRAKE_SHARE * self._limits.acceleration + np.sign(v) * a * self._rate**2, 0.0)
        return float(np.min(room / np.maximum(np.abs(v), 1e-9)))


def way_along(sent: PiecewiseQuintic, here: Reference, now: float, limits: MotionLimits) -> PiecewiseQuintic:
    """Curve from the reference at ``now`` to a trajectory and along its points; the curve's time begins at zero.

    If the first point lies in the future, the curve leads to this point; a trajectory that has begun is joined a tenth
    of a second later. The way to the trajectory must also keep all limits, so a trajectory that begins at another
    position is refused.

    Raises
    ------
    ExcitationError
        The trajectory lies in the past or does not end at rest, or the curve leaves a limit.
    """
    first = sent.time[0] - now
    if first < -_MAX_LATE_S:
        raise ExcitationError(
            f"reference: began {-first:.3f} s ago; check the clocks and use_sim_time, or send it earlier")
    if first > _MAX_AHEAD_S:
        raise ExcitationError(f"reference: begins only in {first:.0f} s; check the clocks and use_sim_time")
    if np.abs(sent.velocity[-1]).max() > _MAX_END_SPEED:
        joint = limits.joint_names[int(np.argmax(np.abs(sent.velocity[-1])))]
        raise ExcitationError(f"reference: joint '{joint}' moves at the last point; end at rest")
    velocity, acceleration = np.array(sent.velocity), np.array(sent.acceleration)
    velocity[-1] = acceleration[-1] = 0.0
    curve = _joined(PiecewiseQuintic(sent.time - now, sent.position, velocity, acceleration), here)
    _check(curve, limits, here)
    return curve


def _joined(sent: PiecewiseQuintic, here: Reference) -> PiecewiseQuintic:
    time, *values = sent.time, sent.position, sent.velocity, sent.acceleration
    if time[0] < _JOIN_S:
        later = time > _JOIN_S + _MIN_SEGMENT_S
        if later.any() and len(time) > 1:
            joined = sent.sample(np.array([_JOIN_S]))
            values = [np.vstack([at, points[later]]) for at, points in zip(joined, values, strict=True)]
            time = np.append(_JOIN_S, time[later])
        else:  # the trajectory ends before it can be joined: only its last point remains
            time, values = np.array([max(_JOIN_S, time[-1])]), [points[-1:] for points in values]
    start = (here.position, here.velocity, here.acceleration)
    return PiecewiseQuintic(
        np.append(0.0, time), *(np.vstack([at, points]) for at, points in zip(start, values, strict=True)))


def _check(curve: PiecewiseQuintic, limits: MotionLimits, here: Reference) -> None:
    """Check the curve against the limits; a segment is checked exactly only if its control points leave a bound."""
    lower, upper = np.minimum(limits.lower, here.position), np.maximum(limits.upper, here.position)
    limits = replace(limits, lower=lower, upper=upper)  # an arm outside its range may come back in
    doubtful = np.zeros(len(curve.time) - 1, dtype=bool)
    for order, (least, most) in enumerate(limits.bounds):
        points = curve.control_points(order)
        doubtful |= ((points < least) | (points > most)).any(axis=(1, 2))
    for segment in np.flatnonzero(doubtful):
        knots = slice(segment, segment + 2)
        part = (curve.time[knots], curve.position[knots], curve.velocity[knots], curve.acceleration[knots])
        try:
            check_curve(PiecewiseQuintic(*part), limits)
        except ExcitationError as error:
            way = "on the way to it " if segment == 0 else ""
            raise ExcitationError(f"reference: {way}{error}") from None
