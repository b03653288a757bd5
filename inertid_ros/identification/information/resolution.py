"""Resolution of channels: the error of prepared samples that would remain if model and sensors were perfect."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.filtering.filters import derivatives, low_pass
from inertid_ros.regressors.equations import Equations

_FEWEST, _MOST = 16, 4096  # samples of a piece that is looked at
_GAP = 1.5  # sample periods
_SETTLING = 5.0  # periods of the cutoff
_SURE = 0.5  # share of a noise level that is sure: spectra scatter, and noise need not be white
_DERIVED = 0.01  # of the acceleration: what differs more from the derivative of velocity was measured by itself


def resolution(equations: Equations, recordings: Sequence[Samples]) -> Array:
    """``(c,)`` standard deviation of each channel's error by the preparation alone [N m or N].

    No residual shows more than this, and where one is smaller, as without noise, parameters have taken up the rest:
    it is the least deviation by which a channel is weighted. The parts, for the bodies of the prior:

    - half the noise and rounding of the effort sensor below the cutoff (``Samples.effort_noise``): what is sure of it;
    - the torque of the acceleration that half the noise and rounding of the encoders leaves below the cutoff;
    - the torque of the difference between the acceleration and the derivative of the velocity;
    - what the filter does to products: torque of the filtered motion is not the filtered torque of the motion.

    Zero for equations other than of forces, and for samples that were not filtered.
    """
    variance, counts = np.zeros(equations.count), np.zeros(equations.count)
    for samples in recordings:
        if equations.equation_type == "force" and samples.cutoff_hz > 0:
            for piece in _pieces(samples):
                count = piece.mask.sum(axis=0)
                counts += count
                variance += count * _variance(equations, piece)
    return np.sqrt(variance / np.maximum(counts, 1))


def _pieces(samples: Samples) -> Iterator[Samples]:
    """Pieces of even stamps, the middle of long ones."""
    steps = np.diff(samples.time)
    if not len(steps):
        return
    edges = [0, *(np.flatnonzero(steps > _GAP * np.median(steps)) + 1), len(samples)]
    for start, end in zip(edges[:-1], edges[1:], strict=True):
        cut = max(0, (end - start - _MOST) // 2)
        if end - start >= _FEWEST:
            yield samples.select(slice(int(start + cut), int(end - cut)))


def _variance(equations: Equations, samples: Samples) -> Array:
    """``(c,)`` of one piece."""
    model, samples = equations.model, replace(samples, undecimated=None)
    bodies = np.zeros(model.layout.size)
    bodies[: model.layout.inertial_size] = model.consistent_prior.ravel()

    period = samples.period
    settled = samples.mask.copy()
    edge = min(int(np.ceil(_SETTLING / (samples.cutoff_hz * period))), len(samples) // 3)
    settled[:edge] = settled[len(samples) - edge :] = False

    def mean_square(error: Array) -> Array:
        return np.sum(np.where(settled, error, 0.0) ** 2, axis=0) / np.maximum(settled.sum(axis=0), 1)

    predicted = equations.predict(bodies, samples)
    variance = np.zeros(equations.count)
    if samples.effort_noise is not None:
        variance[equations.joint_channels] += (_SURE * samples.effort_noise) ** 2
    if samples.noise is not None:
        # White noise of the position: S (2 pi)^2 f^3 / 3 in velocity, S (2 pi)^4 f^5 / 5 in acceleration.
        noise = _SURE * samples.noise * 2 * np.pi * samples.cutoff_hz * np.sqrt(3 / 5)
        drawn = noise * np.random.default_rng(0).normal(size=samples.a.shape)
        variance += mean_square(equations.predict(bodies, replace(samples, a=samples.a + drawn)) - predicted)
    difference = derivatives(samples.v, period, (1,))[0] - samples.a
    difference[:, np.std(difference, axis=0) > _DERIVED * np.std(samples.a, axis=0)] = 0.0
    variance += mean_square(equations.predict(bodies, replace(samples, a=samples.a + difference)) - predicted)
    q, v, a = (low_pass(values, period, samples.cutoff_hz) for values in (samples.q, samples.v, samples.a))
    again = equations.predict(bodies, replace(samples, q=q, v=v, a=a))
    return variance + mean_square(low_pass(predicted, period, samples.cutoff_hz) - again)
