"""Factors ``T`` of the Hessian of a Newton step, ``T^T T``: by Cholesky from squares, or by QR from rows.

The Hessian is ``R^T R`` of the data plus the curvature of bodies, drives and constraints. As a sum of squares it has
lost what the prior says where data outweighs it by more than half of the digits, as without noise; QR of the rows has
not. In the coordinates ``y = T x`` the Hessian is the identity.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError
from inertid_ros.core.qr import append_rows, append_triangle
from inertid_ros.identification.prior.convex_program import ConvexProgram

_LOST = 1e-4  # rounding errors of R^T R, in units of the curvature of a prior


class Curvature(Protocol):
    """What the Hessian is made of beside the rows of the convex program."""

    @property
    def matrix(self) -> Array:
        """``(p, p)``."""
        ...

    @property
    def triangle(self) -> Array:
        """``(p, p)`` upper triangle; its Gram matrix and that of :attr:`rows` add up to the matrix."""
        ...

    @property
    def rows(self) -> Array:
        """``(k, p)``."""
        ...


class Factor:
    """Triangle of a Hessian.

    Parameters
    ----------
    triangle : ndarray, shape (p, p)
        Transpose of T, lower.
    data_slope : ndarray, shape (p,)
        Gradient of the data's squares by ``y``.
    """

    def __init__(self, triangle: Array, data_slope: Array) -> None:
        self.triangle, self.data_slope = triangle, data_slope

    def into(self, gradient: Array) -> Array:
        """A gradient by ``x``, ``(p,)`` or ``(p, k)``, as one by ``y``."""
        return np.asarray(lapack.dtrtrs(self.triangle, gradient, lower=1)[0])

    def out(self, y: Array) -> Array:
        """A step ``(p,)`` or ``(p, k)`` in parameters."""
        return np.asarray(lapack.dtrtrs(self.triangle, y, lower=1, trans=1)[0])


Factorise = Callable[[ConvexProgram, Array, Curvature], Factor]


def from_squares(convex_program: ConvexProgram, x: Array, curvature: Curvature) -> Factor:
    """Factor by Cholesky.

    Its accuracy does not depend on the scale of rows and columns, so they are not scaled.

    Raises
    ------
    ConvergenceError
        The Hessian is not positive definite.
    """
    hessian = convex_program.gram + curvature.matrix
    for jitter in (0.0, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10):
        whole = hessian + np.diag(jitter * np.diagonal(hessian)) if jitter else hessian
        triangle, failed = lapack.dpotrf(whole.T, lower=1, clean=0)  # transposed: the order LAPACK reads
        if not failed:
            factor = Factor(triangle, x)
            factor.data_slope = factor.into(convex_program.R.T @ (convex_program.R @ x - convex_program.z))
            return factor
    raise ConvergenceError("solver: the Hessian is not positive definite; check the data for absurd values")


def from_rows(convex_program: ConvexProgram, x: Array, curvature: Curvature) -> Factor:
    """Factor by QR, which does not square what it is given.

    The data's slope is the rotated residual, in which no equation rounds another one.

    Raises
    ------
    ConvergenceError
        A direction has no curvature.
    """
    size = len(x)
    whole = np.zeros((size + 1, size + 1), order="F")
    whole[:, :size] = convex_program.r_factor[:, :size]
    whole[:, size] = convex_program.r_factor @ np.append(x, -1.0)
    triangle = np.zeros((size, size + 1), order="F")
    triangle[:, :size] = curvature.triangle
    whole = append_triangle(whole, triangle)
    rows = curvature.rows
    if len(rows):
        whole = append_rows(whole, np.vstack([rows.T, np.zeros(len(rows))]))
    if not np.diagonal(whole)[:size].all():
        raise ConvergenceError("solver: a direction has no curvature; check the data for absurd values")
    return Factor(np.asfortranarray(whole[:size, :size].T), whole[:size, size])


def keeps_prior(convex_program: ConvexProgram) -> bool:
    """Whether ``R^T R`` still holds what the prior says."""
    return bool(np.finfo(float).eps * np.diagonal(convex_program.gram).max(initial=0.0) < _LOST)
