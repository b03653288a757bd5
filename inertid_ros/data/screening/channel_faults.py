"""Values that no sensor measured: spikes, lost, held and saturated values, full turns; and the noise of channels."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording

_FALSE_ALARMS_PER_CHANNEL = 1e-3  # of a channel of normal noise, expected per recording
NORMAL_DEVIATION_OVER_MAD = 1.4826
"""Standard deviation over median absolute deviation of normal noise."""
_ROUNDING_SHARE = 1e-9  # of the range of a channel; smaller steps are rounding
_QUANTUM_QUANTILE = 0.1  # quantile of the steps that are not zero: one quantum where a channel is quantised
_HALF_WINDOW = 3  # samples to either side: up to three bad values in a row stay a minority of the window
_SAMPLES_PER_PASS = 8192  # samples, whose windows fit the cache
# Comparisons after which the median of seven stands at 3 (N. Devillard, Fast median search, 1998).
_MEDIAN_NETWORK = (
    (0, 5), (0, 3), (1, 6), (2, 4), (0, 1), (3, 5), (2, 6), (2, 3), (3, 6), (4, 5), (1, 4), (1, 3), (3, 4),
)  # fmt: skip
_SLOPE_SHARE = 0.3  # of what a channel moves from one sample to the next; quanta may lie exactly on a line without their slope
_MIN_RUN = 5  # equal values in a row, which noise of a working sensor interrupts sooner
_CATCH_UP_RATIO = 4.0  # times the step after it; so many steps must have been missed where a channel jumps
_MAX_REPEATED_SHARE = 0.01  # share of the values; more are repeated where a channel is quantised
_DROPOUT_CHANGE_SHARE = 0.5  # of the drop: values before and after a dropout are alike
_LARGE_STEP_QUANTA = 3.0  # quanta: a shorter step may be that of a quantised channel, which keeps its value in slow motion
_MIN_KEPT_SHARE = 0.05  # share of kept values, below which no look at steps is worth its time
_MIN_LARGE_STEPS = 20  # such steps
_MIN_HELD_SHARE = 0.25  # share of them after a value that was kept; noise of some quanta keeps fewer
_HELD_QUANTILE = 0.95  # quantile of the lengths, where they vary
_FULL_TURN = 2 * np.pi
_MAX_JUMP_STEPS = 10.0  # times the fast step of a channel (99th percentile): what is left of a jump by a turn is a step of motion
_log = logging.getLogger(__name__)
_EQUAL_TOLERANCE = 1e-9  # of the largest value
_STUCK_WRENCH_S = 0.05  # longer than this no sensor repeats all six values
_SUDDEN_LOAD_SHARE = 0.1  # of the largest force; a load that goes to exactly zero from more than this was not lifted off


@dataclass(frozen=True)
class ChannelNoise:
    """Noise of channels of one kind, and the length of the recording, on which its threshold depends.

    Attributes
    ----------
    scale : ndarray, shape (n,)
        Standard deviations, see :func:`noise_scale`.
    samples : int
        Of the recording.
    """

    scale: Array
    samples: int

    @classmethod
    def of(cls, values: Array, steps: Array | None = None) -> "ChannelNoise":
        """Noise of finite channels ``(N, n)``, whose :func:`resolution` may be known."""
        return cls(noise_scale(values, steps), len(values))

    @property
    def threshold(self) -> float:
        """Standard deviations that normal noise exceeds in a channel once in a thousand recordings of this length."""
        return float(-scipy.special.ndtri(0.5 * _FALSE_ALARMS_PER_CHANNEL / max(self.samples, 1)))


def noise_scale(values: Array, steps: Array | None = None) -> Array:
    """``(n,)`` standard deviation of the noise of finite channels ``(N, n)``, not below their resolution.

    By third differences, in which hardly anything of a motion is left, and 20 times the variance of white noise. Their
    :func:`resolution`, ``steps (n,)``, is found here where it is not given.
    """
    noise = np.zeros(values.shape[1])
    for channel, column in enumerate(values.T):
        first = np.diff(column)
        differences = np.abs(np.diff(first, 2))[first[2:] != 0]  # saturation shows no noise
        noise[channel] = NORMAL_DEVIATION_OVER_MAD * np.median(differences) / np.sqrt(20) if len(differences) else 0.0
    return np.maximum(noise, resolution(values) if steps is None else steps)


def resolution(values: Array) -> Array:
    """``(n,)`` size of the small steps of finite channels ``(N, n)``; zero where a channel never changes."""
    out = np.zeros(values.shape[1])
    for channel, column in enumerate(values.T):
        steps = np.abs(np.diff(column))
        steps = steps[steps > _ROUNDING_SHARE * np.ptp(column)]
        out[channel] = np.quantile(steps, _QUANTUM_QUANTILE) if len(steps) else 0.0
    return out


def spikes(values: Array, noise: ChannelNoise | None = None, time: Array | None = None) -> NDArray[np.bool_]:
    """Where a channel is far off the median of its neighbours.

    The Hampel filter [Pearson2016]_: the distance from the median of a window of seven samples, in robust standard
    deviations. A step, such as Coulomb friction at a reversal, stays, as the centre of a window is always on the side
    of its majority; so does any monotone motion, whose median is its centre. The scale is the largest of

    - the median absolute deviation within the window, which grows with the motion,
    - the noise of the whole channel, and
    - the size of its small steps, which is the quantum where the channel is quantised,

    so that it is not zero where most values are equal. The threshold is that which normal noise exceeds once in a
    thousand recordings of this length.

    A position moves within the window by more than what a stale value is off. So the median slope of the window is
    taken out first where ``time`` is given.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Finite values, in any unit.
    noise : ChannelNoise, optional
        Of the channels, where it is known.
    time : ndarray, shape (N,), optional
        Stamps [s] of channels that change steadily, such as positions.

    Returns
    -------
    ndarray of bool, shape (N, n)
    """
    noise = noise or ChannelNoise.from_values(values)
    flags = np.zeros(values.shape, dtype=bool)
    steps = None if time is None else time / np.median(np.diff(time))
    for channel, column in enumerate(values.T):
        off, nearby = _from_neighbours(column, steps)
        flags[:, channel] = off > noise.threshold * np.maximum(nearby, noise.scale[channel])
    return flags


def joint_spikes(time: Array, channel: str, values: Array, noise: ChannelNoise | None = None) -> NDArray[np.bool_]:
    """:func:`spikes` of a channel of joints, ``position`` or another, at stamps ``(N,)`` [s]."""
    return spikes(values, noise, time if channel == "position" else None)


def _from_neighbours(column: Array, time: Array | None) -> tuple[Array, Array]:
    """Distance of every sample ``(N,)`` from the median of its window, and the window's robust standard deviation.

    Where stamps ``(N,)`` are given, in usual steps, both are without the slope.
    """
    if time is None:
        padded, stamps = np.pad(column, _HALF_WINDOW, mode="symmetric"), None
    else:  # what is continued through a point keeps its slope
        padded, stamps = (np.pad(each, _HALF_WINDOW, mode="reflect", reflect_type="odd") for each in (column, time))
    distance, deviation = np.empty(len(column)), np.empty(len(column))
    for start in range(0, len(column), _SAMPLES_PER_PASS):
        rows = slice(start, min(start + _SAMPLES_PER_PASS, len(column)))
        window, slope = _windows(padded, rows), np.zeros(1)
        if stamps is not None:
            window, slope = _level(window, _windows(stamps, rows))
        middle = median_of_seven(window)
        distance[rows] = np.abs(window[_HALF_WINDOW] - middle)
        nearby = NORMAL_DEVIATION_OVER_MAD * median_of_seven([np.abs(values - middle) for values in window])
        deviation[rows] = np.maximum(nearby, _SLOPE_SHARE * np.abs(slope))
    return distance, deviation


def _windows(padded: Array, rows: slice) -> list[Array]:
    """The seven neighbours of every sample in ``rows``, itself in the middle."""
    return [padded[rows.start + shift : rows.stop + shift] for shift in range(2 * _HALF_WINDOW + 1)]


def _level(window: list[Array], time: list[Array]) -> tuple[list[Array], Array]:
    """Windows without their median slope, of neighbours and of the ends, and this slope."""
    pairs = [*zip(range(6), range(1, 7), strict=True), (0, 6)]
    slope = median_of_seven([(window[j] - window[i]) / (time[j] - time[i]) for i, j in pairs])
    return [values - slope * (at - time[_HALF_WINDOW]) for values, at in zip(window, time, strict=True)], slope


def median_of_seven(values: Sequence[Array]) -> Array:
    """Median of seven finite arrays ``(N,)``, element by element, twenty times as fast as a sort of every seven."""
    ordered = list(values)
    for low, high in _MEDIAN_NETWORK:
        ordered[low], ordered[high] = np.minimum(ordered[low], ordered[high]), np.maximum(ordered[low], ordered[high])
    return ordered[3]


def dropouts(values: Array, noise: ChannelNoise | None = None) -> NDArray[np.bool_]:
    """Where channels ``(N, n)`` drop to exactly zero and come back to about the value that they had.

    A channel that goes through zero has other signs before and after, and one that rests at zero does not come back.
    Noise of the channels is found here where it is not given.
    """
    flags = np.zeros(values.shape, dtype=bool)
    noise = noise or ChannelNoise.from_values(values)
    least = noise.threshold * noise.scale
    for channel, column in enumerate(values.T):
        zero = column == 0.0
        if not zero.any() or zero.mean() > 0.5:
            continue
        for start, end in true_runs(zero):
            if start == 0 or end == len(column):
                continue
            before, after = column[start - 1], column[end]
            drop = min(abs(before), abs(after))
            flags[start:end, channel] = drop > least[channel] and abs(after - before) < _DROPOUT_CHANGE_SHARE * drop
    return flags


def held(values: Array, steps: bool = False, noise: ChannelNoise | None = None) -> NDArray[np.bool_]:
    """Where channels ``(N, n)`` repeat a value although what they measure went on.

    A run of equal values counts where it is longer than chance makes it, by the share of repeated values outside such
    runs, and where it ends in a jump of many times the step that follows. A joint that rests begins to move gradually,
    and slow motion of a quantised encoder goes on in steps of one quantum; at its largest or smallest value a channel
    is saturated.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Finite values.
    steps : bool
        Whether what is measured may jump, as effort does where friction reverses: then only channels that hardly ever
        repeat a value are checked.
    noise : ChannelNoise, optional
        Of the channels, where it is known.
    """
    flags = np.zeros(values.shape, dtype=bool)
    noise = noise or ChannelNoise.from_values(values)
    least = noise.threshold * noise.scale
    for channel, column in enumerate(values.T):
        same = np.diff(column, prepend=np.nan) == 0.0
        runs = [(start, end) for start, end in true_runs(same) if end - start >= _MIN_RUN]
        long = np.zeros_like(same)
        for start, end in runs:
            long[start:end] = True
        repeats = np.clip(np.mean(same[~long]), 1 / len(column), 1 - 1 / len(column)) if not long.all() else 0.5
        if steps and repeats > _MAX_REPEATED_SHARE:
            continue
        longest = np.log(_FALSE_ALARMS_PER_CHANNEL / len(column)) / np.log(repeats)
        extremes = column.min(), column.max()
        for start, end in runs:
            if end - start <= longest or end + 1 >= len(column) or column[start] in extremes:
                continue
            jump, step = abs(column[end] - column[end - 1]), abs(column[end + 1] - column[end])
            flags[start:end, channel] = jump > max(_CATCH_UP_RATIO * step, least[channel])
    return flags


def samples_held(values: Array) -> int:
    """Samples for which channels in motion keep their values; 1 where each sample has a new one.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        Channels as recorded. That of the channel with the longest counts.
    """
    longest = 1
    for column in values.T:
        steps = np.abs(np.diff(column))
        new = np.flatnonzero(steps)
        if len(new) > (1 - _MIN_KEPT_SHARE) * len(steps):
            continue
        quantum = float(resolution(column[:, None])[0])
        lengths = np.diff(new)[steps[new[1:]] > _LARGE_STEP_QUANTA * quantum]
        if len(lengths) >= _MIN_LARGE_STEPS and np.mean(lengths > 1) > _MIN_HELD_SHARE:
            longest = max(longest, int(np.ceil(np.quantile(lengths, _HELD_QUANTILE))))
    return longest


def unwrapped(angles: Array) -> tuple[Array, NDArray[np.intp]]:
    """Angles ``(N, n)`` [rad] without jumps by full turns, and the number of such jumps ``(n,)``.

    Only a jump counts that differs from full turns by no more than a step of the motion does: of spikes, most do not,
    and those that do jump back.
    """
    steps = np.diff(angles, axis=0)
    turns = np.round(steps / _FULL_TURN)
    out, counts = angles.copy(), np.zeros(angles.shape[1], dtype=np.intp)
    for joint in np.flatnonzero(turns.any(axis=0)):
        step, turn = steps[:, joint], turns[:, joint]
        usual = turn == 0
        limit = _MAX_JUMP_STEPS * np.quantile(np.abs(step[usual]), 0.99) if usual.any() else 0.0
        jumps = np.where(np.abs(step - _FULL_TURN * turn) <= limit, turn, 0.0)
        out[1:, joint] -= _FULL_TURN * np.cumsum(jumps)
        counts[joint] = np.count_nonzero(jumps)
    return out, counts


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
        tolerance = _EQUAL_TOLERANCE * np.abs(values).max(initial=0.0)
        if np.ptp(values) <= tolerance:
            continue
        for extreme in (values.max(), values.min()):
            for start, end in true_runs(np.abs(values - extreme) <= tolerance):
                flags[start:end, joint] |= end - start >= _MIN_RUN
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
    sudden = _SUDDEN_LOAD_SHARE * size.max(initial=0.0)
    for start, end in true_runs(same):
        start -= 1  # the first of equal ones
        if end - start < _MIN_RUN or time[end - 1] - time[start] < _STUCK_WRENCH_S:
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
