"""The reference of a controlled arm: at rest, along a trajectory that somebody sends, or braking on it."""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.adaptive_control.controller import Reference
from inertid_ros.config.execution import BrakeOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.quintic import PiecewiseQuintic

_STRENGTH = 0.95  # of the acceleration limits that a brake uses; the rest is for its steps in time
_SHORTEST_REST_S = 0.05  # in which a motion that is hardly one comes to rest
_PEAK = 1.5  # peak over mean deceleration of a velocity that falls along a cubic
_AT_REST = 1e-5  # rate of a brake that has ended
MOST_POINTS = 2000  # the controller waits while a trajectory is checked
_LATEST_S = 0.2  # a trajectory that began longer ago was late, or is of another clock
_EARLIEST_S = 60.0  # one that begins later is of another clock
_JOIN_S = 0.1  # on which the reference comes to a trajectory that has begun
_SHORTEST_S = 1e-3  # of a segment
_REST = 1e-3  # rad/s or m/s; a last point that moves faster is refused


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


@dataclass(frozen=True)
class SentTrajectory:
    """Points of a trajectory as they came.

    Attributes
    ----------
    start : float
        When its clock begins [s].
    time : ndarray, shape (P,)
        From its start, increasing [s].
    position, velocity, acceleration : ndarray, shape (P, n)
        In the order of the joints, finite.
    """

    start: float
    time: Array
    position: Array
    velocity: Array
    acceleration: Array


def way_along(sent: SentTrajectory, here: Reference, now: float, limits: MotionLimits) -> PiecewiseQuintic:
    """Return the curve from the reference at ``now`` onto a trajectory and along it to its end.

    It begins at zero. Where the first point lies ahead, the way leads to it; a trajectory that has begun is joined a
    tenth of a second ahead. Both ways keep all limits, so that a trajectory that begins elsewhere is refused.

    Raises
    ------
    ExcitationError
        It has too many points, is of the past, does not end at rest, or the curve leaves a limit; joint, time and value
        are named.
    """
    if len(sent.time) > MOST_POINTS:
        raise ExcitationError(
            f"reference: has {len(sent.time)} points, at most {MOST_POINTS} are followed; send it in parts"
        )
    first = sent.start + sent.time[0] - now
    if first < -_LATEST_S:
        raise ExcitationError(
            f"reference: began {-first:.3f} s ago; check the clocks and use_sim_time, or send it earlier"
        )
    if first > _EARLIEST_S:
        raise ExcitationError(f"reference: begins in {first:.0f} s only; check the clocks and use_sim_time")
    if np.abs(sent.velocity[-1]).max() > _REST:
        joint = limits.joint_names[int(np.argmax(np.abs(sent.velocity[-1])))]
        raise ExcitationError(f"reference: joint '{joint}' moves at the last point; end at rest")
    curve = _joined(_on_clock(sent, now), here)
    _check(curve, limits, here)
    return curve


def _on_clock(sent: SentTrajectory, now: float) -> PiecewiseQuintic:
    """Knots of a trajectory that ends at rest, ``now`` being zero."""
    velocity, acceleration = np.array(sent.velocity), np.array(sent.acceleration)
    velocity[-1] = acceleration[-1] = 0.0
    return PiecewiseQuintic(sent.time + sent.start - now, sent.position, velocity, acceleration)


def _joined(sent: PiecewiseQuintic, here: Reference) -> PiecewiseQuintic:
    """The curve that begins with the reference at zero."""
    time, *values = sent.time, sent.position, sent.velocity, sent.acceleration
    if time[0] < _JOIN_S:
        later = time > _JOIN_S + _SHORTEST_S
        if later.any() and len(time) > 1:
            joined = sent.sample(np.array([_JOIN_S]))
            values = [np.vstack([at, each[later]]) for at, each in zip(joined, values, strict=True)]
            time = np.append(_JOIN_S, time[later])
        else:  # all of it is passed by then: its end is what is left
            time, values = np.array([max(_JOIN_S, time[-1])]), [each[-1:] for each in values]
    began = (here.position, here.velocity, here.acceleration)
    return PiecewiseQuintic(
        np.append(0.0, time), *(np.vstack([at, each]) for at, each in zip(began, values, strict=True))
    )


def _check(curve: PiecewiseQuintic, limits: MotionLimits, here: Reference) -> None:
    """As :func:`check_curve`, but only where the bounds of a segment leave open whether it keeps the limits."""
    lower, upper = np.minimum(limits.lower, here.position), np.maximum(limits.upper, here.position)
    limits = replace(limits, lower=lower, upper=upper)  # an arm that stands outside may come back in
    bounds = ((lower, upper), (-limits.velocity, limits.velocity), (-limits.acceleration, limits.acceleration))
    doubtful = np.zeros(len(curve.time) - 1, dtype=bool)
    for order, (least, most) in enumerate(bounds):
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
