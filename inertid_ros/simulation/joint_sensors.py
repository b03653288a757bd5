"""Sensors of the simulated robot: noise, resolution, and faults of the state channel."""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.simulation import SensorOptions
from inertid_ros.core.arrays import Array


@dataclass(frozen=True)
class StateSample:
    """One joint state: ``time`` [s], ``position``, ``velocity``, ``effort`` ``(n,)`` (rad or m, per s, N m or N)."""

    time: float
    position: Array
    velocity: Array
    effort: Array


class Sensors:
    """Adds noise to true states.

    ``effort_scale`` is ``(n,)``, what ``effort_noise`` is a fraction of [N m or N].
    """

    def __init__(self, options: SensorOptions, effort_scale: Array, rng: np.random.Generator) -> None:
        self.options, self._effort_scale, self._rng = options, effort_scale, rng

    def measure(self, true: StateSample) -> StateSample:
        """The state as the sensors report it."""
        noise = self._rng.standard_normal((3, len(true.position)))
        position = true.position + self.options.position_noise * noise[0]
        if self.options.position_resolution > 0:
            position = np.round(position / self.options.position_resolution) * self.options.position_resolution
        return StateSample(
            true.time,
            position,
            true.velocity + self.options.velocity_noise * noise[1],
            true.effort + self.options.effort_noise * self._effort_scale * noise[2],
        )


@dataclass(frozen=True)
class StateFaults:
    """Faults of the reported states.

    Attributes
    ----------
    silent : bool
        Nothing is reported.
    frozen : bool
        Values stay, stamps go on.
    not_finite : bool
        Values are NaN.
    delay : float
        Every state arrives this late [s].
    drop : float
        Probability that a state is lost.
    stamp_offset : float
        Added to every stamp [s].
    """

    silent: bool = False
    frozen: bool = False
    not_finite: bool = False
    delay: float = 0.0
    drop: float = 0.0
    stamp_offset: float = 0.0


class FaultyChannel:
    """Channel of the states from the robot to its users."""

    def __init__(self, rng: np.random.Generator, faults: StateFaults | None = None) -> None:
        self.faults = faults or StateFaults()
        self._rng = rng
        self._waiting: deque[tuple[float, StateSample]] = deque()
        self._last: StateSample | None = None

    def pass_on(self, sample: StateSample) -> list[StateSample]:
        """States that arrive at ``sample.time``, when ``sample`` enters the channel."""
        now, faults = sample.time, self.faults
        if faults.frozen and self._last is not None:
            sample = replace(self._last, time=now)
        else:
            self._last = sample
        if not (faults.silent or (faults.drop > 0 and self._rng.random() < faults.drop)):
            nan = np.full_like(sample.position, np.nan)
            if faults.not_finite:
                sample = StateSample(sample.time, nan, nan, nan)
            sample = replace(sample, time=sample.time + faults.stamp_offset)
            self._waiting.append((now + faults.delay, sample))
        arrived = [s for due, s in self._waiting if due <= now + 1e-9]
        self._waiting = deque((due, s) for due, s in self._waiting if due > now + 1e-9)
        return arrived
