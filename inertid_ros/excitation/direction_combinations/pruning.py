"""Pruning: the intervals of a motion that are worth their time (B Algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.qr import r_factor

_BISECTIONS = 10
_LARGEST_GAIN = 0.5


@dataclass(frozen=True)
class Worth:
    """What counts as worth keeping.

    Attributes
    ----------
    significant : float
        A singular value counts from this fraction of the largest on (B: delta).
    neutral : int
        Intervals in a row that are kept although they neither raise the number of significant singular values nor lower
        the condition number, so that the motion depends less on the prior (B: u_max).
    gain : float
        Fraction by which an interval must lower the condition number; zero in B.
    """

    significant: float = 1 / 300
    neutral: int = 5
    gain: float = 0.0


@dataclass(frozen=True)
class Pruned:
    """Intervals kept, and what they show together in the motion that was pruned.

    Attributes
    ----------
    kept : tuple of int
        Their indices, ascending.
    significant : int
        Number of significant singular values.
    condition_number : float
        Of the kept rows.
    """

    kept: tuple[int, ...]
    significant: int
    condition_number: float


def prune(blocks: Sequence[Array] | Array, worth: Worth) -> Pruned:
    """Go through the intervals in their order and keep those that help.

    An interval is kept if with it there are more significant singular values, or if the condition number is lower by
    ``worth.gain``, or if fewer than ``worth.neutral`` in a row were kept for no such reason. The first ones are kept
    until there are more rows than columns. B's listing starts counting again after every interval that it drops, which
    keeps at least six of seven; counting goes on here until the number of significant values rises, as B's text says.

    Parameters
    ----------
    blocks : Sequence[ndarray] or ndarray, shape (rows, p)
        Equations of each interval.
    """
    columns = blocks[0].shape[1]
    kept: list[int] = []
    rows = 0
    while rows <= columns:
        if len(kept) == len(blocks):
            raise ExcitationError(
                f"excitation: {len(blocks)} intervals have {rows} equations for {columns} parameters; offer more"
                " combinations or more samples per interval"
            )
        rows += len(blocks[len(kept)])
        kept.append(len(kept))
    R = r_factor(np.vstack([blocks[index] for index in kept]))
    count, condition, neutral = *spread(R, worth.significant), 0
    for index in range(len(kept), len(blocks)):
        longer = r_factor(np.vstack([R, blocks[index]]))
        count_now, condition_now = spread(longer, worth.significant)
        if count_now > count:
            neutral = 0
        elif condition_now >= condition * (1 - worth.gain):
            if count_now < count or neutral >= worth.neutral:
                continue
            neutral += 1
        kept.append(index)
        R, count, condition = longer, count_now, condition_now
    return Pruned(tuple(kept), count, condition)


def pruned_to(blocks: Sequence[Array] | Array, worth: Worth, most: int) -> Pruned:
    """Prune until at most ``most`` intervals are left, by asking for more gain as long as there are more."""
    found = prune(blocks, worth)
    if len(found.kept) <= most:
        return found
    low, high, best = worth.gain, _LARGEST_GAIN, None
    for _ in range(_BISECTIONS):
        gain = 0.5 * (low + high)
        found = prune(blocks, Worth(worth.significant, worth.neutral, gain))
        if len(found.kept) <= most:
            high, best = gain, found
        else:
            low = gain
    if best is None:
        raise ExcitationError(
            f"excitation: {len(found.kept)} intervals are needed to tell the parameters apart, more than the {most}"
            " allowed; allow more (excitation.combinations.most) or lengthen the intervals"
        )
    return best


def spread(rows: Array, significant: float) -> tuple[int, float]:
    """Number of significant singular values, and condition number (infinite where there are too few rows)."""
    values = np.linalg.svd(rows, compute_uv=False)
    if values[0] == 0:
        return 0, float("inf")
    full = len(values) == rows.shape[1] and values[-1] > 0
    return int((values > significant * values[0]).sum()), float(values[0] / values[-1]) if full else float("inf")
