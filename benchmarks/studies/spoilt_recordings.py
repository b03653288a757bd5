"""Recordings with faults of networks, drivers and recorders, made from clean recordings with random magnitudes."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray
from support.recordings.arrival_stamps import burst_stamps, late_stamps

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording

Rng = np.random.Generator


def effort_spikes(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    share, size = rng.uniform(0.005, 0.015), rng.uniform(3, 30)
    return replace(recording, effort=_spiked(recording.effort, share, size, rng)), f"{share:.1%} of {size:.0f} std"


def position_spikes(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    share, size = rng.uniform(0.001, 0.01), rng.uniform(0.5, 10)
    return replace(recording, position=_spiked(recording.position, share, size, rng)), f"{share:.1%} of {size:.0f} std"


def late_positions(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    """Single states of a delayed driver, with stamps newer than the positions."""
    share, longest = rng.uniform(0.002, 0.01), rng.uniform(0.01, 0.04)
    late = recording.time - np.where(rng.random(len(recording)) < share, longest * rng.random(len(recording)), 0.0)
    position = _linear(recording.time, recording.position, late)
    return replace(recording, position=position), f"{share:.1%} by up to {1e3 * longest:.0f} ms"


def nan(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    share = rng.uniform(0.001, 0.01)
    effort, position = (np.where(rng.random(recording.effort.shape) < share, np.nan, values)
                        for values in (recording.effort, recording.position))  # fmt: skip
    velocity = np.full_like(position, np.nan)
    return replace(recording, effort=effort, position=position, velocity=velocity), f"{share:.1%}, velocity throughout"


def zeros(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    longest, count = int(rng.integers(2, 30)), int(rng.integers(5, 20))
    effort = recording.effort.copy()
    for joint in range(effort.shape[1]):
        for start in rng.integers(10, len(effort) - 50, count):
            effort[start : start + rng.integers(1, longest), joint] = 0.0
    return replace(recording, effort=effort), f"{count} times up to {longest} samples"


def short_gaps(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    count, longest = int(rng.integers(5, 40)), rng.uniform(0.01, 0.03)
    return _without(recording, count, longest, rng), f"{count} of up to {1e3 * longest:.0f} ms"


def long_gaps(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    count, longest = int(rng.integers(1, 4)), rng.uniform(0.3, 0.8)
    return _without(recording, count, longest, rng), f"{count} of up to {longest:.1f} s"


def jitter(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    share = rng.uniform(0.3, 0.95)
    moved = _resampled(recording, recording.time + share * _period(recording) * rng.uniform(-0.5, 0.5, len(recording)))
    gaps = _without(moved, 2, 0.009, rng)
    return gaps, f"{share:.0%} of a period, two gaps"


def delay(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    return _delayed(recording, rng.uniform(0.015, 0.02) * rng.choice([-1, 1]))


def long_delay(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    return _delayed(recording, rng.uniform(0.02, 0.03) * rng.choice([-1, 1]))


def decimation(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    rate = rng.uniform(45, 100)
    step = max(int(round(1 / (rate * _period(recording)))), 1)
    return _rows(recording, slice(int(rng.integers(step)), None, step)), f"to {1 / (step * _period(recording)):.0f} Hz"


def half(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    start = int(rng.uniform(0, 0.5) * len(recording))
    return _rows(recording, slice(start, start + len(recording) // 2)), f"from {recording.time[start]:.1f} s on"


def held(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    count, longest = int(rng.integers(3, 10)), rng.uniform(0.02, 0.06)
    position, effort = recording.position.copy(), recording.effort.copy()
    for start in rng.uniform(recording.time[0], recording.time[-1] - 0.1, count):
        rows = (recording.time > start) & (recording.time < start + rng.uniform(0.5, 1) * longest)
        first = int(np.argmax(rows))
        position[rows], effort[rows] = position[first], effort[first]
    return replace(recording, position=position, effort=effort), f"{count} times up to {1e3 * longest:.0f} ms"


def published_again(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    """States of a driver that publishes faster than it reads, with velocities that are differences of its positions."""
    every = int(rng.integers(2, 7))
    rows = np.arange(len(recording)) // every * every
    position = recording.position[rows]
    velocity = np.diff(position, axis=0, prepend=position[:1]) / _period(recording)
    again = replace(recording, position=position, effort=recording.effort[rows], velocity=velocity, acceleration=None)
    return again, f"{every} times each"


def positions_held(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    """Positions of a slower bus, with new efforts in every state."""
    every = int(rng.integers(2, 5))
    rows = np.arange(len(recording)) // every * every
    again = replace(recording, position=recording.position[rows], velocity=None, acceleration=None)
    return again, f"{every} times each"


def arrival(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    """Stamps of a process that handles states late, but in order."""
    share = rng.uniform(0.5, 3.0)
    stamps = late_stamps(recording.time, share * _period(recording), rng)
    return replace(recording, time=stamps), f"{share:.1f} periods"


def bursts(recording: Recording, rng: Rng) -> tuple[Recording, str]:
    """Stamps of states that are handled in bursts."""
    size = int(rng.integers(2, 12))
    return replace(recording, time=burst_stamps(recording.time, size)), f"of {size}"


SPOILT: dict[str, Callable[[Recording, Rng], tuple[Recording, str]]] = {
    "spikes of effort": effort_spikes,
    "spikes of position": position_spikes,
    "positions late": late_positions,
    "NaN": nan,
    "effort drops to zero": zeros,
    "short gaps": short_gaps,
    "long gaps": long_gaps,
    "jitter and two gaps": jitter,
    "stamps of arrival": arrival,
    "stamps in bursts": bursts,
    "values held": held,
    "states published again": published_again,
    "positions held": positions_held,
    "effort delayed": delay,
    "effort delayed more": long_delay,
    "decimated": decimation,
    "half of the data": half,
}


def _delayed(recording: Recording, seconds: float) -> tuple[Recording, str]:
    effort = _linear(recording.time, recording.effort, recording.time - seconds)
    return replace(recording, effort=effort), f"{1e3 * seconds:.0f} ms"


def _period(recording: Recording) -> float:
    return recording.duration / (len(recording) - 1)


def _spiked(values: Array, share: float, size: float, rng: Rng) -> Array:
    wrong = rng.random(values.shape) < share
    return values + np.where(wrong, size * values.std(axis=0) * rng.choice([-1, 1], values.shape), 0.0)


def _linear(time: Array, values: Array, instants: Array) -> Array:
    """Values ``(N, n)`` at other instants, constant beyond the ends."""
    return np.stack([np.interp(instants, time, column) for column in values.T], axis=1)


def _without(recording: Recording, count: int, longest: float, rng: Rng) -> Recording:
    keep = np.ones(len(recording), dtype=bool)
    for start in rng.uniform(recording.time[0] + 1, recording.time[-1] - 1, count):
        keep &= ~((recording.time > start) & (recording.time < start + longest * rng.uniform(0.5, 1)))
    return _rows(recording, keep)


def _rows(recording: Recording, rows: slice | NDArray[np.bool_]) -> Recording:
    given = {name: getattr(recording, name) for name in ("time", "position", "effort", "velocity", "acceleration")}
    return replace(recording, **{name: values[rows] for name, values in given.items() if values is not None})


def _resampled(recording: Recording, time: Array) -> Recording:
    """Recording with samples at other instants."""
    order = np.sort(time)
    inside = order[(order >= recording.time[0]) & (order <= recording.time[-1])]
    position, effort = (scipy.interpolate.make_interp_spline(recording.time, values, k=k)(inside)
              for values, k in ((recording.position, 3), (recording.effort, 1)))  # fmt: skip
    return Recording(recording.joint_names, inside, position, effort, name=recording.name)
