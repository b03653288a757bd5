"""Noise of channels, and the distance that it hardly ever exceeds."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array

_FALSE_ALARMS = 1e-3  # of a channel of normal noise, expected per recording
NORMAL = 1.4826
"""Standard deviation over median absolute deviation of normal noise."""
_ROUNDING = 1e-9  # of the range of a channel; smaller steps are rounding
_SMALL_STEPS = 0.1  # quantile of the steps that are not zero: one quantum where a channel is quantised


@dataclass(frozen=True)
class ChannelNoise:
    """Noise of channels of one kind, and the length of the recording, on which its threshold depends.

    Attributes
    ----------
    scale : ndarray, shape (n,)
        Standard deviations, see :func:`noise_scale`.
    samples : int
        Of the recording.
    """

    scale: Array
    samples: int

    @classmethod
    def of(cls, values: Array, steps: Array | None = None) -> "ChannelNoise":
        """Noise of finite channels ``(N, n)``, whose :func:`resolution` may be known."""
        return cls(noise_scale(values, steps), len(values))

    @property
    def threshold(self) -> float:
        """Standard deviations that normal noise exceeds in a channel once in a thousand recordings of this length."""
        return float(-scipy.special.ndtri(0.5 * _FALSE_ALARMS / max(self.samples, 1)))


def noise_scale(values: Array, steps: Array | None = None) -> Array:
    """``(n,)`` standard deviation of the noise of finite channels ``(N, n)``, not below their resolution.

    By third differences, in which hardly anything of a motion is left, and 20 times the variance of white noise. Their
    :func:`resolution`, ``steps (n,)``, is found here where it is not given.
    """
    noise = np.zeros(values.shape[1])
    for channel, column in enumerate(values.T):
        first = np.diff(column)
        differences = np.abs(np.diff(first, 2))[first[2:] != 0]  # saturation shows no noise
        noise[channel] = NORMAL * np.median(differences) / np.sqrt(20) if len(differences) else 0.0
    return np.maximum(noise, resolution(values) if steps is None else steps)


def resolution(values: Array) -> Array:
    """``(n,)`` size of the small steps of finite channels ``(N, n)``; zero where a channel never changes."""
    out = np.zeros(values.shape[1])
    for channel, column in enumerate(values.T):
        steps = np.abs(np.diff(column))
        steps = steps[steps > _ROUNDING * np.ptp(column)]
        out[channel] = np.quantile(steps, _SMALL_STEPS) if len(steps) else 0.0
    return out
