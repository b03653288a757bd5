"""Array types, counts in masks, robust deviations, and dense linear algebra: R factors, roots and marginal Hessians.

Linear algebra has one thread: the matrices are small, and several threads would wait for each other longer than they
work. The command line and the nodes set ``OMP_NUM_THREADS=1``. For Python code that calls the library, threadpoolctl
limits the threads if it is installed. Without this limit, fits take up to three times as long.
"""

import contextlib
import importlib
from collections.abc import Generator, Iterable
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
MAD_TO_DEVIATION = 1.4826
"""Standard deviation over median absolute deviation of normal noise."""
_MIN_SCALED_DIAGONAL = 1e-300
_PANEL_COLUMNS = 24  # columns that LAPACK reduces before it updates the remaining columns


def column_counts(mask: Mask) -> Indices:
    """``(c,)`` number of true elements per column of ``(N, c)``; eight times as fast as a sum along rows."""
    return np.array([np.count_nonzero(column) for column in mask.T], dtype=np.intp)


def r_factor(matrix: Array) -> Array:
    """``(c, c)`` R factor of a matrix ``(k, c)``, ``R^T R = matrix^T matrix``; zero rows pad it if ``k < c``."""
    rows, columns = matrix.shape
    if rows == 0:
        return np.zeros((columns, columns))
    if rows < columns:
        factored, *_ = scipy.linalg.lapack.dgeqrf(np.asfortranarray(matrix))
        return np.vstack([np.triu(factored), np.zeros((columns - rows, columns))])
    return np.ascontiguousarray(append_rows(np.zeros((columns, columns), order="F"), np.array(matrix.T, order="C")))


def append_rows(R: Array, columns: Array) -> Array:
    """``(c, c)`` R factor of ``R`` with new rows below it; two to three times as fast as LAPACK's plain QR.

    Parameters
    ----------
    R : (c, c), R factor, in Fortran order; overwritten.
    columns : (c, k), transpose of the new rows; overwritten.
    """
    if not len(R):
        return R
    panel = min(_PANEL_COLUMNS, len(R))
    factored, *_ = scipy.linalg.lapack.dtpqrt(0, panel, R, columns.T, overwrite_a=1, overwrite_b=1)
    return np.asarray(factored)


def r_factor_of_blocks(blocks: Iterable[tuple[Indices, Array]], size: int) -> Array:
    """``(size + 1, size + 1)`` R factor of all rows ``[A | b]``, from blocks that each use few of ``size`` columns.

    The cost of a block depends only on the columns that it uses.

    Parameters
    ----------
    blocks : iterable of (columns, rows)
        Ascending column indices ``(c,)``, and ``[A | b]`` ``(k, c + 1)`` of the equations ``A x[columns] = b``.
    """
    R, group = np.zeros((size + 1, size + 1), order="F"), np.arange(size)
    for columns, rows in sorted(blocks, key=lambda block: len(block[0])):
        used = rows[rows.any(axis=1)]
        if not len(used):
            continue
        # Rows of R for the columns of this block also involve all columns that earlier blocks coupled with them.
        joined = np.append(np.flatnonzero(np.isin(group, group[columns])), size)
        group[joined[:-1]] = group[columns].min(initial=size)
        new = np.zeros((len(joined), len(used)))
        new[np.searchsorted(joined, np.append(columns, size))] = used.T
        within = np.ix_(joined, joined)
        R[within] = append_rows(np.asfortranarray(R[within]), new)
    return R


def semidefinite_root(matrix: Array) -> Array:
    """``(p, p)`` root of a symmetric, positive semidefinite matrix ``(p, p)``: ``root.T @ root`` is the matrix.

    The matrix is scaled to a unit diagonal, so that columns of very different size keep their digits.

    Raises
    ------
    numpy.linalg.LinAlgError
        Elements are not finite, or too large.
    """
    diagonal = np.diagonal(matrix)
    positive = diagonal > 0.0  # if the diagonal is zero, row and column are zero up to rounding
    scale = np.sqrt(np.where(positive, np.maximum(diagonal, _MIN_SCALED_DIAGONAL), 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.where(np.outer(positive, positive), matrix, 0.0) / scale / scale[:, None]
    values, vectors = np.linalg.eigh(scaled)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * scale)


def is_positive_definite(matrices: Array) -> bool:
    """True if all symmetric matrices ``(..., n, n)`` are positive definite."""
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return False
    return True


def inverse_root(rows: Array) -> Array:
    """``(p, p)`` root of the inverse of ``rows.T @ rows``: ``root @ root.T`` is the inverse; ``rows`` are ``(k, p)``.

    Does not form ``rows.T @ rows``. Directions that the rows do not determine count as certain, as in a pseudo-inverse.
    """
    R = r_factor(rows)
    diagonal = np.abs(np.diagonal(R))
    if diagonal.min(initial=np.inf) > np.finfo(float).eps * diagonal.max(initial=0.0):
        return np.asarray(scipy.linalg.lapack.dtrtri(R)[0])
    _, values, right = np.linalg.svd(R)
    determined = values > len(R) * np.finfo(float).eps * values.max(initial=0.0)
    return np.asarray(right.T * np.where(determined, 1 / np.where(determined, values, 1.0), 0.0))


def marginal_hessian(hessian: Array, size: int) -> Array:
    """``(size, size)`` Hessian of the first parameters, with the others at their optimum: the Schur complement."""
    if len(hessian) == size:
        return hessian
    rest = slice(size, None)
    inner = np.linalg.pinv(hessian[rest, rest], hermitian=True)
    return np.asarray(hessian[:size, :size] - hessian[:size, rest] @ inner @ hessian[rest, :size], dtype=float)


@contextlib.contextmanager
def one_thread() -> Generator[None]:
    """Context manager or decorator: one thread for linear algebra; without threadpoolctl it has no effect."""
    controller = _thread_controller()
    with contextlib.nullcontext() if controller is None else controller.limit(limits=1):
        yield


@cache
def _thread_controller() -> Any:
    """Controller of the loaded libraries; cached because the search takes longer than a small fit."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    importlib.import_module("scipy.linalg")  # it brings a BLAS of its own
    return ThreadpoolController()
