"""For how long channels keep a value, as a bus that is read less often than states are published makes them."""

import numpy as np

from inertid_ros.core.arrays import Array

from .channel_noise import resolution

_FAR = 3.0  # quanta: a shorter step may be that of a quantised channel, which keeps its value in slow motion
_FEW = 0.05  # share of kept values, below which no look at steps is worth its time
_FEWEST = 20  # such steps
_MANY = 0.25  # share of them after a value that was kept; noise of some quanta keeps fewer
_LONGEST = 0.95  # quantile of the lengths, where they vary


def samples_held(values: Array) -> int:
    """Samples for which channels in motion keep their values; 1 where each sample has a new one.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Channels as recorded. That of the channel with the longest counts.
    """
    longest = 1
    for column in values.T:
        steps = np.abs(np.diff(column))
        new = np.flatnonzero(steps)
        if len(new) > (1 - _FEW) * len(steps):
            continue
        quantum = float(resolution(column[:, None])[0])
        lengths = np.diff(new)[steps[new[1:]] > _FAR * quantum]
        if len(lengths) >= _FEWEST and np.mean(lengths > 1) > _MANY:
            longest = max(longest, int(np.ceil(np.quantile(lengths, _LONGEST))))
    return longest
