"""Spectrum of recorded efforts, in few points."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.spectral_window import LITTLE_LEAKAGE

_SEGMENT = 4096  # samples of a Welch segment at most: 4 s at 1 kHz, 40 s at 100 Hz
_BINS = 60  # of equal width on the logarithmic axis
_LONGEST = 1 << 18  # samples: of a longer recording the first so many show its spectrum


@dataclass(frozen=True)
class EffortSpectrum:
    """Amplitude density of each joint's effort.

    Attributes
    ----------
    name : str
        Of the recording.
    frequency : ndarray, shape (K,)
        Ascending [Hz].
    density : ndarray, shape (K, n)
        Root of the mean power density around each frequency [N m/sqrt(Hz) or N/sqrt(Hz)].
    cutoff_hz : float
        Cutoff of the low-pass [Hz]; 0 without one.
    """

    name: str
    frequency: Array
    density: Array
    cutoff_hz: float


def effort_spectrum(name: str, time: Array, effort: Array, cutoff_hz: float) -> EffortSpectrum:
    """Spectrum of efforts ``(N, n)`` at stamps ``(N,)`` [s], which may hold values that are not finite."""
    time, effort = time[:_LONGEST], np.nan_to_num(effort[:_LONGEST], posinf=0.0, neginf=0.0)
    rate = 1.0 / float(np.median(np.diff(time)))
    frequency, power = scipy.signal.welch(
        effort, rate, LITTLE_LEAKAGE, nperseg=min(len(effort), _SEGMENT), axis=0, detrend="linear"
    )
    frequency, power = frequency[1:], power[1:]
    edges = np.geomspace(frequency[0], frequency[-1] * (1 + 1e-9), _BINS + 1)
    bins = np.digitize(frequency, edges)
    used = np.unique(bins)
    middle = np.array([np.exp(np.log(frequency[bins == each]).mean()) for each in used])
    density = np.array([power[bins == each].mean(axis=0) for each in used])
    return EffortSpectrum(name, middle, np.sqrt(density), cutoff_hz)
