"""Causal low-pass of a stream of joint states with an exact delay.

A symmetric impulse response delays every frequency by half its length. Position, velocity, acceleration and effort all
have this delay, so each output sample is the zero-phase filtered motion of ``delay`` seconds ago, stamped with that
time.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.samples import Samples, UndecimatedVelocity
from inertid_ros.data.preparation.filtered_motion import RESTING_SPEED, slides
from inertid_ros.robot.model import RobotModel

_HALF_LENGTH_PERIODS = 1.25  # in periods of the cutoff frequency
_WINDOW = ("kaiser", 5.0)
_DIFFERENCE = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0  # central difference of sixth order
_MAX_GAP_PERIODS = 0.25  # in periods of the cutoff frequency; a longer gap restarts the filter
_STAMP_TOLERANCE = 1e-6  # sample periods
_SURE_SIGN_DEVIATIONS = 3.0  # standard deviations of velocity noise; the sign of a larger velocity is certain


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
        self._half = half + edge
        threshold = max(RESTING_SPEED, _SURE_SIGN_DEVIATIONS * options.velocity_noise)
        self._sliding_speeds = np.full(len(model.layout.drive_ratios), threshold)
        self._scale, self.rejected, self.restarts = model.effort_scale, 0, 0
        self.longest_gap = max(_MAX_GAP_PERIODS / options.cutoff_hz, 3 * options.period)
        self._last: tuple[float, Array] | None = None
        self._begin()

    @property
    def period(self) -> float:
        return self._options.period

    @property
    def delay(self) -> float:
        """Delay of the filter: age of the newest sample in a completed block [s]."""
        return self._half * self._options.period

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
        period = self._options.period
        while (instant := self._start + (self._dropped + len(self._rows)) * period) <= time + _STAMP_TOLERANCE * period:
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
        count = len(smooth)
        speeds = rows[:, n : 2 * n]
        undecimated = UndecimatedVelocity((speeds,), self._centred, half + np.arange(count))
        sliding = slides(self._model.layout, self._sliding_speeds, speeds, self._centred)[half : half + count]
        time: Array = self._start + (self._dropped + half + np.arange(count, dtype=float)) * self._options.period
        del self._rows[:count]
        self._dropped += count
        q, v, tau = smooth[:, :n], smooth[:, n:], windows[:, 2 * n :] @ self._effort
        usable: Mask = sliding.any(axis=1).astype(bool)
        return Samples(
            time, q, v, slope, tau, sliding, usable, name="stream", undecimated=undecimated,
            sliding=sliding, cutoff_hz=self._options.cutoff_hz,
        )  # fmt: skip

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
