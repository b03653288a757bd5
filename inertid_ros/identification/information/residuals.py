"""Residuals of recordings: robust scale, correlation, and scores of blocks.

What a model leaves out, such as friction that depends on position or temperature, or elasticity, leaves residuals that
go along with the regressor for whole stretches of the motion; covariance by noise alone is then too small. The score
``A_b^T r_b`` of a block ``b`` of samples, regressor times residual, shows it: scores vary more between blocks than
independent noise lets them, by the factor by which the parameters' variances are larger (over-dispersion,
[McCullagh1989]_ sec. 4.5; blocks are the clusters of a cluster-robust covariance, [Cameron2015]_).

Blocks are pieces of time, and regions of a joint's own motion: what depends on the joint's position and direction comes
back with every pass, and more data of the same motion does not average it out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from inertid_ros.core.arrays import Array, column_counts
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.kinematics import BATCH, batches

HUBER_TUNING = 1.345  # standard deviations beyond which residuals are clipped: 95 % efficiency for normal noise
_FIRST_LAGS = 1024
_SEGMENT_LAGS = 3  # times the number of lags
_WINDOW_CORRELATION_TIMES = 5.0  # summation window in integrated correlation times, the usual automatic choice
MAD_TO_DEVIATION = 1.4826  # standard deviation over median absolute deviation of normal noise
_TIME_PIECES, _LONG_TIME_PIECES = 16, 4  # short and long pieces of a recording
_REGIONS_PER_DIRECTION = 16  # of a joint's range, for each direction
_STRAIGHT_TOLERANCE = 0.01  # of a channel: largest distance of its mean over a window from its middle's value
_MAX_TURNING_SHARE = 0.02  # share of the windows in which friction may turn round
_MAX_WINDOW_SAMPLES, _MIN_WINDOWS = 16, 1000  # samples, and windows; wider ones save hardly any more time
_MAX_TIME_PIECES = 64  # of all recordings together: memory does not grow with their number


@dataclass(frozen=True)
class Residuals:
    """Residuals of recordings under one set of parameters; masked ones do not count."""

    recordings: tuple[Samples, ...]
    values: tuple[Array, ...]

    @classmethod
    def from_parameters(cls, equations: Equations, recordings: Sequence[Samples], parameters: Array) -> "Residuals":
        values = tuple(samples.tau - equations.predict(parameters, samples) for samples in recordings)
        return cls(tuple(recordings), values)

    def joint(self, joint: int) -> Array:
        pairs = zip(self.recordings, self.values, strict=True)
        return np.concatenate([values[samples.mask[:, joint], joint] for samples, values in pairs])

    def scale(self, least: Array) -> Array:
        """``(n,)`` robust standard deviation, never below ``least``."""
        sizes = [np.abs(self.joint(joint)) for joint in range(len(least))]
        return np.maximum([MAD_TO_DEVIATION * np.median(size) if len(size) else 0.0 for size in sizes], least)

    def clipped_share(self, scale: Array) -> Array:
        """``(n,)`` share of the residuals beyond the limit: at most half, by definition of the scale."""
        sizes = [np.abs(self.joint(joint)) for joint in range(len(scale))]
        limits = HUBER_TUNING * scale
        return np.array([np.mean(size > most) if len(size) else 0.0 for size, most in zip(sizes, limits, strict=True)])

    def objective(self, scale: Array, weights: Array) -> float:
        """Huber's loss, over all joints."""
        total = 0.0
        for joint, (s, weight) in enumerate(zip(scale, weights, strict=True)):
            size, limit = np.abs(self.joint(joint)), HUBER_TUNING * s
            total += weight**2 * float(np.sum(np.where(size <= limit, 0.5 * size**2, limit * (size - 0.5 * limit))))
        return total

    def pseudo_values(self, scale: Array) -> Iterator[Samples]:
        """Yield the recordings with pseudo-values for torques.

        The clipped residual is divided by the share that is not clipped: so its variance is the estimator's.
        """
        limit, share = HUBER_TUNING * scale, 1 - self.clipped_share(scale)
        for samples, values in zip(self.recordings, self.values, strict=True):
            yield replace(samples, tau=samples.tau - values + np.clip(values, -limit, limit) / share)

    def clipped_torque(self, scale: Array) -> Iterator[Samples]:
        """Yield recordings whose torque is the clipped residual."""
        limit = HUBER_TUNING * scale
        for samples, values in zip(self.recordings, self.values, strict=True):
            yield replace(samples, tau=np.clip(values, -limit, limit))

    def without_clipped(self, scale: Array) -> Iterator[Samples]:
        """Yield recordings with the clipped equations masked."""
        for samples, values in zip(self.recordings, self.values, strict=True):
            yield replace(samples, mask=samples.mask & (np.abs(values) <= HUBER_TUNING * scale))

    def independent_fraction(self, scale: Array, least: Array) -> Array:
        """Independent share ``(n,)`` of the samples, by the correlation of the clipped residual and the band of the
        low-pass.

        One if the residual is below ``least``, and so only rounding.
        """
        limit = HUBER_TUNING * scale
        clipped = [np.clip(values, -limit, limit) for values in self.values]
        fraction = effective_fraction(clipped, [samples.mask for samples in self.recordings])
        fraction = np.minimum(fraction, band_fraction(self.recordings))
        return np.where(self.scale(np.zeros_like(least)) > least, fraction, 1.0)


