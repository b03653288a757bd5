"""States that a publisher sent again before its hardware had measured new ones.

A driver that publishes faster than it reads repeats positions and efforts. Positions then go up in stairs, whose steps
look like motion of a high frequency, and efforts seem to have less noise than they have.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.sensor_faults import true_runs

_LONGEST_S = 0.05  # what reads more slowly than at 20 Hz is at rest
_USUAL, _EVEN = 0.95, 2.0  # quantile of the steps to the next new state, and its median: in longer ones data was lost
_MANY = 0.2  # share of the samples in motion; fewer are single messages lost before the publisher, and do no harm


def without_repeated_states(recording: Recording) -> Recording:
    """The recording with new states alone; as it is where hardly any repeats the last one, or new ones come unevenly.

    A robot at rest may repeat its state for long: of such samples as many are left as in motion, so that they are no
    gap.

    Parameters
    ----------
    recording : Recording
        Raw channels. A state repeats the last one where no position and no effort of any joint has changed; velocities
        may have, where a driver takes differences of positions.

    Returns
    -------
    Recording
        Its :attr:`~.Recording.repairs` count what was left out.
    """
    same = _same(recording.position)
    if same.mean() >= _MANY:
        same &= _same(recording.effort)
    if same.mean() < _MANY:
        return recording
    starts, ends = np.array(true_runs(same)).T
    moving = recording.time[ends - 1] - recording.time[starts - 1] <= _LONGEST_S
    repeated = int((ends - starts)[moving].sum())
    if repeated < _MANY * (len(same) - (ends - starts)[~moving].sum()):
        return recording
    lengths = np.diff(np.flatnonzero(~same))  # from each new state to the next
    lengths = lengths[lengths <= (ends - starts)[moving].max() + 1]
    every = int(np.median(lengths))
    if np.quantile(lengths, _USUAL) > _EVEN * every:
        return recording
    kept = ~same
    for start, end in zip(starts[~moving].tolist(), ends[~moving].tolist(), strict=True):
        kept[start + every - 1 : end : every] = True
    count = replace(recording.repairs, stale=repeated, total=max(recording.repairs.total, len(same)))
    return replace(recording.select(kept), repairs=count)


def _same(values: Array) -> NDArray[np.bool_]:
    """``(N,)`` rows that equal the one before; what is not a number equals its like."""
    before, after = values[:-1], values[1:]
    equal = (before == after) | (np.isnan(before) & np.isnan(after))
    return np.concatenate([[False], equal.all(axis=1)])
