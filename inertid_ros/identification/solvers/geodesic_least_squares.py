"""Geodesic least squares: the bodies nearest, along geodesics, to the hyperplane of every equation (C 3.4).

Ordinary least squares measures how far the parameters are from the hyperplane ``a^T x = b`` of an equation in a
straight line. Here the way to it stays among bodies that can exist. All is in normalised coordinates, where the prior
of every body is the identity; points of the manifold are ``(nb, 4, 4)``.
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.distances import PULLBACK
from inertid_ros.robot.bodies.inertial_parameters import (
    BODY_PARAMETERS,
    PSEUDO_INERTIA_BASIS,
    from_pseudo_inertia,
    pseudo_inertia,
)

_GRAM = np.einsum("kij,lji->kl", PSEUDO_INERTIA_BASIS, PSEUDO_INERTIA_BASIS)
_DUAL = np.einsum("kl,lij->kij", np.linalg.inv(_GRAM), PSEUDO_INERTIA_BASIS)  # tr(E_k F_l) = 1 if k = l, else 0
_ORTHONORMAL = np.einsum(
    "kl,lij->kij", np.linalg.inv(np.linalg.cholesky(PULLBACK)), PSEUDO_INERTIA_BASIS
)  # of the metric 1/2 tr(U V)
_NOTHING = 1e-24  # squared length of a row, relative to the longest, that says nothing
_LEAST = -0.95 * np.exp(-0.95)  # where Lambert's W is -0.95; at -1 its slope, and with it all accuracy, is lost
_ROOT_STEPS = 80
_EXACT = 1e-15
_DOUBLINGS = 60
_MEAN_STEPS = 100
_STEPS = 100
_HALVINGS = 30
_BARRED = 0.1


@dataclass(frozen=True)
class Hyperplanes:
    """Equations ``sum_j tr(S_j X_ij) = b_i`` (C 3.4.38), with weights.

    Attributes
    ----------
    X: ``(m, nb, 4, 4)`` symmetric.
    b, weights: ``(m,)``; weights are ``|a_i|^2 / sigma_i^2`` in the pullback metric (C Remark 3.8).
    """

    X: Array
    b: Array
    weights: Array

    @classmethod
    def of(cls, A: Array, b: Array) -> "Hyperplanes":
        """From whitened equations ``A x = b``, ``(m, 10 nb)``, of parameters in normalised coordinates."""
        rows = A.reshape(len(b), -1, BODY_PARAMETERS)
        weights = np.einsum("mbk,kl,mbl->m", rows, np.linalg.inv(PULLBACK), rows)
        return cls(np.einsum("mbk,kij->mbij", rows, _DUAL), b, weights)

    def keep(self, rows: np.ndarray) -> "Hyperplanes":
        return Hyperplanes(self.X[rows], self.b[rows], self.weights[rows])


@dataclass(frozen=True)
class Projections:
    """Nearest points of all hyperplanes from one point ``S``.

    Attributes
    ----------
    exists: ``(m,)``; where it is false the hyperplane misses the cone or is too far for a unique nearest point.
    distance: ``(m,)`` signed geodesic distance; positive where ``a^T x > b``.
    direction: ``(m, nb, 4, 4)`` unit tangent, in coordinates whitened by ``S``, along which the distance grows.
    """

    exists: np.ndarray
    distance: Array
    direction: Array

    def points(self, S: Array) -> Array:
        """``(m, nb, 4, 4)`` the nearest points (C 3.4.41)."""
        root = _root(S)
        return root @ _exponential(-self.distance[:, None, None, None] * self.direction) @ root


def project(S: Array, planes: Hyperplanes) -> Projections:
    """Nearest points of hyperplanes, unique within ``lambda_max(S_j^-1 S_j') < e`` (C Prop. 3.2).

    With eigenvalues s of ``S^1/2 X S^1/2`` and Lambert's W the nearest point is where
    ``sum s exp(-W(lambda s)) = b``, a decreasing function of lambda.
    """
    root = _root(S)
    values, vectors = np.linalg.eigh(root @ planes.X @ root)
    flat = values.reshape(len(values), -1)
    scale = np.maximum(np.abs(flat).max(axis=1), 1e-300)  # per row, so that lambda is of the order of one
    sigma, target = flat / scale[:, None], planes.b / scale
    highest, lowest = sigma.max(axis=1), sigma.min(axis=1)
    low = np.where(highest > 0, _LEAST / np.where(highest > 0, highest, 1.0), -np.inf)
    high = np.where(lowest < 0, _LEAST / np.where(lowest < 0, lowest, -1.0), np.inf)
    low, exists_low = _bracket(sigma, target, low, -1.0)
    high, exists_high = _bracket(sigma, target, high, 1.0)
    exists = exists_low & exists_high
    multiplier = _root_of(sigma, target, low, high)
    pull = _slope(multiplier[:, None] * sigma) * sigma  # W(lambda s) / lambda, also at lambda = 0
    length = np.linalg.norm(pull, axis=1)
    unit = (pull / np.maximum(length, 1e-300)[:, None]).reshape(values.shape)
    direction = (vectors * unit[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    # unit tangents of the metric 1/2 tr(U V) have Frobenius norm sqrt(2)
    return Projections(exists, multiplier * length / np.sqrt(2), np.sqrt(2) * direction)


def karcher_mean(points: Array, weights: Array, tolerance: float = 1e-12) -> Array:
    """Point ``(nb, 4, 4)`` of the least weighted sum of squared geodesic distances to ``(m, nb, 4, 4)`` (C 3.4.42).

    Raises
    ------
    IdentificationError: the iteration does not settle.
    """
    shares = weights / weights.sum()
    mean = np.einsum("m,mbij->bij", shares, points)
    length, before = 1.0, np.inf
    for _ in range(_MEAN_STEPS):
        root = _root(mean)
        inverse = np.linalg.inv(root)
        tangent = np.einsum("m,mbij->bij", shares, _logarithm(inverse @ points @ inverse))
        size = float(np.linalg.norm(tangent))
        if size <= tolerance:
            return mean
        length = length if size < before else 0.5 * length  # points far apart want shorter steps
        before = size
        mean = root @ _exponential(length * tangent) @ root
    raise IdentificationError("geodesic mean: does not settle; the points are too far apart")


@dataclass(frozen=True)
class GeodesicFit:
    """Minimum of the geodesic objective.

    Attributes
    ----------
    bodies: ``(nb, 10)`` in normalised coordinates.
    used: ``(m,)`` equations that were not discarded.
    objective, gap: value, and its distance to that of the minimum by the last quadratic model.
    hessian: ``(10 nb, 10 nb)`` Gauss-Newton, by the parameters.
    """

    bodies: Array
    used: np.ndarray
    objective: float
    gap: float
    hessian: Array
    iterations: int
    seconds: float


def cyclic_step(S: Array, planes: Hyperplanes, weight: float) -> Array:
    """One cycle of projections and Karcher mean (C 3.4.2); it never increases the objective.

    The mean moves by a small share of the way, so that many thousands of cycles may be needed.
    :func:`geodesic_least_squares` comes to the same point in a dozen steps.
    """
    points = np.concatenate([project(S, planes).points(S), np.tile(np.eye(4), (1, len(S), 1, 1))])
    return karcher_mean(points, np.append(planes.weights, 2 * weight))


def geodesic_least_squares(A: Array, b: Array, weight: float, start: Array, tolerance: float = 1e-10) -> GeodesicFit:
    """Minimise ``1/2 sum gamma_i d(S, H_i)^2 + weight d(S, prior)^2`` (C 3.4.37).

    Gauss-Newton steps along geodesics: to first order the distance to a hyperplane changes by its unit normal.

    Parameters
    ----------
    A, b: ``(m, 10 nb)``, ``(m,)`` whitened equations in normalised coordinates. Those whose hyperplane has no nearest
        point at the start, or on the way, are discarded.
    start: ``(nb, 10)`` physically consistent bodies.

    Raises
    ------
    IdentificationError: no equation is left, or no minimum is reached.
    """
    began = time.perf_counter()
    S = pseudo_inertia(start)
    planes = Hyperplanes.of(A, b)
    used = planes.weights > _NOTHING * planes.weights.max(initial=0.0)
    used[used] = project(S, planes.keep(used)).exists
    if not used.any():
        raise IdentificationError("geodesic least squares: no equation can be met near the start; check the units")
    state = _State(S, planes.keep(used), weight)
    for iteration in range(1, _STEPS + 1):
        step, gap = state.newton()
        if gap <= tolerance * (1 + state.value):
            bodies = from_pseudo_inertia(state.S)
            seconds = time.perf_counter() - began
            return GeodesicFit(bodies, used, state.value, gap, state.by_parameters(), iteration, seconds)
        state, kept = state.searched(step, gap)
        used[used] = kept
    raise IdentificationError(
        f"geodesic least squares: no minimum after {_STEPS} steps (gap {gap:.1e}); use the entropic regularizer"
    )


class _State:
    """One point, its objective, and the quadratic model there in the tangent space whitened by S."""

    def __init__(self, S: Array, planes: Hyperplanes, weight: float) -> None:
        self.S, self.planes, self.weight = S, planes, weight
        projections = project(S, planes)
        self.home = -_logarithm(S)  # tangent that leads to the prior
        self.exists, self.value = projections.exists, np.inf
        if not self.exists.all():
            return
        self.distance = projections.distance
        self.value = 0.5 * float(planes.weights @ self.distance**2) + weight * 0.5 * float(np.sum(self.home**2))
        rows = 0.5 * np.einsum("mbij,kij->mbk", projections.direction, _ORTHONORMAL).reshape(len(self.distance), -1)
        roots = np.sqrt(planes.weights)
        self.rows, self.residual = roots[:, None] * rows, roots * self.distance

    def newton(self) -> tuple[Array, float]:
        """Step ``(nb, 4, 4)`` in the tangent space, and the decrease that it promises."""
        home = 0.5 * np.einsum("bij,kij->bk", self.home, _ORTHONORMAL).ravel()
        hessian = self.rows.T @ self.rows + 2 * self.weight * np.eye(len(home))
        gradient = self.rows.T @ self.residual - 2 * self.weight * home
        step = -np.linalg.solve(hessian, gradient)
        tangent = np.einsum("bk,kij->bij", step.reshape(len(self.S), BODY_PARAMETERS), _ORTHONORMAL)
        return tangent, float(-0.5 * gradient @ step)

    def searched(self, step: Array, promised: float) -> tuple["_State", np.ndarray]:
        """The first point of enough decrease, halving the step, and which hyperplanes are kept.

        A hyperplane that would bar the way, because it has no nearest point even a small part of the step from here,
        is discarded instead.
        """
        root = _root(self.S)
        every = np.ones(len(self.planes.b), dtype=bool)
        length = 1.0
        for _ in range(_HALVINGS):
            moved = root @ _exponential(length * step) @ root
            state = _State(0.5 * (moved + np.swapaxes(moved, 1, 2)), self.planes, self.weight)
            if state.value <= self.value - 1e-4 * length * promised + 1e-12 * (1 + self.value):
                return state, every
            if length <= _BARRED and not state.exists.all():
                return _State(self.S, self.planes.keep(state.exists), self.weight), state.exists
            length *= 0.5
        raise IdentificationError("geodesic least squares: no step leads down; use the entropic regularizer")

    def by_parameters(self) -> Array:
        """Hessian of the model by the parameters: ``d xi = S^-1/2 dS S^-1/2``."""
        inverse = np.linalg.inv(_root(self.S))[:, None]
        maps = 0.5 * np.einsum("bkij,lij->blk", inverse @ PSEUDO_INERTIA_BASIS @ inverse, _ORTHONORMAL)
        size = BODY_PARAMETERS * len(self.S)
        change = np.zeros((size, size))
        for index, block in enumerate(maps):
            rows = slice(BODY_PARAMETERS * index, BODY_PARAMETERS * (index + 1))
            change[rows, rows] = block
        rows = self.rows @ change
        return rows.T @ rows + 2 * self.weight * change.T @ change


def _slope(x: Array) -> Array:
    """``W(x) / x``, 1 at 0."""
    small = np.abs(x) < 1e-6
    safe = np.where(small, 1.0, x)
    return np.where(small, 1 - x + 1.5 * x**2, _lambert(safe) / np.maximum(safe, _LEAST))


def _lambert(x: Array) -> Array:
    """Lambert's W, from :data:`_LEAST` on."""
    return np.asarray(scipy.special.lambertw(np.maximum(x, _LEAST)).real)


def _sum(sigma: Array, multiplier: Array) -> Array:
    """``sum s exp(-W(lambda s))``."""
    return np.asarray((sigma * _slope(multiplier[:, None] * sigma)).sum(axis=1))


def _bracket(sigma: Array, target: Array, bound: Array, side: float) -> tuple[Array, np.ndarray]:
    """A finite bound of the root on one side, and whether the root lies within it."""
    open_end = ~np.isfinite(bound)
    end = np.where(open_end, side, bound)
    for _ in range(_DOUBLINGS):
        beyond = side * (_sum(sigma, end) - target) > 0  # still on the wrong side: go further where there is room
        if not (beyond & open_end).any():
            break
        end = np.where(beyond & open_end, 2 * end, end)
    return end, side * (_sum(sigma, end) - target) <= 0


def _root_of(sigma: Array, target: Array, low: Array, high: Array) -> Array:
    """Root of a decreasing function per row, by Newton's method kept within a shrinking bracket."""
    x, rounding = np.clip(np.zeros(len(target)), low, high), _EXACT * np.abs(sigma).sum(axis=1)
    for _ in range(_ROOT_STEPS):
        value = _sum(sigma, x) - target
        low, high = np.where(value > 0, x, low), np.where(value > 0, high, x)
        W = _lambert(x[:, None] * sigma)
        slope = -np.sum(sigma**2 * np.exp(-2 * W) / (1 + W), axis=1)
        newton = x - value / np.minimum(slope, -1e-300)
        settled = (np.abs(newton - x) <= _EXACT * np.abs(x)) | (np.abs(value) <= rounding)
        if settled.all():
            break
        middle = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        x = np.where(settled, x, middle)
    return x


def _root(S: Array) -> Array:
    return _of_eigenvalues(S, np.sqrt)


def _logarithm(S: Array) -> Array:
    return _of_eigenvalues(S, np.log)


def _exponential(S: Array) -> Array:
    return _of_eigenvalues(S, np.exp)


def _of_eigenvalues(S: Array, function: np.ufunc) -> Array:
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))
