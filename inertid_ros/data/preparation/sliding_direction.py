"""Which way drives slide: the sign that Coulomb friction has, and where it is sure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.layout import ParameterLayout

_RESTING_SPEED = 1e-3  # rad/s or m/s; slower than this no drive is known to slide


@dataclass(frozen=True)
class Sliding:
    """Speeds at which every drive slides: joints first, then couplings.

    Attributes
    ----------
    layout: of the robot.
    threshold: ``(n + couplings,)`` above it a drive slides.
    """

    layout: ParameterLayout
    threshold: Array

    @classmethod
    def of(
        cls, velocities: Sequence[Array], noise_deviation: Array, low_speed_fraction: float, layout: ParameterLayout
    ) -> "Sliding":
        """Thresholds from what was measured: a share of the fast speed (99th percentile), and out of the noise.

        Parameters
        ----------
        velocities: ``(N, n)`` of each piece of a recording.
        noise_deviation: ``(n,)`` of the velocities.
        """
        drives = _drives(layout)
        fast = np.percentile(np.abs(np.concatenate(velocities) @ drives.T), 99, axis=0)
        noise = np.sqrt(drives**2 @ noise_deviation**2)
        return cls(layout, np.maximum(np.maximum(low_speed_fraction * fast, 3.0 * noise), _RESTING_SPEED))

    def direction(self, velocity: Array) -> Array:
        """``(N, n + couplings)`` a sign, but zero at rest.

        Low-passed like the torque, a reversal smears in both alike; the bare sign of a filtered velocity would be a
        step where the measured friction is a ramp.
        """
        return np.tanh(velocity @ _drives(self.layout).T / self.threshold)

    def sure(self, velocity: Array) -> NDArray[np.bool_]:
        """``(N, n)`` where all drives with friction that act on a joint slide; true where none is identified."""
        drives = _drives(self.layout)
        with_friction = np.ones(len(drives), dtype=bool)
        with_friction[: len(self.layout.joints)] = "coulomb" in self.layout.drive_terms
        resting = (np.abs(velocity @ drives.T) < self.threshold) & with_friction
        return resting.astype(int) @ (drives != 0) == 0


def _drives(layout: ParameterLayout) -> Array:
    """``(n + couplings, n)`` speed of every drive as a combination of the joints' speeds."""
    return np.vstack([np.eye(len(layout.joints)), layout.coupling_ratios])
