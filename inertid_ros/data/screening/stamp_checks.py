"""Whether stamps are in seconds: by the measured velocity, and by how long the robot takes for its own motion."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.recording import Recording
from inertid_ros.data.stamp_order import FEW

_UNITS = {"milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
_RATES_HZ = (10.0, 20e3)  # at which joint states are sampled
_SLOWEST_S = 60.0  # an arm that needs longer for its own range at its own fastest speed is not being excited
_DECADE = 3.0  # factor within which a ratio of velocities counts as one of the units
_JITTER = 0.2  # of the period, which is a fifth of what a joint moves between two samples
_MOVES = 1e-3  # rad or m; a joint whose range is smaller shows no speed


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
    moves = np.ptp(recording.position, axis=0) > _MOVES
    if not moves.any():
        return ()
    rate = 1.0 / float(np.median(np.diff(recording.time)))
    speeds = np.abs(_speeds(recording))[:, moves]
    fast = np.percentile(speeds, 99, axis=0)
    span = float(np.min(np.ptp(recording.position, axis=0)[moves] / np.maximum(fast, 1e-300)))
    ratio = velocity_ratio(recording)[moves]
    for unit, factor in _UNITS.items():
        by_velocity = _ratio_is(ratio, factor)
        by_motion = rate < _RATES_HZ[0] and span > _SLOWEST_S and rate / factor <= _RATES_HZ[1]
        if by_velocity or (by_motion and not np.isfinite(ratio).any() and span * factor < _SLOWEST_S):
            evidence = f"stamps give a sample rate of {rate:.3g} Hz and {recording.duration:.3g} s of motion"
            if by_velocity:
                evidence += f", and positions that change at {np.nanmedian(ratio):.2g} of the measured velocities"
            remedy = remedy_for("time_unit", factor=f"{1 / factor:.0f}", unit=unit)
            return (Finding("time_unit", Severity.REFUSE, evidence, remedy, (), recording.name),)
    return ()


def check_repairs(recording: Recording) -> tuple[Finding, ...]:
    """Findings on what was done to the stamps of a recording, see :class:`StampRepairs`."""
    repairs, found = recording.repairs, []

    def tell(cause: str, count: float, evidence: str, most: float = FEW * repairs.total, case: str = "") -> None:
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
        tell("arrival_times", repairs.arrival_jitter, evidence, _JITTER)
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
    moves = (np.ptp(recording.position, axis=0) > _MOVES) & (power > 0)
    return np.where(alike & moves, cross / np.where(power > 0, power, 1.0), np.nan)


def _speeds(recording: Recording) -> Array:
    return np.asarray(np.diff(recording.position, axis=0) / np.diff(recording.time)[:, None])


def _ratio_is(ratio: Array, factor: float) -> bool:
    """Whether most joints' ratios lie about a factor."""
    known = ratio[np.isfinite(ratio)]
    return len(known) > 0 and bool(np.mean(np.abs(np.log(np.abs(known) / factor)) < np.log(_DECADE)) > 0.5)
