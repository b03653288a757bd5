"""Faults of channels: spikes, lost, held and saturated values, full turns; noise of channels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import MAD_TO_DEVIATION, Array, Indices, Mask

# Noise of a channel.
_FALSE_ALARMS_PER_CHANNEL = 1e-3  # expected per recording of normal noise
_ROUNDING_SHARE = 1e-9  # share of the range of a channel; smaller steps are rounding
_QUANTUM_QUANTILE = 0.1  # quantile of the non-zero steps: one quantum if a channel is quantised
# Spikes.
HALF_WINDOW = 3  # samples to either side: up to three bad values in a row stay a minority of the window
_SAMPLES_PER_PASS = 8192  # their windows fit the cache
_MEDIAN_NETWORK = (
    (0, 5), (0, 3), (1, 6), (2, 4), (0, 1), (3, 5), (2, 6), (2, 3), (3, 6), (4, 5), (1, 4), (1, 3), (3, 4))
"""Comparisons after which the median of seven is at index 3 (N. Devillard, Fast median search, 1998)."""
_SLOPE_SHARE = 0.3  # least deviation over a channel's slope: without the slope, quanta may lie exactly on a line
# Values that are repeated, or drop to zero.
_MIN_RUN = 5  # equal values in a row; noise of a working sensor interrupts them earlier
_CATCH_UP_RATIO = 4.0  # jump over the next step: number of steps missed while a channel was held
_MAX_REPEATED_SHARE = 0.01  # share of the values; a channel that repeats more is quantised
_DROPOUT_CHANGE_SHARE = 0.5  # change across a dropout over the drop: values before and after are alike
# Number of samples for which positions are held.
_LARGE_STEP_QUANTA = 3.0  # a shorter step may come from a quantised channel in slow motion
_MIN_KEPT_SHARE = 0.05  # share of kept values; with fewer, steps are not examined, to save time
_MIN_LARGE_STEPS = 20
_MIN_HELD_SHARE = 0.25  # share of large steps that follow a kept value; noise of some quanta keeps fewer
_HELD_QUANTILE = 0.95  # quantile of the number of samples for which values are held
# Wrapped angles.
_FULL_TURN = 2 * np.pi
_MAX_JUMP_STEPS = 10.0  # times the fast step (99th percentile): a jump minus its turn is a step of the motion
# Sensors at their limits, and dead ones.
_EQUAL_TOLERANCE = 1e-9  # relative to the largest value
_PILE_UP_RATIO = 5.0  # samples at a limit over samples at the next value; 2.4 at the turns of a coarse sinusoid
_STUCK_WRENCH_S = 0.05  # a working sensor changes one of its six values within this time
_SUDDEN_LOAD_SHARE = 0.1  # share of the largest force; a larger load that drops to exactly zero was not lifted off


@dataclass(frozen=True)
class ChannelNoise:
    """Standard deviations ``(n,)`` of the noise of channels, and the length of the recording.

    The length sets the threshold above which a value is not noise.
    """

    scale: Array
    samples: int

    @classmethod
    def from_values(cls, values: Array, steps: Array | None = None) -> "ChannelNoise":
        """Noise of finite channels ``(N, n)``, at least their :func:`resolution` (``steps`` if already computed).

        The estimate uses third differences, which contain hardly any motion, and 20 times the variance of white noise.
        """
        noise = np.zeros(values.shape[1])
        for channel, column in enumerate(values.T):
            first = np.diff(column)
            differences = np.abs(np.diff(first, 2))[first[2:] != 0]  # saturated values lack noise
            if len(differences):
                noise[channel] = MAD_TO_DEVIATION * np.median(differences) / np.sqrt(20)
        return cls(np.maximum(noise, resolution(values) if steps is None else steps), len(values))

    @property
    def threshold(self) -> float:
        """Standard deviations that normal noise exceeds in a channel once in a thousand recordings of this length."""
        return float(-scipy.special.ndtri(0.5 * _FALSE_ALARMS_PER_CHANNEL / max(self.samples, 1)))

    @property
    def limits(self) -> Array:
        """Deviations ``(n,)`` that normal noise hardly exceeds."""
        return self.threshold * self.scale


def resolution(values: Array) -> Array:
    """Size ``(n,)`` of the small steps of finite channels ``(N, n)``; zero if a channel never changes."""
    out = np.zeros(values.shape[1])
    for channel, column in enumerate(values.T):
        steps = np.abs(np.diff(column))
        steps = steps[steps > _ROUNDING_SHARE * np.ptp(column)]
        out[channel] = np.quantile(steps, _QUANTUM_QUANTILE) if len(steps) else 0.0
    return out


def spikes(values: Array, noise: ChannelNoise | None = None, time: Array | None = None) -> Mask:
    """Flag values of finite channels ``(N, n)`` far off the median of their neighbours.

    The Hampel filter [Pearson2016]_: the distance from the median of a window of seven samples, in robust standard
    deviations. A step, such as Coulomb friction at a reversal, stays, because the centre of a window is always on the
    side of its majority. Monotone motion stays too, because the centre is the median. The scale is the largest of

    - the median absolute deviation within the window, which grows with the motion,
    - the noise of the whole channel, and
    - the size of its small steps, the quantum of a quantised channel,

    so that the scale is not zero if most values are equal. Normal noise exceeds the threshold once in a thousand
    recordings of this length. Within a window, a position may move by more than the error of a stale value: if stamps
    ``time (N,)`` [s] are given, the median slope of the window is removed first.
    """
    noise = noise or ChannelNoise.from_values(values)
    flags = np.zeros(values.shape, dtype=bool)
    steps = None if time is None else time / np.median(np.diff(time))
    for channel, column in enumerate(values.T):
        off, nearby = _from_neighbours(column, steps)
        flags[:, channel] = off > noise.threshold * np.maximum(nearby, noise.scale[channel])
    return flags


def _from_neighbours(column: Array, time: Array | None) -> tuple[Array, Array]:
    """Distance of every sample ``(N,)`` from the median of its window, and the window's robust standard deviation.

    If stamps ``(N,)`` are given, in units of the median step, the slope of the window is removed first.
    """
    if time is None:
        padded, stamps = np.pad(column, HALF_WINDOW, mode="symmetric"), None
    else:  # a reflection through the end point keeps the slope
        padded, stamps = (np.pad(x, HALF_WINDOW, mode="reflect", reflect_type="odd") for x in (column, time))
    distance, deviation = np.empty(len(column)), np.empty(len(column))
    for start in range(0, len(column), _SAMPLES_PER_PASS):
        rows = slice(start, min(start + _SAMPLES_PER_PASS, len(column)))
        window, slope = _windows(padded, rows), np.zeros(1)
        if stamps is not None:  # median slope of the neighbours and of the ends
            times, pairs = _windows(stamps, rows), [*zip(range(6), range(1, 7), strict=True), (0, 6)]
            slope = median_of_seven([(window[j] - window[i]) / (times[j] - times[i]) for i, j in pairs])
            window = [values - slope * (at - times[HALF_WINDOW]) for values, at in zip(window, times, strict=True)]
        middle = median_of_seven(window)
        distance[rows] = np.abs(window[HALF_WINDOW] - middle)
        nearby = MAD_TO_DEVIATION * median_of_seven([np.abs(values - middle) for values in window])
        deviation[rows] = np.maximum(nearby, _SLOPE_SHARE * np.abs(slope))
    return distance, deviation


def _windows(padded: Array, rows: slice) -> list[Array]:
    """Windows of seven samples centred at ``rows``, as one array for each place in the window."""
    return [padded[rows.start + shift : rows.stop + shift] for shift in range(2 * HALF_WINDOW + 1)]


def median_of_seven(values: Sequence[Array]) -> Array:
    """Median of seven finite arrays ``(N,)``, element by element, twenty times as fast as sorting."""
    ordered = list(values)
    for low, high in _MEDIAN_NETWORK:
        ordered[low], ordered[high] = np.minimum(ordered[low], ordered[high]), np.maximum(ordered[low], ordered[high])
    return ordered[3]


def dropouts(values: Array, noise: ChannelNoise | None = None) -> Mask:
    """Flag samples of channels ``(N, n)`` that drop to exactly zero and return to about the previous value.

    A channel that passes through zero changes its sign, and a channel that rests at zero does not come back.
    """
    flags = np.zeros(values.shape, dtype=bool)
    least = (noise or ChannelNoise.from_values(values)).limits
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


def held(values: Array, steps: bool = False, noise: ChannelNoise | None = None) -> Mask:
    """Flag samples of channels ``(N, n)`` that repeat a value although the measured quantity changed.

    A run of equal values counts if it is too long for chance (by the share of repeated values outside of runs) and
    ends in a jump of many times the following step. This excludes a resting joint, which starts to move gradually, and
    slow motion of a quantised encoder, which continues in steps of one quantum. Runs at the largest or smallest value
    are excluded too: the channel is saturated there. ``steps`` means that the quantity itself may jump, as effort does
    when friction reverses; only channels that hardly ever repeat a value are then checked.
    """
    flags = np.zeros(values.shape, dtype=bool)
    least = (noise or ChannelNoise.from_values(values)).limits
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


def samples_held(values: Array) -> Indices:
    """Number of samples ``(n,)`` for which channels ``(N, n)`` in motion keep their values; 1 if all are new.

    The cause is a bus that is read less often than states are published.
    """
    longest = np.ones(values.shape[1], dtype=np.intp)
    for channel, column in enumerate(values.T):
        steps = np.abs(np.diff(column))
        new = np.flatnonzero(steps)
        if len(new) > (1 - _MIN_KEPT_SHARE) * len(steps):
            continue
        quantum = float(resolution(column[:, None])[0])
        lengths = np.diff(new)[steps[new[1:]] > _LARGE_STEP_QUANTA * quantum]
        if len(lengths) >= _MIN_LARGE_STEPS and np.mean(lengths > 1) > _MIN_HELD_SHARE:
            longest[channel] = int(np.ceil(np.quantile(lengths, _HELD_QUANTILE)))
    return longest


def unwrapped(angles: Array) -> tuple[Array, Indices]:
    """Remove jumps by full turns from angles ``(N, n)`` [rad], and count them ``(n,)``.

    A jump counts only if its difference from full turns is at most a step of the motion. This excludes most spikes; the
    other spikes jump back.
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


