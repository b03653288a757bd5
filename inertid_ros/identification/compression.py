"""Compression of samples into square-root information at the speed of the caches, whatever their number."""

import numpy as np
from scipy.linalg import block_diag, lapack

from ..data.samples import Samples
from ..regressors.equations import Equations
from ..regressors.joint_torque import BATCH
from ..robot.parameters import Array

_WORKSPACE = 2**22  # numbers in the array that holds one batch of all channels, 32 MB, where the robot is not huge
_LEAST_BATCH = 128
_PANEL = 16  # columns that LAPACK reduces before it updates the others


class Compressor:
    """Takes samples and keeps one triangle per channel.

    The regressor is written in the order that LAPACK reads, and QR takes it up into the triangle: no sample is
    copied on the way, and the zeros of the triangle cost nothing. The writer may leave out columns that are exact
    combinations of others; they return with :meth:`triangles`.
    """

    def __init__(self, equations: Equations) -> None:
        self._equations, self._writer = equations, equations.writer()
        self.counts = np.zeros(equations.count, dtype=int)
        sizes = [int(span.stop - span.start) for span in self._writer.spans]
        self._triangles = [np.zeros((size, size), order="F") for size in sizes]
        width = self._writer.width
        self._batch = int(np.clip(_WORKSPACE // (equations.count * width), _LEAST_BATCH, BATCH))
        self._work = np.zeros((equations.count, width, self._batch))

    def add(self, samples: Samples) -> None:
        """Take the unmasked equations of a recording."""
        self._equations.check(samples)
        for start in range(0, len(samples), self._batch):
            self._add(samples, slice(start, min(start + self._batch, len(samples))))

    def _add(self, samples: Samples, rows: slice) -> None:
        mask = samples.mask[rows]
        count = len(mask)
        if not mask.any():
            return
        new = self._work[..., :count]
        self._work[..., count:] = 0.0
        self._writer.write(samples, rows, new)
        self.counts += mask.sum(axis=0)
        for channel, span in enumerate(self._writer.spans):
            keep = mask[:, channel]
            if not keep.any():
                continue
            new[channel, span.stop - 1] = samples.tau[rows, channel]
            if not keep.all():
                new[channel, span, ~keep] = 0.0
            self._triangles[channel] = take_up(self._triangles[channel], self._work[channel, span])

    def triangles(self) -> list[Array]:
        """For each channel, ``R (r, c + 1)`` with ``R^T R = [A b]^T [A b]``, ``A x[columns] = b`` its equations."""
        return [
            triangle @ block_diag(expansion, np.eye(1))
            for triangle, expansion in zip(self._triangles, self._writer.expansions, strict=True)
        ]


def take_up(triangle: Array, columns: Array) -> Array:
    """Triangle ``(c, c)`` of QR with more equations, whose columns are the rows of ``columns (c, k)``.

    Both are overwritten; ``triangle`` in Fortran's order.
    """
    updated, *_ = lapack.dtpqrt(0, min(_PANEL, len(triangle)), triangle, columns.T, overwrite_a=1, overwrite_b=1)
    return np.asarray(updated)
