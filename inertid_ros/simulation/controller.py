"""Controller of the simulated arm: references over time, and the control loops of the position drives."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.quintic import PiecewiseQuintic

_MAX_FINAL_SPEED = 1e-3  # rad/s; of the last point
_MAX_STREAM_STEP_S = 0.1


class Follower:
    """Desired position, velocity and acceleration over time, as in ros2_control's JointTrajectoryController.

    A new trajectory replaces the old trajectory and sets the trajectory time to the clock; trajectory time then
    advances by the speed scaling. If the new trajectory has already begun, its present segment applies at once; if not,
    a segment leads from the present desired state to its first point. The last point is held.
    """

    def __init__(self, position: Array) -> None:
        self._streamed = -np.inf
        self._scaling, self._set, self._time = 1.0, 0.0, 0.0  # trajectory time was ``_time`` at clock time ``_set``
        self.hold(position)

    def hold(self, position: Array) -> None:
        self._hold = np.array(position, dtype=float)
        self._curve: PiecewiseQuintic | None = None

    def scale(self, factor: float, now: float) -> None:
        """From ``now`` on, advance the trajectory time at ``factor`` times the pace of the clock."""
        if factor != self._scaling:
            self._time, self._set = self.trajectory_time(now), now
            self._scaling = factor

    def trajectory_time(self, now: float) -> float:
        """Trajectory time [s] at clock time ``now``; without scaling, both are equal."""
        return self._time + self._scaling * (now - self._set)

    def follow(self, points: PiecewiseQuintic, now: float, start: float) -> None:
        """Replace the reference at time ``now`` by a trajectory whose time zero is ``start`` [s].

        Raises
        ------
        ExcitationError
            The last point is not at rest, or all points lie in the past.
        """
        if np.abs(points.velocity[-1]).max() > _MAX_FINAL_SPEED:
            raise ExcitationError("command: the last point is not at rest")
        times = points.time + start
        if times[-1] < now:
            raise ExcitationError(f"command: the trajectory ended {now - times[-1]:.3f} s ago; check the clocks")
        knots = [points.position, points.velocity, points.acceleration]
        if times[0] > now:
            times = np.append(now, times)
            knots = [np.vstack([here, ahead]) for here, ahead in zip(self.desired(now), knots, strict=True)]
        self._replace(PiecewiseQuintic(times, *knots), now)

    def stream(self, position: Array, now: float) -> None:
        """Move in a straight line to a position, in the time that has passed since the last streamed position.

        Raises
        ------
        ExcitationError
            Wrong width or not finite.
        """
        target = np.array(position, dtype=float)
        if target.shape != self._hold.shape or not np.isfinite(target).all():
            raise ExcitationError(f"command: positions {position} are not {len(self._hold)} finite numbers")
        step = float(np.clip(now - self._streamed, 1e-3, _MAX_STREAM_STEP_S))
        self._streamed = now
        times, line = np.array([now, now + step]), np.array([self.desired(now)[0], target])
        speed = np.repeat(np.diff(line, axis=0) / np.diff(times), 2, axis=0)
        self._replace(PiecewiseQuintic(times, line, speed, np.zeros_like(line)), now)

    def desired(self, now: float, ahead: float = 0.0) -> tuple[Array, Array, Array]:
        """Position, velocity, acceleration ``(n,)`` at the trajectory time of ``now`` plus ``ahead`` [s]."""
        time = self.trajectory_time(now) + ahead
        if self._curve is None or time >= self._curve.duration:
            zero = np.zeros_like(self._hold)
            return self._hold, zero, zero
        return self._curve.at(time)

    def _replace(self, curve: PiecewiseQuintic, now: float) -> None:
        self._curve, self._hold = curve, curve.position[-1]
        self._time = self._set = now


class Cascade:
    """Position drives: a P loop of the position around a PI loop of the velocity, with velocity feed-forward.

    ``effort = 2 w I (e + w / 3 integral(e))`` with the error of the velocity loop ``e = w / 2 (r - q) + f r' - v``
    for the command ``r``, the inertia ``I``, the bandwidth ``w`` and the share ``f`` of feed-forward. Joints lag their
    command by ``2 (1 - f) / w`` seconds.

    Parameters
    ----------
    inertia : (n,), inertia of each joint [kg m^2 or kg].
    bandwidth : natural frequency of the two loops [rad/s], scalar or ``(n,)``.
    feed_forward : share of the command's velocity that is fed forward, 0 to 1, scalar or ``(n,)``.
    limit : (n,), effort limits [N m or N].

    Attributes
    ----------
    gain : (n,), effort per error of velocity [N m s/rad or N s/m].
    """

    def __init__(
        self, inertia: Array, bandwidth: Array | float, feed_forward: Array | float, limit: Array | float = np.inf
    ) -> None:
        self._position_gain, self._feed_forward = 0.5 * np.asarray(bandwidth), feed_forward
        self.gain = 2.0 * bandwidth * inertia
        self._integral_gain = self.gain * bandwidth / 3.0
        self._limit, self._lower = limit, -np.asarray(limit)

    def hold(self, position: Array, effort: Array) -> None:
        """Hold joints at rest at a position ``(n,)``, starting from an effort ``(n,)``."""
        self._end, self._cycle = position, 1.0
        self._rate = self._change = np.zeros(len(position))
        self._integral = effort

    def go_to(self, position: Array, seconds: float) -> None:
        """Move to a position ``(n,)`` in ``seconds``, on a straight line from the end of the last command."""
        before, self._rate = self._rate, (position - self._end) / seconds
        self._end, self._cycle, self._change = position, seconds, self._rate - before

    def effort(self, elapsed: float, position: Array, velocity: Array, seconds: float) -> Array:
        """Efforts ``(n,)`` for the next ``seconds``, after ``elapsed`` seconds of the present command."""
        command = self._end - (self._cycle - elapsed) * self._rate
        # The mean rate of a command is exact in the middle of its cycle; interpolate between the middles of two cycles.
        rate = self._rate + (elapsed / self._cycle - 0.5) * self._change
        error = self._position_gain * (command - position) + self._feed_forward * rate - velocity
        self._integral = self._within(self._integral + seconds * self._integral_gain * error)
        return self._within(self.gain * error + self._integral)

    def _within(self, effort: Array) -> Array:
        return np.minimum(np.maximum(effort, self._lower), self._limit)
