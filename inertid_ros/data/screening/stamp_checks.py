"""Stamps that are not those of measurements: another unit, jitter of the publisher, states that were published again."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.data.recording import MAX_OTHER_CLOCK_SHARE, Recording

from .channel_faults import true_runs

_STAMP_UNITS_S = {"milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
_SAMPLE_RATES_HZ = (10.0, 20e3)  # at which joint states are sampled
_MAX_TRAVERSE_S = 60.0  # an arm that needs longer for its own range at its own fastest speed is not being excited
_UNIT_FACTOR = 3.0  # factor within which a ratio of velocities counts as one of the units
_ARRIVAL_JITTER_PERIODS = 0.2  # of the period, which is a fifth of what a joint moves between two samples
_MIN_RANGE = 1e-3  # rad or m; a joint whose range is smaller shows no speed
_MAX_REPEAT_S = 0.05  # what reads more slowly than at 20 Hz is at rest
_EVEN_QUANTILE, _EVEN_RATIO = 0.95, 2.0  # quantile of the steps to the next new state, and its median: in longer ones data was lost
_MIN_REPEATED_SHARE = 0.2  # share of the samples in motion; fewer are single messages lost before the publisher, and do no harm
_PAUSE_S = 0.5  # of the robot or of the recorder; longer than anything that holds up a state
_UNEVEN_STEP, _MIN_UNEVEN_SHARE = 0.5, 0.1  # of the mean step, and share of the steps: those of other recordings need no look
_DELAY_WINDOW_S, _MIN_WINDOW_SAMPLES = 0.5, 33  # over which delays are compared, and samples of it at least
_SMOOTHER_RATIO = 0.5  # times the roughness with the stamps as they are
_ROUGHNESS_QUANTILE = 0.98  # within bursts states are even; it shows between them
_MIN_STEP_PERIODS = 1e-3  # of the mean step: time goes on


def check_stamps(recording: Recording) -> tuple[Finding, ...]:
    """Findings on the unit of the stamps.

    Parameters
    ----------
    recording : Recording
        Raw channels.

    Returns
    -------
    tuple of Finding
        ``time_unit``: refused where the measured velocities, or a sample rate below ten hertz of a motion that takes
        minutes, contradict seconds.
    """
    moves = np.ptp(recording.position, axis=0) > _MIN_RANGE
    if not moves.any():
        return ()
    rate = 1.0 / float(np.median(np.diff(recording.time)))
    speeds = np.abs(_speeds(recording))[:, moves]
    fast = np.percentile(speeds, 99, axis=0)
    span = float(np.min(np.ptp(recording.position, axis=0)[moves] / np.maximum(fast, 1e-300)))
    ratio = velocity_ratio(recording)[moves]
    for unit, factor in _STAMP_UNITS_S.items():
        by_velocity = _ratio_is(ratio, factor)
        by_motion = rate < _SAMPLE_RATES_HZ[0] and span > _MAX_TRAVERSE_S and rate / factor <= _SAMPLE_RATES_HZ[1]
        if by_velocity or (by_motion and not np.isfinite(ratio).any() and span * factor < _MAX_TRAVERSE_S):
            evidence = f"stamps give a sample rate of {rate:.3g} Hz and {recording.duration:.3g} s of motion"
            if by_velocity:
                evidence += f", and positions that change at {np.nanmedian(ratio):.2g} of the measured velocities"
            remedy = remedy_for("time_unit", factor=f"{1 / factor:.0f}", unit=unit)
            return (Finding("time_unit", Severity.REFUSE, evidence, remedy, (), recording.name),)
    return ()


def check_repairs(recording: Recording) -> tuple[Finding, ...]:
    """Findings on what was done to the stamps of a recording, see :class:`StampRepairs`."""
    repairs, found = recording.repairs, []

    def tell(cause: str, count: float, evidence: str, most: float = MAX_OTHER_CLOCK_SHARE * repairs.total, case: str = "") -> None:
        severity = Severity.CARE if count > most else Severity.NOTICE
        found.append(Finding(cause, severity, evidence, remedy_for(cause, case), (), recording.name))

    if repairs.late or repairs.repeated:
        evidence = (
            f"of {repairs.total} stamps {repairs.late} went back by less than a few periods and were put in order, and"
            f" {repairs.repeated} repeated others and were left out"
        )
        tell("stamp_order", repairs.late + repairs.repeated, evidence)
    if repairs.elsewhere:
        evidence = f"of {repairs.total} stamps {repairs.elsewhere} go back or lie far off and were left out"
        tell("mixed_clocks", repairs.elsewhere, evidence)
    if repairs.stale:
        evidence = f"{repairs.stale} of {repairs.total} samples repeat the positions and efforts before them"
        tell("repeated_states", 0, evidence)
    if repairs.scatter:
        evidence = f"stamps scatter by {repairs.scatter:.2g} periods about even ones, by which positions are smooth"
        tell("arrival_times", 0, evidence, case="scatter")
    if not np.isnan(repairs.arrival_jitter):
        evidence = f"steps between messages vary by {repairs.arrival_jitter:.2g} of the period"
        tell("arrival_times", repairs.arrival_jitter, evidence, _ARRIVAL_JITTER_PERIODS)
    return tuple(found)


def velocity_ratio(recording: Recording) -> Array:
    """Change of position per second over the measured velocity ``(n,)``; NaN where either does not show it."""
    if recording.velocity is None:
        return np.full(len(recording.joint_names), np.nan)
    rates, measured = _speeds(recording), np.asarray(recording.velocity)
    measured = 0.5 * (measured[1:] + measured[:-1])
    finite = np.isfinite(measured)
    measured = np.where(finite, measured, 0.0)
    rates = np.where(finite, rates, 0.0)
    power, cross = np.sum(measured**2, axis=0), np.sum(measured * rates, axis=0)
    alike = np.abs(cross) > 0.7 * np.sqrt(power * np.sum(rates**2, axis=0))  # half of the variance in common
    moves = (np.ptp(recording.position, axis=0) > _MIN_RANGE) & (power > 0)
    return np.where(alike & moves, cross / np.where(power > 0, power, 1.0), np.nan)


def _speeds(recording: Recording) -> Array:
    return np.asarray(np.diff(recording.position, axis=0) / np.diff(recording.time)[:, None])


def _ratio_is(ratio: Array, factor: float) -> bool:
    """Whether most joints' ratios lie about a factor."""
    known = ratio[np.isfinite(ratio)]
    return len(known) > 0 and bool(np.mean(np.abs(np.log(np.abs(known) / factor)) < np.log(_UNIT_FACTOR)) > 0.5)


