"""Monitoring of joint states during a motion: the clock of their stamps, their values, and the client's lease.

The caller gives the times: ``now`` is the steady clock; ``clock`` is this machine's clock of stamps (ROS time), read at
the same moment.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.core.arrays import Array, Mask
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.robot.urdf.joints import JointLimits

# Clock of the stamps.
_MAX_AGE_GROWTH_S, _MAX_AGE_DROP_S = 0.02, 0.005  # of states, relative to their smallest age so far
_AGE_GROWTH_SHARE = 0.5  # of the timeout: a user who tolerates gaps tolerates late states
_CLOCK_DRIFT = 1e-3  # relative difference of the rates of clocks
_LEARNING_S = 0.1  # time to learn the smallest age of states; a robot that starts from rest is still slow then
_CLOCK_STEP_S = 2e-3  # smallest step of a clock; the readings of both clocks are less than this apart
_UNSTAMPED_S = 0.05  # tolerated time without stamps, as another node may publish states without stamps
_MAX_CLOCK_LAG_S = 0.05  # largest lag of the reading of a simulated clock
_STEP_DOUBT_S = 0.1  # time after a step during which the step may prove to be a lag
# Values of the states.
_PLAUSIBLE_SPEED_FACTOR, _PLAUSIBLE_JUMP = 3.0, 0.02  # of the velocity limit, and rad or m of noise; beyond: rejected
_STUCK_REPEATS = 4  # states; a fast joint passes the stuck distance between two states
_FROZEN_DISTANCE = 5e-4  # rad or m; or twice the resolution of the encoder
_RETURN_S = 0.25  # duration of valid states before a robot at rest continues
_STALL_S, _CATCHING_UP_S = 0.05, 0.5  # pause of a driver, and then time until its robot is back on its path
_READING_S = 0.1  # to read messages that waited while this process was held up


class RobotClock:
    """Check stamps and estimate the robot's clock, also while the clock of this machine steps.

    The offset of stamps to the steady clock is taken from this machine's clock at the start and then kept, so a step of
    this machine's clock alone has no effect. If the robot's stamps make the same step, as on one machine, the offset
    follows. The age of states distinguishes the two cases, as its minimum hardly changes without a step. A late state
    combined with a lagging simulated clock looks like a small step of both clocks; if the next state is too young, the
    step is undone.

    Parameters
    ----------
    max_age, max_future : float
        Largest time by which a stamp may lie before and after the time of receipt [s].
    later : float
        Tolerated growth of the age of states [s].

    Attributes
    ----------
    offset : float
        Robot's clock minus steady clock [s]; NaN before the first stamp.
    objection : str
        Reason to reject the last state; empty if it is valid.
    is_lost : bool
        True if the robot's clock may have stepped: states come without stamps, or the age of the last state is outside
        its limits, lower than before, or higher by more than the tolerance. Do not send commands that depend on the
        robot's clock then.
    """

    def __init__(self, max_age: float, max_future: float, later: float = _MAX_AGE_GROWTH_S) -> None:
        self._max_age, self._max_future, self._later = max_age, max_future, later
        self.offset = self._begin = self._least = self._aged = math.nan
        self.objection, self.is_lost = "", False
        self._age = math.nan
        self._last = self._stamped = -math.inf  # newest stamp, and its time of receipt
        self._before, self._followed = math.nan, -math.inf  # offset before the last followed step, and its time

    def take(self, stamp: float, clock: float, now: float) -> float:
        """Take a state's stamp; return the time of measurement, or ``now`` if the stamp is not set [s, steady clock].

        ``clock`` and ``now`` are this machine's clock of stamps and the steady clock, both at receipt.
        """
        if not math.isfinite(stamp) or stamp <= 0:
            self.objection = "stamp is not set"
            stepped = abs(clock - now - self.offset) > _CLOCK_STEP_S  # perhaps the robot's clock too
            self.is_lost |= stepped or now - self._stamped > _UNSTAMPED_S
            return now
        self._stamped = now
        if math.isnan(self.offset):
            self.offset, self._begin = clock - now, now
            self._least, self._aged = now + self.offset - stamp, now
        age, step = now + self.offset - stamp, clock - now - self.offset
        if abs(step) > _CLOCK_STEP_S and abs(age + step - self._least) < abs(age - self._least):
            # This machine's clock and the robot's clock have stepped together.
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
            " and network have become slower")

    def _set_offset(self, offset: float, age: float) -> float:
        """Change the offset; return the new age [s]."""
        age += offset - self.offset
        self.offset, self._last = offset, -math.inf
        return age

    def _was_late(self, age: float, now: float) -> bool:
        """True if the last followed step was only a late state combined with a lagging clock."""
        back = self._before - self.offset
        is_recent = 0 < back <= _MAX_CLOCK_LAG_S and now - self._followed < _STEP_DOUBT_S
        too_young = age < self._least - _MAX_AGE_DROP_S and abs(age + back - self._least) <= _MAX_AGE_DROP_S
        return is_recent and too_young

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
    """Counts of joint states: accepted, rejected per reason, and gaps longer than 2.5 times the usual interval."""

    accepted: int = 0
    gaps: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    longest_gap_s: float = 0.0
    longest_gap: str = ""


class StateMonitor:
    """Monitor joint states while a robot moves.

    A state that is implausible, late, from the future or out of order is rejected and counts as missing. The
    :class:`RobotClock` takes the stamp of each state before :meth:`update` takes its values.

    Parameters
    ----------
    limits : JointLimits or MotionLimits
        Limits of the URDF (effort may be infinite).
    now : float
        Steady time [s] at which the timeout of states begins.
    units : ndarray or float, shape (n,)
        Distances of a joint from its command count in this unit [rad or m]. A reaction wheel turns so fast that a
        radian is a small distance.
    """

    def __init__(
            self, joint_names: Sequence[str], limits: JointLimits | MotionLimits, options: MonitorOptions, now: float,
            units: Array | float = 1.0) -> None:
        self.joint_names, self.options = tuple(joint_names), options
        self.units = np.broadcast_to(units, len(self.joint_names))
        width = limits.upper - limits.lower
        self._lower, self._upper = limits.lower - 0.1 * width, limits.upper + 0.1 * width
        self._velocity, self._effort = limits.velocity, limits.effort * options.max_effort_fraction
        self.counts = StateCounts()
        self._begin, self._accepted = now, now
        self._receipts: deque[float] = deque()
        self._gap = 0.0  # time without accepted states before the last state
        self.clock = self._new_clock()
        self._position: Array | None = None
        self._unchanged_since: Array | None = None
        self._stall, self._stalled = 0.0, -np.inf  # duration of the driver's last pause, and time of its detection
        self._repeats = np.zeros(len(self.joint_names), dtype=int)
        self._resolution = np.full(len(self.joint_names), np.inf)  # smallest change so far
        self._measured = now
        self._high_since = np.full((2, len(self.joint_names)), np.inf)  # efforts too high since: arrival, measurement
        self._rejection = ""

    @property
    def position(self) -> Array | None:
        return self._position

    def update(
            self, measured: float, now: float, position: Array, effort: Array, commanded: Array | None = None,
            velocity: Array | None = None) -> str:
        """Take a state after :attr:`clock` has taken its stamp; return the reason for rejection, or an empty string.

        ``measured`` and ``now`` are the times of measurement and arrival [s, steady clock]; ``commanded`` is the
        position ``(n,)`` commanded at the time of measurement, for the detection of stuck joints.
        """
        reason = self._reason(measured, now, position, effort) or ("" if velocity is None else self._unusable(velocity))
        if reason:
            self.counts.rejected[reason] = self.counts.rejected.get(reason, 0) + 1
            self._rejection = reason
            if reason == self.clock.objection:  # an effort that is too high counts whenever it was measured
                self._note_high(np.abs(effort) > self._effort, now, math.inf)
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
        self._note_high(high, now, measured)
        return ""

    def is_frozen(self, commanded: Array | None) -> bool:
        """True if all joints repeat exactly the same positions although ``commanded`` ``(n,)`` has moved a joint on."""
        if commanded is None or self._unchanged_since is None or (self._repeats < _STUCK_REPEATS).any():
            return False
        moved = np.abs(commanded - self._unchanged_since)
        return bool((moved > np.maximum(_FROZEN_DISTANCE, 2 * self._resolution)).any())

    def silence(self, now: float) -> str:
        """Message on the current or last time without accepted states, with the reason if known."""
        silent = max(now - self._accepted, self._gap)
        if self._rejection:
            return f"joint states are rejected for {silent:.2f} s: {self._rejection}"
        return f"no joint state for {silent:.2f} s; check the robot's driver and network"

    def has_returned(self, now: float) -> bool:
        """True if valid states have arrived for a quarter of a second."""
        recent = [receipt for receipt in self._receipts if receipt > now - _RETURN_S]
        enough = len(recent) >= max(2.0, self.options.min_rate_hz * _RETURN_S)
        return enough and recent[0] < now - 0.6 * _RETURN_S and not (self._rejection or self.clock.is_lost)

    def restart(self, now: float) -> None:
        """Restart monitoring with a robot at rest, perhaps away from its command; learn a lost clock again."""
        self._begin, self._unchanged_since = now, None
        self._receipts.clear()
        self._repeats[:] = 0
        if self.clock.is_lost:
            self.clock = self._new_clock()

    def check(self, now: float, commanded: Array | None = None) -> str:
        """Reason to stop at ``now``, or empty; ``commanded`` ``(n,)`` is the position commanded now."""
        error = self.blindness(now, commanded) or self.tracking_error(commanded)
        return error or self.excessive_effort(now) or self.low_rate(now)

    def low_rate(self, now: float) -> str:
        """Reason to stop because states arrive too rarely, or empty."""
        options = self.options
        while self._receipts and self._receipts[0] < now - options.rate_window_s:
            self._receipts.popleft()
        rate = len(self._receipts) / options.rate_window_s
        if now - self._begin <= options.rate_window_s or rate >= options.min_rate_hz:
            return ""
        return f"joint states arrive at {rate:.0f} Hz, below monitor.min_rate_hz {options.min_rate_hz:g}"

    def blindness(self, now: float, commanded: Array | None) -> str:
        """Reason to stop because states are missing, or are stuck while ``commanded`` ``(n,)`` changes; or empty."""
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
                    f" {moved[joint]:.3g} rad further; its state is stuck")
        return ""

    def tracking_error(self, commanded: Array | None) -> str:
        """Reason to stop because a joint is too far from ``commanded`` ``(n,)``, or empty."""
        if self._position is None or commanded is None:
            return ""
        error = np.abs(commanded - self._position)
        joint = int(np.argmax(error / self.units))
        largest = self.options.tracking_tolerance * self.units[joint]
        if error[joint] <= largest:
            return ""
        return (
            f"joint '{self.joint_names[joint]}' is {error[joint]:.3g} rad from its commanded position, more than"
            f" {largest:g}; check for a collision and the controller")

    def stall(self, now: float) -> str:
        """Reason for a short lag of the robot behind its command; empty unless its driver stood still."""
        if now - self._stalled > _CATCHING_UP_S:
            return ""
        return f"the robot's driver stood still for {self._stall:.2f} s, so that its command jumps"

    def excessive_effort(self, now: float) -> str:
        """Reason to stop because a joint exceeded its effort limit for too long, or empty."""
        options = self.options
        # States that waited while this process did not run arrive together, but were measured earlier.
        if self._unchanged_since is None or not np.isfinite(self._high_since).any():  # no state since the start
            return ""
        late = np.max([[now], [self._measured]] - self._high_since, axis=0)
        joint = int(np.argmax(late))
        if late[joint] > options.effort_time_s:
            return (
                f"joint '{self.joint_names[joint]}' needs more than its limit {self._effort[joint]:.4g} N m;"
                " check for a collision")
        return ""

    def _note_high(self, high: Mask, now: float, measured: float) -> None:
        if high.any():
            self._high_since[:, high] = np.minimum(self._high_since[:, high], [[now], [measured]])

    def _reason(self, measured: float, now: float, position: Array, effort: Array) -> str:
        width = len(self.joint_names)
        if np.shape(position) != (width,) or np.shape(effort) != (width,):
            return f"wrong number of joints, expected {width}"
        if not np.isfinite(position).all():  # an infinite position would pass for joints without limits
            return "position is not finite"
        possible = (position >= self._lower) & (position <= self._upper)
        if not possible.all():
            return f"position of joint '{self.joint_names[int(np.argmin(possible))]}' is impossible"
        if not np.isfinite(effort).all():
            return "effort is not finite"
        if self._position is not None:
            # Delayed states arrive together, but their positions differ by the motion between their stamps.
            seconds = max(now - self._accepted, min(measured, now) - self._measured)
            plausible = _PLAUSIBLE_SPEED_FACTOR * self._velocity * seconds + _PLAUSIBLE_JUMP
            jump = np.abs(position - self._position) > plausible
            if jump.any():
                return f"position of joint '{self.joint_names[int(np.argmax(jump))]}' jumps"
        return self.clock.objection

    def _unusable(self, velocity: Array) -> str:
        if not np.isfinite(velocity).all():
            return "velocity is not finite or missing"
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
            by = "the driver published no states" if measured - self._measured > 0.5 * gap else "states arrived late"
            self.counts.longest_gap_s, self.counts.longest_gap = gap, f"no joint state for {gap:.2f} s, {by}"


class Lease:
    """Permission to move; if ``wanted``, the client must renew it at least every ``timeout`` seconds."""

    def __init__(self, timeout: float, now: float, wanted: bool = True) -> None:
        self._timeout, self._renewed, self._wanted = timeout, now, wanted
        self._excused = False

    def renew(self, now: float) -> None:
        self._renewed, self._excused = now, False

    def excuse(self, now: float) -> None:
        """Grant time to read waiting renewals after this process was held up; once per renewal."""
        if not self._excused:
            self._renewed, self._excused = max(self._renewed, now - self._timeout + _READING_S), True

    def check(self, now: float) -> str:
        """Reason to stop after the lease has expired, or empty."""
        silent = now - self._renewed
        if self._wanted and silent > self._timeout:
            return f"the lease was not renewed for {silent:.2f} s; the client is gone"
        return ""
