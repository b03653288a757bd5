"""Array types, counts in masks, robust deviations, and dense linear algebra: R factors, roots, marginal Hessians.

Also rotations of many samples at once: unit quaternions, rotation matrices, cross products. Quaternions are ordered
x, y, z, w.

Linear algebra has one thread: the matrices are small, and several threads would wait for each other longer than they
work. The command line and the nodes set ``OMP_NUM_THREADS=1``. For Python code that calls the library, threadpoolctl
limits the threads if it is installed. Without this limit, fits take up to three times as long.
"""

import contextlib
import importlib
import logging
from collections.abc import Generator, Iterable
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from inertid_ros.core.errors import RecordingError

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
MAD_TO_DEVIATION = 1.4826
"""Standard deviation over median absolute deviation of normal noise."""
_MIN_SCALED_DIAGONAL = 1e-300
_PANEL_COLUMNS = 24  # columns that LAPACK reduces before it updates the remaining columns
_log = logging.getLogger(__name__)
_MAX_NORM_ERROR = 0.02  # a larger error is not due to rounding


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


def cross(a: Array, b: Array, axis: int = -1) -> Array:
    """Cross product along the last axis or the first (0); several times faster than ``numpy.cross`` on small arrays."""
    (ax, ay, az), (bx, by, bz) = ((x[..., 0], x[..., 1], x[..., 2]) if axis else x for x in (a, b))
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=axis)


def skew(vector: ArrayLike) -> Array:
    """Cross-product matrices ``(..., 3, 3)`` of vectors ``(..., 3)``."""
    v = np.asarray(vector, dtype=float)
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2] = -v[..., 2], v[..., 1]
    out[..., 1, 0], out[..., 1, 2] = v[..., 2], -v[..., 0]
    out[..., 2, 0], out[..., 2, 1] = -v[..., 1], v[..., 0]
    return out


def rotation_matrices(quaternions: Array) -> Array:
    """``(..., 3, 3)`` rotation matrices of quaternions ``(..., 4)``; this function normalises them."""
    x, y, z, w = np.moveaxis(quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotate(quaternions: Array, vectors: Array) -> Array:
    """Transform vectors ``(N, 3)`` from the moving frame to the fixed frame, by unit quaternions ``(N, 4)``."""
    axis, scalar = quaternions[:, :3], quaternions[:, 3:]
    twice = 2.0 * cross(axis, vectors)
    return np.asarray(vectors + scalar * twice + cross(axis, twice))


def rotate_back(quaternions: Array, vectors: Array) -> Array:
    """Transform vectors ``(N, 3)`` from the fixed frame to the moving frame, by unit quaternions ``(N, 4)``."""
    return rotate(quaternions * np.array([-1.0, -1.0, -1.0, 1.0]), vectors)


def body_rate(quaternions: Array, derivatives: Array) -> Array:
    """``(N, 3)`` vector part of ``2 q* d`` for unit quaternions ``q`` and derivatives ``d``, ``(N, 4)`` each.

    The first derivative of ``q`` gives the angular velocity in the moving frame, the second derivative the angular
    acceleration. The rest of the second derivative is a multiple of ``q`` and adds nothing to the vector part.
    """
    axis, scalar = quaternions[:, :3], quaternions[:, 3:]
    return np.asarray(2.0 * (scalar * derivatives[:, :3] - derivatives[:, 3:] * axis - cross(axis, derivatives[:, :3])))


def continuous_quaternions(quaternions: Array) -> Array:
    """Quaternions ``(N, 4)`` with signs that do not jump between neighbours; q and -q are the same rotation."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0
    signs = np.where(np.cumsum(np.concatenate([[0], flips])) % 2, -1.0, 1.0)
    return quaternions * signs[:, None]


def checked_quaternions(quaternions: Array, name: str) -> tuple[Array, Mask]:
    """Measured quaternions ``(N, 4)`` as continuous unit quaternions.

    Parameters
    ----------
    name : recording, for messages.

    Returns
    -------
    unit : ndarray, shape (N, 4)
        Without jumps of sign. The next valid quaternion (at the end: the last) replaces an invalid quaternion.
    invalid : ndarray of bool, shape (N,)
        True if the length of the measured quaternion is not 1 within 2 %, or not finite.

    Raises
    ------
    RecordingError
        More than half of the quaternions are invalid.
    """
    norms = np.linalg.norm(quaternions, axis=1)
    invalid = ~(np.abs(norms - 1.0) <= _MAX_NORM_ERROR)  # also true for NaN
    if invalid.mean() > 0.5:
        raise RecordingError(
            f"{name}: base_pose holds quaternions of length {np.median(norms):.3g}, not 1, in {invalid.sum()} of"
            f" {len(invalid)} samples; check that they are qx qy qz qw, and the publisher of the pose")
    if invalid.any():
        _log.warning("%s: base_pose holds %d quaternions that are not of length 1; left out", name, invalid.sum())
    valid = np.flatnonzero(~invalid)
    nearest = valid[np.clip(np.searchsorted(valid, np.arange(len(invalid))), 0, len(valid) - 1)]
    return continuous_quaternions(quaternions[nearest] / norms[nearest, None]), invalid
