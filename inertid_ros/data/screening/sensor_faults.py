"""Saturated channels, and sensors that repeat themselves."""

import logging
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording

_log = logging.getLogger(__name__)
_RUN = 5  # equal values in a row; noise of any real sensor changes sooner
_SAME = 1e-9  # of the largest value
_STUCK_S = 0.05  # longer than this no sensor repeats all six values
_SUDDEN = 0.1  # of the largest force; a load that goes to exactly zero from more than this was not lifted off


def saturated(effort: Array) -> NDArray[np.bool_]:
    """Where a channel stays at its largest or smallest value for several samples.

    Of such samples it is only known that the true value was at least this large. A channel that never changes belongs
    to a dead sensor rather than a saturated one, and is left to other checks.

    Parameters
    ----------
    effort : ndarray, shape (N, n)
        Measured values, in any unit.

    Returns
    -------
    ndarray of bool, shape (N, n)
    """
    flags = np.zeros(effort.shape, dtype=bool)
    for joint, values in enumerate(effort.T):
        tolerance = _SAME * np.abs(values).max(initial=0.0)
        if np.ptp(values) <= tolerance:
            continue
        for extreme in (values.max(), values.min()):
            for start, end in true_runs(np.abs(values - extreme) <= tolerance):
                flags[start:end, joint] |= end - start >= _RUN
    return flags


def stuck(time: Array, wrench: Array) -> NDArray[np.bool_]:
    """Where a wrench repeats itself longer than a working sensor would.

    All zero is what many plates report while they are unloaded. It counts only where the load was there just before or
    after.

    Parameters
    ----------
    time : ndarray, shape (N,)
        Time [s].
    wrench : ndarray, shape (N, 6)
        Force [N] and torque [N m].

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    same = np.concatenate([[False], (wrench[1:] == wrench[:-1]).all(axis=1)])
    flags = np.zeros(len(wrench), dtype=bool)
    size = np.linalg.norm(wrench[:, :3], axis=1)
    sudden = _SUDDEN * size.max(initial=0.0)
    for start, end in true_runs(same):
        start -= 1  # the first of equal ones
        if end - start < _RUN or time[end - 1] - time[start] < _STUCK_S:
            continue
        around = max(size[start - 1] if start else 0.0, size[end] if end < len(size) else 0.0)
        if wrench[start].any() or around > sudden > 0:
            flags[start:end] = True
    return flags


def faulty_wrenches(recording: Recording, wrenches: Mapping[str, Array]) -> dict[str, NDArray[np.bool_]]:
    """Where each wrench ``(N, 6)`` is saturated or stuck ``(N,)``, with a notice each; nothing is put in its place."""
    faulty = {}
    for name, wrench in wrenches.items():
        repeated = stuck(recording.time, wrench)
        clipped = saturated(wrench).any(axis=1) & ~repeated
        for flags, what in ((clipped, "is saturated"), (repeated, "repeats itself (the sensor is dead)")):
            if flags.any():
                first, last = recording.time[flags][[0, -1]] - recording.time[0]
                _log.warning(
                    "%s: wrench/%s %s in %d samples between %.2f s and %.2f s, which are left out",
                    recording.name, name, what, flags.sum(), first, last,
                )
        faulty[name] = clipped | repeated
    return faulty


def flagged_within(flags: NDArray[np.bool_], time: Array, instants: Array, margin: float) -> NDArray[np.bool_]:
    """Which instants lie near a flagged sample, as those into which a filter mixes it.

    Parameters
    ----------
    flags : ndarray of bool, shape (N, n)
        Flagged samples of each channel.
    time : ndarray, shape (N,)
        Time of the samples [s].
    instants : ndarray, shape (M,)
        Instants that are asked for [s].
    margin : float
        Largest distance that counts as near [s].

    Returns
    -------
    ndarray of bool, shape (M, n)
    """
    out = np.zeros((len(instants), flags.shape[1]), dtype=bool)
    for channel, flagged in enumerate(flags.T):
        times = time[flagged]
        first = np.searchsorted(times, instants - margin)
        last = np.searchsorted(times, instants + margin, side="right")
        out[:, channel] = last > first
    return out


def true_runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and one past the last index of every run of true in ``(N,)``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
