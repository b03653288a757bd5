"""Normal equations of torque at many shifts against motion, and the parameters that fit best at each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.kinematics.tree_kinematics import batches
from inertid_ros.regressors.equations import Equations, dense_equations

LONGEST = 0.05  # s; no driver is later, and a larger shift is another motion
_STEP = 2.5e-3  # s between shifts; what lies between is interpolated, as filtered torque changes little in that time
SHIFTS = np.arange(-LONGEST, LONGEST + 0.5 * _STEP, _STEP)
_WEIGHT_ITERATIONS = 3
_ROUNDING = 1e-15  # of the energy: a smaller squared residual is the difference of sums that cancel
_TINY = 1e-200  # a variance whose inverse is still a number
_RANK = 1e-10  # of the largest eigenvalue of the Gram matrix with columns of length one


@dataclass(frozen=True)
class ShiftedTorque:
    """Normal equations of every channel, with the torque of ``SHIFTS`` (k,) later.

    Attributes
    ----------
    columns : tuple of ndarray
        Columns of the layout of each channel.
    gram : tuple of ndarray, shape (p, p)
        ``A^T A`` of each channel.
    moments : tuple of ndarray, shape (k, p)
        ``A^T b``.
    energy : ndarray, shape (c, k)
        ``b^T b``.
    counts : ndarray, shape (c,)
        Number of equations.
    """

    columns: tuple[np.ndarray, ...]
    gram: tuple[Array, ...]
    moments: tuple[Array, ...]
    energy: Array
    counts: np.ndarray

    @classmethod
    def of(cls, equations: Equations, samples: Samples, rows: slice) -> "ShiftedTorque":
        """Of some rows of a recording, whose torque before and after them is known."""
        torque = scipy.interpolate.make_interp_spline(samples.time, samples.tau, k=3)
        inside = (samples.time >= samples.time[0] + LONGEST) & (samples.time <= samples.time[-1] - LONGEST)
        block, inside = samples.select(rows), inside[rows]
        mask = block.mask & inside[:, None]
        sizes = [len(columns) for columns in equations.columns]
        gram = [np.zeros((size, size)) for size in sizes]
        moments = [np.zeros((len(SHIFTS), size)) for size in sizes]
        energy = np.zeros((equations.count, len(SHIFTS)))
        for part in batches(len(block)):
            times = np.clip(block.time[part, None] + SHIFTS, samples.time[0], samples.time[-1])
            shifted = torque(times)
            for channel, (A, _) in enumerate(next(dense_equations(equations, block.select(part)))):
                kept = inside[part][block.mask[part, channel]]
                own, b = A[kept], shifted[mask[part, channel], :, channel]
                gram[channel] += own.T @ own
                moments[channel] += b.T @ own
                energy[channel] += np.sum(b**2, axis=0)
        return cls(equations.columns, tuple(gram), tuple(moments), energy, mask.sum(axis=0))

    @classmethod
    def sum(cls, parts: Sequence["ShiftedTorque"]) -> "ShiftedTorque":
        """All parts together."""
        gram, moments = (
            tuple(np.sum(own, axis=0) for own in zip(*(getattr(part, name) for part in parts), strict=True))
            for name in ("gram", "moments")
        )
        energy, counts = (np.sum([getattr(part, name) for part in parts], axis=0) for name in ("energy", "counts"))
        return cls(parts[0].columns, gram, moments, energy, counts)

    @cached_property
    def _interpolated(self) -> "tuple[list, scipy.interpolate.CubicSpline]":
        moments = [scipy.interpolate.CubicSpline(SHIFTS, own) for own in self.moments]
        return moments, scipy.interpolate.CubicSpline(SHIFTS, self.energy.T)

    def mean_squares(self, shift: float, parameters: Array) -> Array:
        """``(c,)`` mean squared residual of parameters with the torque of ``shift`` [s] later."""
        moments, energy = self._interpolated
        out = np.asarray(energy(shift))
        for channel, columns in enumerate(self.columns):
            own = parameters[columns]
            out[channel] += own @ self.gram[channel] @ own - 2 * own @ moments[channel](shift)
        return np.maximum(out, _ROUNDING * energy(shift)) / np.maximum(self.counts, 1)

    def fit(self, shift: float) -> Array:
        """Parameters by weighted least squares, with the torque of ``shift`` [s] later."""
        moments, energy = self._interpolated
        variance = np.asarray(energy(shift)) / np.maximum(self.counts, 1)
        for _ in range(_WEIGHT_ITERATIONS):
            weights = 1 / np.maximum(variance, max(1e-18 * variance.max(), _TINY))
            parameters = self._solution(weights, [own(shift) for own in moments])
            variance = self.mean_squares(shift, parameters)
        return parameters

    def _solution(self, weights: Array, moments: Sequence[Array]) -> Array:
        size = 1 + max(int(columns.max()) for columns in self.columns if len(columns))
        gram, moment = np.zeros((size, size)), np.zeros(size)
        for columns, own, right, weight in zip(self.columns, self.gram, moments, weights, strict=True):
            gram[np.ix_(columns, columns)] += weight * own
            moment[columns] += weight * right
        length = np.sqrt(gram.diagonal())
        length[length == 0] = 1.0
        values, vectors = np.linalg.eigh(gram / length / length[:, None])
        kept = values > _RANK * values[-1]
        return np.asarray(vectors[:, kept] @ (vectors[:, kept].T @ (moment / length) / values[kept]) / length)
