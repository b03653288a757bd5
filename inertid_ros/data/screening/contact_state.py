"""Whether a plate or sensor carries load: thresholds with hysteresis."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array


def in_contact(load: Array, on: float, off: float) -> NDArray[np.bool_]:
    """``(N,)`` true from where the load [N] exceeds ``on`` until it falls below ``off``; a start in between is off."""
    decided = np.where(load > on, 1, np.where(load < off, 0, -1))
    last = np.maximum.accumulate(np.where(decided >= 0, np.arange(len(load)), -1))
    return np.where(last >= 0, decided[np.maximum(last, 0)], 0).astype(bool)


def spans(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and one past the last index of every run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
