"""How many independent samples a correlated residual is worth."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from ..robot.parameters import Array

_WINDOW = 5.0  # summation window in integrated correlation times, the usual automatic choice


def effective_fraction(residuals: Sequence[Array], masks: Sequence[NDArray[np.bool_]]) -> Array:
    """Ratio of independent to counted samples per joint, in (0, 1].

    The reciprocal of the integrated autocorrelation time ``1 + 2 sum rho_k``, summed up to the first lag beyond
    five times itself. Filtered noise and unmodelled friction both make neighbours alike; without this a robot
    sampled at 1 kHz would seem to be known far better than it is.

    Parameters
    ----------
    residuals: ``(N, n)`` per recording, evenly sampled.
    masks: ``(N, n)`` bool; a masked residual counts as zero.
    """
    longest = max(len(residual) for residual in residuals)
    joints = residuals[0].shape[1]
    covariance, pairs = np.zeros((longest, joints)), np.zeros((longest, joints))
    for residual, mask in zip(residuals, masks, strict=True):
        covariance[: len(mask)] += _correlate(np.where(mask, residual, 0.0))
        pairs[: len(mask)] += _correlate(mask.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.where(pairs > 0.5, covariance / pairs, 0.0)
        correlation = np.where(correlation[0] > 0, correlation / correlation[0], 0.0)
    time = 2 * np.cumsum(correlation, axis=0) - 1
    lags = np.arange(longest)[:, None]
    beyond = lags >= _WINDOW * np.maximum(time, 1.0)
    cut = np.where(beyond.any(axis=0), beyond.argmax(axis=0), longest - 1)
    return 1 / np.maximum(time[cut, np.arange(joints)], 1.0)


def _correlate(signal: Array) -> Array:
    """Sums of lagged products per column, ``(N, n)``, by FFT."""
    size = fft.next_fast_len(2 * len(signal), real=True)
    spectrum = fft.rfft(signal, size, axis=0)
    return fft.irfft(np.abs(spectrum) ** 2, size, axis=0)[: len(signal)]
