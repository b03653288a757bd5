"""Spikes: single values far off their neighbours, by a Hampel filter."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array

from .channel_noise import NORMAL, ChannelNoise

_HALF_WINDOW = 3  # samples to either side: up to three bad values in a row stay a minority of the window
_AT_ONCE = 8192  # samples, whose windows fit the cache
# Comparisons after which the median of seven stands at 3 (N. Devillard, Fast median search, 1998).
_MEDIAN_NETWORK = (
    (0, 5), (0, 3), (1, 6), (2, 4), (0, 1), (3, 5), (2, 6), (2, 3), (3, 6), (4, 5), (1, 4), (1, 3), (3, 4),
)  # fmt: skip
_STEP = 0.3  # of what a channel moves from one sample to the next; quanta may lie exactly on a line without their slope


def spikes(values: Array, noise: ChannelNoise | None = None, time: Array | None = None) -> NDArray[np.bool_]:
    """Where a channel is far off the median of its neighbours.

    The Hampel filter [Pearson2016]_: the distance from the median of a window of seven samples, in robust standard
    deviations. A step, such as Coulomb friction at a reversal, stays, as the centre of a window is always on the side
    of its majority; so does any monotone motion, whose median is its centre. The scale is the largest of

    - the median absolute deviation within the window, which grows with the motion,
    - the noise of the whole channel, and
    - the size of its small steps, which is the quantum where the channel is quantised,

    so that it is not zero where most values are equal. The threshold is that which normal noise exceeds once in a
    thousand recordings of this length.

    A position moves within the window by more than what a stale value is off. So the median slope of the window is
    taken out first where ``time`` is given.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Finite values, in any unit.
    noise : ChannelNoise, optional
        Of the channels, where it is known.
    time : ndarray, shape (N,), optional
        Stamps [s] of channels that change steadily, such as positions.

    Returns
    -------
    ndarray of bool, shape (N, n)
    """
    noise = noise or ChannelNoise.of(values)
    flags = np.zeros(values.shape, dtype=bool)
    steps = None if time is None else time / np.median(np.diff(time))
    for channel, column in enumerate(values.T):
        off, nearby = _from_neighbours(column, steps)
        flags[:, channel] = off > noise.threshold * np.maximum(nearby, noise.scale[channel])
    return flags


def joint_spikes(time: Array, channel: str, values: Array, noise: ChannelNoise | None = None) -> NDArray[np.bool_]:
    """:func:`spikes` of a channel of joints, ``position`` or another, at stamps ``(N,)`` [s]."""
    return spikes(values, noise, time if channel == "position" else None)


def _from_neighbours(column: Array, time: Array | None) -> tuple[Array, Array]:
    """Distance of every sample ``(N,)`` from the median of its window, and the window's robust standard deviation.

    Where stamps ``(N,)`` are given, in usual steps, both are without the slope.
    """
    if time is None:
        padded, stamps = np.pad(column, _HALF_WINDOW, mode="symmetric"), None
    else:  # what is continued through a point keeps its slope
        padded, stamps = (np.pad(each, _HALF_WINDOW, mode="reflect", reflect_type="odd") for each in (column, time))
    distance, deviation = np.empty(len(column)), np.empty(len(column))
    for start in range(0, len(column), _AT_ONCE):
        rows = slice(start, min(start + _AT_ONCE, len(column)))
        window, slope = _windows(padded, rows), np.zeros(1)
        if stamps is not None:
            window, slope = _level(window, _windows(stamps, rows))
        middle = median_of_seven(window)
        distance[rows] = np.abs(window[_HALF_WINDOW] - middle)
        nearby = NORMAL * median_of_seven([np.abs(values - middle) for values in window])
        deviation[rows] = np.maximum(nearby, _STEP * np.abs(slope))
    return distance, deviation


def _windows(padded: Array, rows: slice) -> list[Array]:
    """The seven neighbours of every sample in ``rows``, itself in the middle."""
    return [padded[rows.start + shift : rows.stop + shift] for shift in range(2 * _HALF_WINDOW + 1)]


def _level(window: list[Array], time: list[Array]) -> tuple[list[Array], Array]:
    """Windows without their median slope, of neighbours and of the ends, and this slope."""
    pairs = [*zip(range(6), range(1, 7), strict=True), (0, 6)]
    slope = median_of_seven([(window[j] - window[i]) / (time[j] - time[i]) for i, j in pairs])
    return [values - slope * (at - time[_HALF_WINDOW]) for values, at in zip(window, time, strict=True)], slope


def median_of_seven(values: Sequence[Array]) -> Array:
    """Median of seven finite arrays ``(N,)``, element by element, twenty times as fast as a sort of every seven."""
    ordered = list(values)
    for low, high in _MEDIAN_NETWORK:
        ordered[low], ordered[high] = np.minimum(ordered[low], ordered[high]), np.maximum(ordered[low], ordered[high])
    return ordered[3]
