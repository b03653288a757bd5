"""Riemannian regularizer: squared geodesic distance to the prior, around the interior point method.

The regularizer is that of [Lee2019]_ eq. 3.5.53. The distance is not convex where an eigenvalue of a normalised
pseudo-inertia exceeds e, so that a minimum is local. Each step minimises a convex model under all constraints, exact to
second order but for directions of too little curvature, and searches along the line to that minimum; near a minimum
that is Newton's method.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import marginal_hessian, semidefinite_root
from inertid_ros.identification.prior.convex_program import ConvexProgram, Solution
from inertid_ros.identification.prior.distances import TRACE, Entropic, Riemannian
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .interior_point import solve

_ITERATIONS = 300
_EXACT = 1e-14  # decrement relative to the objective that is rounding
_HALVINGS = 40
_LONGEST = 64.0
_SUFFICIENT = 1e-4  # share of the decrease by the directional derivative that a step must achieve
_LEAST = 0.05  # curvature of models, as a share of the log-det divergence's


def solve_riemannian(
    convex_program: ConvexProgram, weight: float, start: Array, fallback: Array | None = None, tolerance: float = 1e-9
) -> Solution:
    """Local minimum of a convex program plus ``weight`` times the squared geodesic distance of its bodies.

    Parameters
    ----------
    convex_program : ConvexProgram
        Without any distance of the bodies, see :func:`~inertid_ros.identification.prior.regularizers.regularized`.
    start : ndarray, shape (p,)
        Inside every cone, such as the solution with the log-det divergence.
    fallback : ndarray, shape (p,), optional
        Well inside every cone, where the solver begins if it gets nowhere from a point near a border.
    tolerance : float, optional
        On the gap to the minimum of the last convex model, relative to one plus the objective.

    Raises
    ------
    IdentificationError
        Constraints contradict one another, or no minimum is reached.
    """
    objective = _Objective(convex_program, weight)
    x, value, before, seconds, iterations = start, objective(start), np.inf, 0.0, 0
    for _ in range(_ITERATIONS):
        model = objective.model(x)
        try:
            solution = solve(model, x, tolerance)
        except IdentificationError:
            if fallback is None:
                raise
            solution = solve(model, fallback, tolerance)
        seconds, iterations = seconds + solution.seconds, iterations + solution.iterations
        step = solution.x - x
        expected_decrease = -objective.directional_derivative(x, step)
        decrement = 0.5 * max(abs(expected_decrease), float(np.sum((model.R @ step) ** 2)))
        reached = objective(solution.x)
        scale = 1 + abs(value)
        # The Hessian is that of the step before: steps go on, down to rounding errors, while they help.
        settled = decrement <= _EXACT * scale or decrement > 0.5 * before
        if decrement <= tolerance * scale and settled and np.isfinite(reached):
            return replace(
                solution,
                objective=reached,
                gap=solution.gap + decrement,
                solver="interior_point, successive convex models",
                iterations=iterations,
                seconds=seconds,
                curvature=None,
            )
        before = decrement
        x, value = _line_search(objective, x, value, step, expected_decrease)
    raise IdentificationError(
        f"riemannian regularizer: no minimum after {_ITERATIONS} steps (decrement {decrement:.1e});"
        " use the entropic regularizer"
    )


def _line_search(
    objective: "_Objective", x: Array, value: float, step: Array, expected_decrease: float
) -> tuple[Array, float]:
    """The first point of enough decrease, halving the step; or the last one that doubling it brings further down."""
    length, best = 1.0, (x, value)
    for _ in range(_HALVINGS):
        candidate = x + length * step
        reached = objective(candidate)
        if reached <= value - _SUFFICIENT * length * max(expected_decrease, 0.0) + 1e-12 * (1 + abs(value)):
            best = candidate, reached
            break
        length *= 0.5
    else:
        raise IdentificationError("riemannian regularizer: no step leads down; use the entropic regularizer")
    while length >= 1.0 and length < _LONGEST:
        length *= 2
        candidate = x + length * step
        reached = objective(candidate)
        if not (reached < best[1] and objective.feasible(candidate)):
            break
        best = candidate, reached
    return best


class _Objective:
    """The whole objective, and convex models of it."""

    def __init__(self, convex_program: ConvexProgram, weight: float) -> None:
        self.convex_program, self.weight = convex_program, weight
        self.bodies = len(convex_program.body_weights)
        self.size = BODY_PARAMETERS * self.bodies

    def __call__(self, x: Array) -> float:
        return self.convex_program.objective(x) + self.weight * Riemannian().value(self._bodies(x))

    def feasible(self, x: Array) -> bool:
        """Whether inequalities hold; steps up to a model's minimum always keep them."""
        blocks = self.convex_program.blocks(x)
        inside = len(blocks) == 0 or np.linalg.eigvalsh(blocks).min() >= 0
        return bool(inside and (self.convex_program.inequalities(x) >= 0).all())

    def gradient(self, x: Array) -> Array:
        """``(p,)`` less that of the log barriers, which the model keeps as they are."""
        gradient = self.convex_program.gradient(x)
        gradient[: self.size] += self.weight * Riemannian().gradient(self._bodies(x)).ravel()
        return gradient

    def model(self, x: Array) -> ConvexProgram:
        """Second-order model at ``x``: exact but for directions of too little curvature.

        These are found by comparison with the log-det divergence, whose curvature is the distance's own at the prior.
        As much of the model as can be is that divergence from ``x``, a barrier that keeps steps well inside the cone.
        """
        bodies, inside = self._bodies(x), slice(0, self.size)
        hessian = self.convex_program.gram.copy()
        hessian[inside, inside] += block_diag(*(self.weight * Riemannian().hessian(bodies)))
        divergence = block_diag(*(self.weight * Entropic().hessian(bodies)))
        root = np.linalg.cholesky(divergence)
        alone = np.linalg.solve(root, np.linalg.solve(root, marginal_hessian(hessian, self.size)).T)
        values, vectors = np.linalg.eigh(0.5 * (alone + alone.T))
        share = float(np.clip(values[0], _LEAST, 1.0))
        lifted = root @ vectors * np.sqrt(np.maximum(share - values, 0.0))
        hessian[inside, inside] += lifted @ lifted.T - share * divergence
        linear = self.gradient(x)
        linear[inside] += share * self.weight * (TRACE - Entropic().gradient(bodies)).ravel()  # tr(S^-1 E_k)
        rows = semidefinite_root(hessian)
        weights = np.full(self.bodies, share * self.weight)
        return replace(self.convex_program, R=rows, z=rows @ x, linear=linear, body_weights=weights)

    def directional_derivative(self, x: Array, step: Array) -> float:
        """Derivative of the objective along a step."""
        along = float(self.gradient(x) @ step)
        soft = self.convex_program.positive_weights > 0
        columns = self.convex_program.positive[soft]
        return along - float(np.sum(self.convex_program.positive_weights[soft] * step[columns] / x[columns]))

    def _bodies(self, x: Array) -> Array:
        return x[: self.size].reshape(self.bodies, BODY_PARAMETERS)
