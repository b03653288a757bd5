"""Regularizers by geodesic distance: the Riemannian regularizer, and geodesic least squares.

Coordinates are normalised, so the prior of every body is the identity. Points of the manifold of bodies are positive
definite pseudo-inertias ``(nb, 4, 4)``.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import (
    BODY_PARAMETERS,
    PSEUDO_INERTIA_BASIS,
    from_pseudo_inertia,
    pseudo_inertia,
)
from inertid_ros.core.qr import marginal_hessian, semidefinite_root

from .convex_program import ConvexProgram, Solution
from .coordinates import PULLBACK, TRACE, Entropic, Riemannian
from .interior_point import solve

_MAX_MODELS = 300
_TOLERANCE, _GEODESIC_TOLERANCE = 1e-9, 1e-10  # of the objective
_EXACT_DECREMENT = 1e-14  # relative to the objective; a smaller decrement is rounding
_MAX_LINE_HALVINGS = 40
_MAX_STEP_LENGTH = 64.0
_SUFFICIENT_DECREASE = 1e-4  # share of the decrease by the directional derivative that a step must achieve
_MIN_CURVATURE_SHARE = 0.05  # least curvature of a model over the curvature of the log-det divergence
# tr(E_k F_l) = 1 if k = l, else 0
_DUAL_BODY_BASIS = np.einsum("kl,lij->kij", np.linalg.inv(2 * PULLBACK), PSEUDO_INERTIA_BASIS)
_LAMBERT_START = -0.95 * np.exp(-0.95)  # Lambert's W is -0.95 here; at -1 its slope is infinite, which costs accuracy
_MAX_ROOT_STEPS = 80
_ROOT_TOLERANCE = 1e-15
_MAX_DOUBLINGS = 60
_ORTHONORMAL_BASIS = np.einsum(
    "kl,lij->kij", np.linalg.inv(np.linalg.cholesky(PULLBACK)), PSEUDO_INERTIA_BASIS
)  # of the metric 1/2 tr(U V)
_NEGLIGIBLE_ROW = 1e-24  # squared length of a row, relative to the longest, that is negligible
_MAX_GEODESIC_STEPS = 100
_MAX_GEODESIC_HALVINGS = 30
_SHORT_GEODESIC = 0.1


def solve_riemannian(convex_program: ConvexProgram, weight: float, start: Array, fallback: Array) -> Solution:
    """Find a local minimum of a convex program plus ``weight`` times the squared geodesic distance of its bodies.

    The regularizer is [Lee2019]_ eq. 3.5.53. The distance is not convex if an eigenvalue of a normalised pseudo-inertia
    exceeds e, so a minimum may be only local. Each step minimises a convex model under all constraints and searches
    along the line to its minimum. The model is exact to second order except in directions of too little curvature, so
    near a minimum the steps are Newton steps.

    Parameters
    ----------
    convex_program : ConvexProgram
        Program without a distance of bodies, see :func:`~inertid_ros.identification.solvers.regularizers.regularized`.
    start : (p,), inside every cone, such as the solution with the log-det divergence
    fallback : ndarray, shape (p,)
        Start well inside every cone, for models that the solver cannot minimise from a point near a border.
    """
    objective = _Objective(convex_program, weight)
    x, value, before, seconds, iterations = start, objective(start), np.inf, 0.0, 0
    for _ in range(_MAX_MODELS):
        model = objective.model(x)
        try:
            solution = solve(model, x, _TOLERANCE)
        except IdentificationError:
            solution = solve(model, fallback, _TOLERANCE)
        seconds, iterations = seconds + solution.seconds, iterations + solution.iterations
        step = solution.x - x
        expected_decrease = -objective.directional_derivative(x, step)
        decrement = 0.5 * max(abs(expected_decrease), float(np.sum((model.R @ step) ** 2)))
        reached = objective(solution.x)
        scale = 1 + abs(value)
        # The returned Hessian belongs to the point before the last step. So steps continue beyond the tolerance, down
        # to rounding errors, while they help.
        settled = decrement <= _EXACT_DECREMENT * scale or decrement > 0.5 * before
        if decrement <= _TOLERANCE * scale and settled and np.isfinite(reached):
            return replace(
                solution, objective=reached, gap=solution.gap + decrement, iterations=iterations, seconds=seconds,
                solver="interior_point, successive convex models", curvature=None)
        before = decrement
        x, value = _line_search(objective, x, value, step, expected_decrease)
    raise IdentificationError(
        f"riemannian regularizer: no minimum after {_MAX_MODELS} steps (decrement {decrement:.1e});"
        " use the entropic regularizer")


def _line_search(
        objective: "_Objective", x: Array, value: float, step: Array, expected_decrease: float) -> tuple[Array, float]:
    """Halve the step until the objective decreases enough; double a whole step as long as the objective improves."""
    length, best = 1.0, (x, value)
    for _ in range(_MAX_LINE_HALVINGS):
        candidate = x + length * step
        reached = objective(candidate)
        if reached <= value - _SUFFICIENT_DECREASE * length * max(expected_decrease, 0.0) + 1e-12 * (1 + abs(value)):
            best = candidate, reached
            break
        length *= 0.5
    else:
        raise IdentificationError(
            "riemannian regularizer: steps do not decrease the objective; use the entropic regularizer")
    while length >= 1.0 and length < _MAX_STEP_LENGTH:
        length *= 2
        candidate = x + length * step
        reached = objective(candidate)
        if not (reached < best[1] and objective.feasible(candidate)):
            break
        best = candidate, reached
    return best


class _Objective:
    """Objective of a convex program plus the squared geodesic distance, and convex models of this objective."""

    def __init__(self, convex_program: ConvexProgram, weight: float) -> None:
        self.convex_program, self.weight = convex_program, weight
        self.bodies = len(convex_program.body_weights)
        self.size = BODY_PARAMETERS * self.bodies

    def __call__(self, x: Array) -> float:
        return self.convex_program.objective(x) + self.weight * Riemannian().value(self._bodies(x))

    def feasible(self, x: Array) -> bool:
        """Check whether inequalities hold; steps up to a model's minimum always keep them."""
        blocks = self.convex_program.blocks(x)
        inside = len(blocks) == 0 or np.linalg.eigvalsh(blocks).min() >= 0
        return bool(inside and (self.convex_program.inequalities(x) >= 0).all())

    def gradient(self, x: Array) -> Array:
        gradient = self.convex_program.gradient(x)
        gradient[: self.size] += self.weight * Riemannian().gradient(self._bodies(x)).ravel()
        return gradient

    def model(self, x: Array) -> ConvexProgram:
        """Convex second-order model at ``x``: exact except in directions of too little curvature.

        Curvature counts as too little below a fixed share of the curvature of the log-det divergence, which at the
        prior equals the curvature of the distance. As much of the model as possible is the log-det divergence from
        ``x``, a barrier that keeps steps well inside the cone.
        """
        bodies, inside = self._bodies(x), slice(0, self.size)
        hessian = self.convex_program.gram.copy()
        hessian[inside, inside] += block_diag(*(self.weight * Riemannian().hessian(bodies)))
        divergence = block_diag(*(self.weight * Entropic().hessian(bodies)))
        root = np.linalg.cholesky(divergence)
        alone = np.linalg.solve(root, np.linalg.solve(root, marginal_hessian(hessian, self.size)).T)
        values, vectors = np.linalg.eigh(0.5 * (alone + alone.T))
        share = float(np.clip(values[0], _MIN_CURVATURE_SHARE, 1.0))
        lifted = root @ vectors * np.sqrt(np.maximum(share - values, 0.0))
        hessian[inside, inside] += lifted @ lifted.T - share * divergence
        linear = self.gradient(x)
        linear[inside] += share * self.weight * (TRACE - Entropic().gradient(bodies)).ravel()  # tr(S^-1 E_k)
        rows = semidefinite_root(hessian)
        weights = np.full(self.bodies, share * self.weight)
        return replace(self.convex_program, R=rows, z=rows @ x, linear=linear, body_weights=weights)

    def directional_derivative(self, x: Array, step: Array) -> float:
        """Derivative of the objective along a step, including the log barriers."""
        along = float(self.gradient(x) @ step)
        soft = self.convex_program.positive_weights > 0
        columns = self.convex_program.positive[soft]
        return along - float(np.sum(self.convex_program.positive_weights[soft] * step[columns] / x[columns]))

    def _bodies(self, x: Array) -> Array:
        return x[: self.size].reshape(self.bodies, BODY_PARAMETERS)


