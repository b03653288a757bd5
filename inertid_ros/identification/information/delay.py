"""Delay between torque and motion, if a driver reports them for different instants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import Equations, dense_equations, equations_of
from inertid_ros.robot.kinematics import batches
from inertid_ros.robot.model import RobotModel

from .residuals import effective_fraction

MAX_DELAY_S = 0.05  # s; drivers have shorter delays, and a larger shift compares different motion
_SHIFT_STEP_S = 2.5e-3  # values in between are interpolated, since filtered torque changes little in this time
SHIFTS_S = np.arange(-MAX_DELAY_S, MAX_DELAY_S + 0.5 * _SHIFT_STEP_S, _SHIFT_STEP_S)
_DELAY_WEIGHT_ITERATIONS = 3
_MIN_ENERGY_SHARE = 1e-15  # of the energy: a smaller squared residual is rounding of sums that cancel
_MIN_TORQUE_VARIANCE = 1e-200  # least variance with a finite inverse
_RANK_TOLERANCE = 1e-10  # of the largest eigenvalue of the Gram matrix with columns of length one
_DELAY_BLOCKS = 4  # of each recording; a fit to all other blocks predicts each block
_MIN_DELAY_DEVIATIONS = 3.0  # standard deviations from zero
_MIN_DELAY_GAIN = 0.01  # share of the squared error of held-out blocks; a smaller change is not significant
_CURVATURE_STEP_S = 5e-4  # s; step of the second difference
_TINY_MISFIT = 1e-300


@dataclass(frozen=True)
class ShiftedTorque:
    """Normal equations of every channel for ``k`` shifts ``SHIFTS_S`` [s], by which torque is taken later than motion.

    Attributes
    ----------
    gram : tuple of ndarray, shape (p, p)
        ``A^T A`` of each channel.
    moments : tuple of ndarray, shape (k, p + 1)
        ``A^T b``, and in the last column ``b^T b``.
    viscous : columns that are kept above zero, as a delay of commands looks like viscous friction; empty otherwise.
    """

    columns: tuple[np.ndarray, ...]
    gram: tuple[Array, ...]
    moments: tuple[Array, ...]
    counts: np.ndarray
    viscous: np.ndarray

    @classmethod
    def from_samples(cls, equations: Equations, samples: Samples, rows: slice) -> "ShiftedTorque":
        """Normal equations of some rows of a recording; shifted torque may come from before or after the rows.

        Products of filtered signals do not need all samples: every ``stride``-th sample is used and counts ``stride``
        times.
        """
        delayed = samples.tau if samples.command is None else samples.command
        torque = scipy.interpolate.make_interp_spline(samples.time, delayed, k=3)
        stride = samples.stride_of_products
        block = samples.select(slice(rows.start, rows.stop, stride))
        first, last = samples.time[[0, -1]]
        mask = block.mask & ((block.time >= first + MAX_DELAY_S) & (block.time <= last - MAX_DELAY_S))[:, None]
        gram = [np.zeros((len(columns), len(columns))) for columns in equations.columns]
        moments = [np.zeros((len(SHIFTS_S), len(columns) + 1)) for columns in equations.columns]
        masked = replace(block, mask=mask)
        of_motion = (samples.tau - delayed)[rows.start : rows.stop : stride]
        for part, blocks in zip(batches(len(block)), dense_equations(equations, masked), strict=True):
            shifted = torque(np.clip(block.time[part, None] + SHIFTS_S, first, last)) + of_motion[part, None]
            for channel, (A, _) in enumerate(blocks):
                b = shifted[mask[part, channel], :, channel]
                gram[channel] += stride * (A.T @ A)
                moments[channel] += stride * np.column_stack([b.T @ A, np.sum(b**2, axis=0)])
        layout = equations.model.layout
        bounded = np.arange(layout.size)[layout.drive("viscous") if samples.command is not None else slice(0)]
        return cls(equations.columns, tuple(gram), tuple(moments), stride * mask.sum(axis=0), bounded)

    @classmethod
    def sum(cls, parts: Sequence["ShiftedTorque"]) -> "ShiftedTorque":
        """Sum of all parts."""
        gram, moments = (
            tuple(np.sum(sums, axis=0) for sums in zip(*(getattr(part, name) for part in parts), strict=True))
            for name in ("gram", "moments"))
        counts = np.sum([part.counts for part in parts], axis=0)
        return cls(parts[0].columns, gram, moments, counts, parts[0].viscous)

    @cached_property
    def _interpolated(self) -> "list[scipy.interpolate.CubicSpline]":
        return [scipy.interpolate.CubicSpline(SHIFTS_S, of_channel) for of_channel in self.moments]

    def mean_squares(self, shift: float, parameters: Array) -> Array:
        """Mean squared residual ``(c,)`` of parameters with torque taken ``shift`` [s] later."""
        squares = []
        for columns, gram, spline in zip(self.columns, self.gram, self._interpolated, strict=True):
            x, moments = parameters[columns], spline(shift)
            squares.append(max(x @ gram @ x - 2 * x @ moments[:-1] + moments[-1], _MIN_ENERGY_SHARE * moments[-1]))
        return np.array(squares) / np.maximum(self.counts, 1)

    def fit(self, shift: float) -> Array:
        """Weighted least-squares parameters with torque taken ``shift`` [s] later."""
        moments = [spline(shift) for spline in self._interpolated]
        variance = np.array([of_channel[-1] for of_channel in moments]) / np.maximum(self.counts, 1)
        for _ in range(_DELAY_WEIGHT_ITERATIONS):
            weights = 1 / np.maximum(variance, max(1e-18 * variance.max(), _MIN_TORQUE_VARIANCE))
            parameters = self._solution(weights, moments)
            bounded = self.viscous[self.viscous < len(parameters)]
            parameters[bounded] = np.maximum(parameters[bounded], 0.0)
            variance = self.mean_squares(shift, parameters)
        return parameters

    @cached_property
    def _excited(self) -> Array:
        """``(p, r)`` directions of the parameters that the motion excites, under all weights and shifts."""
        size = 1 + max(int(columns.max()) for columns in self.columns if len(columns))
        gram, energy = np.zeros((size, size)), np.array([moments[len(SHIFTS_S) // 2, -1] for moments in self.moments])
        for columns, of_columns, of_channel in zip(self.columns, self.gram, energy, strict=True):
            gram[np.ix_(columns, columns)] += of_columns / max(of_channel, 1e-18 * energy.max(), _MIN_TORQUE_VARIANCE)
        length = np.sqrt(gram.diagonal())
        length[length == 0] = 1.0
        values, vectors = np.linalg.eigh(gram / length / length[:, None])
        return np.asarray(vectors[:, values > _RANK_TOLERANCE * values[-1]] / length[:, None])

    @cached_property
    def _reduced(self) -> Array:
        """``(c, r, r)`` Gram matrices of the channels in the excited directions."""
        directions = [self._excited[columns] for columns in self.columns]
        return np.array([span.T @ gram @ span for span, gram in zip(directions, self.gram, strict=True)])

    def _solution(self, weights: Array, moments: Sequence[Array]) -> Array:
        moment = np.zeros(len(self._excited))
        for columns, right, weight in zip(self.columns, moments, weights, strict=True):
            moment[columns] += weight * right[:-1]
        if not self._excited.shape[1]:  # no equation counts
            return moment
        gram, right = np.tensordot(weights, self._reduced, 1), self._excited.T @ moment
        length = np.sqrt(gram.diagonal())
        _, solution, singular = scipy.linalg.lapack.dposv(gram / length / length[:, None], right / length)
        if singular:  # up to rounding, if weights differ by many orders of magnitude
            solution = np.linalg.lstsq(gram / length / length[:, None], right / length, rcond=_RANK_TOLERANCE)[0]
        return np.asarray(self._excited @ (solution / length))


@dataclass(frozen=True)
class Delay:
    """Delay of torque after motion.

    Attributes
    ----------
    seconds : positive if the torque of an instant is reported later than the motion of this instant
    deviation : float
        Standard deviation, from the curvature of the misfit and the number of independent samples; infinite if the
        best shift is at an end of the candidates.
    gain : share by which the shift lowers the squared error of held-out blocks
    """

    seconds: float
    deviation: float
    gain: float

    @property
    def at_border(self) -> bool:
        """True if the range of plausible delays contains no optimum."""
        return bool(np.isinf(self.deviation))

    @property
    def predicts_better(self) -> bool:
        return self.gain > _MIN_DELAY_GAIN

    @property
    def significant(self) -> bool:
        """True if the delay is clearly not zero and its removal does not worsen the prediction of held-out blocks."""
        return self.gain > -_MIN_DELAY_GAIN and abs(self.seconds) > _MIN_DELAY_DEVIATIONS * self.deviation

    @property
    def removed(self) -> float:
        """Shift that is removed from recordings [s]; zero if it is not significant."""
        return self.seconds if self.significant else 0.0


def may_be_shifted(equations: Equations, recordings: Sequence[Samples]) -> bool:
    """Check whether one delay holds for all channels, and whether torque is low-passed and can thus be interpolated.

    On a free base, torque also contains wrenches, which come from other devices with other delays. Commands are
    shifted alone.
    """
    commanded = all(samples.command is not None for samples in recordings)
    of_torque = equations.equation_type == "force" and (commanded or not equations.model.free)
    return of_torque and all(samples.cutoff_hz > 0 for samples in recordings)


def estimate_delay(source: RobotModel | Equations, recordings: Sequence[Samples]) -> Delay:
    """Estimate the shift of torque against motion that gives the best least-squares fit.

    A delay of torque looks much like friction and inertia, so it is estimated together with all parameters: every
    shift has its own best parameters. Motion of a single frequency cannot separate the delay from friction; the
    deviation of the delay is then large.
    """
    equations = equations_of(source)
    blocks = [
        ShiftedTorque.from_samples(equations, samples, rows)
        for samples in recordings
        for rows in samples.block_rows(_DELAY_BLOCKS)]
    whole = ShiftedTorque.sum(blocks)
    # The best shift of the grid, refined between its neighbours.
    best = int(np.argmin([_misfit(whole, shift) for shift in SHIFTS_S]))
    seconds, deviation = float(SHIFTS_S[best]), np.inf
    if 0 < best < len(SHIFTS_S) - 1:
        optimum = scipy.optimize.minimize_scalar(
            lambda shift: _misfit(whole, shift), bounds=(SHIFTS_S[best - 1], SHIFTS_S[best + 1]), method="bounded",
            options={"xatol": 1e-6})
        seconds = float(optimum.x)
        # Deviation by the curvature of the misfit and the number of independent equations.
        sides = _misfit(whole, seconds - _CURVATURE_STEP_S) + _misfit(whole, seconds + _CURVATURE_STEP_S)
        curvature = (sides - 2 * optimum.fun) / _CURVATURE_STEP_S**2
        parameters, shifted = whole.fit(seconds), [without_delay(samples, seconds) for samples in recordings]
        parameters = np.append(parameters, np.zeros(equations.model.layout.size - len(parameters)))
        residuals = [samples.tau - equations.predict(parameters, samples) for samples in shifted]
        fraction = effective_fraction(residuals, [samples.mask for samples in shifted])
        deviation = 1 / np.sqrt(max(float(whole.counts @ fraction) * curvature, _TINY_MISFIT))
    # Error of every block under a fit to all other blocks, in variances of the channels without a shift.
    scale, errors = np.maximum(whole.mean_squares(0.0, whole.fit(0.0)), _TINY_MISFIT), np.zeros(2)
    for index, block in enumerate(blocks):
        others = ShiftedTorque.sum([*blocks[:index], *blocks[index + 1 :]])
        for shift, error in ((seconds, 0), (0.0, 1)):
            errors[error] += np.sum(block.counts * block.mean_squares(shift, others.fit(shift)) / scale)
    return Delay(seconds, float(deviation), float(1 - errors[0] / max(errors[1], _TINY_MISFIT)))


def known_or_estimated_delay(equations: Equations, recordings: Sequence[Samples]) -> Delay:
    """Delay of commands if the robot's options give it, otherwise of :func:`estimate_delay`."""
    known = equations.model.options.command_delay_s
    if equations.model.command_gains is not None and known >= 0:
        return Delay(-known, 0.0, 0.0)
    return estimate_delay(equations, [without_delay(samples, 0.0) for samples in recordings])


