"""Effort that a drive or sensor could not exceed: samples that say only that the torque was at least this large."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array

_RUN = 5  # equal values in a row; noise of any real sensor changes sooner
_SAME = 1e-9  # of the largest value


def saturated(effort: Array) -> NDArray[np.bool_]:
    """Where each channel of ``(N, n)`` sticks to its largest or smallest value for several samples, ``(N, n)``.

    A channel that never changes is a dead sensor rather than a saturated one, and is left to other checks.
    """
    flags = np.zeros(effort.shape, dtype=bool)
    for joint, values in enumerate(effort.T):
        tolerance = _SAME * np.abs(values).max(initial=0.0)
        if np.ptp(values) <= tolerance:
            continue
        for extreme in (values.max(), values.min()):
            flags[:, joint] |= _long_runs(np.abs(values - extreme) <= tolerance)
    return flags


def near(flags: NDArray[np.bool_], time: Array, instants: Array, reach: float) -> NDArray[np.bool_]:
    """Which ``instants`` (M) lie within ``reach`` seconds of a flagged sample, ``(M, n)``."""
    out = np.zeros((len(instants), flags.shape[1]), dtype=bool)
    for joint, flagged in enumerate(flags.T):
        times = time[flagged]
        first = np.searchsorted(times, instants - reach)
        last = np.searchsorted(times, instants + reach, side="right")
        out[:, joint] = last > first
    return out


def _long_runs(equal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]]).astype(int)))
    runs = np.zeros(len(equal), dtype=bool)
    for start, end in edges.reshape(-1, 2):
        if end - start >= _RUN:
            runs[start:end] = True
    return runs
