"""Wrapped angles: encoders that jump by a full turn while the joint moves on."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array

_TURN = 2 * np.pi
_STEP = 10.0  # times the fast step of a channel (99th percentile): what is left of a jump by a turn is a step of motion


def unwrapped(angles: Array) -> tuple[Array, NDArray[np.intp]]:
    """Angles ``(N, n)`` [rad] without jumps by full turns, and the number of such jumps ``(n,)``.

    Only a jump counts that differs from full turns by no more than a step of the motion does: of spikes, most do not,
    and those that do jump back.
    """
    steps = np.diff(angles, axis=0)
    turns = np.round(steps / _TURN)
    out, counts = angles.copy(), np.zeros(angles.shape[1], dtype=np.intp)
    for joint in np.flatnonzero(turns.any(axis=0)):
        step, turn = steps[:, joint], turns[:, joint]
        usual = turn == 0
        limit = _STEP * np.quantile(np.abs(step[usual]), 0.99) if usual.any() else 0.0
        jumps = np.where(np.abs(step - _TURN * turn) <= limit, turn, 0.0)
        out[1:, joint] -= _TURN * np.cumsum(jumps)
        counts[joint] = np.count_nonzero(jumps)
    return out, counts