def as_measured(recording: Recording) -> Recording:
    """The recording without jitter of its stamps, and without states that were published again; both are counted.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    """
    return without_repeated_states(without_stamp_jitter(recording))


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
    same = _equal_to_last(recording.position)
    if same.mean() >= _MIN_REPEATED_SHARE:
        same &= _equal_to_last(recording.effort)
    if same.mean() < _MIN_REPEATED_SHARE:
        return recording
    starts, ends = np.array(true_runs(same)).T
    moving = recording.time[ends - 1] - recording.time[starts - 1] <= _MAX_REPEAT_S
    repeated = int((ends - starts)[moving].sum())
    if repeated < _MIN_REPEATED_SHARE * (len(same) - (ends - starts)[~moving].sum()):
        return recording
    lengths = np.diff(np.flatnonzero(~same))  # from each new state to the next
    lengths = lengths[lengths <= (ends - starts)[moving].max() + 1]
    every = int(np.median(lengths))
    if np.quantile(lengths, _EVEN_QUANTILE) > _EVEN_RATIO * every:
        return recording
    kept = ~same
    for start, end in zip(starts[~moving].tolist(), ends[~moving].tolist(), strict=True):
        kept[start + every - 1 : end : every] = True
    count = replace(recording.repairs, stale=repeated, total=max(recording.repairs.total, len(same)))
    return replace(recording.select(kept), repairs=count)


def _equal_to_last(values: Array) -> NDArray[np.bool_]:
    """``(N,)`` rows that equal the one before; what is not a number equals its like."""
    before, after = values[:-1], values[1:]
    equal = (before == after) | (np.isnan(before) & np.isnan(after))
    return np.concatenate([[False], equal.all(axis=1)])


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
    if np.mean(np.abs(steps[going] - period) > _UNEVEN_STEP * period) < _MIN_UNEVEN_SHARE:
        return recording
    pieces = np.split(np.arange(len(recording)), np.flatnonzero(~going) + 1)
    even = np.concatenate([_evened(recording.time[rows], period) for rows in pieces])
    least = _MIN_STEP_PERIODS * period * np.arange(len(even))
    even = np.maximum.accumulate(even - least) + least
    position = np.nan_to_num(recording.position)
    before, after = (_roughness(time, position) for time in (recording.time, even))
    moving = before > 0
    if not moving.any() or np.median(after[moving] / before[moving]) > _SMOOTHER_RATIO:
        return recording
    scatter = float(np.std(recording.time - even)) / period
    repairs = replace(recording.repairs, scatter=scatter, total=max(recording.repairs.total, len(recording)))
    return replace(recording, time=even, repairs=repairs)


def _evened(time: Array, period: float) -> Array:
    """Stamps of one piece by the mean delay over windows, straight from each window's middle to the next."""
    rows = np.arange(len(time))
    delay = time - period * rows
    windows = max(1, len(time) // max(_MIN_WINDOW_SAMPLES, round(_DELAY_WINDOW_S / period)))
    of_window = rows * windows // len(time)
    count = np.bincount(of_window)
    middles, means = (np.bincount(of_window, values) / count for values in (rows.astype(float), delay))
    return np.asarray(period * rows + np.interp(rows, middles, means))


def _roughness(time: Array, values: Array) -> Array:
    """``(n,)`` distance of channels ``(N, n)`` from the line between their neighbours, hardly ever exceeded."""
    share = ((time[1:-1] - time[:-2]) / (time[2:] - time[:-2]))[:, None]
    line = (1 - share) * values[:-2] + share * values[2:]
    return np.asarray(np.quantile(np.abs(values[1:-1] - line), _ROUGHNESS_QUANTILE, axis=0))
