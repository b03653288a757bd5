"""Stamps that differ from measurement times: another unit, jitter of the publisher, states that were published again.

If a driver stamps states when it handles them, stamps scatter or come in bursts: samples were measured evenly, but
stamps are late by the handling delay. A driver that publishes faster than it reads repeats positions and efforts.
Positions then form stairs, and the steps look like motion of a high frequency. Efforts seem less noisy than they are.
"""

from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.recording import MAX_OTHER_CLOCK_SHARE, Recording

from .channel_faults import ChannelNoise, true_runs, unwrapped

# Unit of the stamps.
_STAMP_UNITS_S = {"milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
_SAMPLE_RATES_HZ = (10.0, 20e3)  # range of joint states
_MAX_TRAVERSE_S = 60.0  # an arm that needs longer for its range at its fastest speed is not being excited
_UNIT_FACTOR = 3.0  # a ratio of velocities within this factor of a unit counts as that unit
_ARRIVAL_JITTER_PERIODS = 0.2  # a joint moves by a fifth of a step in this time
_MIN_RANGE = 1e-3  # rad or m; a joint with a smaller range has no usable speed
# States that a publisher repeats.
_MAX_REPEAT_S = 0.05  # longer repeats mean rest: drivers read their hardware at 20 Hz or faster
_EVEN_QUANTILE, _EVEN_RATIO = 0.95, 2.0  # quantile of steps between new states over their median; longer are losses
_MIN_REPEATED_SHARE = 0.2  # share of samples in motion; fewer are messages lost before the publisher, and harmless
# Jitter of the stamps.
_PAUSE_S = 0.5  # longer steps are pauses of the robot or the recorder, not delays of a state
_UNEVEN_STEP, _MIN_UNEVEN_SHARE = 0.5, 0.1  # relative deviation from the mean step; share of steps that exceed it
_DELAY_WINDOW_S, _MIN_WINDOW_SAMPLES = 0.5, 33  # window over which delays are averaged
_SMOOTHER_RATIO = 0.5  # roughness with even stamps over roughness with recorded stamps
_ROUGHNESS_QUANTILE = 0.98  # states within bursts are even; the roughness is between bursts
_MIN_STEP_PERIODS = 1e-3  # stamps must increase
# States of a second publisher.
_DRAWN_ROWS = 2000  # random states, to find a repeated position
_MIN_STRANGE_SHARE, _MIN_STRANGE_BORDERS = 0.02, 20  # share of the states; changes between both publishers
_STRANGE_STEPS = 5.0  # jump over the fast step (99th percentile) of the other states
# Samples that are missing between even stamps.
_EVEN_STAMPS_SHARE = 1e-3  # scatter over the period, below which stamps may be row numbers
_MIN_DOUBLE_STEP, _MAX_DOUBLE_STEP = 1.6, 4.4  # step over its neighbours, if one to three samples are missing
_MIN_SHOWN_STEP = 10.0  # step over its noise; a shorter step does not reveal missing samples
_MAX_UNEVENNESS = 0.3  # difference of both neighbouring steps over their mean; with less the motion is even
_WHOLE_TOLERANCE, _MIN_WHOLE_SHARE = 0.25, 0.8  # numbers of missing samples are near integers at most places
_MIN_LOST, _MAX_LOST_SHARE = 5, 0.3  # steps, and share of the usable steps; fewer are chance, more are another fault
_SURE_TOLERANCE = 0.15  # distance to a multiple of the neighbouring steps, in these; below, one is no chance
# Concatenated logs.
_JUMP_STEPS = 3.0  # jump over the fast step (99th percentile) of a joint; a reversal of speed changes it by two
_MAX_JUMP_PERIODS = 2.5  # between the stamps around a jump; in a longer gap the robot has moved
_MIN_JUMPING_SHARE = 0.5  # share of the moving joints; a single joint may jump by its own fault
_JOIN_GAP_S = 5.0  # inserted gap, so that interpolation and filters do not cross a join
_MAX_INSTANTS = 4  # in a message
_MIN_LOG_S = 1.0  # mean duration of the logs; more frequent jumps are not joins
_JUMP_SIDE = 5  # samples on both sides of a jump; their medians differ by the jump, but not after a spike


def check_stamps(recording: Recording) -> tuple[Finding, ...]:
    """Finding ``time_unit`` on stamps in another unit than seconds.

    Measured velocities contradict seconds, or the sample rate is below 10 Hz in a motion that takes minutes.
    """
    moves = np.ptp(recording.position, axis=0) > _MIN_RANGE
    if not moves.any():
        return ()
    rate = 1.0 / recording.period
    speeds = np.abs(_speeds(recording))[:, moves]
    fast = np.percentile(speeds, 99, axis=0)
    span = float(np.min(np.ptp(recording.position, axis=0)[moves] / np.maximum(fast, 1e-300)))
    ratios = velocity_ratio(recording)[moves]
    ratios = ratios[np.isfinite(ratios)]
    for unit, factor in _STAMP_UNITS_S.items():
        near = np.abs(np.log(np.abs(ratios) / factor)) < np.log(_UNIT_FACTOR)
        by_velocity = len(ratios) > 0 and near.mean() > 0.5
        by_motion = rate < _SAMPLE_RATES_HZ[0] and span > _MAX_TRAVERSE_S and rate / factor <= _SAMPLE_RATES_HZ[1]
        if by_velocity or (by_motion and not len(ratios) and span * factor < _MAX_TRAVERSE_S):
            evidence = f"stamps give a sample rate of {rate:.3g} Hz and {recording.duration:.3g} s of motion"
            if by_velocity:
                evidence += f", and speeds of {np.median(ratios):.2g} times the measured velocities"
            finding = Finding.with_remedy(
                "time_unit", Severity.REFUSE, evidence, recording=recording.name, factor=f"{1 / factor:.0f}", unit=unit)
            return (finding,)
    return ()


def check_repairs(recording: Recording) -> tuple[Finding, ...]:
    """Findings on the repaired stamps of a recording, see :class:`StampRepairs`."""
    repairs, findings = recording.repairs, []
    many = MAX_OTHER_CLOCK_SHARE * repairs.total

    def add(cause: str, care: bool, evidence: str, case: str = "") -> None:
        severity = Severity.CARE if care else Severity.NOTICE
        findings.append(Finding.with_remedy(cause, severity, evidence, recording=recording.name, case=case))

    if repairs.late or repairs.repeated:
        evidence = (
            f"{repairs.late} of {repairs.total} stamps went back by less than a few periods and were put in order, and"
            f" {repairs.repeated} repeated stamps were left out")
        add("stamp_order", repairs.late + repairs.repeated > many, evidence)
    if repairs.elsewhere:
        evidence = f"{repairs.elsewhere} of {repairs.total} stamps go back or lie far off and were left out"
        add("mixed_clocks", repairs.elsewhere > many, evidence)
    if repairs.stale:
        evidence = f"{repairs.stale} of {repairs.total} samples repeat the previous positions and efforts"
        add("repeated_states", False, evidence)
    if repairs.scatter:
        evidence = f"stamps scatter by {repairs.scatter:.2g} periods about even times, at which positions are smooth"
        add("arrival_times", False, evidence, "scatter")
    if not np.isnan(repairs.arrival_jitter):
        evidence = f"steps between messages vary by {repairs.arrival_jitter:.2g} of the period"
        add("arrival_times", repairs.arrival_jitter > _ARRIVAL_JITTER_PERIODS, evidence)
    if repairs.strange:
        evidence = f"{repairs.strange} of {repairs.total} states repeat one position; the robot jumps there and back"
        add("second_publisher", False, evidence)
    if repairs.lost:
        add("lost_rows", False, f"the motion lacks {repairs.lost} samples between even stamps")
    if repairs.joins:
        begun = recording.time[0] + _JOIN_GAP_S * np.arange(len(repairs.joins))
        instants = ", ".join(f"{x:.2f} s" for x in (np.array(repairs.joins) - begun - _JOIN_GAP_S)[:_MAX_INSTANTS])
        add("joined_logs", False, f"positions of half the joints jump {len(repairs.joins)} times, at {instants}")
    return tuple(findings)


def velocity_ratio(recording: Recording) -> Array:
    """Change of position per second over the measured velocity ``(n,)``; NaN if both are too different or too small."""
    if recording.velocity is None:
        return np.full(len(recording.joint_names), np.nan)
    rates, measured = _speeds(recording), np.asarray(recording.velocity)
    measured = 0.5 * (measured[1:] + measured[:-1])
    finite = np.isfinite(measured)
    measured, rates = (np.where(finite, values, 0.0) for values in (measured, rates))
    power, cross = np.sum(measured**2, axis=0), np.sum(measured * rates, axis=0)
    alike = np.abs(cross) > 0.7 * np.sqrt(power * np.sum(rates**2, axis=0))  # half of the variance in common
    moves = (np.ptp(recording.position, axis=0) > _MIN_RANGE) & (power > 0)
    return np.where(alike & moves, cross / np.where(power > 0, power, 1.0), np.nan)


def _speeds(recording: Recording) -> Array:
    return np.asarray(np.diff(recording.position, axis=0) / np.diff(recording.time)[:, None])


def as_measured(recording: Recording) -> Recording:
    """Repair errors that stamps and publishers add to the motion, and count them in the recording's repairs.

    The errors are states of another publisher, missing rows, jitter, states published again, and joins of logs.
    """
    one_publisher = without_strange_states(recording)
    return with_joins_apart(without_repeated_states(without_stamp_jitter(with_lost_rows(one_publisher))))


def without_strange_states(recording: Recording) -> Recording:
    """Leave out the states of a second publisher that repeats one position, such as a joint_state_publisher.

    Positions jump to this position and back repeatedly, and the jumps are larger than steps of the motion.
    """
    position = np.nan_to_num(recording.position)
    drawn = position[np.random.default_rng(0).integers(len(position), size=_DRAWN_ROWS)]
    rows, counts = np.unique(drawn, axis=0, return_counts=True)
    if len(rows) < 2 or counts.max() < _MIN_STRANGE_SHARE * len(drawn):
        return recording
    strange = (position == rows[np.argmax(counts)]).all(axis=1)
    rest = position[~strange]
    if len(rest) < 4 or strange.all():
        return recording
    fast = np.quantile(np.abs(np.diff(rest, axis=0)), 0.99, axis=0)
    borders = np.flatnonzero(np.diff(strange))
    jumps = (np.abs(position[borders + 1] - position[borders]) > _STRANGE_STEPS * fast).any(axis=1)
    if len(borders) < _MIN_STRANGE_BORDERS or jumps.mean() < 0.5:
        return recording
    total = max(recording.repairs.total, len(position))
    return replace(
        recording.select(~strange), repairs=replace(recording.repairs, strange=int(strange.sum()), total=total))


def with_lost_rows(recording: Recording) -> Recording:
    """Correct evenly spaced stamps (row numbers) where samples were lost.

    The missing periods are inserted at position steps that are several times as large as the steps around them.
    """
    steps = np.diff(recording.time)
    period = float(np.median(steps)) if len(steps) else 0.0
    if len(steps) < 8 or np.abs(steps - period).max() > _EVEN_STAMPS_SHARE * period:
        return recording
    position = np.nan_to_num(recording.position)
    noise = ChannelNoise.from_values(position, np.zeros(position.shape[1])).scale
    moved = np.diff(position, axis=0) / np.maximum(noise, 1e-12 * np.ptp(position, axis=0) + 1e-300)
    # In even motion, steps are alike unless samples are missing. If next steps are double, only longer steps count.
    (before, after), *farther = ([moved[3 + k : len(moved) - 3 + k] for k in (-apart, apart)] for apart in (1, 2, 3))
    for beyond in farther:
        length, shorter = (np.linalg.norm(one + other, axis=1) for one, other in ((before, after), beyond))
        longer = (length > 0.5 * (1 + _MIN_DOUBLE_STEP) * shorter)[:, None]
        before, after = (np.where(longer, *side) for side in zip(beyond, (before, after), strict=True))
    usual = 0.5 * (before + after)
    size = np.linalg.norm(usual, axis=1)
    even = (size > _MIN_SHOWN_STEP) & (np.linalg.norm(after - before, axis=1) < _MAX_UNEVENNESS * size)
    ratio = np.sum(moved[3:-3] * usual, axis=1) / np.maximum(size**2, 1e-300)
    double = even & (ratio > _MIN_DOUBLE_STEP) & (ratio < _MAX_DOUBLE_STEP)
    apart = np.linalg.norm(moved[3:-3] - np.round(ratio)[:, None] * usual, axis=1)
    least = 1 if (apart < _SURE_TOLERANCE * size)[double].all() else _MIN_LOST
    if not least <= double.sum() <= _MAX_LOST_SHARE * max(even.sum(), 1):
        return recording
    whole = np.abs(ratio[double] - np.round(ratio[double])) < _WHOLE_TOLERANCE
    if whole.mean() < _MIN_WHOLE_SHARE:
        return recording
    missing = np.zeros(len(steps))
    missing[3:-3][double] = np.round(ratio[double]) - 1
    time = recording.time + period * np.append(0.0, np.cumsum(missing))
    repairs = replace(recording.repairs, lost=int(missing.sum()), total=max(recording.repairs.total, len(time)))
    return replace(recording, time=time, repairs=repairs)


def with_joins_apart(recording: Recording) -> Recording:
    """Insert gaps into the stamps if positions of half of the joints jump, as at the joins of concatenated logs."""
    position, _ = unwrapped(np.nan_to_num(recording.position))
    if len(position) < 4 * _JUMP_SIDE:
        return recording
    steps = np.diff(position, axis=0)
    fast = np.quantile(np.abs(steps), 0.99, axis=0)
    least = np.where(fast > 0, _JUMP_STEPS * fast, np.inf)
    jumps, enough = np.abs(steps) > least, max(_MIN_JUMPING_SHARE * (fast > 0).sum(), 1)
    together = np.diff(recording.time) < _MAX_JUMP_PERIODS * recording.period
    joins = []
    for row in np.flatnonzero(together & (jumps.sum(axis=1) >= enough)).tolist():
        before, after = (slice(max(row - _JUMP_SIDE, 0), row), slice(row + 1, row + 1 + _JUMP_SIDE))
        going = np.median(np.concatenate([steps[before], steps[after]]), axis=0)
        levels = [np.median(position[side], axis=0) for side in (before, after)]
        # Change beyond the continued motion: fast steps nearby are not a jump, and a spike comes back.
        change = np.abs(levels[1] - levels[0] - (_JUMP_SIDE + 1) * going)
        if (jumps[row] & (change > np.maximum(0.5 * np.abs(steps[row]), least))).sum() >= enough:
            joins.append(row + 1)
    if not 0 < len(joins) <= recording.duration / _MIN_LOG_S:
        return recording
    time = recording.time + _JOIN_GAP_S * np.searchsorted(joins, np.arange(len(position)), side="right")
    stamps = tuple(time[joins].tolist())
    return replace(recording, time=time, repairs=replace(recording.repairs, joins=stamps))


def without_repeated_states(recording: Recording) -> Recording:
    """Keep only new states, unless repeated states are rare or new states come unevenly.

    A state is repeated if the positions and efforts of all joints are unchanged; velocities may change, because
    drivers may differentiate positions. A resting robot may repeat its state for long: samples at rest are then kept
    at the rate of new states in motion, so that the rest does not become a gap.
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
    remaining = ~same
    for start, end in zip(starts[~moving].tolist(), ends[~moving].tolist(), strict=True):
        remaining[start + every - 1 : end : every] = True
    count = replace(recording.repairs, stale=repeated, total=max(recording.repairs.total, len(same)))
    return replace(recording.select(remaining), repairs=count)


def _equal_to_last(values: Array) -> Mask:
    """Flag the rows ``(N,)`` that equal the previous row; NaN equals NaN."""
    before, after = values[:-1], values[1:]
    equal = (before == after) | (np.isnan(before) & np.isnan(after))
    return np.concatenate([[False], equal.all(axis=1)])


def without_stamp_jitter(recording: Recording) -> Recording:
    """Make the stamps even if positions are smoother with even stamps than with recorded stamps.

    Stamps that were taken with the measurement are right, even if uneven: positions are then smooth over the recorded
    stamps. After lost samples, the even stamps have a step as well.
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
    """Stamps of one piece: even steps plus the delay, averaged over windows and interpolated between their middles."""
    rows = np.arange(len(time))
    delay = time - period * rows
    windows = max(1, len(time) // max(_MIN_WINDOW_SAMPLES, round(_DELAY_WINDOW_S / period)))
    of_window = rows * windows // len(time)
    count = np.bincount(of_window)
    middles, means = (np.bincount(of_window, values) / count for values in (rows.astype(float), delay))
    return np.asarray(period * rows + np.interp(rows, middles, means))


def _roughness(time: Array, values: Array) -> Array:
    """Distance ``(n,)`` (98th percentile) of channels ``(N, n)`` from the line between their neighbours."""
    share = ((time[1:-1] - time[:-2]) / (time[2:] - time[:-2]))[:, None]
    line = (1 - share) * values[:-2] + share * values[2:]
    return np.asarray(np.quantile(np.abs(values[1:-1] - line), _ROUGHNESS_QUANTILE, axis=0))
