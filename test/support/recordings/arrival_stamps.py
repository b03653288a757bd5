"""Stamps as states get them when they are handled: late, in their order, or several at a time."""

import numpy as np

from inertid_ros.core.arrays import Array


def late_stamps(time: Array, delay: float, rng: np.random.Generator) -> Array:
    """Stamps ``(N,)`` of instants, each later by an exponential delay of that mean [s], and none before another."""
    late = time + rng.exponential(delay, len(time))
    return np.asarray(np.maximum.accumulate(late) + 1e-9 * np.arange(len(time)))


def burst_stamps(time: Array, size: int) -> Array:
    """Stamps ``(N,)`` of instants that are handled so many at a time, a hundredth of a period apart."""
    rows = np.arange(len(time))
    last = np.minimum((rows // size + 1) * size, len(time)) - 1
    return np.asarray(time[last] - 0.01 * np.mean(np.diff(time)) * (last - rows))
