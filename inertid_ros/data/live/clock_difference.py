"""Difference between two clocks, read without interruption."""

import time
from collections.abc import Callable

_UNINTERRUPTED_S, _TRIES = 1e-4, 8


def ahead_of_steady(clock: Callable[[], float]) -> float:
    """Return how far a clock is ahead of the steady clock [s].

    A process that is held up between reading one clock and the other would see a step of the clock. So the clock is
    read between two readings of the steady one, again where these are far apart, and the closest pair counts.

    Parameters
    ----------
    clock : callable
        Returns its time [s].
    """
    closest, difference = float("inf"), 0.0
    for _ in range(_TRIES):
        before, time_there, after = time.monotonic(), clock(), time.monotonic()
        if after - before < closest:
            closest, difference = after - before, time_there - 0.5 * (before + after)
        if closest < _UNINTERRUPTED_S:
            break
    return difference
