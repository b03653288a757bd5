"""Stamps that scatter, or come in bursts, as those that a state gets when it is handled and not when it is measured.

Samples were measured evenly then, one after the other; their stamps are late by what held them up.
"""

from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording

_PAUSE_S = 0.5  # of the robot or of the recorder; longer than anything that holds up a state
_UNEVEN, _MANY = 0.5, 0.1  # of the mean step, and share of the steps: those of other recordings need no look
_WINDOW_S, _FEWEST = 0.5, 33  # over which delays are compared, and samples of it at least
_SMOOTHER = 0.5  # times the roughness with the stamps as they are
_NEARLY_ALL = 0.98  # within bursts states are even; it shows between them
_LEAST = 1e-3  # of the mean step: time goes on


def without_stamp_jitter(recording: Recording) -> Recording:
    """The recording with even stamps where positions are smoother by them than by its own.

    A stamp that was measured with the state is right however uneven it is: positions are smooth by it.

    Parameters
    ----------
    recording : Recording
        Raw channels.

    Returns
    -------
    Recording
        Its :attr:`~.Recording.repairs` tell by how much the stamps scattered. Where samples were lost its stamps have a
        step as well.
    """
    steps = np.diff(recording.time)
    going = steps < _PAUSE_S
    if not going.any():
        return recording
    period = float(steps[going].mean())
    if np.mean(np.abs(steps[going] - period) > _UNEVEN * period) < _MANY:
        return recording
    pieces = np.split(np.arange(len(recording)), np.flatnonzero(~going) + 1)
    even = np.concatenate([_evened(recording.time[rows], period) for rows in pieces])
    least = _LEAST * period * np.arange(len(even))
    even = np.maximum.accumulate(even - least) + least
    position = np.nan_to_num(recording.position)
    before, after = (_roughness(time, position) for time in (recording.time, even))
    moving = before > 0
    if not moving.any() or np.median(after[moving] / before[moving]) > _SMOOTHER:
        return recording
    scatter = float(np.std(recording.time - even)) / period
    repairs = replace(recording.repairs, scatter=scatter, total=max(recording.repairs.total, len(recording)))
    return replace(recording, time=even, repairs=repairs)


def _evened(time: Array, period: float) -> Array:
    """Stamps of one piece by the mean delay over windows, straight from each window's middle to the next."""
    rows = np.arange(len(time))
    delay = time - period * rows
    windows = max(1, len(time) // max(_FEWEST, round(_WINDOW_S / period)))
    of_window = rows * windows // len(time)
    count = np.bincount(of_window)
    middles, means = (np.bincount(of_window, values) / count for values in (rows.astype(float), delay))
    return np.asarray(period * rows + np.interp(rows, middles, means))


def _roughness(time: Array, values: Array) -> Array:
    """``(n,)`` distance of channels ``(N, n)`` from the line between their neighbours, hardly ever exceeded."""
    share = ((time[1:-1] - time[:-2]) / (time[2:] - time[:-2]))[:, None]
    line = (1 - share) * values[:-2] + share * values[2:]
    return np.asarray(np.quantile(np.abs(values[1:-1] - line), _NEARLY_ALL, axis=0))
