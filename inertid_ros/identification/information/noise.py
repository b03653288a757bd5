"""How many independent samples a correlated residual is worth."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from inertid_ros.core.arrays import Array

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
    # Joint by joint: the transforms of all at once would take more memory than the rest of an identification.
    joints = range(residuals[0].shape[1])
    pairs = list(zip(residuals, masks, strict=True))
    return np.array([_fraction([(residual[:, j], mask[:, j]) for residual, mask in pairs]) for j in joints])


def _fraction(channels: Sequence[tuple[Array, NDArray[np.bool_]]]) -> float:
    """The fraction of one joint from its residual and mask ``(N,)`` per recording."""
    longest = max(len(residual) for residual, _ in channels)
    covariance, pairs = np.zeros(longest), np.zeros(longest)
    for residual, mask in channels:
        count = len(mask)
        covariance[:count] += _correlate(np.where(mask, residual, 0.0))
        pairs[:count] += np.arange(count, 0, -1) if mask.all() else _correlate(mask.astype(float))
    correlation = np.divide(covariance, pairs, out=np.zeros(longest), where=pairs > 0.5)
    if correlation[0] <= 0:
        return 1.0
    time = 2 * np.cumsum(correlation / correlation[0]) - 1
    beyond = np.arange(longest) >= _WINDOW * np.maximum(time, 1.0)
    cut = int(beyond.argmax()) if beyond.any() else longest - 1
    return 1 / max(float(time[cut]), 1.0)


def _correlate(signal: Array) -> Array:
    """Sums of lagged products, ``(N,)``, by FFT."""
    size = fft.next_fast_len(2 * len(signal), real=True)
    spectrum = fft.rfft(signal, size)
    return fft.irfft(np.abs(spectrum) ** 2, size)[: len(signal)]
