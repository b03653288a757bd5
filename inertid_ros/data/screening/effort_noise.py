"""Noise of the effort sensors, from the part of their spectrum that no motion excites."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.spectral_window import LITTLE_LEAKAGE
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

_SEGMENT, _SEGMENTS = 256, 4  # samples of a Welch segment at least, and segments of the whole recording at least


def effort_noise(recording: Recording, model: RobotModel, cutoff_hz: float) -> Array:
    """``(n,)`` standard deviation of each joint's effort noise below a cutoff [N m or N].

    The noise is taken as white, with the density of the upper half of the spectrum. Where a driver has filtered the
    effort it comes out too small, zero where the effort is NaN.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        Its joints, in whose order the result is, and the scale of their efforts.
    cutoff_hz : float
        Of the low-pass [Hz]; 0 without one.
    """
    columns = [recording.joint_names.index(name) for name in model.joint_names]
    effort = np.nan_to_num(recording.effort[:, columns]) * model.effort_scale
    rate = 1 / float(np.median(np.diff(recording.time)))
    segment = min(len(effort), max(_SEGMENT, len(effort) // _SEGMENTS))
    frequency, density = scipy.signal.welch(effort, rate, LITTLE_LEAKAGE, nperseg=segment, axis=0, detrend="linear")
    floor = np.median(density[frequency > 0.25 * rate], axis=0)
    return np.asarray(np.sqrt(floor * min(cutoff_hz or np.inf, 0.5 * rate)))
