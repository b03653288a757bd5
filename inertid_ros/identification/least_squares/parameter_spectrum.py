"""Directions of the parameter space, from the best to the least determined."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.base_parameters import BaseParameters


@dataclass(frozen=True)
class ParameterSpectrum:
    """Equations ``R x = z`` around a centre, by the singular directions of scaled parameters.

    The decomposition is [vanDerGaag2024]_ eq. 15-23.
    With base parameters ``x_B = B x``, metric ``G`` of the scaling and its pushforward ``H0 = (B G^-1 B^T)^-1``
    ([Lee2019]_ eq. 4.3.35), ``B @ directions`` are the ``v_i`` of [Lee2019]_ eq. 4.5.53 and ``1 / strengths**2`` the
    ``lambda_i``: eigenvalues of the covariance normalised by ``H0``.

    Attributes
    ----------
    centre : ndarray, shape (p,)
        Parameters in directions that are not fitted.
    directions : ndarray, shape (p, r)
        Of length one and at right angles under the scaling, and to all that no motion excites.
    strengths : ndarray, shape (r,)
        Singular values, descending: effect of a unit step along a direction on the equations.
    left : ndarray, shape (k, r)
        Orthonormal, the same directions in the equations.
    projections : ndarray, shape (r,)
        ``left.T @ (z - R centre)``.
    """

    centre: Array
    directions: Array
    strengths: Array
    left: Array
    projections: Array

    @property
    def count(self) -> int:
        """Number ``r`` of directions."""
        return len(self.strengths)

    @cached_property
    def solutions(self) -> Array:
        """``(r + 1, p)`` of every rank from zero."""
        excited = self.strengths > np.finfo(float).eps * self.strengths[:1].sum() * 1e-6
        steps = np.divide(self.projections, self.strengths, out=np.zeros(self.count), where=excited)
        return np.vstack([self.centre, self.centre + np.cumsum(steps[:, None] * self.directions.T, axis=0)])

    def solution(self, rank: int) -> Array:
        """``(p,)`` least squares along the first directions, the centre along all others.

        The solution is [vanDerGaag2024]_ eq. 20-23, [Lee2019]_ eq. 4.5.60.
        """
        return self.solutions[rank]

    def roots(self, rank: int) -> Array:
        """``(p, rank)`` with ``roots @ roots.T`` the covariance of the solution under noise of variance one."""
        return self.directions[:, :rank] / self.strengths[:rank]


def parameter_spectrum(R: Array, z: Array, base: BaseParameters, scaling: Array, centre: Array) -> ParameterSpectrum:
    """ParameterSpectrum of equations.

    Parameters
    ----------
    R, z : ndarray, shape (k, p) and (k,)
        Whitened equations, ``k >= p``.
    base : BaseParameters
        Directions that motion excites at all. Only these count, so that the rank is decided once.
    scaling : ndarray, shape (p, p)
        See :func:`~inertid_ros.identification.prior.coordinates.scaling_matrix`.
    centre : ndarray, shape (p,)
        Parameters in directions that are not fitted.
    """
    if base.count == 0:
        raise IdentificationError("least squares: the motion shows no parameter at all; did the robot move?")
    shown, _ = np.linalg.qr((base.projection @ scaling).T)
    span = scaling @ shown
    left, strengths, right = _svd(R @ span)
    return ParameterSpectrum(centre, span @ right, strengths, left, left.T @ (z - R @ centre))


def _svd(matrix: Array) -> tuple[Array, Array, Array]:
    """``U, s, V`` of a tall matrix. By Jacobi rotations, which keep weak directions accurate relative to their own
    size: grams beside tons, micrometres beside metres."""
    strengths, left, right, work, _, info = lapack.dgejsv(matrix, joba=0, jobu=0, jobv=0, jobr=0, jobt=0, jobp=0)
    if info != 0:  # no convergence, rarely if ever
        left, strengths, transposed = np.linalg.svd(matrix, full_matrices=False)
        return left, strengths, transposed.T
    return left[:, : len(strengths)], strengths * (work[0] / work[1]), right
