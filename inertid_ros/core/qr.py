"""The R of a QR factorisation, without ever forming Q."""

import numpy as np
from scipy.linalg import lapack

from .arrays import Array

_PANEL = 24  # columns that LAPACK reduces before it updates the others


def triangle(matrix: Array) -> Array:
    """Square upper triangle ``(c, c)`` with ``R^T R = matrix^T matrix``; zero rows pad a wide ``(k, c)`` matrix."""
    rows, columns = matrix.shape
    if rows == 0:
        return np.zeros((columns, columns))
    if rows < columns:
        factored, *_ = lapack.dgeqrf(np.asfortranarray(matrix))
        return np.vstack([np.triu(factored), np.zeros((columns - rows, columns))])
    return np.ascontiguousarray(updated(np.zeros((columns, columns), order="F"), np.array(matrix.T, order="C")))


def updated(triangle: Array, columns: Array) -> Array:
    """Triangle ``(c, c)`` of QR with more equations, whose columns are the rows of ``columns (c, k)``.

    Both are overwritten; ``triangle`` in Fortran's order. Two to three times as fast as LAPACK's plain QR.
    """
    if not len(triangle):
        return triangle
    factored, *_ = lapack.dtpqrt(0, min(_PANEL, len(triangle)), triangle, columns.T, overwrite_a=1, overwrite_b=1)
    return np.asarray(factored)


def marginal(hessian: Array, size: int) -> Array:
    """Hessian of the first ``size`` parameters when the others are at their best: the Schur complement."""
    if len(hessian) == size:
        return hessian
    rest = slice(size, None)
    inner = np.linalg.pinv(hessian[rest, rest], hermitian=True)
    return np.asarray(hessian[:size, :size] - hessian[:size, rest] @ inner @ hessian[rest, :size], dtype=float)
