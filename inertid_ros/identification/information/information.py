"""Square-root information: the full information of data about the parameters, in R factors of fixed size.

Each measured channel, such as a joint's torque, is compressed by QR separately, so that channels can be weighted again
without a second pass. Information of chunks, recordings and machines merges exactly.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, block_diag, lapack

from inertid_ros.core.arrays import Array, append_rows, column_counts, one_thread, r_factor, r_factor_of_blocks
from inertid_ros.core.errors import ExcitationError, IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.kinematics import BATCH
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

ROUNDING_SHARE = 1e-9  # of a channel's measurement: a smaller residual is rounding of its equations
_WORKSPACE_NUMBERS = 2**23  # in the array that holds one batch of all channels: 64 MB, unless the robot is huge
_MIN_BATCH_SAMPLES = 128
_MAX_GRAM = 1e6  # largest diagonal of the Gram matrix: R loses at most this times the machine's precision
_QR_ROUNDING = 4 * np.finfo(float).eps
_ZERO_DIAGONAL = 1e-100  # stands for the diagonal of a column of zeros; its square does not underflow


@dataclass(frozen=True)
class EarlierEquations:
    """Whitened equations ``R x = z`` of earlier recordings, which a later fit uses in place of their samples.

    Errors are independent and of unit variance. Information is additive: an earlier posterior is the divergence from
    the first prior plus the weighted equations of its recordings. With these equations as further rows, and with the
    first prior, a later fit is the joint fit of the earlier and the new data.

    Attributes
    ----------
    R : (k, p), coefficients, in the columns of a layout
    """

    R: Array
    z: Array

    def __add__(self, other: "EarlierEquations") -> "EarlierEquations":
        whole = r_factor(np.vstack([self.rows, other.rows]))[:-1]
        return EarlierEquations(whole[:, :-1], whole[:, -1])

    @property
    def rows(self) -> Array:
        return np.column_stack([self.R, self.z])

    def without(self, columns: np.ndarray) -> "EarlierEquations":
        """Marginalise out ``columns`` under a flat prior, which does not overstate information about the rest."""
        size = self.R.shape[1]
        rest = np.setdiff1d(np.arange(size), columns)
        ordered = r_factor(self.rows[:, np.concatenate([columns, rest, [size]])])[len(columns) : -1, len(columns) :]
        R = np.zeros((len(ordered), size))
        R[:, rest] = ordered[:, :-1]
        return EarlierEquations(R, ordered[:, -1])

    def in_columns(self, columns: np.ndarray, size: int) -> "EarlierEquations":
        """Convert to another layout of ``size`` columns, with parameter ``i`` in column ``columns[i]``.

        Parameters with a negative column must not appear in the equations, see :meth:`without`.
        """
        R = np.zeros((len(self.R), size))
        kept = columns >= 0
        R[:, columns[kept]] = self.R[:, kept]
        return EarlierEquations(R, self.z)


@dataclass(frozen=True)
class Channel:
    """Compressed equations of one measured channel.

    Attributes
    ----------
    r_factor : (c + 1, c + 1), R factor of ``[A | b]``
    """

    columns: np.ndarray
    r_factor: Array
    count: int

    def squared_error(self, parameters: Array) -> Array:
        """``|A x - b|^2`` for whole parameter vectors ``(..., p)``."""
        extended = np.concatenate([parameters[..., self.columns], -np.ones((*parameters.shape[:-1], 1))], axis=-1)
        return np.asarray(np.sum((extended @ self.r_factor.T) ** 2, axis=-1))

    def expected_square(self, covariance: Array) -> float:
        """Expectation of ``|A x|^2`` for parameters of zero mean and covariance ``(p, p)``."""
        R = self.r_factor[:-1, :-1]
        return max(float(np.sum((R @ covariance[np.ix_(self.columns, self.columns)]) * R)), 0.0)


@dataclass(frozen=True)
class Information:
    """Compressed equations of all channels of one robot; ``+`` merges.

    Attributes
    ----------
    robot : fingerprint of everything that the equations depend on besides the layout, see :func:`fingerprint`
    noise : ndarray or None, shape (c,)
        Variances of the channels' errors up to a common factor, which residuals determine, see :meth:`deviation`.
    earlier : weighted equations of an earlier result; only :meth:`whitened` uses them
    """

    layout: ParameterLayout
    channels: tuple[Channel, ...]
    robot: str
    names: tuple[str, ...]
    noise: Array | None = None
    earlier: EarlierEquations | None = None

    def __add__(self, other: "Information") -> "Information":
        if (other.layout, other.robot, other.names) != (self.layout, self.robot, self.names):
            raise IdentificationError("information of different robots or drive terms cannot be merged; use one model")
        noise = None
        if self.noise is not None and other.noise is not None:
            share = self.counts / np.maximum(self.counts + other.counts, 1)
            noise = share * self.noise + (1 - share) * other.noise
        channels = tuple(
            Channel(a.columns, r_factor(np.vstack([a.r_factor, b.r_factor])), a.count + b.count)
            for a, b in zip(self.channels, other.channels, strict=True))
        earlier = self.earlier
        if other.earlier is not None:
            earlier = other.earlier if earlier is None else earlier + other.earlier
        return Information(self.layout, channels, self.robot, self.names, noise, earlier)

    @property
    def counts(self) -> np.ndarray:
        return np.array([channel.count for channel in self.channels])

    @property
    def rms_measured(self) -> Array:
        """``(c,)`` root mean square of the measured values per channel."""
        return self.rms_error(np.zeros(self.layout.size))

    def squared_errors(self, parameters: Array) -> Array:
        """``(c, ...)`` of ``|A x - b|^2`` per channel, for whole parameter vectors ``(..., p)``."""
        return np.array([channel.squared_error(parameters) for channel in self.channels])

    def rms_error(self, parameters: Array) -> Array:
        """``(c,)`` root mean square of the residual per channel."""
        return np.sqrt(self.squared_errors(parameters) / np.maximum(self.counts, 1))

    def deviation(self, parameters: Array, freedom: Array | None = None) -> Array:
        """Standard deviation ``(c,)`` of the error per channel.

        If the noise is in the regressor and not in the measurement, residuals set one factor for all channels, and the
        noise of the sensors sets the ratios between channels. Residuals of single channels do not suffice: as
        parameters tend to zero, residuals of homogeneous equations tend to zero, and their weights to infinity.

        Parameters
        ----------
        freedom : (c,), degrees of freedom per channel; the counts by default
        """
        freedom = np.maximum(self.counts, 1) if freedom is None else np.maximum(freedom, 1e-9)
        error = self.squared_errors(parameters)
        if self.noise is None:
            return np.sqrt(error / freedom)
        least = (ROUNDING_SHARE * self.rms_measured.max()) ** 2 / self.noise.max()
        return np.sqrt(self.noise * max(np.sum(error / self.noise) / np.sum(freedom), least))

    def relative_error(self, parameters: Array) -> float:
        error, measured = (self.squared_errors(values).sum() for values in (parameters, np.zeros(self.layout.size)))
        return float(np.sqrt(error / measured)) if measured > 0 else float("inf")

    def whitened(self, weights: Array) -> tuple[Array, Array]:
        """Equations of all channels, scaled by ``weights[j]`` for channel ``j``, and unscaled earlier equations.

        Returns
        -------
        R : ndarray, shape (p, p)
            R factor.
        z : ndarray, shape (p,)
            ``|R x - z|^2`` differs from the weighted squared error by a constant.
        """
        size = self.layout.size
        blocks = [
            (channel.columns, weight * channel.r_factor[:-1])
            for channel, weight in zip(self.channels, weights, strict=True)]
        if self.earlier is not None:
            blocks.append((np.arange(size), self.earlier.rows))
        whole = r_factor_of_blocks(blocks, size)
        return whole[:size, :size], whole[:size, size]

    def independent(self, deviation: Array, effective_counts: Array) -> EarlierEquations:
        """Whitened equations under residuals of a ``deviation (c,)``, with the weight of the independent samples alone.

        ``effective_counts (c,)`` are the independent samples per channel.
        """
        share = np.minimum(effective_counts / np.maximum(self.counts, 1), 1.0)
        return EarlierEquations(*self.whitened(np.sqrt(share) / deviation))

    @property
    def contained(self) -> np.ndarray:
        """``(p,)`` parameters that an equation contains."""
        return np.any(self.whitened(np.ones(len(self.channels)))[0] != 0, axis=0)


def merged(parts: Iterable[Information]) -> Information:
    """Merge the information of one or more parts."""
    whole, *others = parts
    for part in others:
        whole += part
    return whole


def fingerprint(equations: Equations) -> str:
    """SHA-256 of kinematics, gravity, placements of rotors and equation type."""
    model = equations.model
    numbers = [np.array(model.options.gravity, dtype=float)]
    for rotor in model.rotor_tree[len(model.link_names) :]:
        numbers += [rotor.placement_rotation.ravel(), rotor.placement_translation, rotor.rotation.ravel()]
    rounded = np.round(np.concatenate(numbers) + 0.0, 9).astype("<f8")
    # empty for force, so that fingerprints equal the fingerprints in files of earlier versions
    equation_type = "" if equations.fingerprint == "force" else equations.fingerprint
    return hashlib.sha256(model.hash.encode() + rounded.tobytes() + equation_type.encode()).hexdigest()


def compress(equations: RobotModel | Equations, recordings: Iterable[Samples]) -> Information:
    """Compress recordings in memory that does not grow with their length.

    An iterator may yield pieces of a long recording, which then need not be in memory as a whole.
    """
    equations = equations_of(equations)
    compressor = Compressor(equations)
    noise, counts = None, np.zeros(equations.count)
    for samples in recordings:
        compressor.add(samples)
        noise_of_samples = equations.noise(samples)
        if noise_of_samples is not None:
            count = column_counts(samples.mask)
            counts = counts + count
            share = count / np.maximum(counts, 1)
            noise = noise_of_samples if noise is None else (1 - share) * noise + share * noise_of_samples
    return information_so_far(equations, compressor, noise)


def information_so_far(equations: Equations, compressor: "Compressor", noise: Array | None = None) -> Information:
    """Information of all samples that a compressor has processed so far; more samples may follow."""
    compressed = zip(equations.columns, compressor.r_factors(), compressor.counts, strict=True)
    channels = tuple(Channel(columns, r_factor(R), round(count)) for columns, R, count in compressed)
    return Information(equations.model.layout, channels, fingerprint(equations), equations.channels, noise)


class Compressor:
    """Incremental QR of the equations of every channel.

    The regressor is written in the order that LAPACK reads, and appended batch by batch. The writer may leave out
    columns that are exact combinations of other columns; :meth:`r_factors` restores them.

    Attributes
    ----------
    counts : (c,), equations per channel so far
    """

    def __init__(self, equations: Equations) -> None:
        self._equations, self._writer = equations, equations.writer()
        self.counts = np.zeros(equations.count, dtype=int)
        sizes = [int(span.stop - span.start) for span in self._writer.spans]
        self._factors = [IncrementalQR(size) for size in sizes]
        width = self._writer.width
        self._batch = int(np.clip(_WORKSPACE_NUMBERS // (equations.count * width), _MIN_BATCH_SAMPLES, BATCH))
        self._work = np.zeros((equations.count, width, 0))

    @one_thread()
    def add(self, samples: Samples) -> None:
        self._equations.check(samples)
        for start in range(0, len(samples), self._batch):
            self._add(samples, slice(start, min(start + self._batch, len(samples))))

    def _add(self, samples: Samples, rows: slice) -> None:
        mask = samples.mask[rows]
        counts = column_counts(mask)
        if not counts.any():
            return
        self.counts += counts
        if self._work.shape[-1] < len(mask):
            self._work = np.zeros((*self._work.shape[:-1], len(mask)))
        new = self._work[..., : len(mask)]
        self._work[..., len(mask) :] = 0.0
        self._writer.write(samples, rows, new)
        for channel, span in enumerate(self._writer.spans):
            if not counts[channel]:
                continue
            new[channel, span.stop - 1] = samples.tau[rows, channel]
            if not mask[:, channel].all():
                new[channel, span, ~mask[:, channel]] = 0.0
            self._factors[channel].append(self._work[channel, span])

    def r_factors(self) -> list[Array]:
        """``R (r, c + 1)`` per channel with ``R^T R = [A b]^T [A b]`` of its equations ``A x[columns] = b``."""
        return [
            factor.r_factor() @ block_diag(expansion, np.eye(1))
            for factor, expansion in zip(self._factors, self._writer.expansions, strict=True)]


class IncrementalQR:
    """R factor of a growing number of rows: ``R^T R`` is the sum of all ``A^T A``.

    Householder reflections process a batch panel by panel, at a third to a half of the speed of matrix products. So
    reflections reduce only the first batch, and its R preconditions all later batches: columns of ``W = A R^-1`` are
    nearly orthonormal. A sum of Gram matrices ``W^T W`` does not lose the digits that a sum of ``A^T A`` loses, and
    consists of products of whole matrices. A batch that excites new directions has a large Gram matrix. Reflections
    append this batch, and the R of all data preconditions the batches after it.

    Rows of ``A (k, n)`` are given as ``columns (n, k)``, which may be overwritten.
    """

    def __init__(self, size: int) -> None:
        self._base = np.zeros((size, size), order="F")
        self._gram: Array | None = None  # upper triangle of W's Gram matrix plus the identity
        self._new = np.zeros((size, size), order="F")

    def append(self, columns: Array) -> None:
        if self._gram is not None:
            whitened = blas.dtrsm(1.0, self._base, columns.T, side=1)
            gram = blas.dsyrk(1.0, whitened, trans=1, c=self._new, overwrite_c=1)
            if (self._gram.diagonal() + gram.diagonal()).max() < _MAX_GRAM:
                self._gram += gram
                return
        base = append_rows(self.r_factor(), columns)
        lengths = np.linalg.norm(base, axis=0)
        diagonal = base.diagonal().copy()
        # A column without independent data gets a diagonal of rounding size, so that the base can be inverted.
        least = np.maximum(_QR_ROUNDING * lengths, _ZERO_DIAGONAL)
        np.fill_diagonal(base, np.where(np.abs(diagonal) < least, least, diagonal))
        self._base, self._gram = base, np.eye(len(lengths), order="F")

    def r_factor(self) -> Array:
        if self._gram is None:
            return self._base.copy(order="F")
        root, _ = lapack.dpotrf(self._gram, lower=0, clean=1)  # cannot fail: the matrix is at least the identity
        whole = np.asarray(blas.dtrmm(1.0, root, self._base))
        whole[np.abs(whole) <= _MAX_GRAM * _ZERO_DIAGONAL] = 0.0
        return whole


@dataclass(frozen=True)
class EarlierInformation:
    """Information of earlier recordings, and the weights of joint torques on this robot.

    Attributes
    ----------
    root : (k, p), equations in the parameters of the model's layout, whitened to unit noise.
    weights : (n,), per joint torque: square root of the number of independent samples per second, divided by the
        standard deviation of the residual [1/(N m sqrt(s)) or 1/(N sqrt(s))].
    """

    root: Array
    weights: Array


def earlier_information(model: RobotModel, information: Information, deviation: Array, effective_counts: Array,
        seconds: float) -> EarlierInformation:
    """Information of an identification, for the design of a motion that complements it ([Ayusawa2017]_ eqs. 41-47).

    ``deviation`` is the residual's standard deviation [N m or N] and ``effective_counts`` the number of independent
    samples, both ``(c,)``; ``seconds`` is the length of the recordings. Information of another robot raises an error.
    """
    if information.layout != model.layout or not set(model.joint_names) <= set(information.names):
        raise ExcitationError(
            "earlier information: belongs to another robot, other drive terms or other equations; run the"
            " identification again with the present options of the robot")
    deviation, counts = np.asarray(deviation, dtype=float), np.asarray(effective_counts, dtype=float)
    root = information.independent(deviation, counts).R
    joints = [information.names.index(joint) for joint in model.joint_names]
    weights = np.sqrt(counts[joints] / seconds) / deviation[joints]
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ExcitationError(
            f"earlier information: weights of the {len(weights)} joints must be positive; run the identification again")
    return EarlierInformation(root, weights)
