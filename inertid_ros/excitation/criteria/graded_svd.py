"""Singular values and vectors of matrices whose columns have very different sizes, small ones to all digits."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor

_GOOD, _FAIR = 1e-6, 1e-9  # smallest over largest square
_SMALL = 0.05  # rad; larger angles are between nearly equal values, whose vectors do not matter


def right_spectrum(rows: Array) -> tuple[Array, Array]:
    """Squares ``(r,)`` of the singular values of ``(m, r)`` rows, ascending, and the right vectors, one per column.

    From the cheap square matrix where it can tell them, from the rows where rounding would hide them.
    """
    values, vectors = np.linalg.eigh(rows.T @ rows)
    if values[0] > _GOOD * values[-1]:
        return values, vectors
    if values[0] < _FAIR * values[-1]:
        vectors = np.linalg.svd(r_factor(rows))[2].T
    return refined(rows, vectors)


def refined(rows: Array, vectors: Array) -> tuple[Array, Array]:
    """The same from vectors that are nearly right.

    Decompositions err by rounding of the largest singular value. Along nearly right vectors each length and each angle
    is exact on its own scale, and one turn in every plane by its angle squares the error (as in Jacobi's method).
    """
    along = rows @ vectors
    lengths = np.maximum(np.linalg.norm(along, axis=0), 1e-150)
    cosines = (along / lengths).T @ (along / lengths)
    squares = lengths**2
    apart = squares[None, :] - squares[:, None]
    turn = cosines * np.outer(lengths, lengths) / np.where(apart == 0, np.inf, apart)
    vectors, _ = np.linalg.qr(vectors + vectors @ np.where(np.abs(turn) < _SMALL, turn, 0.0))
    values = np.sum((rows @ vectors) ** 2, axis=0)
    order = np.argsort(values)
    return values[order], vectors[:, order]
