"""Directions of the parameter space, from the best to the least determined: what every linear estimator is made of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.base_parameters import BaseParameters


@dataclass(frozen=True)
class Spectrum:
    """Equations ``R x = z`` around a centre, taken apart into directions that the data tells apart (D 15-23).

    With base parameters ``x_B = B x``, metric ``G`` of the scaling and its pushforward ``H0 = (B G^-1 B^T)^-1``
    (C 4.3.35), ``B @ directions`` are the ``v_i`` of C 4.5.53 and ``1 / strengths**2`` the ``lambda_i``: eigenvalues
    of the covariance normalised by ``H0``.

    Attributes
    ----------
    centre: ``(p,)`` parameters where the data says nothing.
    directions: ``(p, r)``, of length one and at right angles under the scaling, and to all that no motion shows.
    strengths: ``(r,)`` singular values, descending: how much of a step along a direction the data sees.
    left: ``(k, r)`` orthonormal, the same directions in the equations.
    projections: ``(r,)`` ``left.T @ (z - R centre)``.
    """

    centre: Array
    directions: Array
    strengths: Array
    left: Array
    projections: Array

    @property
    def count(self) -> int:
        return len(self.strengths)

    @cached_property
    def _path(self) -> Array:
        seen = self.strengths > np.finfo(float).eps * self.strengths[:1].sum() * 1e-6
        steps = np.divide(self.projections, self.strengths, out=np.zeros(self.count), where=seen)
        return np.vstack([self.centre, self.centre + np.cumsum(steps[:, None] * self.directions.T, axis=0)])

    def solution(self, rank: int) -> Array:
        """``(p,)`` least squares along the first directions; the centre along all others (D 20-23; C 4.5.60)."""
        return self._path[rank]

    @property
    def solutions(self) -> Array:
        """``(r + 1, p)`` of every rank from zero."""
        return self._path

    def roots(self, rank: int) -> Array:
        """``(p, rank)`` with ``roots @ roots.T`` the covariance of the solution under noise of variance one."""
        return self.directions[:, :rank] / self.strengths[:rank]


def spectrum(R: Array, z: Array, base: BaseParameters, scaling: Array, centre: Array) -> Spectrum:
    """Spectrum of equations.

    Parameters
    ----------
    R, z: ``(k, p)``, ``(k,)`` whitened equations, ``k >= p``.
    base: what motion shows at all. Only these directions count, so that no rank is decided twice.
    scaling: ``(p, p)`` see :func:`~.scaling.scaling_matrix`.
    centre: ``(p,)``.
    """
    if base.count == 0:
        raise IdentificationError("least squares: the motion shows no parameter at all; did the robot move?")
    shown, _ = np.linalg.qr((base.projection @ scaling).T)
    span = scaling @ shown
    left, strengths, right = _svd(R @ span)
    return Spectrum(centre, span @ right, strengths, left, left.T @ (z - R @ centre))


def _svd(matrix: Array) -> tuple[Array, Array, Array]:
    """``U, s, V`` of a tall matrix. By Jacobi rotations, which keep weak directions accurate relative to their own
    size: grams beside tons, micrometres beside metres."""
    strengths, left, right, work, _, info = lapack.dgejsv(matrix, joba=0, jobu=0, jobv=0, jobr=0, jobt=0, jobp=0)
    if info != 0:  # no convergence, rarely if ever
        left, strengths, transposed = np.linalg.svd(matrix, full_matrices=False)
        return left, strengths, transposed.T
    return left[:, : len(strengths)], strengths * (work[0] / work[1]), right
