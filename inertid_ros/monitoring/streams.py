"""Streams of joint states: checks for faults, such as repeated stamps or jumps, and a causal low-pass with exact delay.

Accepted states get increasing times. After a jump of the clock or of a position, the times have a gap that is long
enough for the filter to restart.

A symmetric impulse response delays every frequency by half its length. Position, velocity, acceleration and effort all
have this delay, so each output sample is the zero-phase filtered motion of ``delay`` seconds ago, stamped with that
time.
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.samples import JointSample, Samples, UndecimatedVelocity
from inertid_ros.data.preparation.filtered_motion import RESTING_SPEED, slides
from inertid_ros.robot.model import RobotModel

BREAK_S = 1.0  # gap in the times of states that are not continuous
_MIN_NEW_CLOCK_STATES = 5  # consecutive states, before a new clock or the end of a pause is accepted
_MAX_EQUAL_STATES = 10  # consecutive states with exactly equal values, before these are reported
_MAX_SPEED_RATIO, _JUMP_TOLERANCE = 2.0, 0.02  # ratio to the velocity limit, plus rad or m: a larger step is a jump
_HELD_TOLERANCE, _MIN_HELD_REST_S = 1e-3, 0.2  # motion of a locked joint [rad or m], and rest time after it [s]
_TOO_LARGE = 1e9  # rad, rad/s or N m; squares of larger numbers may overflow in the equations
_TURN = 2 * np.pi
_HALF_LENGTH_PERIODS = 1.25  # in periods of the cutoff frequency
_WINDOW = ("kaiser", 5.0)
_DIFFERENCE = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0  # central difference of sixth order
_MAX_GAP_PERIODS = 0.25  # in periods of the cutoff frequency; a longer gap restarts the filter
_STAMP_TOLERANCE = 1e-6  # sample periods
_SURE_SIGN_DEVIATIONS = 3.0  # standard deviations of velocity noise; the sign of a larger velocity is certain


class StreamFault(Enum):
    """Fault of a joint state, by itself or in comparison with earlier states."""

    NOT_FINITE = "not finite"
    REPEATED = "repeated"
    OUT_OF_ORDER = "out of order"
    STUCK = "stuck"
    PAUSE = "pause"
    CLOCK = "clock"
    JUMP = "jump"
    HELD_JOINT = "held joint"


@dataclass(frozen=True)
class CheckedState:
    """Result of checking a joint state.

    Attributes
    ----------
    time : on a scale that only increases [s]; NaN if the state must not be used.
    position : (n,), without jumps by full turns.
    """

    time: float
    position: Array
    fault: StreamFault | None = None
    message: str = ""

    @property
    def usable(self) -> bool:
        return not math.isnan(self.time)


class StreamChecks:
    """Check joint states one by one; a step of stamps longer than ``longest_gap_s`` is a pause."""

    def __init__(self, model: RobotModel, longest_gap_s: float) -> None:
        limits = model.limits
        self._names, self._gap = model.joint_names, longest_gap_s
        self._held_names = tuple(model.options.locked_joints)
        self._fastest = np.where(limits.velocity > 0, _MAX_SPEED_RATIO * limits.velocity, np.inf)
        self._turning = ~np.isfinite(limits.upper)
        self._turns = np.zeros(model.joints)
        self._last: JointSample | None = None  # newest state with a valid stamp
        self._used: tuple[float, Array] | None = None  # time and position of the newest accepted state
        self._now, self._elsewhere, self._same = 0.0, 0, 0
        self._held_moved, self._held_before = -math.inf, np.zeros(0)
        self._held = np.full(len(self._held_names), np.nan)

    def stamp_ns(self, time: float) -> int:
        """Convert a time of accepted states [s] to a header stamp [ns]; valid for times after the last gap."""
        return self._last.stamp_ns - round((self._now - time) * 1e9) if self._last is not None else 0

    def check(self, state: JointSample) -> CheckedState:
        """Check a state; states must come in the order of reception."""
        refused = self._not_finite(state) or self._off_the_clock(state)
        if refused is not None:
            return refused
        before, self._last = self._last, state
        fault, message = self._go_on(before, state)
        refused = self._stuck(before, state) or self._held_joint_moves(state.held)
        return refused or self._followed(state.position, fault, message)

    def _not_finite(self, state: JointSample) -> CheckedState | None:
        channels = (state.position, state.velocity, state.effort)
        if all(np.abs(channel).max() < _TOO_LARGE for channel in channels):  # False for NaN
            return None
        for channel in ("position", "velocity", "effort"):
            finite = np.isfinite(getattr(state, channel))
            if not finite.any():
                return _refused(StreamFault.NOT_FINITE, f"joint_states hold no {channel}; let the driver report it")
            if not finite.all():
                joint = self._names[int(np.argmin(finite))]
                return _refused(StreamFault.NOT_FINITE, f"{joint}: {channel} is not finite; check the driver")
        return _refused(StreamFault.NOT_FINITE, "joint_states hold impossibly large numbers; check the driver")

    def _off_the_clock(self, state: JointSample) -> CheckedState | None:
        """Refuse a repeated stamp, and the first stamps after a step back or a step longer than :data:`BREAK_S`."""
        if self._last is None:
            return None
        step = (state.stamp_ns - self._last.stamp_ns) * 1e-9
        if step == 0:
            return _refused(StreamFault.REPEATED, "joint states repeat their stamps; check the driver")
        if 0 < step <= BREAK_S:
            self._elsewhere = 0
            return None
        self._elsewhere += 1
        if self._elsewhere >= _MIN_NEW_CLOCK_STATES:
            return None
        if step > 0:
            return _refused(StreamFault.PAUSE, f"joint states are stamped {step:.3g} s after the last accepted state")
        return _refused(StreamFault.OUT_OF_ORDER, f"joint states are stamped {-step:.3g} s before earlier states")

    def _go_on(self, before: JointSample | None, state: JointSample) -> tuple[StreamFault | None, str]:
        """Advance the time to a state; return the fault of its stamp, if any, and the message."""
        step = (state.stamp_ns - before.stamp_ns) * 1e-9 if before is not None else BREAK_S
        if not self._elsewhere:
            self._now += step
            paused = before is not None and step > self._gap
            return (StreamFault.PAUSE, f"no joint states for {step:.3g} s") if paused else (None, "")
        self._now += BREAK_S
        self._elsewhere, self._used = 0, None
        if step < 0:
            return StreamFault.CLOCK, f"the clock of the joint states went back by {-step:.3g} s; restarting"
        return StreamFault.PAUSE, f"no joint states for {step:.3g} s, or their clock was set; restarting"

    def _stuck(self, before: JointSample | None, state: JointSample) -> CheckedState | None:
        """Refuse values that exactly equal the previous values: they are not new measurements."""
        if before is None or any(
            getattr(before, channel).tobytes() != getattr(state, channel).tobytes()
            for channel in ("position", "velocity", "effort")):
            self._same = 0
            return None
        self._same += 1
        if self._same < _MAX_EQUAL_STATES:
            return _refused(None, "")
        return _refused(
            StreamFault.STUCK, "joint states repeat their values with new stamps; check the driver's measurement")

    def _held_joint_moves(self, held: Array) -> CheckedState | None:
        """Refuse states while a locked joint, such as a gripper joint, moves; it may rest at any position."""
        settled = self._now - self._held_moved >= _MIN_HELD_REST_S
        if settled and held is self._held_before:
            return None
        self._held_before = held
        moved = np.isfinite(held) & (np.abs(held - self._held) > _HELD_TOLERANCE)
        self._held = np.where(moved | np.isnan(self._held), held, self._held)
        if moved.any():
            self._held_moved = self._now
        elif settled:
            return None
        names = [name for name, moves in zip(self._held_names, moved, strict=True) if moves] or self._held_names
        return _refused(
            StreamFault.HELD_JOINT,
            f"{', '.join(names)} moves, but the calibration holds this joint; hold it, or calibrate with it moving")

    def _followed(self, position: Array, fault: StreamFault | None, message: str) -> CheckedState:
        """Remove jumps by full turns from the position; after an impossible jump, insert a gap in time."""
        position = position + self._turns
        if self._used is not None:
            seconds, step = self._now - self._used[0], position - self._used[1]
            largest = self._fastest * seconds + _JUMP_TOLERANCE
            if (np.abs(step) > largest).any():
                turns = np.where(self._turning, -_TURN * np.round(step / _TURN), 0.0)
                self._turns, position, step = self._turns + turns, position + turns, step + turns
                worst = int(np.argmax(np.abs(step) / largest))
                if abs(step[worst]) > largest[worst]:
                    self._now += BREAK_S
                    fault = StreamFault.JUMP
                    message = (
                        f"{self._names[worst]} jumps by {abs(step[worst]):.3g} rad or m in {seconds:.3g} s, beyond"
                        " its velocity limit; check its encoder and the URDF; restarting")
        self._used = self._now, position
        return CheckedState(self._now, position, fault, message)


def _refused(fault: StreamFault | None, message: str) -> CheckedState:
    return CheckedState(math.nan, np.zeros(0), fault, message)


@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream of joint states and of its filter.

    Attributes
    ----------
    period : sample period after resampling [s].
    block : samples per block.
    velocity_noise : standard deviation of the measured velocity [rad/s or m/s].
    effort_delay_s : delay of the reported effort after the motion [s], see
        :class:`~inertid_ros.identification.information.delay.Delay`.
    """

    period: float
    cutoff_hz: float
    block: int = 25
    velocity_noise: float = 0.002
    effort_delay_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.period > 0 and 0 < self.cutoff_hz < 0.4 / self.period):
            raise RecordingError(
                f"stream: cutoff {self.cutoff_hz:g} Hz does not suit a period of {self.period:g} s; give less than 0.4"
                " times the sample rate")

    @property
    def independent_share(self) -> float:
        """Share of the samples that count as independent: two per period of the cutoff frequency."""
        return min(1.0, 2 * self.cutoff_hz * self.period)


