"""Compression of samples into square-root information at the speed of the caches, whatever their number."""

from functools import lru_cache

import numpy as np
from scipy.linalg import block_diag, lapack

from ..data.samples import Samples
from ..regressors.equations import Equations
from ..regressors.joint_torque import BATCH
from ..robot.parameters import Array

_WORKSPACE = 2**22  # numbers in the array that holds one batch of all channels, 32 MB, where the robot is not huge
_LEAST_BATCH = 128
_PANEL = 8  # columns that LAPACK reduces before it updates the others


class Compressor:
    """Takes samples and keeps one triangle per channel.

    Each channel has an array of its own whose first rows are the triangle so far. The regressor is written below it, in
    the order that LAPACK reads, and QR brings the triangle back to the top: no sample is copied on the way. The writer
    may leave out columns that are exact combinations of others; they return with :meth:`triangles`.
    """

    def __init__(self, equations: Equations) -> None:
        self._equations, self._writer = equations, equations.writer()
        self.counts = np.zeros(equations.count, dtype=int)
        self._top = max(span.stop - span.start for span in self._writer.spans)
        width = self._writer.width
        rows = _WORKSPACE // (equations.count * width) - self._top
        self._batch = int(np.clip(rows, _LEAST_BATCH, BATCH))
        self._work = np.zeros((equations.count, width, self._top + self._batch))

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
        new = self._work[..., self._top : self._top + count]
        self._work[..., self._top + count :] = 0.0
        self._writer.write(samples, rows, new)
        self.counts += mask.sum(axis=0)
        for channel, span in enumerate(self._writer.spans):
            keep = mask[:, channel]
            if not keep.any():
                continue
            new[channel, span.stop - 1] = samples.tau[rows, channel]
            if not keep.all():
                new[channel, span, ~keep] = 0.0
            reduce_rows(self._work[channel, span], self._top)

    def triangles(self) -> list[Array]:
        """For each channel, ``R (r, c + 1)`` with ``R^T R = [A b]^T [A b]``, ``A x[columns] = b`` its equations."""
        found = []
        for channel, (span, expansion) in enumerate(zip(self._writer.spans, self._writer.expansions, strict=True)):
            size = span.stop - span.start
            found.append(self._work[channel, span, :size].T @ block_diag(expansion, np.eye(1)))
        return found


def reduce_rows(work: Array, top: int) -> None:
    """QR in place of ``work.T``, ``work (c, top + k)``: the triangle goes to the first c rows; the others up to ``top``
    become zero, and those below are left for new ones."""
    factored, *_ = lapack.dgeqrt(min(_PANEL, len(work)), work.T, overwrite_a=1)
    np.multiply(factored.T[:, :top], _lower(len(work), top), out=work[:, :top])


@lru_cache(maxsize=256)
def _lower(rows: int, columns: int) -> Array:
    """Ones on and below the diagonal."""
    return np.tri(rows, columns)
