"""Reference movements of a legged robot: straight movements of centre of mass, torso and free joints."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.config.simulation import MovementOptions
from inertid_ros.core.arrays import Array


@dataclass(frozen=True)
class Reference:
    """Reference at one instant; value, first and second derivative of each, relative to the start.

    Attributes
    ----------
    com : ndarray, shape (3, 3)
        Centre of mass in the world [m].
    torso : ndarray, shape (3, 3)
        Roll, pitch, yaw of the base [rad].
    joints : ndarray, shape (3, n)
        [rad].
    """

    com: Array
    torso: Array
    joints: Array


class Movement:
    """Cubic from target to target, at rest there; before and after it the robot is at its start."""

    def __init__(self, options: MovementOptions, amplitudes: Array, rng: np.random.Generator) -> None:
        """``amplitudes`` ``(n,)`` is the largest displacement of each joint to either side [rad]; zero for the legs."""
        ranges = np.concatenate([options.com_m, options.torso_rad, np.minimum(options.joint_rad, amplitudes)])
        targets = rng.uniform(-1.0, 1.0, (options.movements + 1, len(ranges))) * ranges
        if options.one_tilt_at_a_time:
            targets[:, :6] = _one_tilt(targets[:, :6])
        targets[[0, -1]] = 0.0
        times = options.seconds * np.arange(options.movements + 1)
        self._spline = scipy.interpolate.CubicHermiteSpline(times, targets, np.zeros_like(targets))
        self.duration = float(times[-1])

    def at(self, time: float) -> Reference:
        """Reference at a time since its start [s]."""
        inside = 0.0 <= time < self.duration
        rows = [self._spline(time, order) if inside else np.zeros(self._spline.c.shape[-1]) for order in range(3)]
        table = np.array(rows)
        return Reference(table[:, :3], table[:, 3:6], table[:, 6:])


def _one_tilt(targets: Array) -> Array:
    """Roll at even targets, pitch at odd ones, level every other time in between, so that they never mix."""
    out = targets.copy()
    phase = np.arange(len(targets)) % 4
    out[phase != 1, 3] = 0.0
    out[phase != 3, 4] = 0.0
    return out
