"""Stamps in order: those that crossed are sorted, repeats and a few of another clock left out, all of them counted."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEW = 0.02  # share of the stamps that may be of another clock
LATE = 3  # periods by which messages of several threads cross
_ELSEWHERE = 1000.0  # times the span of all other steps: a step that no pause in a recording makes


@dataclass(frozen=True)
class StampRepairs:
    """What was done to the stamps of a recording, or of one channel.

    Attributes
    ----------
    late : int
        Stamps that went back by less than a few periods and were put in order.
    repeated : int
        Samples left out because their stamp had been there.
    elsewhere : int
        Samples left out because their stamps go back further, or are of another clock.
    total : int
        Number of stamps before.
    arrival_jitter : float
        Where times are those of arrival, standard deviation of their steps over the period; NaN where they are stamps.
    stale : int
        Samples left out because they repeat the state before them, at stamps of their own.
    scatter : float
        Where stamps scattered and were made even, standard deviation of what was taken off over the period; else 0.
    """

    late: int = 0
    repeated: int = 0
    elsewhere: int = 0
    total: int = 0
    arrival_jitter: float = float("nan")
    stale: int = 0
    scatter: float = 0.0

    def __add__(self, other: "StampRepairs") -> "StampRepairs":
        late, repeated = self.late + other.late, self.repeated + other.repeated
        elsewhere, total = self.elsewhere + other.elsewhere, self.total + other.total
        stale, scatter = self.stale + other.stale, max(self.scatter, other.scatter)
        return StampRepairs(late, repeated, elsewhere, total, self.arrival_jitter, stale, scatter)

    @property
    def too_many_elsewhere(self) -> bool:
        """Whether it is for the user to say which clock is right."""
        return self.elsewhere > FEW * self.total

    @property
    def count(self) -> int:
        """Number of stamps that were not as they should be."""
        return self.late + self.repeated + self.elsewhere


def in_order(stamps: NDArray[np.int64] | NDArray[np.float64]) -> tuple[NDArray[np.intp], StampRepairs]:
    """Samples in the order of their stamps ``(N,)``, which is increasing, and what became of the others.

    Returns
    -------
    chosen : ndarray of int, shape (K,)
        Indices of the samples that stay, in the order of their stamps.
    repairs : StampRepairs
    """
    one_clock = on_one_clock(stamps)
    kept, rest = np.flatnonzero(one_clock), np.flatnonzero(~one_clock)
    if not len(rest) or len(kept) < 2:
        return kept, StampRepairs(elsewhere=len(rest), total=len(stamps))
    slack = (LATE * np.median(np.diff(stamps[kept]))).astype(stamps.dtype)
    place = np.searchsorted(kept, rest)
    before, after = stamps[kept[np.maximum(place - 1, 0)]], stamps[kept[np.minimum(place, len(kept) - 1)]]
    near = rest[(stamps[rest] >= before - slack) & (stamps[rest] <= after + slack)]
    chosen = np.sort(np.concatenate([kept, near]))
    chosen = chosen[np.argsort(stamps[chosen], kind="stable")]
    new = np.concatenate([[True], np.diff(stamps[chosen]) > 0])
    repeated, elsewhere = int((~new).sum()), len(rest) - len(near)
    return chosen[new], StampRepairs(len(near) - repeated, repeated, elsewhere, len(stamps))


def place_of(stamps: Sequence[int], new: NDArray[np.int64], late: int = LATE) -> int | None:
    """Index at which new stamps ``(N,)`` belong; a single one may come after some that are after it.

    Parameters
    ----------
    stamps : sequence of int
        Increasing.
    new : ndarray of int64, shape (N,)
        At least one.
    late : int
        Number of stamps that may have come before one that they are after.

    Returns
    -------
    int or None
        None where a stamp repeats, or is later than that, or several do not increase.
    """
    first = int(new[0])
    if len(new) > 1:
        after = not stamps or stamps[-1] < first
        return len(stamps) if after and bool((np.diff(new) > 0).all()) else None
    place = bisect_left(stamps, first)
    repeats = place < len(stamps) and stamps[place] == first
    return None if repeats or len(stamps) - place > late else place


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
