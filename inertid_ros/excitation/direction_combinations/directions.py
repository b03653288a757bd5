"""Direction combinations: which way every joint moves in each interval (B §5.2)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Directions = NDArray[np.int64]
MOST_JOINTS = 40  # beyond, the number of combinations does not fit a machine integer


def combination_count(joints: int) -> int:
    """Number of different combinations: a motion and its reverse count once, so that the first direction is given."""
    return int(2 ** (joints - 1))


def direction_combinations(slowness: Sequence[int], most: int) -> Directions:
    """Combinations of +1 and -1, ``(K, n)``, each at most once; all ``2^(n-1)`` where that is not more than ``most``.

    They come in the order of a Gray code: from one interval to the next a single joint turns back. The joint that is
    first in ``slowness`` never does, the next one once, and so on. Slow joints therefore sweep wide ranges, while fast
    ones stay near their start; a shuffled order would keep all joints near theirs, and parameters apart by
    configuration alone, which is worth a factor in the condition number. B leaves the order open.

    Parameters
    ----------
    slowness : sequence of int
        Every joint's index once, slowest first.
    most : int
        Offered at most; every ``2^(n-1) / most``-th of the code is taken then.
    """
    joints = len(slowness)
    if sorted(slowness) != list(range(joints)) or not 1 <= joints <= MOST_JOINTS:
        raise ValueError(f"slowness {list(slowness)} must name 1 to {MOST_JOINTS} joints once each")
    count = combination_count(joints)
    index = np.arange(count) if count <= most else (np.arange(most) * count) // most
    code = index ^ (index >> 1)
    bits = (code[:, None] >> np.arange(joints - 1)[::-1]) & 1
    out = np.empty((len(index), joints), dtype=np.int64)
    out[:, slowness[0]] = 1
    out[:, list(slowness[1:])] = 1 - 2 * bits
    return out