def effective_fraction(residuals: Sequence[Array], masks: Sequence[NDArray[np.bool_]]) -> Array:
    """Ratio of independent to counted samples per joint, in (0, 1].

    The reciprocal of the integrated autocorrelation time ``1 + 2 sum rho_k``, summed up to the first lag beyond five
    times itself. Filtered noise and unmodelled friction both make neighbours alike; without this the uncertainty of a
    robot sampled at 1 kHz would come out far too small.

    Parameters
    ----------
    residuals : sequence of ndarray, shape (N, n)
        Residuals per recording, evenly sampled.
    masks : sequence of ndarray of bool, shape (N, n)
        A masked residual counts as zero.
    """
    # Joint by joint: the transforms of all at once would take more memory than the rest of an identification.
    joints = range(residuals[0].shape[1])
    pairs = list(zip(residuals, masks, strict=True))
    return np.array([_fraction([(residual[:, j], mask[:, j]) for residual, mask in pairs]) for j in joints])


def _fraction(channels: Sequence[tuple[Array, NDArray[np.bool_]]]) -> float:
    """Fraction of one joint from its residual and mask ``(N,)`` per recording."""
    longest = max(len(residual) for residual, _ in channels)
    for limit in (_FIRST_LAGS, longest):  # of most residuals the first ones do
        lags = min(limit, longest)
        covariance, pairs = np.zeros(lags), np.zeros(lags)
        for residual, mask in channels:
            count = min(lags, len(mask))
            covariance[:count] += _correlate(np.where(mask, residual, 0.0), count)
            pairs[:count] += len(mask) - np.arange(count) if mask.all() else _correlate(mask.astype(float), count)
        if covariance[0] <= 0:
            return 1.0
        correlation = np.divide(covariance, pairs, out=np.zeros(lags), where=pairs > 0.5)
        time = 2 * np.cumsum(correlation / correlation[0]) - 1
        beyond = np.arange(lags) >= _WINDOW_CORRELATION_TIMES * np.maximum(time, 1.0)
        if beyond.any():
            return 1 / max(float(time[beyond.argmax()]), 1.0)
    return 1 / max(float(time[-1]), 1.0)


