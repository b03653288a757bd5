"""Stamps with jitter to even ones, in pieces between the gaps."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

_EVEN = 0.01  # of a period: stamps that lie this close to the grid are taken as they are
_BURST = 0.25  # of a period: samples closer together than this measure the same moment twice and are averaged
_LOST = 2.0  # periods: in a longer step samples were lost, as jitter of up to half a period to either side cannot
_MOST = 100.0  # instants of the grid for each sample; more are of stamps that no instant of measurement has
_NEAR = 0.99  # of a period: what is farther from every sample is interpolated where samples were lost


@dataclass(frozen=True)
class EvenGrid:
    """Even instants.

    Attributes
    ----------
    start : float
        The first one [s].
    period : float
        From each to the next [s].
    """

    start: float
    period: float

    def first(self, time: float) -> int:
        """Number of the first instant that is not before ``time`` [s]."""
        return int(np.ceil((time - self.start) / self.period - 1e-6))

    def instants(self, first: int, last_time: float) -> Array:
        """``(N,)`` instants from number ``first`` to ``last_time`` [s]."""
        count = int(np.floor((last_time - self.start) / self.period + 1e-6)) + 1 - first
        return np.asarray(self.start + self.period * np.arange(first, first + max(count, 0)))


@dataclass(frozen=True)
class StampedChannels:
    """Channels at the stamps of a recording.

    Attributes
    ----------
    name : str
        Name of the recording, for messages.
    time : ndarray, shape (N,)
        Stamps, increasing [s].
    channels : mapping of str to ndarray, shape (N, n)
        By name.
    replaced : mapping of str to ndarray of bool, shape (N, n)
        Values that were not measured but interpolated, of some channels.
    unknown : ndarray of bool, shape (N,), optional
        Samples whose motion was interpolated; many in a row are a gap.
    held : int
        For how many samples positions in motion keep their values; 1 where each has new ones.
    """

    name: str
    time: Array
    channels: Mapping[str, Array]
    replaced: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    unknown: NDArray[np.bool_] | None = None
    held: int = 1

    def without_ends(self, skip_start: float, skip_end: float) -> "StampedChannels":
        """The same with so many seconds cut from the ends.

        Raises
        ------
        RecordingError
            Fewer than four samples are left.
        """
        time = self.time
        keep = (time >= time[0] + skip_start) & (time <= time[-1] - skip_end)
        if keep.sum() < 4:
            raise RecordingError(
                f"{self.name}: time spans {time[-1] - time[0]:.2f} s, too short to skip {skip_start + skip_end:g} s of"
                " it; lower prepare.skip_start_s or record longer"
            )
        return self._select(keep)

    @property
    def period(self) -> float:
        """Median step of the stamps [s]."""
        return float(np.median(np.diff(self.time)))

    def without_long_losses(self, longest: float) -> "StampedChannels":
        """The same without runs of unknown samples that take longer than ``longest`` [s], which leave gaps."""
        if self.unknown is None or not self.unknown.any():
            return self
        known = np.flatnonzero(~self.unknown)
        if len(known) < 4:
            return self._select(~self.unknown)
        after = np.searchsorted(known, np.arange(len(self.time)))
        start = self.time[known[np.maximum(after - 1, 0)]]
        end = self.time[known[np.minimum(after, len(known) - 1)]]
        return self._select(~(self.unknown & (end - start > longest)))

    def _select(self, keep: NDArray[np.bool_]) -> "StampedChannels":
        return replace(
            self,
            time=self.time[keep],
            channels={key: values[keep] for key, values in self.channels.items()},
            replaced={key: flags[keep] for key, flags in self.replaced.items()},
            unknown=None if self.unknown is None else self.unknown[keep],
        )


@dataclass(frozen=True)
class Segment:
    """A piece of a recording without long gaps, evenly spaced.

    Attributes
    ----------
    time : ndarray, shape (N,)
        Time [s].
    period : float
        Sample period, the same for all segments of a recording [s].
    channels : mapping of str to ndarray, shape (N, n)
        By name.
    replaced : mapping of str to ndarray of bool, shape (N, n)
        Values that were interpolated from values that were, of some channels.
    bridged : ndarray of bool, shape (N,)
        Where all channels are interpolated over a short gap.
    first : int
        Number of the first sample, in the piece of a longer recording that this one continues.
    """

    time: Array
    period: float
    channels: Mapping[str, Array]
    replaced: Mapping[str, NDArray[np.bool_]]
    bridged: NDArray[np.bool_]
    first: int = 0

    def __len__(self) -> int:
        return len(self.time)

    def every(self, stride: int) -> slice:
        """Rows of every ``stride``-th sample, the same ones in a part as in the whole."""
        return slice(-self.first % stride, None, stride)


def resample(recorded: StampedChannels, longest_gap: float, grid: EvenGrid | None = None) -> list[Segment]:
    """Split at long gaps, and put each piece on an even grid.

    Interpolation is by cubic spline within a piece, after bursts of nearly equal stamps were averaged (a spline through
    them would overshoot), and by a monotone cubic where samples were lost, which stays between the values on both
    sides of the gap.

    Parameters
    ----------
    recorded : StampedChannels
        Channels at their stamps.
    longest_gap : float
        Steps of the stamps that are longer split the recording; shorter ones are bridged [s].
    grid : EvenGrid, optional
        Of a longer recording that this is a part of; its first piece goes on with it.

    Returns
    -------
    list of Segment
        The pieces, in the order of time.

    Raises
    ------
    RecordingError
        Most stamps lie so close together that they are none of measurements.
    """
    median = recorded.period
    longest_gap = max(longest_gap, 1.5 * median)
    recorded = _average_bursts(recorded.without_long_losses(longest_gap), median)
    time = recorded.time
    period = _mean_period(time) if grid is None else grid.period
    if time[-1] - time[0] > _MOST * len(time) * period and longest_gap > _MOST * period:
        raise RecordingError(
            f"{recorded.name}: most steps of time are about {period:.1g} s, the mean one is"
            f" {(time[-1] - time[0]) / len(time):.1g} s; let the publisher stamp each state when it is measured"
        )
    breaks = np.flatnonzero(np.diff(time) > longest_gap) + 1
    pieces = np.split(np.arange(len(time)), breaks)
    grids = [grid or EvenGrid(time[0], period), *(EvenGrid(time[rows[0]], period) for rows in pieces[1:])]
    return [_even(recorded, rows, of_piece) for rows, of_piece in zip(pieces, grids, strict=True)]


def _average_bursts(recorded: StampedChannels, period: float) -> StampedChannels:
    time = recorded.time
    starts = np.flatnonzero(np.concatenate([[True], np.diff(time) >= _BURST * period]))
    if len(starts) == len(time):
        return recorded
    counts = np.diff(np.append(starts, len(time)))
    return StampedChannels(
        recorded.name,
        np.add.reduceat(time, starts) / counts,
        {key: np.add.reduceat(values, starts, axis=0) / counts[:, None] for key, values in recorded.channels.items()},
        {key: np.logical_or.reduceat(flags, starts, axis=0) for key, flags in recorded.replaced.items()},
    )


def _mean_period(time: Array) -> float:
    """Mean step where no sample was lost; unlike the median it does not drift from the stamps of a long recording."""
    steps = np.diff(time)
    regular = steps[steps <= _LOST * np.median(steps)]
    return float(regular.mean())


def _even(recorded: StampedChannels, rows: NDArray[np.intp], even: EvenGrid) -> Segment:
    time, period = recorded.time[rows], even.period
    first = even.first(time[0])
    channels = {key: values[rows] for key, values in recorded.channels.items()}
    flags = {key: replaced[rows] for key, replaced in recorded.replaced.items()}
    grid = even.instants(first, time[-1])
    count = len(grid)
    if count == len(time) and np.abs(grid - time).max() <= _EVEN * period:
        return Segment(grid, period, channels, flags, np.zeros(count, dtype=bool), first)
    after = np.clip(np.searchsorted(time, grid), 1, len(time) - 1) if len(time) > 1 else np.zeros(count, dtype=int)
    before = np.maximum(after - 1, 0)
    in_gap = time[after] - time[before] > _LOST * period
    bridged = in_gap & (np.minimum(grid - time[before], time[after] - grid) > _NEAR * period)
    nearest = np.where(grid - time[before] < time[after] - grid, before, after)
    interpolated = {key: _interpolated(time, values, grid, in_gap) for key, values in channels.items()}
    return Segment(grid, period, interpolated, {key: values[nearest] for key, values in flags.items()}, bridged, first)


def _interpolated(time: Array, values: Array, grid: Array, in_gap: NDArray[np.bool_]) -> Array:
    if len(time) < 4:
        return np.stack([np.interp(grid, time, column) for column in values.T], axis=-1)
    out = np.asarray(scipy.interpolate.make_interp_spline(time, values, k=3)(grid))
    if in_gap.any():
        out[in_gap] = scipy.interpolate.PchipInterpolator(time, values)(grid[in_gap])
    return out