@dataclass(frozen=True)
class Hyperplanes:
    """Equations ``sum_j tr(S_j X_ij) = b_i`` ([Lee2019]_ eq. 3.4.38), with weights.

    Attributes
    ----------
    X : (m, nb, 4, 4), symmetric
    b, weights : (m,), weights are ``|a_i|^2 / sigma_i^2`` in the pullback metric ([Lee2019]_ Remark 3.8)
    """

    X: Array
    b: Array
    weights: Array

    @classmethod
    def from_equations(cls, A: Array, b: Array) -> "Hyperplanes":
        """Convert whitened equations ``A x = b``, ``(m, 10 nb)``, of parameters in normalised coordinates."""
        rows = A.reshape(len(b), -1, BODY_PARAMETERS)
        weights = np.einsum("mbk,kl,mbl->m", rows, np.linalg.inv(PULLBACK), rows)
        return cls(np.einsum("mbk,kij->mbij", rows, _DUAL_BODY_BASIS), b, weights)

    def select(self, rows: np.ndarray) -> "Hyperplanes":
        return Hyperplanes(self.X[rows], self.b[rows], self.weights[rows])


@dataclass(frozen=True)
class Projections:
    """Distances and directions from one point ``S`` to the nearest points of all hyperplanes.

    Attributes
    ----------
    exists : (m,), False if the hyperplane misses the cone or is too far for a unique nearest point
    direction : (m, nb, 4, 4), unit tangent, in coordinates whitened by ``S``, along which the distance grows
    """

    exists: np.ndarray
    distance: Array
    direction: Array


