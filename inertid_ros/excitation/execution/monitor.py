"""Whether the joint states still allow the motion. Times are given by the caller.

``now`` is always the steady clock; ``clock`` is the clock that stamps are of (ROS time), read at the same moment.
"""

import math
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


@dataclass
class StateCounts:
    """What arrived: accepted states, rejected ones by reason, and gaps longer than twice the usual step."""

    accepted: int = 0
    gaps: int = 0
    rejected: dict[str, int] = field(default_factory=dict)


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
        self.joint_names, self.options = tuple(joint_names), options.timed(math.nan)
        width = upper - lower
        self._lower, self._upper = lower - 0.1 * width, upper + 0.1 * width
        self._velocity, self._effort = velocity, effort * options.max_effort_fraction
        self.counts = StateCounts()
        self._begin, self._accepted = now, now
        self._receipts: deque[float] = deque()
        later = max(LATER_S, _LATER_SHARE * self.options.state_timeout_s)
        self.clock = RobotClock(options.max_age_s, options.max_future_s, later)
        self._position: Array | None = None
        self._unchanged_since: Array | None = None
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
        self._note_gap(now)
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

    def check(self, now: float, commanded: Array | None = None) -> str:
        """Reason to stop at ``now``, empty for none; ``commanded`` ``(n,)`` is the position commanded now."""
        options = self.options
        silent = now - self._accepted
        if silent > options.state_timeout_s:
            if self._rejection:
                return f"joint states are rejected for {silent:.3f} s: {self._rejection}"
            return f"no joint state for {silent:.3f} s; check the robot's driver and network"
        while self._receipts and self._receipts[0] < now - options.rate_window_s:
            self._receipts.popleft()
        if now - self._begin > options.rate_window_s:
            rate = len(self._receipts) / options.rate_window_s
            if rate < options.min_rate_hz:
                return f"joint states arrive at {rate:.0f} Hz, below monitor.min_rate_hz {options.min_rate_hz:g}"
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
        return self._check_values(now, commanded, self._position)

    def _check_values(self, now: float, commanded: Array, position: Array) -> str:
        options = self.options
        error = np.abs(commanded - position)
        joint = int(np.argmax(error))
        if error[joint] > options.tracking_tolerance:
            return (
                f"joint '{self.joint_names[joint]}' is {error[joint]:.3g} rad from its commanded position, more than"
                f" {options.tracking_tolerance:g}; check for a collision and the controller"
            )
        # States that waited while this process did not run arrive at once, but tell of the time before.
        if not np.isfinite(self._high_since).any():
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

    def _note_gap(self, now: float) -> None:
        if len(self._receipts) >= 10:
            usual = (self._receipts[-1] - self._receipts[0]) / (len(self._receipts) - 1)
            self.counts.gaps += int(now - self._accepted > 2.5 * usual)


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

    def renew(self, now: float) -> None:
        """Note a renewal at ``now``."""
        self._renewed = now

    def check(self, now: float) -> str:
        """Reason to stop once the lease has expired, else empty."""
        silent = now - self._renewed
        if self._wanted and silent > self._timeout:
            return f"the lease was not renewed for {silent:.2f} s; the client is gone"
        return ""
