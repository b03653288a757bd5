"""Start-up and stopping transients: ends of a recording that move unlike the rest of it."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array

_CENTRE = (0.2, 0.8)  # of the recording's duration; what is here is what the experiment is about
_UNLIKE = 3.0  # times the largest acceleration of the centre
_STILL = 0.02  # a joint that accelerates less than this share of its fastest moment does not move in the centre


def without_transients(time: Array, acceleration: Array) -> NDArray[np.bool_]:
    """Where a recording is past its start-up and before its stopping jerk.

    A controller that is switched onto a running motion jerks the robot into it; flexible joints and saturated drives
    then do what no rigid-body model describes. Such an end is recognised by accelerations several times above
    everything in the central three fifths, and is cut up to the last of them. Nothing within the centre is ever cut,
    and a recording that begins and ends at rest loses nothing.

    Parameters
    ----------
    time : ndarray, shape (N,)
        Time [s].
    acceleration : ndarray, shape (N, n)
        Filtered acceleration of the joints [rad/s^2 or m/s^2].

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    share = (time - time[0]) / (time[-1] - time[0])
    size = np.abs(acceleration)
    centre = size[(share >= _CENTRE[0]) & (share <= _CENTRE[1])]
    usable = np.ones(len(time), dtype=bool)
    if len(centre) == 0:
        return usable
    typical = centre.max(axis=0)
    moves = typical > _STILL * size.max(axis=0)
    unlike = ((size > _UNLIKE * typical) & moves).any(axis=1)
    start = np.flatnonzero(unlike & (share < _CENTRE[0]))
    end = np.flatnonzero(unlike & (share > _CENTRE[1]))
    if len(start):
        usable[: start[-1] + 1] = False
    if len(end):
        usable[end[0] :] = False
    return usable
