"""Pruning: which intervals of a motion to keep ([Naveen2019]_ algorithm 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.qr import r_factor

_BISECTIONS = 10
_LARGEST_GAIN = 0.5


@dataclass(frozen=True)
class PruningRule:
    """When an interval is kept.

    Attributes
    ----------
    significant : float
        A singular value is significant from this fraction of the largest on (delta in the source).
    neutral : int
        Intervals in a row that are kept although they neither raise the number of significant singular values nor lower
        the condition number, so that the motion depends less on the prior (u_max in the source).
    gain : float
        Fraction by which an interval must lower the condition number; zero in the source.
    """

    significant: float = 1 / 300
    neutral: int = 5
    gain: float = 0.0


def prune(blocks: Sequence[Array] | Array, rule: PruningRule) -> tuple[int, ...]:
    """Go through the intervals in their order and keep those that help.

    An interval is kept if with it there are more significant singular values, or if the condition number is lower by
    ``rule.gain``, or if fewer than ``rule.neutral`` in a row were kept for no such reason. The first ones are kept
    until there are more rows than columns. The source's listing starts counting again after every interval that it
    drops, which keeps at least six of seven; counting goes on here until the number of significant values rises, as the
    source's text says.

    Parameters
    ----------
    blocks : sequence of ndarray, shape (rows, p)
        Equations of each interval.
    rule : PruningRule
        When an interval is kept.

    Returns
    -------
    tuple of int
        Indices of the kept intervals, ascending.

    Raises
    ------
    ExcitationError
        All intervals together have no more rows than columns.
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
    factor = r_factor(np.vstack([blocks[index] for index in kept]))
    count, condition, neutral = *rank_and_condition(factor, rule.significant), 0
    for index in range(len(kept), len(blocks)):
        longer = r_factor(np.vstack([factor, blocks[index]]))
        count_now, condition_now = rank_and_condition(longer, rule.significant)
        if count_now > count:
            neutral = 0
        elif condition_now >= condition * (1 - rule.gain):
            if count_now < count or neutral >= rule.neutral:
                continue
            neutral += 1
        kept.append(index)
        factor, count, condition = longer, count_now, condition_now
    return tuple(kept)


def prune_to(blocks: Sequence[Array] | Array, rule: PruningRule, most: int) -> tuple[int, ...]:
    """Prune until at most ``most`` intervals are left, by raising the gain that is required.

    Raises
    ------
    ExcitationError
        So few intervals do not determine the parameters.
    """
    pruned = prune(blocks, rule)
    if len(pruned) <= most:
        return pruned
    low, high, best = rule.gain, _LARGEST_GAIN, None
    for _ in range(_BISECTIONS):
        gain = 0.5 * (low + high)
        pruned = prune(blocks, PruningRule(rule.significant, rule.neutral, gain))
        if len(pruned) <= most:
            high, best = gain, pruned
        else:
            low = gain
    if best is None:
        raise ExcitationError(
            f"excitation: {len(pruned)} intervals are needed to identify the parameters, more than the {most}"
            " allowed; allow more (excitation.combinations.most) or lengthen the intervals"
        )
    return best


def rank_and_condition(rows: Array, significant: float) -> tuple[int, float]:
    """Number of significant singular values, and condition number (infinite where there are too few rows)."""
    values = np.linalg.svd(rows, compute_uv=False)
    if values[0] == 0:
        return 0, float("inf")
    full = len(values) == rows.shape[1] and values[-1] > 0
    return int((values > significant * values[0]).sum()), float(values[0] / values[-1]) if full else float("inf")
