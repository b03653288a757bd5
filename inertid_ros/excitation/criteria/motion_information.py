"""Information of a motion: rows of the regressor in scaled base parameters, and their singular values to all digits."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.excitation.limits.constraint import MotionSamples

_WELL_CONDITIONED, _USABLE = 1e-6, 1e-9  # smallest over largest eigenvalue of the normal matrix
_SMALL = 0.05  # rad; larger angles are between nearly equal values, whose vectors do not matter


@dataclass(frozen=True)
class MotionInformation:
    """Equations that a motion gives in the base parameters, together with those of earlier recordings.

    Attributes
    ----------
    rows : ndarray, shape (m, r)
        Weighted regressor in the base parameters: of the motion first, then of earlier recordings.
    scaled : ndarray, shape (m, r)
        The same in the units of the scaling.
    motion : MotionSamples
        The motion.
    """

    rows: Array
    scaled: Array
    motion: MotionSamples

    @property
    def eigenvalues(self) -> Array:
        """``(r,)`` of the scaled information matrix, ascending; the squares of the singular values of ``scaled``."""
        return self._spectrum[0]

    @property
    def vectors(self) -> Array:
        """``(r, r)`` their eigenvectors, one per column."""
        return self._spectrum[1]

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value of the scaled rows; infinite where one is zero."""
        values = self.eigenvalues
        return float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else float("inf")

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        return right_spectrum(self.scaled)


def right_spectrum(rows: Array) -> tuple[Array, Array]:
    """Squared singular values and right singular vectors of rows whose columns have very different sizes.

    They come from the normal matrix where that resolves them, and from the rows where rounding would hide them.

    Parameters
    ----------
    rows : ndarray, shape (m, r)
        The matrix.

    Returns
    -------
    values : ndarray, shape (r,)
        Squares of the singular values, ascending.
    vectors : ndarray, shape (r, r)
        Right singular vectors, one per column.
    """
    values, vectors = np.linalg.eigh(rows.T @ rows)
    if values[0] > _WELL_CONDITIONED * values[-1]:
        return values, vectors
    if values[0] < _USABLE * values[-1]:
        vectors = np.linalg.svd(r_factor(rows))[2].T
    return _refined(rows, vectors)


def _refined(rows: Array, vectors: Array) -> tuple[Array, Array]:
    """The same from vectors that are nearly right.

    Decompositions err by rounding of the largest singular value. Along nearly right vectors each length and each angle
    is exact on its own scale, and one rotation in every plane by its angle squares the error (as in Jacobi's method).
    """
    along = rows @ vectors
    lengths = np.maximum(np.linalg.norm(along, axis=0), 1e-150)
    cosines = (along / lengths).T @ (along / lengths)
    squares = lengths**2
    gaps = squares[None, :] - squares[:, None]
    angles = cosines * np.outer(lengths, lengths) / np.where(gaps == 0, np.inf, gaps)
    vectors, _ = np.linalg.qr(vectors + vectors @ np.where(np.abs(angles) < _SMALL, angles, 0.0))
    values = np.sum((rows @ vectors) ** 2, axis=0)
    order = np.argsort(values)
    return values[order], vectors[:, order]
