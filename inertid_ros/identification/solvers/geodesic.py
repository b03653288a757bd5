"""Regularizers by geodesic distance: the Riemannian regularizer, and geodesic least squares.

Coordinates are normalised, so the prior of every body is the identity. Points of the manifold of bodies are positive
definite pseudo-inertias ``(nb, 4, 4)``.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array, Mask, marginal_hessian, semidefinite_root
from inertid_ros.core.errors import IdentificationError

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
_DUAL_BODY_BASIS = np.einsum("kl,lij->kij", np.linalg.inv(2 * PULLBACK), inertial.PSEUDO_INERTIA_BASIS)
_LAMBERT_START = -0.95 * np.exp(-0.95)  # Lambert's W is -0.95 here; at -1 its slope is infinite, which costs accuracy
_MAX_ROOT_STEPS, _ROOT_TOLERANCE = 80, 1e-15
_ORTHONORMAL_BASIS = np.einsum(
    "kl,lij->kij", np.linalg.inv(np.linalg.cholesky(PULLBACK)), inertial.PSEUDO_INERTIA_BASIS
)  # of the metric 1/2 tr(U V)
_NEGLIGIBLE_ROW = 1e-24  # squared length of a row, relative to the longest, that is negligible
_MAX_GEODESIC_STEPS, _MAX_GEODESIC_HALVINGS = 100, 30
_EQUAL_SHARE = 1e-6  # of the largest eigenvalue: closer eigenvalues count as equal
_FLAT_SHARE = 1e-9  # least curvature of a Newton step, as a share of the largest
_SHORT_GEODESIC, _MAX_DISCARDED = 0.1, 0.01  # a longer step discards at most this share of hyperplanes


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
        barrier, _ = convex_program.barrier_derivatives(x)
        expected_decrease = -float((objective.gradient(x) + barrier) @ step)
        decrement = 0.5 * max(abs(expected_decrease), float(np.sum((model.R @ step) ** 2)))
        reached = objective(solution.x)
        scale = 1 + abs(value)
        # The returned Hessian belongs to the point before the last step. So steps continue beyond the tolerance, down
        # to rounding errors, while they help.
        settled = decrement <= _EXACT_DECREMENT * scale or decrement > 0.5 * before
        if decrement <= _TOLERANCE * scale and settled and np.isfinite(reached):
            return replace(solution, objective=reached, gap=solution.gap + decrement, iterations=iterations,
                seconds=seconds, solver="interior_point, successive convex models", curvature=None)
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
        self.size = inertial.BODY_PARAMETERS * self.bodies

    def __call__(self, x: Array) -> float:
        return self.convex_program.objective(x) + self.weight * Riemannian().value(self._bodies(x))

    def feasible(self, x: Array) -> bool:
        """Check whether inequalities hold; steps up to a model's minimum always keep them."""
        blocks = self.convex_program.blocks(x)
        inside = len(blocks) == 0 or np.linalg.eigvalsh(blocks).min() >= 0
        return bool(inside and (self.convex_program.inequalities(x) >= 0).all())

    def model(self, x: Array) -> ConvexProgram:
        """Convex second-order model at ``x``: exact except in directions of too little curvature.

        Curvature counts as too little below a fixed share of the curvature of the log-det divergence, which at the
        prior equals the curvature of the distance. As much of the model as possible is the log-det divergence from
        ``x``, a barrier that keeps steps well inside the cone.
        """
        bodies, inside = self._bodies(x), slice(0, self.size)
        hessian = self.convex_program.gram.copy()
        hessian[inside, inside] += scipy.linalg.block_diag(*(self.weight * Riemannian().hessian(bodies)))
        divergence = scipy.linalg.block_diag(*(self.weight * Entropic().hessian(bodies)))
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

    def gradient(self, x: Array) -> Array:
        """Gradient ``(p,)`` without the log barriers."""
        gradient = self.convex_program.gradient(x)
        gradient[: self.size] += self.weight * Riemannian().gradient(self._bodies(x)).ravel()
        return gradient

    def _bodies(self, x: Array) -> Array:
        return x[: self.size].reshape(self.bodies, inertial.BODY_PARAMETERS)


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
        rows = A.reshape(len(b), -1, inertial.BODY_PARAMETERS)
        weights = np.einsum("mbk,kl,mbl->m", rows, np.linalg.inv(PULLBACK), rows)
        return cls(np.einsum("mbk,kij->mbij", rows, _DUAL_BODY_BASIS), b, weights)

    def select(self, rows: np.ndarray) -> "Hyperplanes":
        return Hyperplanes(self.X[rows], self.b[rows], self.weights[rows])


