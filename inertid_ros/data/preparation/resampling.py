"""Stamps with jitter to even ones, in pieces between the gaps."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

_EVEN = 0.01  # of a period: stamps that lie this close to the grid are taken as they are
_BURST = 0.25  # of a period: samples closer together than this measure the same moment twice and are averaged


@dataclass(frozen=True)
class Segment:
    """A piece of a recording without gaps, evenly spaced.

    Attributes
    ----------
    time : ndarray, shape (N,)
        Time [s].
    period : float
        Sample period, the same for all segments of a recording [s].
    channels : mapping of str to ndarray, shape (N, n)
        By name.
    """

    time: Array
    period: float
    channels: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.time)


def resample(
    name: str, time: Array, channels: Mapping[str, Array], skip_start: float, skip_end: float, max_gap: float
) -> list[Segment]:
    """Cut the ends, split at gaps, and put each piece on an even grid.

    Interpolation is by cubic spline within a piece, after bursts of nearly equal stamps were averaged (a spline through
    them would overshoot).

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    time : ndarray, shape (N,)
        Stamps, increasing [s].
    channels : mapping of str to ndarray, shape (N, n)
        By name.
    skip_start, skip_end : float
        Cut from the ends [s].
    max_gap : float
        A gap is a step longer than this many periods; the period is the median step.

    Returns
    -------
    list of Segment
        The pieces, in the order of time.

    Raises
    ------
    RecordingError
        Fewer than four samples are left after cutting.
    """
    keep = (time >= time[0] + skip_start) & (time <= time[-1] - skip_end)
    if keep.sum() < 4:
        raise RecordingError(
            f"{name}: time spans {time[-1] - time[0]:.2f} s, too short to skip {skip_start + skip_end:g} s of it;"
            " lower prepare.skip_start_s or record longer"
        )
    time = time[keep]
    channels = {key: values[keep] for key, values in channels.items()}
    period = float(np.median(np.diff(time)))
    time, channels = _average_bursts(time, channels, period)
    period = _mean_period(time, max_gap * period)
    breaks = np.flatnonzero(np.diff(time) > max_gap * period) + 1
    pieces = np.split(np.arange(len(time)), breaks)
    return [_even(time[rows], {key: values[rows] for key, values in channels.items()}, period) for rows in pieces]


def _average_bursts(time: Array, channels: Mapping[str, Array], period: float) -> tuple[Array, dict[str, Array]]:
    starts = np.flatnonzero(np.concatenate([[True], np.diff(time) >= _BURST * period]))
    if len(starts) == len(time):
        return time, dict(channels)
    counts = np.diff(np.append(starts, len(time)))
    averaged = {key: np.add.reduceat(values, starts, axis=0) / counts[:, None] for key, values in channels.items()}
    return np.add.reduceat(time, starts) / counts, averaged


def _mean_period(time: Array, longest: float) -> float:
    """Mean step without gaps; unlike the median it does not drift from the stamps over a long recording."""
    steps = np.diff(time)
    regular = steps[steps <= longest]
    return float(regular.mean()) if len(regular) else float(np.median(steps))


def _even(time: Array, channels: Mapping[str, Array], period: float) -> Segment:
    count = int(np.floor((time[-1] - time[0]) / period + 1e-6)) + 1
    grid = time[0] + period * np.arange(count)
    if count == len(time) and np.abs(grid - time).max() <= _EVEN * period:
        return Segment(grid, period, dict(channels))
    if len(time) < 4:
        return Segment(grid, period, {key: _linear(time, values, grid) for key, values in channels.items()})
    splines = {key: scipy.interpolate.make_interp_spline(time, values, k=3) for key, values in channels.items()}
    return Segment(grid, period, {key: spline(grid) for key, spline in splines.items()})


def _linear(time: Array, values: Array, grid: Array) -> Array:
    return np.stack([np.interp(grid, time, column) for column in values.T], axis=-1)
