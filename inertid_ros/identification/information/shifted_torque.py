"""Normal equations of torque at many shifts against motion, and the parameters that fit best at each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.kinematics.tree_kinematics import BATCH, batches
from inertid_ros.regressors.equations import Equations

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
        """Of some rows of a recording, whose torque before and after them is known.

        Products of filtered signals do not need all samples: those that are left count for the others.
        """
        torque = scipy.interpolate.make_interp_spline(samples.time, samples.tau, k=3)
        stride = samples.stride_of_products
        block = samples.select(slice(rows.start, rows.stop, stride))
        first, last = samples.time[[0, -1]]
        mask = block.mask & ((block.time >= first + LONGEST) & (block.time <= last - LONGEST))[:, None]
        writer = equations.writer()
        sizes = [span.stop - span.start - 1 for span in writer.spans]
        gram = [np.zeros((size, size)) for size in sizes]
        moments = [np.zeros((len(SHIFTS), size)) for size in sizes]
        energy = np.zeros((equations.count, len(SHIFTS)))
        work = np.zeros((equations.count, writer.width, BATCH))
        for part in batches(len(block)):
            shifted = torque(np.clip(block.time[part, None] + SHIFTS, first, last))
            new = work[..., : len(shifted)]
            writer.write(block, part, new)
            for channel, span in enumerate(writer.spans):
                used = mask[part, channel]
                own, b = new[channel, span.start : span.stop - 1][:, used], shifted[used, :, channel]
                gram[channel] += stride * (own @ own.T)
                moments[channel] += stride * (own @ b).T
                energy[channel] += stride * np.sum(b**2, axis=0)
        expanded = list(zip(gram, moments, writer.expansions, strict=True))
        return cls(
            equations.columns,
            tuple(expansion.T @ own @ expansion for own, _, expansion in expanded),
            tuple(own @ expansion for _, own, expansion in expanded),
            energy,
            stride * mask.sum(axis=0),
        )

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

    @cached_property
    def _excited(self) -> Array:
        """``(p, r)`` directions of the parameters that the motion excites, the same for all weights and shifts."""
        size = 1 + max(int(columns.max()) for columns in self.columns if len(columns))
        gram, energy = np.zeros((size, size)), self.energy[:, len(SHIFTS) // 2]
        for columns, own, of_channel in zip(self.columns, self.gram, energy, strict=True):
            gram[np.ix_(columns, columns)] += own / max(of_channel, 1e-18 * energy.max(), _TINY)
        length = np.sqrt(gram.diagonal())
        length[length == 0] = 1.0
        values, vectors = np.linalg.eigh(gram / length / length[:, None])
        return np.asarray(vectors[:, values > _RANK * values[-1]] / length[:, None])

    @cached_property
    def _reduced(self) -> Array:
        """``(c, r, r)`` Gram matrices of the channels in these directions."""
        directions = [self._excited[columns] for columns in self.columns]
        return np.array([own.T @ gram @ own for own, gram in zip(directions, self.gram, strict=True)])

    def _solution(self, weights: Array, moments: Sequence[Array]) -> Array:
        moment = np.zeros(len(self._excited))
        for columns, right, weight in zip(self.columns, moments, weights, strict=True):
            moment[columns] += weight * right
        if not self._excited.shape[1]:  # no equation counts
            return moment
        gram, right = np.tensordot(weights, self._reduced, 1), self._excited.T @ moment
        length = np.sqrt(gram.diagonal())
        _, solution, singular = scipy.linalg.lapack.dposv(gram / length / length[:, None], right / length)
        if singular:  # to rounding, by weights of many orders
            solution = np.linalg.lstsq(gram / length / length[:, None], right / length, rcond=_RANK)[0]
        return np.asarray(self._excited @ (solution / length))
