"""Geodesic least squares: the bodies nearest, along geodesics, to the hyperplane of every equation.

Ordinary least squares measures how far the parameters are from the hyperplane ``a^T x = b`` of an equation in a
straight line; here the line stays in the manifold of physically consistent bodies ([Lee2019]_ sec. 3.4). All is in
normalised coordinates, where the prior of every body is the identity; points of the manifold are ``(nb, 4, 4)``.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.distances import PULLBACK
from inertid_ros.robot.bodies.inertial_parameters import (
    BODY_PARAMETERS,
    PSEUDO_INERTIA_BASIS,
    from_pseudo_inertia,
    pseudo_inertia,
)

from .hyperplane_projection import Hyperplanes, exponential, logarithm, matrix_root, project

_ORTHONORMAL = np.einsum(
    "kl,lij->kij", np.linalg.inv(np.linalg.cholesky(PULLBACK)), PSEUDO_INERTIA_BASIS
)  # of the metric 1/2 tr(U V)
_NEGLIGIBLE = 1e-24  # squared length of a row, relative to the longest, that is negligible
_STEPS = 100
_HALVINGS = 30
_SHORT = 0.1


@dataclass(frozen=True)
class GeodesicFit:
    """Minimum of the geodesic objective.

    Attributes
    ----------
    bodies : ndarray, shape (nb, 10)
        In normalised coordinates.
    used : ndarray, shape (m,)
        Equations that were not discarded.
    objective, gap : float
        Value, and its distance to that of the minimum by the last quadratic model.
    hessian : ndarray, shape (10 nb, 10 nb)
        Gauss-Newton, by the parameters.
    """

    bodies: Array
    used: np.ndarray
    objective: float
    gap: float
    hessian: Array
    iterations: int
    seconds: float


def geodesic_least_squares(A: Array, b: Array, weight: float, start: Array, tolerance: float = 1e-10) -> GeodesicFit:
    """Minimise ``1/2 sum gamma_i d(S, H_i)^2 + weight d(S, prior)^2`` ([Lee2019]_ eq. 3.4.37).

    Gauss-Newton steps along geodesics: to first order the distance to a hyperplane changes by its unit normal.

    Parameters
    ----------
    A, b : ndarray, shape (m, 10 nb) and (m,)
        Whitened equations in normalised coordinates. Those whose hyperplane has no nearest point at the start, or on
        the way, are discarded.
    start : ndarray, shape (nb, 10)
        Physically consistent bodies.

    Raises
    ------
    IdentificationError
        No equation is left, or no minimum is reached.
    """
    began = time.perf_counter()
    S = pseudo_inertia(start)
    planes = Hyperplanes.of(A, b)
    used = planes.weights > _NEGLIGIBLE * planes.weights.max(initial=0.0)
    used[used] = project(S, planes.select(used)).exists
    if not used.any():
        raise IdentificationError("geodesic least squares: no equation can be met near the start; check the units")
    state = _State(S, planes.select(used), weight)
    for iteration in range(1, _STEPS + 1):
        step, gap = state.newton()
        if gap <= tolerance * (1 + state.value):
            bodies = from_pseudo_inertia(state.S)
            seconds = time.perf_counter() - began
            return GeodesicFit(bodies, used, state.value, gap, state.parameter_hessian(), iteration, seconds)
        state, kept = state.line_search(step, gap)
        used[used] = kept
    raise IdentificationError(
        f"geodesic least squares: no minimum after {_STEPS} steps (gap {gap:.1e}); use the entropic regularizer"
    )


class _State:
    """One point, its objective, and the quadratic model there in the tangent space whitened by S."""

    def __init__(self, S: Array, planes: Hyperplanes, weight: float) -> None:
        self.S, self.planes, self.weight = S, planes, weight
        projections = project(S, planes)
        self.to_prior = -logarithm(S)  # tangent that leads to the prior
        self.exists, self.value = projections.exists, np.inf
        if not self.exists.all():
            return
        self.distance = projections.distance
        self.value = 0.5 * float(planes.weights @ self.distance**2) + weight * 0.5 * float(np.sum(self.to_prior**2))
        rows = 0.5 * np.einsum("mbij,kij->mbk", projections.direction, _ORTHONORMAL).reshape(len(self.distance), -1)
        roots = np.sqrt(planes.weights)
        self.rows, self.residual = roots[:, None] * rows, roots * self.distance

    def newton(self) -> tuple[Array, float]:
        """Step ``(nb, 4, 4)`` in the tangent space, and its expected decrease."""
        to_prior = 0.5 * np.einsum("bij,kij->bk", self.to_prior, _ORTHONORMAL).ravel()
        hessian = self.rows.T @ self.rows + 2 * self.weight * np.eye(len(to_prior))
        gradient = self.rows.T @ self.residual - 2 * self.weight * to_prior
        step = -np.linalg.solve(hessian, gradient)
        tangent = np.einsum("bk,kij->bij", step.reshape(len(self.S), BODY_PARAMETERS), _ORTHONORMAL)
        return tangent, float(-0.5 * gradient @ step)

    def line_search(self, step: Array, expected_decrease: float) -> tuple["_State", np.ndarray]:
        """The first point of enough decrease, halving the step, and which hyperplanes are kept.

        A hyperplane that would block the step, because it has no nearest point even a small part of the step from here,
        is discarded instead.
        """
        root = matrix_root(self.S)
        every = np.ones(len(self.planes.b), dtype=bool)
        length = 1.0
        for _ in range(_HALVINGS):
            moved = root @ exponential(length * step) @ root
            state = _State(0.5 * (moved + np.swapaxes(moved, 1, 2)), self.planes, self.weight)
            if state.value <= self.value - 1e-4 * length * expected_decrease + 1e-12 * (1 + self.value):
                return state, every
            if length <= _SHORT and not state.exists.all():
                return _State(self.S, self.planes.select(state.exists), self.weight), state.exists
            length *= 0.5
        raise IdentificationError("geodesic least squares: no step leads down; use the entropic regularizer")

    def parameter_hessian(self) -> Array:
        """Hessian of the model by the parameters: ``d xi = S^-1/2 dS S^-1/2``."""
        inverse = np.linalg.inv(matrix_root(self.S))[:, None]
        maps = 0.5 * np.einsum("bkij,lij->blk", inverse @ PSEUDO_INERTIA_BASIS @ inverse, _ORTHONORMAL)
        change = block_diag(*maps)
        rows = self.rows @ change
        return rows.T @ rows + 2 * self.weight * change.T @ change