def project(S: Array, planes: Hyperplanes) -> Projections:
    """Nearest points of hyperplanes, unique within ``lambda_max(S_j^-1 S_j') < e`` ([Lee2019]_ Prop. 3.2).

    With eigenvalues s of ``S^1/2 X S^1/2`` and Lambert's W, the nearest point solves
    ``sum s exp(-W(lambda s)) = b``, a decreasing function of lambda.
    """
    root = matrix_function(S, np.sqrt)
    values, vectors = np.linalg.eigh(root @ planes.X @ root)
    flat = values.reshape(len(values), -1)
    scale = np.maximum(np.abs(flat).max(axis=1), 1e-300)  # per row, so that lambda is of the order of one
    sigma, target = flat / scale[:, None], planes.b / scale
    highest, lowest = sigma.max(axis=1), sigma.min(axis=1)
    low = np.where(highest > 0, _LAMBERT_START / np.where(highest > 0, highest, 1.0), -np.inf)
    high = np.where(lowest < 0, _LAMBERT_START / np.where(lowest < 0, lowest, -1.0), np.inf)
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


def _slope(x: Array) -> Array:
    """``W(x) / x``, 1 at 0."""
    small = np.abs(x) < 1e-6
    safe = np.where(small, 1.0, x)
    return np.where(small, 1 - x + 1.5 * x**2, _lambert(safe) / np.maximum(safe, _LAMBERT_START))


def _lambert(x: Array) -> Array:
    return np.asarray(scipy.special.lambertw(np.maximum(x, _LAMBERT_START)).real)


def _sum(sigma: Array, multiplier: Array) -> Array:
    return np.asarray((sigma * _slope(multiplier[:, None] * sigma)).sum(axis=1))


def _bracket(sigma: Array, target: Array, bound: Array, side: float) -> tuple[Array, np.ndarray]:
    """Finite bound of the root on one side, and whether the root lies within it."""
    open_end = ~np.isfinite(bound)
    end = np.where(open_end, side, bound)
    for _ in range(_MAX_DOUBLINGS):
        beyond = side * (_sum(sigma, end) - target) > 0  # still on the wrong side: go further if there is room
        if not (beyond & open_end).any():
            break
        end = np.where(beyond & open_end, 2 * end, end)
    return end, side * (_sum(sigma, end) - target) <= 0


def _root_of(sigma: Array, target: Array, low: Array, high: Array) -> Array:
    """Root of a decreasing function per row, by Newton's method kept within a shrinking bracket."""
    x, rounding = np.clip(np.zeros(len(target)), low, high), _ROOT_TOLERANCE * np.abs(sigma).sum(axis=1)
    for _ in range(_MAX_ROOT_STEPS):
        value = _sum(sigma, x) - target
        low, high = np.where(value > 0, x, low), np.where(value > 0, high, x)
        W = _lambert(x[:, None] * sigma)
        slope = -np.sum(sigma**2 * np.exp(-2 * W) / (1 + W), axis=1)
        newton = x - value / np.minimum(slope, -1e-300)
        settled = (np.abs(newton - x) <= _ROOT_TOLERANCE * np.abs(x)) | (np.abs(value) <= rounding)
        if settled.all():
            break
        middle = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        x = np.where(settled, x, middle)
    return x


