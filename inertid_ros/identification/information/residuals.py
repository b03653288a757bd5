"""Residuals of recordings: correlation, and scores of blocks.

Effects outside the model, such as elasticity or friction that depends on position or temperature, leave residuals that
correlate with the regressor over long stretches of the motion. A covariance from noise alone is then too small. The
score of a block ``b`` of samples is regressor times residual, ``A_b^T r_b``. Scores vary more between blocks than
under independent noise, and the ratio is the factor by which the parameters' variances are too small (over-dispersion,
[McCullagh1989]_ sec. 4.5; blocks are the clusters of a cluster-robust covariance, [Cameron2015]_).

Blocks are pieces of time, and also regions of a joint's position and direction: effects that depend on position and
direction return with every pass, and more data of the same motion do not average them out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import fft

from inertid_ros.core.arrays import Array, Indices, Mask, column_counts
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.kinematics import BATCH, batches

_WINDOW_CORRELATION_TIMES = 5.0  # summation window in integrated correlation times, the usual automatic choice
_TIME_PIECES, _LONG_TIME_PIECES = 16, 4  # short and long pieces per recording
_REGIONS_PER_DIRECTION = 16  # of a joint's range, for each direction
_MAX_TIME_PIECES = 64  # of all recordings together: memory does not grow with their number


def effective_fraction(residuals: Sequence[Array], masks: Sequence[Mask]) -> Array:
    """Share of independent samples per joint, in (0, 1].

    The share is the reciprocal of the integrated autocorrelation time ``1 + 2 sum rho_k``, summed up to the first lag
    beyond five times the integrated time. Filtered noise and unmodelled friction make neighbouring samples alike;
    without the share, the uncertainty of a robot sampled at 1 kHz would be far too small.

    Parameters
    ----------
    residuals : sequence of ndarray, shape (N, n)
        Residuals per recording, evenly sampled.
    masks : sequence of ndarray of bool, shape (N, n)
        A masked residual counts as zero.
    """
    # Joint by joint: the transforms of all joints at once would need more memory than the rest of an identification.
    joints = range(residuals[0].shape[1])
    pairs = list(zip(residuals, masks, strict=True))
    return np.array([_fraction([(residual[:, j], mask[:, j]) for residual, mask in pairs]) for j in joints])


def _fraction(channels: Sequence[tuple[Array, Mask]]) -> float:
    """Share of independent samples of one joint, from its residual and mask ``(N,)`` per recording."""
    lags = max(len(residual) for residual, _ in channels)
    covariance, pairs = np.zeros(lags), np.zeros(lags)
    for residual, mask in channels:
        count = len(mask)
        covariance[:count] += _correlate(np.where(mask, residual, 0.0))
        pairs[:count] += count - np.arange(count) if mask.all() else _correlate(mask.astype(float))
    if covariance[0] <= 0:
        return 1.0
    correlation = np.divide(covariance, pairs, out=np.zeros(lags), where=pairs > 0.5)
    time = 2 * np.cumsum(correlation / correlation[0]) - 1
    beyond = np.arange(lags) >= _WINDOW_CORRELATION_TIMES * np.maximum(time, 1.0)
    return 1 / max(float(time[beyond.argmax() if beyond.any() else -1]), 1.0)


def _correlate(signal: Array) -> Array:
    """Sums of lagged products, ``(N,)``."""
    size = fft.next_fast_len(2 * len(signal), real=True)
    return fft.irfft(np.abs(fft.rfft(signal, size)) ** 2, size)[: len(signal)]


@dataclass(frozen=True)
class BlockSums:
    """Sums over blocks of samples, by pieces of time or by regions of motion.

    Small blocks are many and give the variation of each channel's scores. Larger blocks, such as whole recordings, are
    few: they give one factor for all channels, by which scores vary more than in small blocks.

    Attributes
    ----------
    grams : tuple of ndarray, shape (k, s + 1, s + 1)
        ``[A_b r_b]^T [A_b r_b]`` of every small block per channel, in the columns of the equations' writer.
    larger : per partition into larger blocks, the larger block ``(k,)`` of each small block
    """

    grams: tuple[Array, ...]
    larger: tuple[Indices, ...]

    def levels(self, metrics: Sequence[Array], weights: Array) -> tuple[Array, float]:
        """Noise variance ``(c,)`` per channel from small blocks, zero without blocks, and a factor from larger blocks.

        Scores of larger blocks vary more than the variance predicts by this factor, which is at least 1.

        Parameters
        ----------
        metrics : sequence of ndarray, shape (s, s)
            Covariance of the fit in the columns of each channel.
        weights : (c,), weights of the squared residuals in the fit
        """
        levels, growth = np.zeros(len(weights)), np.zeros((len(self.larger), 2))
        for channel, (small, metric, weight) in enumerate(zip(self.grams, metrics, weights, strict=True)):
            varied, expected = _variation(small, metric, weight)
            if varied > 0 and expected > 0:
                levels[channel] = varied / expected
                for sums, into in zip(growth, self.larger, strict=True):
                    merged = np.zeros((int(into.max(initial=-1)) + 1, *small.shape[1:]))
                    np.add.at(merged, into, small)
                    varied, expected = _variation(merged, metric, weight)
                    sums += weight * varied / levels[channel], weight * expected
        return levels, max([1.0, *(varied / expected for varied, expected in growth if expected > 0)])


def _variation(grams: Array, metric: Array, weight: float) -> tuple[float, float]:
    """Sum of squared scores in the metric of the parameters' covariance, and its expectation under unit noise.

    The expectation takes into account that the fit removes from every block's score the contribution of the block's
    own samples to the parameters. It is exact for scores that vary in proportion to the information of their blocks.
    """
    scores = grams[:, :-1, -1]
    shares = metric @ grams[:, :-1, :-1]
    expected = np.einsum("bii->", shares) - weight * np.einsum("bij,bji->", shares, shares)
    return float(np.einsum("bi,ij,bj->", scores, metric, scores)), max(float(expected), 0.0)


def noise_levels(equations: Equations, recordings: Sequence[Samples], residuals: Sequence[Array], covariance: Array,
        weights: Array) -> tuple[Array, Array]:
    """Variances ``(c,)`` of independent noise whose scores would vary as much as the scores of the residuals.

    The first result is from small blocks, the second from blocks of any size; variances are zero without blocks.

    Parameters
    ----------
    covariance : (p, p), covariance of the fit
    weights : (c,), weights of the squared residuals in the fit
    """
    metrics = [
        expansion @ covariance[np.ix_(columns, columns)] @ expansion.T
        for expansion, columns in zip(equations.writer().expansions, equations.columns, strict=True)]
    (times, longer), (regions, wider) = (
        sums.levels(metrics, weights) for sums in block_sums(equations, recordings, residuals))
    return np.maximum(times, regions), np.maximum(longer * times, wider * regions)


def block_sums(
        equations: Equations, recordings: Sequence[Samples], residuals: Sequence[Array]) -> tuple[BlockSums, BlockSums]:
    """Sums over pieces of time and over regions of motion.

    A low-passed signal contains only its band, so every ``stride``-th sample is used and counts ``stride`` times.
    """
    strides = [samples.stride_of_products for samples in recordings]
    thinned = [
        replace(samples, tau=values).select(slice(None, None, stride))
        for samples, values, stride in zip(recordings, residuals, strides, strict=True)]
    pieces, count, longer = _pieces([len(samples) for samples in thinned])
    regions = [_regions(equations, channel, thinned) for channel in range(equations.count)]
    writer = equations.writer()
    sizes = [span.stop - span.start for span in writer.spans]
    of_times = [np.zeros((count, size, size)) for size in sizes]
    counts = [2 * _REGIONS_PER_DIRECTION if of_samples else 0 for of_samples in regions]
    of_regions = [np.zeros((number, size, size)) for number, size in zip(counts, sizes, strict=True)]
    work = np.zeros((equations.count, writer.width, BATCH))
    for index, (samples, stride, piece) in enumerate(zip(thinned, strides, pieces, strict=True)):
        for rows in batches(len(samples)):
            new = work[..., : rows.stop - rows.start]
            writer.write(samples, rows, new)
            for channel, span in enumerate(writer.spans):
                used = rows.start + np.flatnonzero(samples.mask[rows, channel])
                new[channel, span.stop - 1] = samples.tau[rows, channel]
                columns = new[channel, span]
                if len(used) < columns.shape[1]:
                    columns = columns[:, used - rows.start]
                _add(of_times[channel], piece[used], columns, stride)
                if regions[channel]:
                    _add(of_regions[channel], regions[channel][index][used], columns, stride)
    pairs = np.arange(2 * _REGIONS_PER_DIRECTION) // 4 * 2 + np.arange(2 * _REGIONS_PER_DIRECTION) % 2
    return BlockSums(tuple(of_times), longer), BlockSums(tuple(of_regions), (pairs,))


def band_fraction(recordings: Sequence[Samples]) -> Array:
    """Upper limit ``(c,)`` of the share of independent samples, by the band of the low-pass.

    A low-passed signal has two independent values per period of the cutoff; without a low-pass, all samples may be
    independent.
    """
    counts = np.array([column_counts(samples.mask) for samples in recordings], dtype=float)
    shares = [2 * samples.cutoff_hz * samples.period if samples.cutoff_hz > 0 else 1.0 for samples in recordings]
    return np.asarray(np.minimum(shares, 1.0) @ counts / np.maximum(counts.sum(axis=0), 1.0)).clip(1e-9, 1.0)


def _regions(equations: Equations, channel: int, recordings: Sequence[Samples]) -> list[Indices]:
    """Per recording, region ``(N,)`` of the joint's motion for every sample; empty without samples or without a joint.

    Regions are ranges of the position with equally many samples, separate for both directions of motion.
    """
    model, channels = equations.model, range(equations.count)[equations.joint_channels]
    if channel not in channels or not any(samples.mask[:, channel].any() for samples in recordings):
        return []
    joint = channels.index(channel)
    position, velocity = model.positions - model.joints + joint, model.velocities - model.joints + joint
    values = np.concatenate([samples.q[samples.mask[:, channel], position] for samples in recordings])
    edges = np.quantile(values, np.arange(1, _REGIONS_PER_DIRECTION) / _REGIONS_PER_DIRECTION)
    return [2 * np.searchsorted(edges, samples.q[:, position]) + (samples.v[:, velocity] > 0) for samples in recordings]


def _pieces(lengths: Sequence[int]) -> tuple[list[Indices], int, tuple[Indices, ...]]:
    """Piece ``(N,)`` of every sample, per recording; number of pieces; per partition, the longer piece of every piece.

    Pieces may be empty if a recording has few samples.
    """
    count = len(lengths)
    if count > _MAX_TIME_PIECES:
        pieces = [np.full(length, index * _MAX_TIME_PIECES // count) for index, length in enumerate(lengths)]
        return pieces, _MAX_TIME_PIECES, ()
    per_file = min(_TIME_PIECES, _MAX_TIME_PIECES // count)
    pieces = [index * per_file + np.arange(length) * per_file // max(length, 1) for index, length in enumerate(lengths)]
    every, longer = np.arange(count * per_file), []
    if per_file > _LONG_TIME_PIECES:
        longer.append(every * _LONG_TIME_PIECES // per_file)
    if count > 1:
        longer.append(every // per_file)
    return pieces, count * per_file, tuple(longer)


def _add(grams: Array, blocks: Indices, columns: Array, weight: float) -> None:
    """Add the outer products of columns ``(s, k)`` to the blocks ``(k,)`` that they belong to."""
    if (np.diff(blocks) < 0).any():
        order = np.argsort(blocks, kind="stable")
        columns, blocks = columns[:, order], blocks[order]
    borders = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)]
    for begin, end in zip(borders[:-1], borders[1:], strict=True):
        if end > begin:
            part = columns[:, begin:end]
            grams[blocks[begin]] += weight * (part @ part.T)