def _correlate(signal: Array, lags: int) -> Array:
    """Sums of lagged products, ``(lags,)``, by FFT of overlapping segments: short ones stay in the cache."""
    step = min(_SEGMENT_LAGS * lags, len(signal))
    padded = np.zeros(-(-len(signal) // step) * step + lags)
    padded[: len(signal)] = signal
    segments = np.lib.stride_tricks.sliding_window_view(padded, step + lags)[::step]
    size = fft.next_fast_len(step + lags, real=True)
    ahead, lagged = fft.rfft(segments, size), fft.rfft(segments[:, :step], size)
    return fft.irfft(np.sum(ahead * lagged.conj(), axis=0), size)[:lags]


@dataclass(frozen=True)
class Blocks:
    """Sums over the blocks of one channel.

    Attributes
    ----------
    expansion : ndarray, shape (s, p)
        Map from the parameter vector to the ``s`` columns summed up.
    grams : ndarray, shape (k, s + 1, s + 1)
        ``[A_b r_b]^T [A_b r_b]`` of every block.
    """

    expansion: Array
    grams: Array

    def merged(self, into: NDArray[np.intp]) -> "Blocks":
        """Merge blocks; ``into`` ``(k,)`` is the larger block that each belongs to."""
        grams = np.zeros((int(into.max(initial=-1)) + 1, *self.grams.shape[1:]))
        np.add.at(grams, into, self.grams)
        return replace(self, grams=grams)

    def variation(self, covariance: Array, weight: float) -> tuple[float, float]:
        """Sum of squared scores in the metric of the parameters' covariance, and its expectation under noise of unit
        variance.

        The fit takes from every block's score what its own samples contribute to the parameters; for scores that vary
        in proportion to the information of their blocks, the expectation is exact.

        Parameters
        ----------
        covariance : ndarray, shape (p, p)
            Covariance of the fit.
        weight : float
            Weight of the squared residuals of this channel in the fit.
        """
        metric = self.expansion @ covariance @ self.expansion.T
        information = self.grams[:, :-1, :-1]
        scores = self.grams[:, :-1, -1]
        shares = metric @ information
        expected = np.einsum("bii->", shares) - weight * np.einsum("bij,bji->", shares, shares)
        return float(np.einsum("bi,ij,bj->", scores, metric, scores)), max(float(expected), 0.0)


@dataclass(frozen=True)
class BlockScores:
    """Scores of all channels, by pieces of time and by regions of motion.

    Short pieces and narrow regions are many and show the variation of each channel. Longer pieces, whole recordings and
    wide regions are few: they give one factor for all channels, by which scores vary more than in small blocks.

    Attributes
    ----------
    times, regions : tuple of Blocks
        Small blocks per channel.
    longer, wider : tuple of ndarray of int, shape (k,)
        For every partition into larger blocks, in time and in regions, the larger block of each small one.
    """

    times: tuple[Blocks, ...]
    regions: tuple[Blocks, ...]
    longer: tuple[NDArray[np.intp], ...]
    wider: tuple[NDArray[np.intp], ...]

    def noise_level(self, covariance: Array, weights: Array) -> "NoiseLevel":
        """Variance of independent noise whose scores vary as much as those of the residuals."""
        times, growth = _levels(self.times, self.longer, covariance, weights)
        regions, widening = _levels(self.regions, self.wider, covariance, weights)
        return NoiseLevel(np.maximum(times, regions), np.maximum(growth * times, widening * regions))


@dataclass(frozen=True)
class NoiseLevel:
    """Variances of independent noise that scores amount to.

    Attributes
    ----------
    small, largest : ndarray, shape (c,)
        By small blocks, and by those of any size; zero without blocks.
    """

    small: Array
    largest: Array


def _levels(
    blocks: Sequence[Blocks], larger: Sequence[NDArray[np.intp]], covariance: Array, weights: Array
) -> tuple[Array, float]:
    """Level ``(c,)`` by small blocks, and the factor of larger blocks over it, at least one."""
    levels, growth = np.zeros(len(weights)), np.zeros((len(larger), 2))
    for channel, (small, weight) in enumerate(zip(blocks, weights, strict=True)):
        if len(small.grams) == 0:
            continue
        varied, expected = small.variation(covariance, weight)
        if varied > 0 and expected > 0:
            levels[channel] = varied / expected
            for sums, into in zip(growth, larger, strict=True):
                varied, expected = small.merged(into).variation(covariance, weight)
                sums += weight * varied / levels[channel], weight * expected
    return levels, max([1.0, *(varied / expected for varied, expected in growth if expected > 0)])


def block_scores(equations: Equations, recordings: Sequence[Samples], residuals: Sequence[Array]) -> BlockScores:
    """Compute scores of the blocks of recordings."""
    thinned = [_thinned(samples, values) for samples, values in zip(recordings, residuals, strict=True)]
    pieces, count, longer = _pieces([len(samples) for samples, _ in thinned])
    thinned_samples = [samples for samples, _ in thinned]
    regions = [_Regions.from_samples(equations, channel, thinned_samples) for channel in range(equations.count)]
    writer = equations.writer()
    sizes = [span.stop - span.start for span in writer.spans]
    of_times = [np.zeros((count, size, size)) for size in sizes]
    of_regions = [np.zeros((region.count, size, size)) for region, size in zip(regions, sizes, strict=True)]
    work = np.zeros((equations.count, writer.width, BATCH))
    for (samples, stride), piece in zip(thinned, pieces, strict=True):
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
                if regions[channel].count:
                    _add(of_regions[channel], regions[channel].index(samples, used), columns, stride)
    expansions = []
    for columns, expansion in zip(equations.columns, writer.expansions, strict=True):
        expansions.append(np.zeros((len(expansion), equations.model.layout.size)))
        expansions[-1][:, columns] = expansion
    return BlockScores(
        tuple(Blocks(*pair) for pair in zip(expansions, of_times, strict=True)),
        tuple(Blocks(*pair) for pair in zip(expansions, of_regions, strict=True)),
        longer,
        (np.arange(2 * _REGIONS_PER_DIRECTION) // 4 * 2 + np.arange(2 * _REGIONS_PER_DIRECTION) % 2,),
    )


def band_fraction(recordings: Sequence[Samples]) -> Array:
    """Largest independent share ``(c,)`` of the samples.

    A low-passed signal has two independent values per period of the cutoff; without a low-pass all may be independent.
    """
    counts = np.array([column_counts(samples.mask) for samples in recordings], dtype=float)
    shares = [2 * samples.cutoff_hz * samples.period if samples.cutoff_hz > 0 else 1.0 for samples in recordings]
    return np.asarray(np.minimum(shares, 1.0) @ counts / np.maximum(counts.sum(axis=0), 1.0)).clip(1e-9, 1.0)


@dataclass(frozen=True)
class _Regions:
    """Regions of a joint's motion: ranges with equally many samples, for both directions."""

    edges: Array
    position: int
    velocity: int

    @classmethod
    def from_samples(cls, equations: Equations, channel: int, recordings: Sequence[Samples]) -> "_Regions":
        """Regions of a channel; none if it is not a joint's, or has no sample."""
        model, channels = equations.model, range(equations.count)[equations.joint_channels]
        if channel not in channels:
            return cls(np.zeros(0), 0, 0)
        joint = channels.index(channel)
        columns = model.positions - model.joints + joint, model.velocities - model.joints + joint
        values = np.concatenate([samples.q[samples.mask[:, channel], columns[0]] for samples in recordings])
        shares = np.arange(1, _REGIONS_PER_DIRECTION) / _REGIONS_PER_DIRECTION
        edges = np.quantile(values, shares) if len(values) else np.zeros(0)
        return cls(edges, *columns)

    @property
    def count(self) -> int:
        return 2 * (len(self.edges) + 1) if len(self.edges) else 0

    def index(self, samples: Samples, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        within = np.searchsorted(self.edges, samples.q[rows, self.position])
        return np.asarray(2 * within + (samples.v[rows, self.velocity] > 0))


def _thinned(samples: Samples, residuals: Array) -> tuple[Samples, int]:
    """Thin samples, with residuals for what is measured, as far as scores allow; also return the number that each
    stands for.

    A low-passed signal holds no more than its band. Without a low-pass, residuals hold noise up to half of the sample
    rate; but over a window of nearly straight motion, the middle's regressor times the mean residual is the score.
    """
    if samples.cutoff_hz > 0:
        stride = samples.stride_of_products
        return replace(samples, tau=residuals).select(slice(None, None, stride)), stride
    width = _straight_window(samples)
    if width == 1:
        return replace(samples, tau=residuals), 1
    count = len(samples) // width
    used = samples.mask[: count * width].reshape(count, width, -1)
    counts = used.sum(axis=1)
    sums = np.einsum("kij,kij->kj", residuals[: count * width].reshape(used.shape), used)
    middles = samples.select(slice(width // 2, count * width, width))
    return replace(middles, tau=sums / np.maximum(counts, 1), mask=2 * counts > width), width


def _straight_window(samples: Samples) -> int:
    """Largest number of samples, a power of two, over which regressors are nearly straight lines."""
    turns = np.mean(np.signbit(samples.v[1:]) != np.signbit(samples.v[:-1]), axis=0)  # of friction, per sample
    motion = (samples.q, samples.v, samples.a)
    width = _MAX_WINDOW_SAMPLES
    while width > 1:
        if (
            len(samples) >= _MIN_WINDOWS * width
            and width * turns.max(initial=0.0) <= _MAX_TURNING_SHARE
            and all(_is_straight(values, width // 2) for values in motion)
        ):
            return width
        width //= 2
    return 1


def _is_straight(values: Array, half: int) -> bool:
    bend = np.diff(values[::half], 2, axis=0)  # six times the difference of the two
    return bool((np.abs(bend).mean(axis=0) <= 6 * _STRAIGHT_TOLERANCE * np.abs(values[::half]).mean(axis=0)).all())


def _pieces(lengths: Sequence[int]) -> tuple[list[NDArray[np.intp]], int, tuple[NDArray[np.intp], ...]]:
    """Piece of time of every sample ``(N,)``, per recording; the number of pieces; and the longer piece of every piece.

    Pieces of recordings of few samples may be empty.
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


def _add(grams: Array, blocks: NDArray[np.intp], columns: Array, weight: float) -> None:
    """Add the outer products of columns ``(s, k)`` to the blocks ``(k,)`` that they belong to."""
    if (np.diff(blocks) < 0).any():
        order = np.argsort(blocks, kind="stable")
        columns, blocks = columns[:, order], blocks[order]
    borders = np.flatnonzero(np.diff(blocks)) + 1
    for begin, end in pairwise([0, *borders.tolist(), len(blocks)]):
        if end > begin:
            part = columns[:, begin:end]
            grams[blocks[begin]] += weight * (part @ part.T)
