"""Noise of the effort sensors, from the part of their spectrum that no motion excites."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.spectral_window import LITTLE_LEAKAGE
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

_SEGMENT, _SEGMENTS = 256, 4  # samples of a Welch segment at least, and segments of the whole recording at least


@dataclass(frozen=True)
class EffortNoise:
    """White noise of each joint's effort.

    Attributes
    ----------
    density : ndarray, shape (n,)
        Of the upper half of the spectrum, one-sided [(N m)^2/Hz or N^2/Hz]. Where a driver has filtered the effort it
        comes out too small, zero where the effort is NaN.
    rate_hz : float
        Sample rate [Hz].
    """

    density: Array
    rate_hz: float

    @classmethod
    def of(cls, recording: Recording, model: RobotModel) -> "EffortNoise":
        """Noise of raw channels, in the order of the model's joints, and with the scale of its efforts."""
        columns = [recording.joint_names.index(name) for name in model.joint_names]
        effort = np.nan_to_num(recording.effort[:, columns]) * model.effort_scale
        rate = 1 / float(np.median(np.diff(recording.time)))
        segment = min(len(effort), max(_SEGMENT, len(effort) // _SEGMENTS))
        frequency, density = scipy.signal.welch(effort, rate, LITTLE_LEAKAGE, nperseg=segment, axis=0, detrend="linear")
        return cls(np.median(density[frequency > 0.25 * rate], axis=0), rate)

    def below(self, cutoff_hz: float) -> Array:
        """``(n,)`` standard deviation below a cutoff [N m or N]; 0 is without one."""
        return np.asarray(np.sqrt(self.density * min(cutoff_hz or np.inf, 0.5 * self.rate_hz)))
