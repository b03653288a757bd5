"""Sensors of a legged robot and of the force plates below it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from inertid_ros.config.simulation import BodySensorOptions
from inertid_ros.core.arrays import Array


@dataclass(frozen=True)
class BodySample:
    """State and measurements at one instant.

    Attributes
    ----------
    time : float
        Simulated time [s].
    position, velocity, effort : ndarray, shape (n,)
        Of the joints.
    base_pose : ndarray, shape (7,)
        Position x y z [m] and quaternion qx qy qz qw.
    base_twist : ndarray, shape (6,)
        Linear then angular, in the base frame.
    base_acceleration : ndarray, shape (6,)
        Derivative of the twist in the base frame.
    specific_force : ndarray, shape (3,)
        Of the accelerometer, in its own axes [m/s^2].
    rate : ndarray, shape (3,)
        Of the gyroscope, in its own axes [rad/s].
    wrenches : mapping
        Name of the plate to force and torque ``(6,)`` on the robot, in the plate's frame.
    """

    time: float
    position: Array
    velocity: Array
    effort: Array
    base_pose: Array
    base_twist: Array
    base_acceleration: Array
    specific_force: Array
    rate: Array
    wrenches: Mapping[str, Array]


class BodySensors:
    """Adds noise; passive joints have no torque sensor and report zero, which is their true torque."""

    def __init__(self, options: BodySensorOptions, passive: Array, rng: np.random.Generator) -> None:
        self.options, self._passive, self._rng = options, passive, rng

    def measure(self, true: BodySample) -> BodySample:
        """The sample with noise."""
        o = self.options
        pose = true.base_pose.copy()
        pose[:3] += self._noise(o.base_position, 3)
        turn = Rotation.from_rotvec(self._noise(o.base_orientation, 3))
        pose[3:] = (Rotation.from_quat(pose[3:]) * turn).as_quat()
        twist_noise = np.concatenate([self._noise(o.base_velocity, 3), self._noise(o.rate, 3)])
        n = len(true.position)
        return replace(
            true,
            position=true.position + self._noise(o.position, n),
            velocity=true.velocity + self._noise(o.velocity, n),
            effort=np.where(self._passive, 0.0, true.effort + self._noise(o.effort, n)),
            base_pose=pose,
            base_twist=true.base_twist + twist_noise,
            specific_force=true.specific_force + self._noise(o.acceleration, 3),
            rate=true.rate + self._noise(o.rate, 3),
            wrenches={
                name: wrench + np.concatenate([self._noise(o.force, 3), self._noise(o.moment, 3)])
                for name, wrench in true.wrenches.items()
            },
        )

    def _noise(self, deviation: float, count: int) -> Array:
        return deviation * self._rng.standard_normal(count)
