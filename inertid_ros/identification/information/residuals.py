"""Residuals of whole recordings: their independent share, scale, and Huber's loss."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations

from .block_scores import band_fraction

TUNING = 1.345  # standard deviations beyond which residuals are clipped: 95 % efficiency for normal noise
_FEW_LAGS = 1024
_SEGMENT = 3  # times the number of lags
_WINDOW = 5.0  # summation window in integrated correlation times, the usual automatic choice
MAD_TO_DEVIATION = 1.4826  # standard deviation over median absolute deviation of normal noise


@dataclass(frozen=True)
class Residuals:
    """Residuals of recordings under one set of parameters; masked ones count nowhere.

    Attributes
    ----------
    recordings : tuple of Samples
        What was fitted.
    values : tuple of ndarray, shape (N, n)
        Residuals per recording [N m or N].
    """

    recordings: tuple[Samples, ...]
    values: tuple[Array, ...]

    @classmethod
    def of(cls, equations: Equations, recordings: Sequence[Samples], parameters: Array) -> "Residuals":
        """Residuals of ``parameters`` ``(p,)``."""
        values = tuple(samples.tau - equations.predict(parameters, samples) for samples in recordings)
        return cls(tuple(recordings), values)

    def joint(self, joint: int) -> Array:
        """Unmasked residuals of one joint, over all recordings."""
        pairs = zip(self.recordings, self.values, strict=True)
        return np.concatenate([values[samples.mask[:, joint], joint] for samples, values in pairs])

    def scale(self, least: Array) -> Array:
        """``(n,)`` robust standard deviation, never below ``least``."""
        sizes = [np.abs(self.joint(joint)) for joint in range(len(least))]
        return np.maximum([MAD_TO_DEVIATION * np.median(size) if len(size) else 0.0 for size in sizes], least)

    def clipped_share(self, scale: Array) -> Array:
        """``(n,)`` share of the equations beyond the limit: at most half, by definition of the scale."""
        sizes = [np.abs(self.joint(joint)) for joint in range(len(scale))]
        limits = TUNING * scale
        return np.array([np.mean(size > most) if len(size) else 0.0 for size, most in zip(sizes, limits, strict=True)])

    def objective(self, scale: Array, weights: Array) -> float:
        """Huber's loss, over all joints."""
        total = 0.0
        for joint, (s, weight) in enumerate(zip(scale, weights, strict=True)):
            size, limit = np.abs(self.joint(joint)), TUNING * s
            total += weight**2 * float(np.sum(np.where(size <= limit, 0.5 * size**2, limit * (size - 0.5 * limit))))
        return total

    def pseudo_values(self, scale: Array) -> Iterator[Samples]:
        """The recordings, one at a time, with pseudo-values for torques.

        The clipped residual is divided by the share that is not clipped: so its variance is the estimator's.
        """
        limit, share = TUNING * scale, 1 - self.clipped_share(scale)
        for samples, values in zip(self.recordings, self.values, strict=True):
            yield replace(samples, tau=samples.tau - values + np.clip(values, -limit, limit) / share)

    def clipped_torque(self, scale: Array) -> Iterator[Samples]:
        """Recordings whose torque is the clipped residual."""
        limit = TUNING * scale
        for samples, values in zip(self.recordings, self.values, strict=True):
            yield replace(samples, tau=np.clip(values, -limit, limit))

    def without_clipped(self, scale: Array) -> Iterator[Samples]:
        """Recordings without the clipped equations."""
        for samples, values in zip(self.recordings, self.values, strict=True):
            yield replace(samples, mask=samples.mask & (np.abs(values) <= TUNING * scale))

    def independent_fraction(self, scale: Array, least: Array) -> Array:
        """``(n,)`` independent share of the samples, by the correlation of the clipped residual and the band of the
        low-pass; one where the residual is below ``least``, and so nothing but rounding."""
        limit = TUNING * scale
        clipped = [np.clip(values, -limit, limit) for values in self.values]
        fraction = effective_fraction(clipped, [samples.mask for samples in self.recordings])
        fraction = np.minimum(fraction, band_fraction(self.recordings))
        return np.where(self.scale(np.zeros_like(least)) > least, fraction, 1.0)


def effective_fraction(residuals: Sequence[Array], masks: Sequence[NDArray[np.bool_]]) -> Array:
    """Ratio of independent to counted samples per joint, in (0, 1].

    The reciprocal of the integrated autocorrelation time ``1 + 2 sum rho_k``, summed up to the first lag beyond
    five times itself. Filtered noise and unmodelled friction both make neighbours alike; without this the
    uncertainty of a robot sampled at 1 kHz would come out far too small.

    Parameters
    ----------
    residuals : sequence of ndarray, shape (N, n)
        Per recording, evenly sampled.
    masks : sequence of ndarray of bool, shape (N, n)
        A masked residual counts as zero.
    """
    # Joint by joint: the transforms of all at once would take more memory than the rest of an identification.
    joints = range(residuals[0].shape[1])
    pairs = list(zip(residuals, masks, strict=True))
    return np.array([_fraction([(residual[:, j], mask[:, j]) for residual, mask in pairs]) for j in joints])


def _fraction(channels: Sequence[tuple[Array, NDArray[np.bool_]]]) -> float:
    """The fraction of one joint from its residual and mask ``(N,)`` per recording."""
    longest = max(len(residual) for residual, _ in channels)
    for most in (_FEW_LAGS, longest):  # of most residuals the first ones do
        lags = min(most, longest)
        covariance, pairs = np.zeros(lags), np.zeros(lags)
        for residual, mask in channels:
            own = min(lags, len(mask))
            covariance[:own] += _correlate(np.where(mask, residual, 0.0), own)
            pairs[:own] += len(mask) - np.arange(own) if mask.all() else _correlate(mask.astype(float), own)
        if covariance[0] <= 0:
            return 1.0
        correlation = np.divide(covariance, pairs, out=np.zeros(lags), where=pairs > 0.5)
        time = 2 * np.cumsum(correlation / correlation[0]) - 1
        beyond = np.arange(lags) >= _WINDOW * np.maximum(time, 1.0)
        if beyond.any():
            return 1 / max(float(time[beyond.argmax()]), 1.0)
    return 1 / max(float(time[-1]), 1.0)


def _correlate(signal: Array, lags: int) -> Array:
    """Sums of lagged products, ``(lags,)``, by FFT of overlapping segments: short ones stay in the cache."""
    step = min(_SEGMENT * lags, len(signal))
    padded = np.zeros(-(-len(signal) // step) * step + lags)
    padded[: len(signal)] = signal
    segments = np.lib.stride_tricks.sliding_window_view(padded, step + lags)[::step]
    size = fft.next_fast_len(step + lags, real=True)
    ahead, own = fft.rfft(segments, size), fft.rfft(segments[:, :step], size)
    return fft.irfft(np.sum(ahead * own.conj(), axis=0), size)[:lags]
