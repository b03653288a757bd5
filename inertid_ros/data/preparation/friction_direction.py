"""Where the friction of every drive has a direction: where it slides faster than its threshold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.layout import ParameterLayout

RESTING_SPEED = 1e-3  # rad/s or m/s; a slower drive may as well rest
_NOISE = 3.0  # standard deviations of the velocity's noise, above which its sign is sure
_UNDEFINED_SHARE = 0.5  # of what the filter mixes into a sample: with more of it at rest, friction is mostly stiction


def fast_speeds(velocities: Sequence[Array], layout: ParameterLayout) -> Array:
    """``(n + couplings,)`` speed that each drive hardly exceeds, the 99th percentile [rad/s or m/s].

    Parameters
    ----------
    velocities : sequence of ndarray, shape (N, n)
        Joint velocities of each piece of a recording.
    layout : ParameterLayout
        Of the robot.
    """
    return np.asarray(np.percentile(np.abs(np.concatenate(velocities) @ layout.drive_ratios.T), 99, axis=0))


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
    def from_speeds(
        cls, fast: Array, noise_deviation: Array, low_speed_fraction: float, layout: ParameterLayout
    ) -> "FrictionDirection":
        """Thresholds from what was measured: a share of the fast speed, and above the noise.

        Parameters
        ----------
        fast : ndarray, shape (n + couplings,)
            See :func:`fast_speeds`.
        noise_deviation : ndarray, shape (n,)
            Standard deviation of the noise of the velocities.
        low_speed_fraction : float
            Share of the fast speed below which a drive is held to be resting or presliding.
        layout : ParameterLayout
            Of the robot.
        """
        noise = np.sqrt(layout.drive_ratios**2 @ noise_deviation**2)
        return cls(layout, np.maximum(np.maximum(low_speed_fraction * fast, _NOISE * noise), RESTING_SPEED))

    def defined(self, velocity: Array, low_pass: Callable[[Array], Array]) -> NDArray[np.bool_]:
        """``(N, n)`` where all drives with friction that act on a joint slide; true where none is identified.

        A sample is made of what the low-pass mixes into it; while a drive reverses swiftly, hardly any of that is
        slow, and its friction is known.

        Parameters
        ----------
        velocity : ndarray, shape (N, n)
            Joint velocity of a piece, at the rate of the recording [rad/s or m/s].
        low_pass : callable
            That of the torque.
        """
        drives = self.layout.drive_ratios
        with_friction = np.ones(len(drives), dtype=bool)
        with_friction[: len(self.layout.joints)] = "coulomb" in self.layout.drive_terms
        slow = np.abs(velocity @ drives.T) < self.threshold
        resting = (low_pass(slow.astype(float)) > _UNDEFINED_SHARE) & with_friction
        return resting.astype(int) @ (drives != 0) == 0
