"""R factors of QR factorisations, without ever forming Q, and marginal Hessians."""

import numpy as np
from scipy.linalg import lapack

from .arrays import Array

_PANEL = 24  # columns that LAPACK reduces before it updates the others


def r_factor(matrix: Array) -> Array:
    """R factor of a matrix: ``R^T R = matrix^T matrix``.

    Parameters
    ----------
    matrix : ndarray, shape (k, c)
        Any matrix, tall or wide.

    Returns
    -------
    ndarray, shape (c, c)
        R factor; zero rows pad that of a wide matrix.
    """
    rows, columns = matrix.shape
    if rows == 0:
        return np.zeros((columns, columns))
    if rows < columns:
        factored, *_ = lapack.dgeqrf(np.asfortranarray(matrix))
        return np.vstack([np.triu(factored), np.zeros((columns - rows, columns))])
    return np.ascontiguousarray(append_rows(np.zeros((columns, columns), order="F"), np.array(matrix.T, order="C")))


def append_rows(R: Array, columns: Array) -> Array:
    """R factor of ``R`` with more rows below it; two to three times as fast as LAPACK's plain QR.

    Parameters
    ----------
    R : ndarray, shape (c, c)
        R factor, in Fortran's order; overwritten.
    columns : ndarray, shape (c, k)
        Transpose of the new rows; overwritten.

    Returns
    -------
    ndarray, shape (c, c)
        R factor.
    """
    if not len(R):
        return R
    factored, *_ = lapack.dtpqrt(0, min(_PANEL, len(R)), R, columns.T, overwrite_a=1, overwrite_b=1)
    return np.asarray(factored)


def marginal_hessian(hessian: Array, size: int) -> Array:
    """Hessian of the first parameters where the others are at their optimum: the Schur complement.

    Parameters
    ----------
    hessian : ndarray, shape (p, p)
        Of all parameters.
    size : int
        Number of parameters to keep.

    Returns
    -------
    ndarray, shape (size, size)
    """
    if len(hessian) == size:
        return hessian
    rest = slice(size, None)
    inner = np.linalg.pinv(hessian[rest, rest], hermitian=True)
    return np.asarray(hessian[:size, :size] - hessian[:size, rest] @ inner @ hessian[rest, :size], dtype=float)