def saturated(effort: Array) -> Mask:
    """Flag samples of channels ``(N, n)`` that stay at the largest or smallest value for several samples.

    The true value may lie beyond this value. Two kinds of channels are not flagged: a channel that never changes has a
    dead sensor, which other checks find, and the extremes of a coarse or stepwise commanded channel are not much more
    frequent than the next value.
    """
    flags = np.zeros(effort.shape, dtype=bool)
    for joint, values in enumerate(effort.T):
        tolerance = _EQUAL_TOLERANCE * np.abs(values).max(initial=0.0)
        if np.ptp(values) <= tolerance:
            continue
        for extreme in (values.max(), values.min()):
            distance = np.abs(values - extreme)
            at = distance <= tolerance
            beside = distance <= distance[~at].min() + tolerance
            if at.sum() > _PILE_UP_RATIO * (beside & ~at).sum():
                for start, end in true_runs(at):
                    flags[start:end, joint] |= end - start >= _MIN_RUN
    return flags


def stuck(time: Array, wrench: Array) -> Mask:
    """Flag samples of a wrench ``(N, 6)`` at stamps ``(N,)`` [s] that repeats itself longer than a working sensor does.

    Many plates report exactly zero while unloaded, so zeros are flagged only if there was load just before or after.
    """
    same = np.concatenate([[False], (wrench[1:] == wrench[:-1]).all(axis=1)])
    flags = np.zeros(len(wrench), dtype=bool)
    size = np.linalg.norm(wrench[:, :3], axis=1)
    sudden = _SUDDEN_LOAD_SHARE * size.max(initial=0.0)
    for start, end in true_runs(same):
        start -= 1  # the first of the equal samples
        if end - start < _MIN_RUN or time[end - 1] - time[start] < _STUCK_WRENCH_S:
            continue
        around = max(size[start - 1] if start else 0.0, size[end] if end < len(size) else 0.0)
        if wrench[start].any() or around > sudden > 0:
            flags[start:end] = True
    return flags


def flagged_within(flags: Mask, time: Array, instants: Array, margin: float) -> Mask:
    """Flag ``(M, n)`` the instants ``(M,)`` within ``margin`` [s] of a sample flagged in ``(N, n)``."""
    out = np.zeros((len(instants), flags.shape[1]), dtype=bool)
    for channel, flagged in enumerate(flags.T):
        times = time[flagged]
        first = np.searchsorted(times, instants - margin)
        last = np.searchsorted(times, instants + margin, side="right")
        out[:, channel] = last > first
    return out


def true_runs(flags: Mask) -> list[tuple[int, int]]:
    """First index, and last index plus one, of every run of true values in ``flags (N,)``."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
