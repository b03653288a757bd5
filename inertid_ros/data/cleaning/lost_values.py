"""Lost values: not finite, dropped to zero, or held until the channel caught up."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.data.screening.sensor_faults import true_runs

from .channel_noise import ChannelNoise

_RUN = 5  # equal values in a row, which noise of a working sensor interrupts sooner
_FALSE_ALARMS = 1e-3  # per channel and recording
_CATCH_UP = 4.0  # times the step after it; so many steps must have been missed where a channel jumps
_SELDOM = 0.01  # share of the values; more are repeated where a channel is quantised
_ALIKE = 0.5  # of the drop: values before and after a dropout are alike


def dropouts(values: Array, noise: ChannelNoise | None = None) -> NDArray[np.bool_]:
    """Where channels ``(N, n)`` drop to exactly zero and come back to about the value that they had.

    A channel that goes through zero has other signs before and after, and one that rests at zero does not come back.
    Noise of the channels is found here where it is not given.
    """
    flags = np.zeros(values.shape, dtype=bool)
    noise = noise or ChannelNoise.of(values)
    least = noise.threshold * noise.scale
    for channel, column in enumerate(values.T):
        zero = column == 0.0
        if not zero.any() or zero.mean() > 0.5:
            continue
        for start, end in true_runs(zero):
            if start == 0 or end == len(column):
                continue
            before, after = column[start - 1], column[end]
            drop = min(abs(before), abs(after))
            flags[start:end, channel] = drop > least[channel] and abs(after - before) < _ALIKE * drop
    return flags


def held(values: Array, steps: bool = False, noise: ChannelNoise | None = None) -> NDArray[np.bool_]:
    """Where channels ``(N, n)`` repeat a value although what they measure went on.

    A run of equal values counts where it is longer than chance makes it, by the share of repeated values outside such
    runs, and where it ends in a jump of many times the step that follows. A joint that rests begins to move gradually,
    and slow motion of a quantised encoder goes on in steps of one quantum; at its largest or smallest value a channel
    is saturated.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Finite values.
    steps : bool
        Whether what is measured may jump, as effort does where friction reverses: then only channels that hardly ever
        repeat a value are checked.
    noise : ChannelNoise, optional
        Of the channels, where it is known.
    """
    flags = np.zeros(values.shape, dtype=bool)
    noise = noise or ChannelNoise.of(values)
    least = noise.threshold * noise.scale
    for channel, column in enumerate(values.T):
        same = np.diff(column, prepend=np.nan) == 0.0
        runs = [(start, end) for start, end in true_runs(same) if end - start >= _RUN]
        long = np.zeros_like(same)
        for start, end in runs:
            long[start:end] = True
        repeats = np.clip(np.mean(same[~long]), 1 / len(column), 1 - 1 / len(column)) if not long.all() else 0.5
        if steps and repeats > _SELDOM:
            continue
        longest = np.log(_FALSE_ALARMS / len(column)) / np.log(repeats)
        extremes = column.min(), column.max()
        for start, end in runs:
            if end - start <= longest or end + 1 >= len(column) or column[start] in extremes:
                continue
            jump, step = abs(column[end] - column[end - 1]), abs(column[end + 1] - column[end])
            flags[start:end, channel] = jump > max(_CATCH_UP * step, least[channel])
    return flags
