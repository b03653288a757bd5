"""Direction of Coulomb friction: the sign of every drive's velocity, and where it is defined."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.layout import ParameterLayout

_RESTING_SPEED = 1e-3  # rad/s or m/s; a slower drive may as well rest


@dataclass(frozen=True)
class FrictionDirection:
    """Speeds above which the friction of a drive has a direction: joints first, then couplings.

    Attributes
    ----------
    layout : ParameterLayout
        Of the robot.
    threshold : ndarray, shape (n + couplings,)
        Speed above which a drive slides [rad/s or m/s].
    """

    layout: ParameterLayout
    threshold: Array

    @classmethod
    def from_velocities(
        cls, velocities: Sequence[Array], noise_deviation: Array, low_speed_fraction: float, layout: ParameterLayout
    ) -> "FrictionDirection":
        """Thresholds from what was measured: a share of the fast speed (99th percentile), and above the noise.

        Parameters
        ----------
        velocities : sequence of ndarray, shape (N, n)
            Joint velocities of each piece of a recording.
        noise_deviation : ndarray, shape (n,)
            Standard deviation of the noise of the velocities.
        low_speed_fraction : float
            Share of the fast speed below which the direction is not defined.
        layout : ParameterLayout
            Of the robot.
        """
        drives = _drives(layout)
        fast = np.percentile(np.abs(np.concatenate(velocities) @ drives.T), 99, axis=0)
        noise = np.sqrt(drives**2 @ noise_deviation**2)
        return cls(layout, np.maximum(np.maximum(low_speed_fraction * fast, 3.0 * noise), _RESTING_SPEED))

    def smooth_sign(self, velocity: Array) -> Array:
        """Sign of every drive's velocity ``(N, n + couplings)``, going through zero at rest, from ``(N, n)``.

        Low-passed like the torque, a reversal smears in both alike; the bare sign of a filtered velocity would be a
        step where the measured friction is a ramp.
        """
        return np.tanh(velocity @ _drives(self.layout).T / self.threshold)

    def defined(self, velocity: Array) -> NDArray[np.bool_]:
        """``(N, n)`` where all drives with friction that act on a joint slide; true where none is identified."""
        drives = _drives(self.layout)
        with_friction = np.ones(len(drives), dtype=bool)
        with_friction[: len(self.layout.joints)] = "coulomb" in self.layout.drive_terms
        resting = (np.abs(velocity @ drives.T) < self.threshold) & with_friction
        return resting.astype(int) @ (drives != 0) == 0


def _drives(layout: ParameterLayout) -> Array:
    """``(n + couplings, n)`` speed of every drive as a combination of the joints' speeds."""
    return np.vstack([np.eye(len(layout.joints)), layout.coupling_ratios])
