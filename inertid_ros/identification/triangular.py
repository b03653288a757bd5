"""The R of a QR factorisation, without ever forming Q."""

import numpy as np
from scipy.linalg import lapack

from ..robot.parameters import Array


def triangle(matrix: Array) -> Array:
    """Square upper triangle ``(c, c)`` with ``R^T R = matrix^T matrix``; zero rows pad a wide ``(k, c)`` matrix."""
    rows, columns = matrix.shape
    if rows < columns:
        matrix = np.vstack([matrix, np.zeros((columns - rows, columns))])
    factored, *_ = lapack.dgeqrf(np.asfortranarray(matrix))
    return np.triu(factored[:columns])


def marginal(hessian: Array, size: int) -> Array:
    """Hessian of the first ``size`` parameters when the others are at their best: the Schur complement."""
    if len(hessian) == size:
        return hessian
    rest = slice(size, None)
    inner = np.linalg.pinv(hessian[rest, rest], hermitian=True)
    return np.asarray(hessian[:size, :size] - hessian[:size, rest] @ inner @ hessian[rest, :size], dtype=float)
