"""Stamps of one clock among those of a recording: few others are left out, many are for the user to correct."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

FEW = 0.02  # share of the stamps that may be left out
_ELSEWHERE = 1000.0  # times the span of all other steps: a step that no pause in a recording makes


def on_one_clock(stamps: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which stamps ``(N,)`` belong to the clock of most of them.

    These are the longest increasing subsequence, so that neither a stamp that goes back nor one far ahead takes others
    with it, without its ends that lie elsewhere: a stamp of zero before the first, or one of another epoch after the
    last.
    """
    keep = np.ones(len(stamps), dtype=bool) if (np.diff(stamps) > 0).all() else _longest_increasing(stamps)
    kept = np.flatnonzero(keep)
    steps = np.diff(stamps[kept]).astype(float)
    if len(steps) > 2:
        jump = int(np.argmax(steps))
        if steps[jump] > _ELSEWHERE * (steps.sum() - steps[jump]):
            few = kept[: jump + 1] if 2 * (jump + 1) < len(kept) else kept[jump + 1 :]
            keep[few] = False
    return keep


def _longest_increasing(stamps: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.bool_]:
    """``(N,)`` the longest strictly increasing subsequence, by patience sorting."""
    tails: list[float] = []
    last: list[int] = []
    before = np.full(len(stamps), -1)
    for index, stamp in enumerate(stamps.tolist()):
        length = bisect_left(tails, stamp)
        if length == len(tails):
            tails.append(stamp)
            last.append(index)
        else:
            tails[length], last[length] = stamp, index
        before[index] = last[length - 1] if length else -1
    keep = np.zeros(len(stamps), dtype=bool)
    index = last[-1] if last else -1
    while index >= 0:
        keep[index] = True
        index = int(before[index])
    return keep