@dataclass(frozen=True)
class Projections:
    """Nearest points of all hyperplanes to one point ``S``.

    The nearest point is ``S^1/2 exp(-V diag(w) V^T) S^1/2`` with the eigenvectors V of ``S^1/2 X S^1/2``.

    Attributes
    ----------
    exists : (m,), False if the hyperplane misses the cone or is too far for a unique nearest point
    sigma : (m, nb, 4), eigenvalues of ``S^1/2 X S^1/2``, per row up to a common factor
    vectors : (m, nb, 4, 4)
    w : (m, nb, 4), Lambert's W of a multiplier times ``sigma``
    """

    exists: np.ndarray
    sigma: Array
    vectors: Array
    w: Array

    @property
    def distance(self) -> Array:
        """``(m,)`` signed distance in the metric ``1/2 tr(U V)``."""
        length = np.sqrt(0.5 * np.sum(self.w**2, axis=(1, 2)))
        return np.asarray(length * np.sign(np.sum(self.w * self.sigma, axis=(1, 2))))

    def gradient(self, basis: Array) -> Array:
        """``(m, 10 nb)`` derivatives of half the squared distance along a basis of tangents whitened by ``S``."""
        along = np.einsum("mbik,cij,mbjk->mbkc", self.vectors, basis, self.vectors, optimize=True)
        return np.asarray(0.5 * np.einsum("mbk,mbkc->mbc", self.w, along).reshape(len(self.w), -1))

    def hessian(self, basis: Array, weights: Array) -> Array:
        """Second derivative ``(10 nb, 10 nb)`` of the weighted sum of half the squared distances."""
        bodies = self.w.shape[1]
        blocks, rows = [], []
        slope = np.exp(-self.w) / (1 + self.w)
        change = np.sum(self.sigma**2 * np.exp(-self.w) * slope, axis=(1, 2))  # of the equation, by the multiplier
        for body in range(bodies):
            sigma, w, vectors = self.sigma[:, body], self.w[:, body], self.vectors[:, body]
            along = np.einsum("mik,cij,mjl->mklc", vectors, basis, vectors, optimize=True)
            gap = sigma[:, :, None] - sigma[:, None, :]
            equal = np.abs(gap) <= _EQUAL_SHARE * np.abs(sigma).max(axis=1)[:, None, None]
            quotient = np.where(equal, (w / (1 + w))[:, :, None], 0.5 * (sigma[:, :, None] + sigma[:, None, :])
                * (w[:, :, None] - w[:, None, :]) / np.where(equal, 1.0, gap))
            flat = along.reshape(-1, len(basis))
            blocks.append(flat.T @ ((0.5 * weights[:, None, None] * quotient).reshape(-1, 1) * flat))
            rows.append(np.einsum("mk,mkkc->mc", slope[:, body] * sigma, along))
        rank_one = np.hstack(rows) * np.sqrt(0.5 * weights / np.maximum(change, 1e-300))[:, None]
        return np.asarray(scipy.linalg.block_diag(*blocks) + rank_one.T @ rank_one)

    def select(self, rows: np.ndarray) -> "Projections":
        return Projections(self.exists[rows], self.sigma[rows], self.vectors[rows], self.w[rows])


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
    multiplier, exists = _multiplier(sigma, target)
    _, w = _terms(multiplier, sigma)
    return Projections(exists, sigma.reshape(values.shape), vectors, w.reshape(values.shape))


def _terms(multiplier: Array, sigma: Array) -> tuple[Array, Array]:
    """Terms ``s exp(-W(lambda s))`` of every row, and W."""
    w = scipy.special.lambertw(np.maximum(multiplier[:, None] * sigma, _LAMBERT_START)).real
    return sigma * np.exp(-w), w