class CausalFilter:
    """Filter joint states one by one into blocks of samples, for a robot on a fixed base.

    Attributes
    ----------
    delay : age of the newest sample in a completed block [s].
    longest_gap : longest time between two states that is interpolated [s]; a longer gap restarts the filter.
    rejected : number of rejected states: the stamp repeats or goes back, or a value is not finite.
    restarts : number of restarts after a gap.
    """

    def __init__(self, model: RobotModel, options: StreamOptions) -> None:
        self._model, self._options = model, options
        half = int(np.ceil(_HALF_LENGTH_PERIODS / (options.cutoff_hz * options.period)))
        smooth = scipy.signal.firwin(2 * half + 1, options.cutoff_hz, window=_WINDOW, fs=1 / options.period)
        shift = options.effort_delay_s / options.period
        edge = max(len(_DIFFERENCE) // 2, int(np.ceil(abs(shift))))
        self._low_pass = np.pad(smooth, edge)
        self._effort = _shifted(self._low_pass, shift)
        self._derivative = np.pad(np.convolve(smooth, _DIFFERENCE), edge - len(_DIFFERENCE) // 2) / options.period
        self._half, self.delay = half + edge, (half + edge) * options.period
        threshold = max(RESTING_SPEED, _SURE_SIGN_DEVIATIONS * options.velocity_noise)
        self._sliding_speeds = np.full(len(model.layout.drive_ratios), threshold)
        self.period, self._scale, self.rejected, self.restarts = options.period, model.effort_scale, 0, 0
        self.longest_gap = max(_MAX_GAP_PERIODS / options.cutoff_hz, 3 * options.period)
        self._last: tuple[float, Array] | None = None
        self._begin()

    def push(self, time: float, position: Array, velocity: Array, effort: Array) -> Samples | None:
        """Take a joint state ``(n,)`` with its stamp [s]; return a block of samples if this state completes one."""
        row = np.concatenate([position, velocity, self._scale * effort])
        if not math.isfinite(time + float(row.sum())) or (self._last is not None and time <= self._last[0]):
            self.rejected += 1
            return None
        if self._last is None or time - self._last[0] > self.longest_gap:
            self.restarts += self._last is not None
            self._begin()
            self._start, self._last = time, (time, row)
            self._rows.append(row)
            return None
        before, last = self._last
        end = time + _STAMP_TOLERANCE * self.period
        while (instant := self._start + (self._dropped + len(self._rows)) * self.period) <= end:
            share = (instant - before) / (time - before)
            self._rows.append(row if share > 1 - _STAMP_TOLERANCE else last + share * (row - last))
        self._last = time, row
        return self._block() if len(self._rows) >= 2 * self._half + self._options.block else None

    def _begin(self) -> None:
        self._rows: list[Array] = []
        self._start, self._dropped = 0.0, 0

    def _block(self) -> Samples:
        """Return the samples of all rows with a complete filter window; drop as many of the oldest rows."""
        rows, n, half = np.array(self._rows), self._model.joints, self._half
        windows = np.lib.stride_tricks.sliding_window_view(rows, 2 * half + 1, axis=0)
        smooth, slope = windows[:, : 2 * n] @ self._low_pass, windows[:, n : 2 * n] @ self._derivative
        count, speeds = len(smooth), rows[:, n : 2 * n]
        undecimated = UndecimatedVelocity((speeds,), self._centred, half + np.arange(count))
        sliding = slides(self._model.layout, self._sliding_speeds, speeds, self._centred)[half : half + count]
        time: Array = self._start + (self._dropped + half + np.arange(count, dtype=float)) * self.period
        del self._rows[:count]
        self._dropped += count
        q, v, tau = smooth[:, :n], smooth[:, n:], windows[:, 2 * n :] @ self._effort
        return Samples(
            time, q, v, slope, tau, sliding, np.asarray(sliding.any(axis=1)), name="stream", undecimated=undecimated,
            sliding=sliding, cutoff_hz=self._options.cutoff_hz)

    def _centred(self, values: Array | Mask) -> Array:
        """Return low-passed values of the same shape; zero for rows without a complete filter window."""
        windows = np.lib.stride_tricks.sliding_window_view(values, 2 * self._half + 1, axis=0)
        out = np.zeros(values.shape)
        out[self._half : len(values) - self._half] = windows @ self._low_pass
        return out


def _shifted(response: Array, shift: float) -> Array:
    """Shift an impulse response so that its correlation reads ``shift`` samples later; interpolate linearly."""
    whole = int(np.floor(shift))
    share = shift - whole
    return np.asarray((1 - share) * np.roll(response, whole) + share * np.roll(response, whole + 1))
