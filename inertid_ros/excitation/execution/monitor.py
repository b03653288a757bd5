"""Monitoring of joint states during a motion: the clock of their stamps, their values, and the client's lease.

The caller gives the times: ``now`` is the steady clock; ``clock`` the clock of stamps (ROS time), read at the same
moment.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.core.arrays import Array

# Clock of the stamps.
_MAX_AGE_GROWTH_S, _MAX_AGE_DROP_S = 0.02, 0.005  # of states, from their smallest age so far
_AGE_GROWTH_SHARE = 0.5  # of the timeout: a user who tolerates gaps tolerates late states
_CLOCK_DRIFT = 1e-3  # relative difference of the rates of clocks
_LEARNING_S = 0.1  # until the smallest age of states is known; a robot that begins from rest is slow until then
_CLOCK_STEP_S = 2e-3  # smallest step; the time between two readings of clocks is less
_UNSTAMPED_S = 0.05  # states of another node may come without stamps as long as those of the robot have stamps
_MAX_CLOCK_LAG_S = 0.05  # by which the reading of a simulated clock may be behind
_STEP_DOUBT_S = 0.1  # after a step, for which it may turn out to be such a lag
# Values of the states.
_PLAUSIBLE_SPEED_FACTOR, _PLAUSIBLE_JUMP = 3.0, 0.02  # of the velocity limit, and rad or m of noise; beyond: rejected
_STUCK_REPEATS = 4  # states; a fast joint passes the stuck distance between two of them
_FROZEN_DISTANCE = 5e-4  # rad or m; or twice the resolution of the encoder
_RETURN_S = 0.25  # of states as they should be before a robot at rest goes on
_STALL_S, _CATCHING_UP_S = 0.05, 0.5  # of a driver that published nothing, and then until its robot is on its path
_READING_S = 0.1  # to read the messages that waited while this process was held up


class RobotClock:
    """Checks stamps and estimates the robot's clock, also while the clock of this machine steps.

    The offset of stamps to the steady clock is taken from this machine's clock at the start and then kept: if only this
    clock steps, nothing changes. If the robot's stamps have made the same step, as on one machine, they are followed.
    The smallest age of states, which hardly changes otherwise, decides which of the two it was. A late state while a
    simulated clock is read behind looks like a small step of both; if the next state is too young, it is taken back.

    Parameters
    ----------
    max_age, max_future : float
        Largest difference of stamps before and after the time of receipt [s].
    later : float
        Tolerated growth of the age of states [s].

    Attributes
    ----------
    offset : float
        Robot's clock minus steady clock [s]; NaN before the first stamp.
    objection : str
        Reason to reject the last state; empty for none.
    is_lost : bool
        Whether the robot's clock may have stepped: states come without stamps, or the last one is younger than before,
        or older by more than the tolerance. Nothing that depends on this clock should be sent then.
    """

    def __init__(self, max_age: float, max_future: float, later: float = _MAX_AGE_GROWTH_S) -> None:
        self._max_age, self._max_future, self._later = max_age, max_future, later
        self.offset = self._begin = self._least = self._aged = math.nan
        self.objection, self.is_lost = "", False
        self._age = math.nan
        self._last = self._stamped = -math.inf  # newest stamp, and when it came
        self._before, self._followed = math.nan, -math.inf  # offset before a step was followed, and when it was

    def take(self, stamp: float, clock: float, now: float) -> float:
        """Take the stamp of a state; return when it was measured, or ``now`` without a valid stamp [s, steady clock].

        ``clock`` and ``now`` are this machine's clock of stamps, and the steady clock, at receipt.
        """
        if not math.isfinite(stamp) or stamp <= 0:
            self.objection = "stamp is not set"
            stepped = abs(clock - now - self.offset) > _CLOCK_STEP_S  # the robot's clock perhaps, too
            self.is_lost |= stepped or now - self._stamped > _UNSTAMPED_S
            return now
        self._stamped = now
        if math.isnan(self.offset):
            self.offset, self._begin = clock - now, now
            self._least, self._aged = now + self.offset - stamp, now
        age, step = now + self.offset - stamp, clock - now - self.offset
        if abs(step) > _CLOCK_STEP_S and abs(age + step - self._least) < abs(age - self._least):
            # This machine's clock and the robot's have stepped together.
            self._before, self._followed = self.offset, now
            age = self._set_offset(self.offset + step, age)
        elif self._was_late(age, now):
            age = self._set_offset(self._before, age)
        self._age = age
        self._judge(stamp, age, now)
        return stamp - self.offset

    @property
    def explanation(self) -> str:
        older = 1e3 * (self._age - self._least)
        if older < 0:
            return f"joint states are {-older:.0f} ms younger than before by their stamps; the robot's clock stepped"
        return (
            f"joint states are {older:.0f} ms older than before by their stamps; the robot's clock stepped, or driver"
            " and network have become slower"
        )

    def _set_offset(self, offset: float, age: float) -> float:
        """Change the offset; return the new age [s]."""
        age += offset - self.offset
        self.offset, self._last = offset, -math.inf
        return age

    def _was_late(self, age: float, now: float) -> bool:
        """Whether the step that was followed was only a late state and a clock that was read behind."""
        back = self._before - self.offset
        return (
            0 < back <= _MAX_CLOCK_LAG_S
            and now - self._followed < _STEP_DOUBT_S
            and age < self._least - _MAX_AGE_DROP_S
            and abs(age + back - self._least) <= _MAX_AGE_DROP_S
        )

    def _judge(self, stamp: float, age: float, now: float) -> None:
        least = self._least + _CLOCK_DRIFT * (now - self._aged)
        outside = "stamp is too old" if age > self._max_age else ""
        outside = "stamp is in the future" if age < -self._max_future else outside
        unusual = not self._least - _MAX_AGE_DROP_S <= age <= least + self._later
        self.objection = outside or ("stamp repeats or goes back" if stamp <= self._last else "")
        self.is_lost = bool(outside) or (unusual and now - self._begin > _LEARNING_S)
        if not self.is_lost:
            self._least, self._aged = min(age, least), now
        if not self.objection:
            self._last = stamp


@dataclass
class StateCounts:
    """Counts of joint states: accepted, rejected by reason, and gaps longer than 2.5 times the usual step."""

    accepted: int = 0
    gaps: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    longest_gap_s: float = 0.0
    longest_gap: str = ""


class StateMonitor:
    """Watches joint states while a robot moves.

    A state that is implausible, late, from the future or out of order is rejected and counts as missing. The
    :class:`RobotClock` takes the stamp of each state before :meth:`update` takes its values.

    Parameters
    ----------
    position : tuple of ndarray, shape (n,) each
        Lower and upper limits of the URDF.
    velocity, effort : ndarray, shape (n,)
        Limits of the URDF (effort may be infinite).
    now : float
        Steady time [s]; the timeout of states begins there.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        position: tuple[Array, Array],
        velocity: Array,
        effort: Array,
        options: MonitorOptions,
        now: float,
    ) -> None:
        self.joint_names, self.options = tuple(joint_names), options
        lower, upper = position
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
        self._stall, self._stalled = 0.0, -np.inf  # how long the driver stood still, and when that was noticed
        self._repeats = np.zeros(len(self.joint_names), dtype=int)
        self._resolution = np.full(len(self.joint_names), np.inf)  # smallest change so far
        self._measured = now
        self._high_since = np.full((2, len(self.joint_names)), np.inf)  # when it arrived, and when it was measured
        self._rejection = ""

    @property
    def position(self) -> Array | None:
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

        ``measured`` and ``now`` are the times of measurement and arrival [s, steady clock]; ``commanded`` is the
        position ``(n,)`` that was commanded when it was measured, by which stuck joints are recognised.
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
        """Whether no joint changed any digit while one was commanded on, to ``(n,)``."""
        if commanded is None or self._unchanged_since is None or (self._repeats < _STUCK_REPEATS).any():
            return False
        moved = np.abs(commanded - self._unchanged_since)
        return bool((moved > np.maximum(_FROZEN_DISTANCE, 2 * self._resolution)).any())

    def silence(self, now: float) -> str:
        """How long no state has been accepted, or had been before the last one, and why if known."""
        silent = max(now - self._accepted, self._gap)
        if self._rejection:
            return f"joint states are rejected for {silent:.2f} s: {self._rejection}"
        return f"no joint state for {silent:.2f} s; check the robot's driver and network"

    def has_returned(self, now: float) -> bool:
        """Whether states have come as they should for a quarter of a second."""
        recent = [receipt for receipt in self._receipts if receipt > now - _RETURN_S]
        enough = len(recent) >= max(2.0, self.options.min_rate_hz * _RETURN_S)
        return enough and recent[0] < now - 0.6 * _RETURN_S and not (self._rejection or self.clock.is_lost)

    def restart(self, now: float) -> None:
        """Begin again at ``now`` with a robot at rest, perhaps elsewhere than commanded; learn a lost clock again."""
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
        """Reason to stop, empty for none: states come too rarely."""
        options = self.options
        while self._receipts and self._receipts[0] < now - options.rate_window_s:
            self._receipts.popleft()
        rate = len(self._receipts) / options.rate_window_s
        if now - self._begin <= options.rate_window_s or rate >= options.min_rate_hz:
            return ""
        return f"joint states arrive at {rate:.0f} Hz, below monitor.min_rate_hz {options.min_rate_hz:g}"

    def blindness(self, now: float, commanded: Array | None) -> str:
        """Reason to stop, empty for none: states are missing, or stuck while ``(n,)`` is commanded."""
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
        """Reason why a robot may be behind its command for a moment; empty unless its driver stood still."""
        if now - self._stalled > _CATCHING_UP_S:
            return ""
        return f"the robot's driver stood still for {self._stall:.2f} s, so that its command jumps"

    def excessive_effort(self, now: float) -> str:
        """Reason to stop, empty for none: a joint has needed more than its limit for too long."""
        options = self.options
        # States that waited while this process did not run arrive at once, but are about the time before.
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
            # States that were held up arrive at once, but show as much motion as lies between their stamps.
            seconds = max(now - self._accepted, min(measured, now) - self._measured)
            plausible = _PLAUSIBLE_SPEED_FACTOR * self._velocity * seconds + _PLAUSIBLE_JUMP
            jump = np.abs(position - self._position) > plausible
            if jump.any():
                return f"position of joint '{self.joint_names[int(np.argmax(jump))]}' jumps"
        return self.clock.objection

    def _unusable(self, velocity: Array) -> str:
        if not np.isfinite(velocity).all():
            return "velocity is not finite, or the driver reports none"
        jump = np.abs(velocity) > _PLAUSIBLE_SPEED_FACTOR * self._velocity + _PLAUSIBLE_JUMP
        return f"velocity of joint '{self.joint_names[int(np.argmax(jump))]}' is impossible" if jump.any() else ""

    def _new_clock(self) -> RobotClock:
        options = self.options
        later = max(_MAX_AGE_GROWTH_S, _AGE_GROWTH_SHARE * options.state_timeout_s)
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
    """Permission to move that a client who wants a lease must renew at least every ``timeout`` seconds."""

    def __init__(self, timeout: float, now: float, wanted: bool = True) -> None:
        self._timeout, self._renewed, self._wanted = timeout, now, wanted
        self._excused = False

    def renew(self, now: float) -> None:
        self._renewed, self._excused = now, False

    def excuse(self, now: float) -> None:
        """Allow for renewals that are still unread after this process was held up; once per renewal."""
        if not self._excused:
            self._renewed, self._excused = max(self._renewed, now - self._timeout + _READING_S), True

    def check(self, now: float) -> str:
        """Reason to stop once the lease has expired, else empty."""
        silent = now - self._renewed
        if self._wanted and silent > self._timeout:
            return f"the lease was not renewed for {silent:.2f} s; the client is gone"
        return ""
