"""Resample the pieces between gaps to even stamps; zero-phase low-pass and derivatives."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.errors import NoticeLogger, RecordingError
from inertid_ros.data.recording import LOST_SAMPLE_PERIODS

from .recorded_channels import CleanChannels

_log = NoticeLogger(__name__)
BRIDGED = "bridged"  # key of flags for all channels; other keys are channels
# Resampling.
_EVEN_TOLERANCE_PERIODS = 0.01  # stamps this close to the grid are taken as they are
_BURST_PERIODS = 0.25  # samples closer together measure the same moment twice and are averaged
_MAX_INSTANTS_PER_SAMPLE = 100.0  # grid instants per sample; with more, stamps are not instants of measurement
_BRIDGED_DISTANCE_PERIODS = 0.99  # samples were lost at an instant farther from every sample
_BRIDGED_CUTOFF_PERIODS = 0.25  # a filtered signal is nearly straight for this time
_BRIDGED_MOTION_PERIODS = 0.05  # a motion differs by 1 % from a straight line in this time
_SAMPLES_PER_CUTOFF_PERIOD = 10.0  # rate of the result over the cutoff; at half of this rate the gain is below 1e-5
_MIN_PIECE_SAMPLES = 16
_MIN_PIECE_PERIODS = 4.0  # periods of the cutoff; a shorter piece is only filter transient
# Low-pass.
_EXTENSION_PERIODS = 6.0  # periods of the cutoff by which ends are extended
_CURVATURE_PERIODS, _MIN_CURVATURE_SAMPLES = 2.0, 8  # window for the curvature at an end
_FORGOTTEN_SHARE = 1e-11  # share of a value that remains in filtered values beyond the memory
_MAX_INTERPOLATED_WEIGHT = 0.1  # weight of interpolated values in a filtered sample


class EvenGrid(NamedTuple):
    """Even instants, ``period`` [s] apart, from ``start`` [s] on."""

    start: float
    period: float


@dataclass(frozen=True)
class Segment:
    """A piece of a recording without long gaps, evenly spaced.

    Attributes
    ----------
    time : (N,), [s].
    period : sample period, the same for all segments of a recording [s].
    channels : mapping of str to ndarray, shape (N, n)
    replaced : map from channels to bool (N, n), flags of interpolated values; from key :data:`BRIDGED` to bool (N, 1),
        flags of samples that bridge a short gap of all channels.
    first : index of the first sample on the grid of the whole recording.
    """

    time: Array
    period: float
    channels: Mapping[str, Array]
    replaced: Mapping[str, Mask]
    first: int = 0

    def __len__(self) -> int:
        return len(self.time)


def even_pieces(recorded: CleanChannels, motion_hz: float, cutoff: float, options: PrepareOptions,
        grid: EvenGrid | None = None) -> tuple[list[Segment], list[slice]]:
    """Even pieces longer than a filter transient, and the rows of each piece at the sample rate of the result.

    A step between stamps is bridged up to the longest of three times: a quarter of a period of the cutoff [Hz], a
    twentieth of a period of the fastest motion ``motion_hz``, and the configured number of sample periods.
    """
    straight = _BRIDGED_MOTION_PERIODS / motion_hz if motion_hz > 0 else 0.0
    longest = max(options.max_gap_periods * recorded.period, _BRIDGED_CUTOFF_PERIODS / cutoff, straight)
    pieces = resample(recorded, longest, grid)
    period, rate = pieces[0].period, options.rate_hz or _SAMPLES_PER_CUTOFF_PERIOD * cutoff
    shortest = max(_MIN_PIECE_SAMPLES * period, _MIN_PIECE_PERIODS / cutoff)
    long = [piece for piece in pieces if len(piece) * period >= shortest]
    if not long:
        raise RecordingError(
            f"{recorded.name}: time has no piece longer than {shortest:.2f} s without a gap;"
            " record without losses, or set prepare.cutoff_hz higher")
    if len(long) < len(pieces):
        lost = sum(map(len, pieces)) - sum(map(len, long))
        _log.info("%s: dropped %d samples in pieces too short to filter", recorded.name, lost)
    stride = max(1, int(np.floor(1.0 / (period * rate) + 1e-9)))
    return long, [slice(-piece.first % stride, None, stride) for piece in long]  # as in the whole recording


def resample(recorded: CleanChannels, longest_gap: float, grid: EvenGrid | None = None) -> list[Segment]:
    """Split at steps longer than ``longest_gap`` [s], and put each piece on an even grid.

    Bursts of nearly equal stamps are averaged, because a spline through them would overshoot. A cubic spline
    interpolates within a piece. A monotone cubic bridges lost samples; it stays between the values on both sides of
    the gap. In a part of a long recording, the first piece continues the ``grid`` of the recording.

    Raises RecordingError: most stamps are too close together to be instants of measurement.
    """
    median = recorded.period
    longest_gap = max(longest_gap, 1.5 * median)
    recorded = _average_bursts(_without_long_losses(recorded, longest_gap), median)
    time = recorded.time
    period = _mean_period(time) if grid is None else grid.period
    longest = _MAX_INSTANTS_PER_SAMPLE * period
    if time[-1] - time[0] > _MAX_INSTANTS_PER_SAMPLE * len(time) * period and longest_gap > longest:
        raise RecordingError(
            f"{recorded.name}: most steps of time are about {period:.1g} s, the mean is"
            f" {(time[-1] - time[0]) / len(time):.1g} s; let the publisher stamp each state when it is measured")
    breaks = np.flatnonzero(np.diff(time) > longest_gap) + 1
    pieces = np.split(np.arange(len(time)), breaks)
    grids = [grid or EvenGrid(time[0], period), *(EvenGrid(time[rows[0]], period) for rows in pieces[1:])]
    return [_even(recorded, rows, piece_grid) for rows, piece_grid in zip(pieces, grids, strict=True)]


def _without_long_losses(recorded: CleanChannels, longest: float) -> CleanChannels:
    """Remove runs of interpolated motion that are longer than ``longest`` [s], which leaves gaps."""
    motion = [flags.any(axis=1) for channel, flags in recorded.replaced.items() if channel != "effort"]
    unknown = np.any(motion, axis=0)
    if not unknown.any():
        return recorded
    known = np.flatnonzero(~unknown)
    if len(known) < 4:
        return recorded.select(~unknown)
    after = np.searchsorted(known, np.arange(len(unknown)))
    start = recorded.time[known[np.maximum(after - 1, 0)]]
    end = recorded.time[known[np.minimum(after, len(known) - 1)]]
    return recorded.select(~(unknown & (end - start > longest)))


def _average_bursts(recorded: CleanChannels, period: float) -> CleanChannels:
    time = recorded.time
    starts = np.flatnonzero(np.concatenate([[True], np.diff(time) >= _BURST_PERIODS * period]))
    if len(starts) == len(time):
        return recorded
    counts = np.diff(np.append(starts, len(time)))
    means = {key: np.add.reduceat(x, starts, axis=0) / counts[:, None] for key, x in recorded.channels.items()}
    replaced = {key: np.logical_or.reduceat(flags, starts, axis=0) for key, flags in recorded.replaced.items()}
    return CleanChannels(recorded.name, np.add.reduceat(time, starts) / counts, means, replaced)


def _mean_period(time: Array) -> float:
    """Mean step without losses; a grid of the median step would drift from the stamps of a long recording."""
    steps = np.diff(time)
    return float(steps[steps <= LOST_SAMPLE_PERIODS * np.median(steps)].mean())


def _even(recorded: CleanChannels, rows: Indices, even: EvenGrid) -> Segment:
    time, period = recorded.time[rows], even.period
    first = int(np.ceil((time[0] - even.start) / period - 1e-6))
    count = max(int(np.floor((time[-1] - even.start) / period + 1e-6)) + 1 - first, 0)
    grid: Array = even.start + period * np.arange(first, first + count, dtype=float)
    channels = {key: values[rows] for key, values in recorded.channels.items()}
    flags = {key: replaced[rows] for key, replaced in recorded.replaced.items()}
    if count == len(time) and np.abs(grid - time).max() <= _EVEN_TOLERANCE_PERIODS * period:
        return Segment(grid, period, channels, flags, first)
    after = np.clip(np.searchsorted(time, grid), 1, len(time) - 1) if len(time) > 1 else np.zeros(count, dtype=int)
    before = np.maximum(after - 1, 0)
    in_gap = time[after] - time[before] > LOST_SAMPLE_PERIODS * period
    bridged = in_gap & (np.minimum(grid - time[before], time[after] - grid) > _BRIDGED_DISTANCE_PERIODS * period)
    nearest = np.where(grid - time[before] < time[after] - grid, before, after)
    interpolated = {key: _interpolated(time, values, grid, in_gap) for key, values in channels.items()}
    replaced = {BRIDGED: bridged[:, None], **{key: values[nearest] for key, values in flags.items()}}
    return Segment(grid, period, interpolated, replaced, first)


def _interpolated(time: Array, values: Array, grid: Array, in_gap: Mask) -> Array:
    if len(time) < 4:
        return np.stack([np.interp(grid, time, column) for column in values.T], axis=-1)
    out = np.asarray(scipy.interpolate.make_interp_spline(time, values, k=3)(grid))
    if in_gap.any():
        out[in_gap] = scipy.interpolate.PchipInterpolator(time, values)(grid[in_gap])
    return out


def low_pass(values: Array, period: float, cutoff_hz: float, order: int = 4) -> Array:
    """Butterworth low-pass of even samples ``(N, n)``, run forwards and backwards: zero phase, gain 1/2 at the cutoff.

    ``order`` applies to each run. Ends are extended with their value, slope and curvature: with a plain reflection the
    acceleration of a motion would jump to the opposite sign at the end.
    """
    sections = _sections(order, cutoff_hz, period)
    count = min(len(values) - 1, int(np.ceil(_EXTENSION_PERIODS / (cutoff_hz * period))))
    window = max(_MIN_CURVATURE_SAMPLES, int(np.ceil(_CURVATURE_PERIODS / (cutoff_hz * period))))
    before, after = _extension(values, count, window)[::-1], _extension(values[::-1], count, window)
    padding = min(len(values) - 1, int(np.ceil(3.0 / (cutoff_hz * period))))
    out = scipy.signal.sosfiltfilt(sections, np.concatenate([before, values, after]), axis=0, padlen=padding)
    return np.asarray(out[count : len(out) - count])


@lru_cache(maxsize=32)
def _sections(order: int, cutoff_hz: float, period: float) -> Array:
    """Second-order sections of a Butterworth low-pass; cached because a calibration uses a filter for many channels."""
    return np.asarray(scipy.signal.butter(order, cutoff_hz, fs=1.0 / period, output="sos"))


def memory(cutoff_hz: float, order: int = 4) -> float:
    """Distance [s] beyond which :func:`low_pass` mixes less than 1e-11 of a value into other values.

    The slowest pole of a Butterworth low-pass decays with ``2 pi f sin(pi / (2 order))``.
    """
    return float(-np.log(_FORGOTTEN_SHARE) / (2 * np.pi * cutoff_hz * np.sin(0.5 * np.pi / order)))


def _extension(values: Array, count: int, window: int) -> Array:
    """Values ``(count, n)`` before the first value, nearest first: point reflection plus the curvature at the end."""
    steps = np.arange(min(window, len(values)))
    reflected = 2 * values[0] - values[1 : count + 1]
    if len(steps) < _MIN_CURVATURE_SAMPLES:
        return reflected
    scaled = steps / steps[-1]
    curvature = 2 * (np.linalg.pinv(np.vander(scaled, 4, increasing=True))[2] @ values[steps]) / steps[-1] ** 2
    return reflected + curvature * np.arange(1, count + 1)[:, None] ** 2


def derivatives(values: Array, period: float, orders: tuple[int, ...]) -> tuple[Array, ...]:
    """Derivatives of even samples ``(N, n)``, of ``orders`` 1 to 3, by the interpolating quintic spline ([Unser1999]_).

    For a sinusoid with ten samples a period, the error is below 0.1 % in the first and 1 % in the second derivative;
    central differences are 6 % off.
    """
    knots = np.arange(float(len(values)))  # exactly even, unlike stamps in seconds
    spline = scipy.interpolate.make_interp_spline(knots, values, k=5)
    return tuple(spline(knots, order) / period**order for order in orders)


def usable_samples(segment: Segment, cutoff: float, options: PrepareOptions) -> Mask:
    """Flag ``(N,)`` the samples away from the ends of a piece and without interpolated motion."""
    edge = min(int(np.ceil(options.edge_periods / (cutoff * segment.period))), len(segment) // 3)
    usable = np.ones(len(segment), dtype=bool)
    usable[:edge] = usable[len(segment) - edge :] = False
    motion = [flags for channel, flags in segment.replaced.items() if channel != "effort"]
    for flags in motion:
        usable &= hardly_interpolated(flags, segment.period, cutoff, options.filter_order).all(axis=1)
    return usable


def hardly_interpolated(flags: Mask, period: float, cutoff: float, order: int) -> Mask:
    """Flag ``(N, n)`` the samples into which the low-pass mixes less than a tenth of interpolated values (``flags``).

    One replaced spike among many samples is harmless; a gap as long as the memory of the filter is not.
    """
    if not flags.any():
        return np.ones(flags.shape, dtype=bool)
    return np.abs(low_pass(flags.astype(float), period, cutoff, order)) < _MAX_INTERPOLATED_WEIGHT