def _multiplier(sigma: Array, target: Array) -> tuple[Array, Mask]:
    """Multiplier ``(m,)`` at which the terms of each row add up to the target, and mask of rows that have one.

    The sum decreases between the ends of Lambert's W; towards an infinite end it vanishes. Newton's method starts at
    zero, within a shrinking bracket.
    """
    ends, exists = [], np.ones(len(target), dtype=bool)
    for side, extreme in ((1.0, sigma.max(axis=1)), (-1.0, sigma.min(axis=1))):
        finite = side * extreme > 0
        end = np.divide(_LAMBERT_START, extreme, out=np.zeros(len(target)), where=finite)
        at_end = np.where(finite, _terms(end, sigma)[0].sum(axis=1), -side * _ROOT_TOLERANCE)
        exists &= side * (at_end - target) >= 0
        ends.append(np.where(finite, end, -side * np.inf))
    (low, high), x, open_rows = ends, np.zeros(len(target)), np.flatnonzero(exists)
    rounding = _ROOT_TOLERANCE * np.abs(sigma).sum(axis=1)
    for _ in range(_MAX_ROOT_STEPS):
        before = x[open_rows]
        terms, w = _terms(before, sigma[open_rows])
        value = terms.sum(axis=1) - target[open_rows]
        low[open_rows] = below = np.where(value > 0, before, low[open_rows])
        high[open_rows] = above = np.where(value > 0, high[open_rows], before)
        newton = before - value / np.minimum(-np.sum(terms**2 / (1 + w), axis=1), -1e-300)
        settled = (np.abs(newton - before) <= _ROOT_TOLERANCE * np.abs(before)) | (np.abs(value) <= rounding[open_rows])
        after = np.where((newton > below) & (newton < above), newton, 0.5 * (below + above))
        x[open_rows] = np.where(settled, before, after)
        open_rows = open_rows[~settled]
        if not len(open_rows):
            break
    return x, exists


def matrix_function(S: Array, function: np.ufunc) -> Array:
    """Function, such as ``numpy.sqrt`` or ``numpy.log``, of symmetric matrices ``(..., n, n)``."""
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def geodesic_least_squares(A: Array, b: Array, weight: float, start: Array) -> Solution:
    """Minimise ``1/2 sum gamma_i d(S, H_i)^2 + weight d(S, prior)^2`` ([Lee2019]_ eq. 3.4.37).

    Ordinary least squares measures the distance of parameters from the hyperplane ``a^T x = b`` of an equation along a
    straight line. Geodesic least squares measures the distance along a geodesic in the manifold of physically
    consistent bodies ([Lee2019]_ sec. 3.4). The method takes Newton steps along geodesics.

    Parameters
    ----------
    A, b : ndarray, shape (m, 10 nb) and (m,)
        Whitened equations in normalised coordinates. Equations whose hyperplane has no nearest point, at the start or
        on the way, are discarded.
    """
    began = time.perf_counter()
    S = inertial.pseudo_inertia(start)
    planes = Hyperplanes.from_equations(A, b)
    planes = planes.select(planes.weights > _NEGLIGIBLE_ROW * planes.weights.max(initial=0.0))
    count = len(planes.b)
    state = _State(S, planes, weight)
    if not len(state.planes.b):
        raise IdentificationError("geodesic least squares: no equation can be met near the start; check the units")
    for iteration in range(1, _MAX_GEODESIC_STEPS + 1):
        step, gap = state.newton()
        if gap <= _GEODESIC_TOLERANCE * (1 + state.objective()):
            return Solution(x=inertial.from_pseudo_inertia(state.S).ravel(), hessian=state.parameter_hessian(),
                objective=state.objective(), gap=gap, iterations=iteration, seconds=time.perf_counter() - began,
                solver=f"geodesic least squares, {count - len(state.planes.b)} of {count} equations discarded")
        state = state.line_search(step, gap)
    raise IdentificationError(f"geodesic least squares: no minimum after {_MAX_GEODESIC_STEPS} steps (gap {gap:.1e});"
        " use the entropic regularizer")


