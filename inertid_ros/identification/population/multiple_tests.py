"""Many tests together: which hypotheses to reject so that false alarms stay at a stated level."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array


def benjamini_hochberg(p_values: Array, level: float) -> NDArray[np.bool_]:
    """Rejected hypotheses, of which at most a share ``level`` is expected to be false [Benjamini1995]_.

    Parameters
    ----------
    p_values : ndarray, shape (m,)
        One per test.
    level : float
        Rate of false discoveries.
    """
    return _stepwise(p_values, level * np.arange(1, len(p_values) + 1) / max(len(p_values), 1), last=True)


def holm(p_values: Array, level: float) -> NDArray[np.bool_]:
    """Rejected hypotheses; with probability ``1 - level`` or more none of them is true [Holm1979]_.

    Parameters
    ----------
    p_values : ndarray, shape (m,)
        One per test.
    level : float
        Probability of one false alarm or more.
    """
    return _stepwise(p_values, level / np.arange(len(p_values), 0, -1), last=False)


def _stepwise(p_values: Array, thresholds: Array, last: bool) -> NDArray[np.bool_]:
    """Reject up to the last p-value below its threshold, or up to the first one above."""
    order = np.argsort(p_values, kind="stable")
    below = p_values[order] <= thresholds
    if last:
        count = int(np.max(np.flatnonzero(below) + 1, initial=0))
    else:
        count = len(below) if below.all() else int(np.argmin(below))
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[:count]] = True
    return rejected
