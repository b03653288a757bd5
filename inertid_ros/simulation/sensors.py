"""Sensors of simulated arms, legged robots and force plates: noise, resolution, and faults of the state channel."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from inertid_ros.config.simulation import BodySensorOptions, FaultOptions, SensorOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import StateSample


class Sensors:
    """Add play (backlash) and noise to true states; effort noise is a fraction of ``effort_scale (n,)`` [N m or N]."""

    def __init__(self, options: SensorOptions, effort_scale: Array, rng: np.random.Generator) -> None:
        self.options, self._effort_scale, self._rng = options, effort_scale, rng
        self._position: Array | None = None  # on the encoder side of the play

    def measure(self, true: StateSample) -> StateSample:
        noise = self._rng.standard_normal((3, len(true.position)))
        behind, play = true.position if self._position is None else self._position, self.options.play
        self._position = np.minimum(np.maximum(behind, true.position - play), true.position + play)
        position = self._position + self.options.position_noise * noise[0]
        if self.options.position_resolution > 0:
            position = np.round(position / self.options.position_resolution) * self.options.position_resolution
        measured = replace(
            true, position=position, velocity=true.velocity + self.options.velocity_noise * noise[1],
            effort=true.effort + self.options.effort_noise * self._effort_scale * noise[2])
        if isinstance(measured, FloatingSample):
            deviations = np.repeat([self.options.base_velocity_noise, self.options.base_rate_noise], 3)
            measured = replace(measured, base_twist=measured.base_twist + deviations * self._rng.standard_normal(6))
        return measured


class FaultyChannel:
    """Channel of the states from the robot to its users.

    A publisher with a gap delivers one state when the gap ends and skips all other states in the gap, like
    ros2_control's RealtimePublisher.
    """

    def __init__(self, rng: np.random.Generator, faults: FaultOptions | None = None) -> None:
        self._rng, self._waiting = rng, deque[tuple[float, StateSample]]()
        self._last: StateSample | None = None
        self.faults = faults or FaultOptions(gap_rate_hz=0.0)

    @property
    def faults(self) -> FaultOptions:
        return self._faults

    @faults.setter
    def faults(self, faults: FaultOptions) -> None:
        self._faults = faults
        self._gap_end, self._next_gap = -np.inf, np.nan  # NaN: not drawn yet

    def pass_on(self, sample: StateSample) -> list[StateSample]:
        """Pass a sample into the channel; return the states that arrive at the sample's time."""
        now, faults = sample.time, self._faults
        if faults.frozen and self._last is not None:
            sample = replace(self._last, time=now)
        else:
            self._last = sample
        held_until = self._held_until(now)
        if held_until is not None and not (faults.silent or (faults.drop > 0 and self._rng.random() < faults.drop)):
            if faults.not_finite:
                nan = np.full_like(sample.position, np.nan)
                sample = StateSample(sample.time, nan, nan, nan)
            if faults.stamp_offset_s:
                sample = replace(sample, time=sample.time + faults.stamp_offset_s)
            self._waiting.append((held_until + faults.delay_s, sample))
        arrived = [s for due, s in self._waiting if due <= now + 1e-9]
        self._waiting = deque((due, s) for due, s in self._waiting if due > now + 1e-9)
        return arrived

    def _held_until(self, now: float) -> float | None:
        """Return the time at which the state of time ``now`` leaves the publisher; None if the state is skipped."""
        if now < self._gap_end:
            return None
        if self._faults.gap_rate_hz == 0:
            return now
        if np.isnan(self._next_gap):
            self._next_gap = now + self._rng.exponential(1 / self._faults.gap_rate_hz)
        if now < self._next_gap:
            return now
        self._gap_end = now + float(np.exp(np.interp(self._rng.random(), (0.0, 0.5, 1.0), np.log(self._faults.gap_s))))
        self._next_gap = np.nan
        return self._gap_end


@dataclass(frozen=True)
class FloatingSample(StateSample):
    """Joint state of a robot whose base moves, and the motion of the base.

    Attributes
    ----------
    base_pose : (7,), position x y z [m] and quaternion qx qy qz qw.
    base_twist : (6,), linear then angular, in the base frame.
    """

    base_pose: Array
    base_twist: Array


@dataclass(frozen=True)
class BodySample(FloatingSample):
    """Joint state and further measurements of a legged robot.

    Attributes
    ----------
    base_acceleration : (6,), derivative of the twist in the base frame.
    specific_force : (3,), in the axes of the accelerometer [m/s^2].
    rate : (3,), in the axes of the gyroscope [rad/s].
    wrenches : map from plate names to force and torque ``(6,)`` on the robot, in the plate's frame.
    """

    base_acceleration: Array
    specific_force: Array
    rate: Array
    wrenches: Mapping[str, Array]


class BodySensors:
    """Add noise to true states; passive joints have no torque sensor and report their true torque, zero."""

    def __init__(self, options: BodySensorOptions, passive: Array, rng: np.random.Generator) -> None:
        self.options, self._passive, self._rng = options, passive, rng

    def measure(self, true: BodySample) -> BodySample:
        o, noise, n = self.options, self._noise, len(true.position)
        pose = true.base_pose.copy()
        pose[:3] += noise(o.base_position, 3)
        pose[3:] = (Rotation.from_quat(pose[3:]) * Rotation.from_rotvec(noise(o.base_orientation, 3))).as_quat()
        twist = true.base_twist + np.concatenate([noise(o.base_velocity, 3), noise(o.rate, 3)])
        return replace(
            true, position=true.position + noise(o.position, n), velocity=true.velocity + noise(o.velocity, n),
            effort=np.where(self._passive, 0.0, true.effort + noise(o.effort, n)), base_pose=pose, base_twist=twist,
            specific_force=true.specific_force + noise(o.acceleration, 3), rate=true.rate + noise(o.rate, 3),
            wrenches={name: wrench + np.concatenate([noise(o.force, 3), noise(o.moment, 3)])
                for name, wrench in true.wrenches.items()})

    def _noise(self, deviation: float, count: int) -> Array:
        return deviation * self._rng.standard_normal(count)