class _State:
    """One point S, its objective, and the quadratic model of the objective in the tangent space whitened by S.

    Attributes
    ----------
    exists : (m,), which of the given hyperplanes have a nearest point; ``planes`` are only these
    """

    def __init__(self, S: Array, given: Hyperplanes, weight: float) -> None:
        self.S, self.weight = S, weight
        projections = project(S, given)
        self.exists, self.planes = projections.exists, given.select(projections.exists)
        self._projections = projections.select(projections.exists)
        self._squares = self.planes.weights * self._projections.distance**2
        self._log = matrix_function(S, np.log)

    def objective(self, planes: slice | np.ndarray = slice(None)) -> float:
        """Objective of some of the hyperplanes."""
        return float(0.5 * np.sum(self._squares[planes]) + 0.5 * self.weight * np.sum(self._log**2))

    def newton(self) -> tuple[Array, float]:
        """Step ``(nb, 4, 4)`` in the tangent space, within a factor of e for every body, and its expected decrease."""
        gradient = self.planes.weights @ self._projections.gradient(_ORTHONORMAL_BASIS)
        gradient += self.weight * np.einsum("bij,kij->bk", self._log, _ORTHONORMAL_BASIS).ravel()
        values, vectors = np.linalg.eigh(self.hessian)
        # The objective is not convex far from its minimum: the step then follows the absolute curvature.
        curvature = np.maximum(np.abs(values), _FLAT_SHARE * np.abs(values).max())
        step = -vectors @ (vectors.T @ gradient / curvature)
        tangent = np.einsum("bk,kij->bij", step.reshape(len(self.S), inertial.BODY_PARAMETERS), _ORTHONORMAL_BASIS)
        within = min(1.0, 1 / max(float(np.linalg.norm(tangent, 2, axis=(1, 2)).max()), 1e-300))
        return within * tangent, float(-within * (1 - 0.5 * within) * (gradient @ step))

    @cached_property
    def hessian(self) -> Array:
        """Second derivative ``(10 nb, 10 nb)`` along geodesics."""
        values, vectors = np.linalg.eigh(self.S)
        half = 0.5 * (np.log(values)[:, :, None] - np.log(values)[:, None, :])
        bending = np.where(half == 0, 1.0, half / np.tanh(np.where(half == 0, 1.0, half)))
        along = np.einsum("bik,cij,bjl->bckl", vectors, _ORTHONORMAL_BASIS, vectors, optimize=True)
        to_prior = self.weight * np.einsum("bkl,bckl,bdkl->bcd", bending, along, along)
        return self._projections.hessian(_ORTHONORMAL_BASIS, self.planes.weights) + scipy.linalg.block_diag(*to_prior)

    def line_search(self, step: Array, expected_decrease: float) -> "_State":
        """Halve the step until the objective decreases enough.

        The step discards hyperplanes that have no nearest point at its end; unless it is short, only few of them.
        """
        root = matrix_function(self.S, np.sqrt)
        length = 1.0
        for _ in range(_MAX_GEODESIC_HALVINGS):
            moved = root @ matrix_function(length * step, np.exp) @ root
            state = _State(0.5 * (moved + np.swapaxes(moved, 1, 2)), self.planes, self.weight)
            before = self.objective(state.exists)
            target = before - _SUFFICIENT_DECREASE * length * expected_decrease + 1e-12 * (1 + before)
            few = length <= _SHORT_GEODESIC or state.exists.mean() >= 1 - _MAX_DISCARDED
            if few and state.objective() <= target:
                return state
            length *= 0.5
        raise IdentificationError(
            "geodesic least squares: steps do not decrease the objective; use the entropic regularizer")

    def parameter_hessian(self) -> Array:
        """Hessian with respect to the parameters at a minimum: ``d xi = S^-1/2 dS S^-1/2``."""
        inverse = np.linalg.inv(matrix_function(self.S, np.sqrt))[:, None]
        maps = 0.5 * np.einsum("bkij,lij->blk", inverse @ inertial.PSEUDO_INERTIA_BASIS @ inverse, _ORTHONORMAL_BASIS)
        change = scipy.linalg.block_diag(*maps)
        return np.asarray(change.T @ self.hessian @ change)
