"""Compression of samples into square-root information, batch by batch."""

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array, column_counts
from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.samples import Samples
from inertid_ros.kinematics.tree_kinematics import BATCH
from inertid_ros.regressors.equations import Equations

from .incremental_qr import IncrementalQR

_WORKSPACE = 2**23  # numbers in the array that holds one batch of all channels, 64 MB, where the robot is not huge
_LEAST_BATCH = 128


class Compressor:
    """Incremental QR of the equations of every channel.

    The regressor is written in the order that LAPACK reads, and appended batch by batch. The writer may leave out
    columns that are exact combinations of others; :meth:`r_factors` restores them.

    Parameters
    ----------
    equations : Equations
        Of the robot.

    Attributes
    ----------
    counts : ndarray of int, shape (c,)
        Equations per channel so far.
    """

    def __init__(self, equations: Equations) -> None:
        self._equations, self._writer = equations, equations.writer()
        self.counts = np.zeros(equations.count, dtype=int)
        sizes = [int(span.stop - span.start) for span in self._writer.spans]
        self._factors = [IncrementalQR(size) for size in sizes]
        width = self._writer.width
        self._batch = int(np.clip(_WORKSPACE // (equations.count * width), _LEAST_BATCH, BATCH))
        self._work = np.zeros((equations.count, width, 0))

    @one_thread()
    def add(self, samples: Samples) -> None:
        """Append the unmasked equations of a recording."""
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
        self._write(samples, rows, mask)
        spans = [self._work[channel, span] for channel, span in enumerate(self._writer.spans)]
        used = np.flatnonzero(counts)
        rejected = [channel for channel in used if not self._factors[channel].append(spans[channel])]
        if rejected:
            self._write(samples, rows, mask)
        for channel in rejected:
            self._factors[channel].append_by_reflections(spans[channel])

    def _write(self, samples: Samples, rows: slice, mask: np.ndarray) -> None:
        """Write the unmasked equations of a batch, and zeros elsewhere."""
        new = self._work[..., : len(mask)]
        self._work[..., len(mask) :] = 0.0
        self._writer.write(samples, rows, new)
        for channel, span in enumerate(self._writer.spans):
            new[channel, span.stop - 1] = samples.tau[rows, channel]
            if not mask[:, channel].all():
                new[channel, span, ~mask[:, channel]] = 0.0

    def r_factors(self) -> list[Array]:
        """For each channel, ``R (r, c + 1)`` with ``R^T R = [A b]^T [A b]``, ``A x[columns] = b`` its equations."""
        return [
            factor.r_factor() @ block_diag(expansion, np.eye(1))
            for factor, expansion in zip(self._factors, self._writer.expansions, strict=True)
        ]
