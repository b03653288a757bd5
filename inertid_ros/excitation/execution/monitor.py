"""Whether the joint states still allow the motion. Times are given by the caller.

``now`` is always the steady clock; ``clock`` is the clock that stamps are of (ROS time), read at the same moment.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inertid_ros.config.execution import MonitorOptions
from inertid_ros.core.arrays import Array

from .robot_clock import LATER_S, RobotClock

_LATER_SHARE = 0.5  # of the timeout; who tolerates gaps tolerates states that are late
_PLAUSIBLE_SPEED = 3.0  # times the velocity limit; a state that jumps faster is implausible
_STUCK_REPEATS = 4  # states; a fast joint passes the stuck distance between two of them
_FROZEN = 5e-4  # rad or m; and twice what the encoder resolves
_PLAUSIBLE_JUMP = 0.02  # rad or m; what noise may add to that
_RETURN_S = 0.25  # for which states come again before a robot at rest goes on
_STALL_S, _CATCHING_UP_S = 0.05, 0.5  # of a driver that published nothing; then its robot is where it is to be again
_READING_S = 0.1  # until messages that waited for a process that was held up are read


@dataclass
class StateCounts:
    """What arrived.

    Attributes
    ----------
    accepted : int
    gaps : int
        Longer than twice the usual step.
    rejected : dict of str to int
        By reason.
    longest_gap_s : float
    longest_gap : str
        How long it was, and what was late.
    """

    accepted: int = 0
    gaps: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    longest_gap_s: float = 0.0
    longest_gap: str = ""


class StateMonitor:
    """Watches joint states while a robot moves.

    A state that is implausible, late, from the future or out of order is rejected and counts as missing. Stamps must
    advance on the robot's clock; a step of a clock neither ages nor refreshes anything, see :class:`RobotClock`, which
    takes the stamp of each state before :meth:`update` takes its values.

    Parameters
    ----------
    joint_names : sequence of str
        ``n`` names.
    lower, upper, velocity, effort : ndarray, shape (n,)
        Limits of the URDF (effort may be infinite).
    options : MonitorOptions
        Tolerances.
    now : float
        Steady time [s]; nothing is missing before the timeout after it.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        lower: Array,
        upper: Array,
        velocity: Array,
        effort: Array,
        options: MonitorOptions,
        now: float,
    ) -> None:
        self.joint_names, self.options = tuple(joint_names), options
        width = upper - lower
        self._lower, self._upper = lower - 0.1 * width, upper + 0.1 * width
        self._velocity, self._effort = velocity, effort * options.max_effort_fraction
        self.counts = StateCounts()
        self._begin, self._accepted = now, now
        self._receipts: deque[float] = deque()
        self._gap = 0.0  # before the last state
        self.clock = self._new_clock()
        self._position: Array | None = None
        self._unchanged_since: Array | None = None
        self._stall, self._stalled = 0.0, -np.inf  # how long the driver stood still, and when that was seen
        self._repeats = np.zeros(len(self.joint_names), dtype=int)
        self._resolution = np.full(len(self.joint_names), np.inf)  # least change that was seen
        self._measured = now
        self._high_since = np.full((2, len(self.joint_names)), np.inf)  # when it arrived, and when it was measured
        self._rejection = ""

    @property
    def position(self) -> Array | None:
        """``(n,)`` last accepted position; ``None`` before the first."""
        return self._position

    def update(
        self,
        measured: float,
        now: float,
        position: Array,
        effort: Array,
        commanded: Array | None = None,
        velocity: Array | None = None,
    ) -> str:
        """Take a state whose stamp :attr:`clock` has taken; return why it was rejected, or an empty string.

        Parameters
        ----------
        measured, now : float
            When it was measured and when it arrived [s, steady clock].
        position, effort : ndarray, shape (n,)
        commanded : ndarray, shape (n,), optional
            Position that was commanded when it was measured, by which stuck joints are recognised.
        velocity : ndarray, shape (n,), optional
            Where it is used.
        """
        reason = self._reason(measured, now, position, effort) or ("" if velocity is None else self._unusable(velocity))
        if reason:
            self.counts.rejected[reason] = self.counts.rejected.get(reason, 0) + 1
            self._rejection = reason
            return reason
        self._note_gap(now, measured)
        self._accepted, self._measured, self._rejection = now, measured, ""
        self.counts.accepted += 1
        self._receipts.append(now)
        commanded = position if commanded is None else commanded
        if self._position is None or self._unchanged_since is None:
            self._unchanged_since = np.array(commanded, dtype=float)
        else:
            change = np.abs(position - self._position)
            changed = change > 0
            np.minimum(change, self._resolution, out=self._resolution, where=changed)
            np.copyto(self._unchanged_since, commanded, where=changed)
            self._repeats += 1
            self._repeats[changed] = 0
        self._position = np.array(position, dtype=float)
        high = np.abs(effort) > self._effort
        self._high_since[:, ~high] = np.inf
        if high.any():
            self._high_since[:, high] = np.minimum(self._high_since[:, high], [[now], [measured]])
        return ""

    def is_frozen(self, commanded: Array | None) -> bool:
        """Return whether no joint changed any digit while one was commanded on, to ``(n,)``: states tell nothing."""
        if commanded is None or self._unchanged_since is None or (self._repeats < _STUCK_REPEATS).any():
            return False
        moved = np.abs(commanded - self._unchanged_since)
        return bool((moved > np.maximum(_FROZEN, 2 * self._resolution)).any())

    def silence(self, now: float) -> str:
        """Return for how long no state has been accepted, or had been before the last one, and why if that is known."""
        silent = max(now - self._accepted, self._gap)
        if self._rejection:
            return f"joint states are rejected for {silent:.2f} s: {self._rejection}"
        return f"no joint state for {silent:.2f} s; check the robot's driver and network"

    def has_returned(self, now: float) -> bool:
        """Return whether states have come as they should for a quarter of a second."""
        recent = [receipt for receipt in self._receipts if receipt > now - _RETURN_S]
        enough = len(recent) >= max(2.0, self.options.min_rate_hz * _RETURN_S)
        return enough and recent[0] < now - 0.6 * _RETURN_S and not (self._rejection or self.clock.is_lost)

    def restart(self, now: float) -> None:
        """Begin again with a robot at rest: rates count from ``now``, and so does a robot's clock that has stepped.

        Joints may rest elsewhere than commanded, so that they are not stuck where the command is another one now.
        """
        self._begin, self._unchanged_since = now, None
        self._receipts.clear()
        self._repeats[:] = 0
        if self.clock.is_lost:
            self.clock = self._new_clock()

    def check(self, now: float, commanded: Array | None = None) -> str:
        """Reason to stop at ``now``, empty for none; ``commanded`` ``(n,)`` is the position commanded now."""
        return (
            self.blindness(now, commanded)
            or self.tracking_error(commanded)
            or self.excessive_effort(now)
            or self.low_rate(now)
        )

    def low_rate(self, now: float) -> str:
        """Return how seldom states come, empty if that is often enough."""
        options = self.options
        while self._receipts and self._receipts[0] < now - options.rate_window_s:
            self._receipts.popleft()
        rate = len(self._receipts) / options.rate_window_s
        if now - self._begin <= options.rate_window_s or rate >= options.min_rate_hz:
            return ""
        return f"joint states arrive at {rate:.0f} Hz, below monitor.min_rate_hz {options.min_rate_hz:g}"

    def blindness(self, now: float, commanded: Array | None) -> str:
        """Reason to stop, empty for none: states tell too little of a robot that is commanded to ``(n,)``."""
        options = self.options
        if 0 < options.state_timeout_s < now - self._accepted:
            return self.silence(now)
        if self._position is None or commanded is None or self._unchanged_since is None:
            return ""
        stuck = self._repeats >= _STUCK_REPEATS
        if stuck.any():
            moved = np.where(stuck, np.abs(commanded - self._unchanged_since), 0.0)
            joint = int(np.argmax(moved))
            if moved[joint] > options.stuck_distance:
                return (
                    f"joint '{self.joint_names[joint]}' reports exactly the same position while it was commanded"
                    f" {moved[joint]:.3g} rad further; its state is stuck"
                )
        return ""

    def tracking_error(self, commanded: Array | None) -> str:
        """Reason to stop, empty for none: a joint is too far from ``commanded`` ``(n,)``."""
        if self._position is None or commanded is None:
            return ""
        error = np.abs(commanded - self._position)
        joint = int(np.argmax(error))
        if error[joint] <= self.options.tracking_tolerance:
            return ""
        return (
            f"joint '{self.joint_names[joint]}' is {error[joint]:.3g} rad from its commanded position, more than"
            f" {self.options.tracking_tolerance:g}; check for a collision and the controller"
        )

    def stall(self, now: float) -> str:
        """Why a robot may be behind its command for a moment: its driver stood still just before. Empty if not."""
        if now - self._stalled > _CATCHING_UP_S:
            return ""
        return f"the robot's driver stood still for {self._stall:.2f} s, so that its command jumps"

    def excessive_effort(self, now: float) -> str:
        """Reason to stop, empty for none: a joint has needed more than its limit for too long."""
        options = self.options
        # States that waited while this process did not run arrive at once, but tell of the time before.
        if self._unchanged_since is None or not np.isfinite(self._high_since).any():  # no state since the begin
            return ""
        late = np.max([[now], [self._measured]] - self._high_since, axis=0)
        joint = int(np.argmax(late))
        if late[joint] > options.effort_time_s:
            return (
                f"joint '{self.joint_names[joint]}' needs more than its limit {self._effort[joint]:.4g} N m;"
                " check for a collision"
            )
        return ""

    def _reason(self, measured: float, now: float, position: Array, effort: Array) -> str:
        width = len(self.joint_names)
        if np.shape(position) != (width,) or np.shape(effort) != (width,):
            return f"wrong number of joints, expected {width}"
        if not np.isfinite(position).all():  # joints without limits would pass an infinite one
            return "position is not finite"
        possible = (position >= self._lower) & (position <= self._upper)
        if not possible.all():
            return f"position of joint '{self.joint_names[int(np.argmin(possible))]}' is impossible"
        if not np.isfinite(effort).all():
            return "effort is not finite"
        if self._position is not None:
            # States that were held up arrive at once, but tell of as much motion as lies between their stamps.
            seconds = max(now - self._accepted, min(measured, now) - self._measured)
            plausible = _PLAUSIBLE_SPEED * self._velocity * seconds + _PLAUSIBLE_JUMP
            jump = np.abs(position - self._position) > plausible
            if jump.any():
                return f"position of joint '{self.joint_names[int(np.argmax(jump))]}' jumps"
        return self.clock.objection

    def _unusable(self, velocity: Array) -> str:
        """Why a velocity must not be used; empty where it may."""
        if not np.isfinite(velocity).all():
            return "velocity is not finite, or the driver reports none"
        jump = np.abs(velocity) > _PLAUSIBLE_SPEED * self._velocity + _PLAUSIBLE_JUMP
        return f"velocity of joint '{self.joint_names[int(np.argmax(jump))]}' is impossible" if jump.any() else ""

    def _new_clock(self) -> RobotClock:
        options = self.options
        later = max(LATER_S, _LATER_SHARE * options.state_timeout_s)
        return RobotClock(options.max_age_s, options.max_future_s, later)

    def _note_gap(self, now: float, measured: float) -> None:
        if measured - self._measured > _STALL_S:
            self._stall, self._stalled = measured - self._measured, now
        if len(self._receipts) < 10:
            return
        usual = (self._receipts[-1] - self._receipts[0]) / (len(self._receipts) - 1)
        gap = self._gap = now - self._accepted
        self.counts.gaps += int(gap > 2.5 * usual)
        if gap > max(2.5 * usual, self.counts.longest_gap_s):
            by = "the driver published none" if measured - self._measured > 0.5 * gap else "they arrived late"
            self.counts.longest_gap_s, self.counts.longest_gap = gap, f"no joint state for {gap:.2f} s, {by}"


class Lease:
    """Permission to move that the client must renew.

    Parameters
    ----------
    timeout : float
        Longest time without a renewal [s].
    now : float
        Steady clock [s].
    wanted : bool
        Whether the client asked for a lease; otherwise the permission stays.
    """

    def __init__(self, timeout: float, now: float, wanted: bool = True) -> None:
        self._timeout, self._renewed, self._wanted = timeout, now, wanted
        self._excused = False

    def renew(self, now: float) -> None:
        """Note a renewal at ``now``."""
        self._renewed, self._excused = now, False

    def excuse(self, now: float) -> None:
        """Note that this process was held up until ``now``, so that renewals wait to be read; once for each renewal."""
        if not self._excused:
            self._renewed, self._excused = max(self._renewed, now - self._timeout + _READING_S), True

    def check(self, now: float) -> str:
        """Reason to stop once the lease has expired, else empty."""
        silent = now - self._renewed
        if self._wanted and silent > self._timeout:
            return f"the lease was not renewed for {silent:.2f} s; the client is gone"
        return ""