def matrix_function(S: Array, function: np.ufunc) -> Array:
    """Function, such as ``numpy.sqrt`` or ``numpy.log``, of symmetric matrices ``(..., n, n)``."""
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def geodesic_least_squares(A: Array, b: Array, weight: float, start: Array) -> Solution:
    """Minimise ``1/2 sum gamma_i d(S, H_i)^2 + weight d(S, prior)^2`` ([Lee2019]_ eq. 3.4.37).

    Ordinary least squares measures the distance of parameters from the hyperplane ``a^T x = b`` of an equation along a
    straight line. Geodesic least squares measures the distance along a geodesic in the manifold of physically
    consistent bodies ([Lee2019]_ sec. 3.4). The method takes Gauss-Newton steps along geodesics; the derivative of the
    distance to a hyperplane is the unit normal of the hyperplane.

    Parameters
    ----------
    A, b : ndarray, shape (m, 10 nb) and (m,)
        Whitened equations in normalised coordinates. Equations whose hyperplane has no nearest point, at the start or
        on the way, are discarded.
    """
    began = time.perf_counter()
    S = pseudo_inertia(start)
    planes = Hyperplanes.from_equations(A, b)
    planes = planes.select(planes.weights > _NEGLIGIBLE_ROW * planes.weights.max(initial=0.0))
    planes = planes.select(project(S, planes).exists)
    if not len(planes.b):
        raise IdentificationError("geodesic least squares: no equation can be met near the start; check the units")
    state = _State(S, planes, weight)
    for iteration in range(1, _MAX_GEODESIC_STEPS + 1):
        step, gap = state.newton()
        if gap <= _GEODESIC_TOLERANCE * (1 + state.value):
            return Solution(
                x=from_pseudo_inertia(state.S).ravel(), hessian=state.parameter_hessian(), objective=state.value,
                gap=gap, solver="geodesic least squares", iterations=iteration, seconds=time.perf_counter() - began)
        state = state.line_search(step, gap)
    raise IdentificationError(
        f"geodesic least squares: no minimum after {_MAX_GEODESIC_STEPS} steps (gap {gap:.1e});"
        " use the entropic regularizer")


class _State:
    """One point S, its objective, and the quadratic model of the objective in the tangent space whitened by S."""

    def __init__(self, S: Array, planes: Hyperplanes, weight: float) -> None:
        self.S, self.planes, self.weight = S, planes, weight
        projections = project(S, planes)
        self.to_prior = -matrix_function(S, np.log)  # tangent that leads to the prior
        self.exists, self.value = projections.exists, np.inf
        if not self.exists.all():
            return
        self.distance = projections.distance
        self.value = 0.5 * float(planes.weights @ self.distance**2) + weight * 0.5 * float(np.sum(self.to_prior**2))
        rows = 0.5 * np.einsum("mbij,kij->mbk", projections.direction, _ORTHONORMAL_BASIS)
        rows = rows.reshape(len(self.distance), -1)
        roots = np.sqrt(planes.weights)
        self.rows, self.residual = roots[:, None] * rows, roots * self.distance

    def newton(self) -> tuple[Array, float]:
        """Step ``(nb, 4, 4)`` in the tangent space, and its expected decrease."""
        to_prior = 0.5 * np.einsum("bij,kij->bk", self.to_prior, _ORTHONORMAL_BASIS).ravel()
        hessian = self.rows.T @ self.rows + 2 * self.weight * np.eye(len(to_prior))
        gradient = self.rows.T @ self.residual - 2 * self.weight * to_prior
        step = -np.linalg.solve(hessian, gradient)
        tangent = np.einsum("bk,kij->bij", step.reshape(len(self.S), BODY_PARAMETERS), _ORTHONORMAL_BASIS)
        return tangent, float(-0.5 * gradient @ step)

    def line_search(self, step: Array, expected_decrease: float) -> "_State":
        """Halve the step until the objective decreases enough.

        A hyperplane without a nearest point even after a short step would block all steps, and is discarded instead.
        """
        root = matrix_function(self.S, np.sqrt)
        length = 1.0
        for _ in range(_MAX_GEODESIC_HALVINGS):
            moved = root @ matrix_function(length * step, np.exp) @ root
            state = _State(0.5 * (moved + np.swapaxes(moved, 1, 2)), self.planes, self.weight)
            if state.value <= self.value - 1e-4 * length * expected_decrease + 1e-12 * (1 + self.value):
                return state
            if length <= _SHORT_GEODESIC and not state.exists.all():
                return _State(self.S, self.planes.select(state.exists), self.weight)
            length *= 0.5
        raise IdentificationError(
            "geodesic least squares: steps do not decrease the objective; use the entropic regularizer")

    def parameter_hessian(self) -> Array:
        """Hessian of the model with respect to the parameters: ``d xi = S^-1/2 dS S^-1/2``."""
        inverse = np.linalg.inv(matrix_function(self.S, np.sqrt))[:, None]
        maps = 0.5 * np.einsum("bkij,lij->blk", inverse @ PSEUDO_INERTIA_BASIS @ inverse, _ORTHONORMAL_BASIS)
        change = block_diag(*maps)
        rows = self.rows @ change
        return rows.T @ rows + 2 * self.weight * change.T @ change