def without_delay(samples: Samples, delay: float) -> Samples:
    """Shift torque to the motion that it belongs to; samples shifted outside the recording are masked.

    If torque follows from commands, only the commands are shifted, and samples with clipped torque are masked.
    """
    if delay:
        shifted = samples.time + delay
        first, last = samples.time[[0, -1]]
        inside = (shifted >= first) & (shifted <= last)
        delayed = samples.tau if samples.command is None else samples.command
        moved = scipy.interpolate.make_interp_spline(samples.time, delayed, k=3)(np.clip(shifted, first, last))
        samples = replace(
            samples, tau=samples.tau - delayed + moved, command=None if samples.command is None else moved,
            mask=samples.mask & inside[:, None], usable=samples.usable & inside)
    if samples.command_limits is None:
        return samples
    # The low-pass mixes clipped torque into the samples of a period of its cutoff.
    reach = int(np.ceil(1 / (samples.cutoff_hz * samples.period))) if samples.cutoff_hz else 0
    clipped = np.abs(samples.tau) >= samples.command_limits
    clipped = scipy.ndimage.maximum_filter1d(clipped.astype(np.uint8), 2 * reach + 1, axis=0).astype(bool)
    return replace(samples, mask=samples.mask & ~clipped)


def _misfit(equations: ShiftedTorque, shift: float) -> float:
    """Mean logarithm of the residual deviation over all equations, for weighted least squares."""
    variance = equations.mean_squares(shift, equations.fit(shift))
    used = equations.counts > 0
    return float(np.average(0.5 * np.log(np.maximum(variance[used], _TINY_MISFIT)), weights=equations.counts[used]))
