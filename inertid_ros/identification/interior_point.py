"""Primal-dual interior point method for identification, on the compressed problem.

One method for soft and hard physical consistency: see :class:`~.program.Program` for the problem. The multipliers
``Z_b = w_b S_b^{-1}`` are iterated along with ``x`` under Nesterov-Todd scaling, so that a start far from the optimum
costs a dozen steps and not hundreds.
"""

import time

import numpy as np
import scipy.linalg

from ..errors import IdentificationError
from ..robot.parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS, Array
from .program import Program, Solution

MAX_ITERATIONS = 100
_TO_BORDER = 0.95  # share of the way to the border that a step may take
_BASIS = PSEUDO_INERTIA_BASIS.reshape(BODY_PARAMETERS, 16)


def solve(program: Program, start: Array, tolerance: float = 1e-10) -> Solution:
    """Minimise from a strictly feasible start.

    Parameters
    ----------
    start: ``(p,)`` with every ``S_b`` positive definite and every ``l_i`` positive.
    tolerance: on the gap, relative to one plus the objective.

    Raises
    ------
    IdentificationError: the start is not strictly feasible, or there is no optimum within the iterations.
    """
    began = time.perf_counter()
    state = _State.at(program, start)
    for iteration in range(1, MAX_ITERATIONS + 1):
        residual = state.dual_residual()
        factor, scale = _factor(state.hessian)
        excess = state.excess
        # predictor: how far can a step straight to the optimum go?
        predicted = state.step(_apply(factor, scale, state.right_side(residual, 0.0)), 0.0)
        length = min(1.0, _TO_BORDER * state.distance_to_border(predicted))
        centring = excess * (1 - length) ** 2
        direction = state.step(_apply(factor, scale, state.right_side(residual, centring)), centring)
        length = min(1.0, _TO_BORDER * state.distance_to_border(direction))
        state = state.moved(direction, length)
        gap, objective = state.gap(_apply(factor, scale, state.dual_residual())), program.objective(state.x)
        if gap <= tolerance * (1 + abs(objective)):
            return Solution(
                state.x, state.hessian, objective, gap, "interior point", iteration, time.perf_counter() - began
            )
    raise IdentificationError(
        f"solver: no optimum after {MAX_ITERATIONS} iterations (gap {gap:.1e}); check units, limits and the prior"
    )


class _State:
    """Primal and dual variables of one iterate, and what is derived from them once."""

    def __init__(self, program: Program, x: Array, Z: Array, u: Array) -> None:
        self.program, self.x, self.Z, self.u = program, x, Z, u
        self.S = program.matrices(x)
        self.l = program.scalars @ x + program.shift
        eigenvalues, vectors = np.linalg.eigh(self.S)
        if len(x) == 0 or (eigenvalues <= 0).any() or (self.l <= 0).any():
            raise IdentificationError("solver: the start is not physically consistent; correct the prior's inertias")
        roots = np.sqrt(eigenvalues)
        self.root = (vectors * roots[:, None, :]) @ np.swapaxes(vectors, -1, -2)
        self.inverse_root = (vectors / roots[:, None, :]) @ np.swapaxes(vectors, -1, -2)
        self.inverse = self.inverse_root @ self.inverse_root
        # Nesterov-Todd: W^-1 = S^-1/2 (S^1/2 Z S^1/2)^1/2 S^-1/2
        self.pairs, rotation = np.linalg.eigh(self.root @ Z @ self.root)
        pair_roots = np.sqrt(np.maximum(self.pairs, 0.0))
        half = (rotation * pair_roots[:, None, :]) @ np.swapaxes(rotation, -1, -2)
        self.W_inverse = self.inverse_root @ half @ self.inverse_root
        self.hessian = self._hessian()

    @classmethod
    def at(cls, program: Program, x: Array) -> "_State":
        """Start with multipliers that balance the gradient's size, never below the weights."""
        gradient = program.gram @ x - program.linear
        S = program.matrices(x)
        size = BODY_PARAMETERS * len(S)
        bodies = gradient[:size].reshape(len(S), BODY_PARAMETERS)
        level = 0.1 * np.abs(bodies).max(axis=1, initial=0.0) + 1e-3
        Z = np.maximum(program.body_weights, level)[:, None, None] * np.linalg.inv(S) if len(S) else S
        scalars = program.scalars @ x + program.shift
        pull = np.abs(program.scalars @ gradient) / np.maximum(np.sum(program.scalars**2, axis=1), 1e-300)
        u = np.maximum(program.scalar_weights / scalars, 0.1 * pull + 1e-3)
        return cls(program, x, Z, u)

    def _hessian(self) -> Array:
        program = self.program
        hessian = program.gram.copy()
        bodies = len(self.S)
        left = (self.W_inverse[:, None] @ PSEUDO_INERTIA_BASIS @ self.W_inverse[:, None]).reshape(bodies, -1, 16)
        blocks = left @ _BASIS.T
        for index in range(bodies):
            rows = slice(BODY_PARAMETERS * index, BODY_PARAMETERS * (index + 1))
            hessian[rows, rows] += blocks[index]
        return hessian + program.scalars.T @ ((self.u / self.l)[:, None] * program.scalars)

    @property
    def excess(self) -> float:
        """How far the complementarity products are above their targets, on average over the blocks."""
        above = np.concatenate(
            [
                np.abs(self.pairs - self.program.body_weights[:, None]).mean(axis=1),
                np.abs(self.u * self.l - self.program.scalar_weights),
            ]
        )
        return float(above.mean()) if len(above) else 0.0

    def dual_residual(self) -> Array:
        """Gradient of the Lagrangian, ``(p,)``."""
        program = self.program
        gradient = program.gram @ self.x - program.linear - program.scalars.T @ self.u
        gradient[: BODY_PARAMETERS * len(self.S)] -= (self.Z.reshape(-1, 16) @ _BASIS.T).ravel()
        return gradient

    def right_side(self, residual: Array, centring: float) -> Array:
        """Right-hand side of the reduced Newton equations for targets ``weight + centring``."""
        program = self.program
        dZ, du = self._shortfall(centring)
        right = -residual + program.scalars.T @ du
        right[: BODY_PARAMETERS * len(self.S)] += (dZ.reshape(-1, 16) @ _BASIS.T).ravel()
        return right

    def _shortfall(self, centring: float) -> tuple[Array, Array]:
        targets = (self.program.body_weights + centring)[:, None, None]
        return targets * self.inverse - self.Z, (self.program.scalar_weights + centring) / self.l - self.u

    def step(self, dx: Array, centring: float) -> tuple[Array, Array, Array]:
        """Primal and dual direction."""
        dS, dl = self.program.matrices(dx), self.program.scalars @ dx
        dZ, du = self._shortfall(centring)
        return dx, dZ - self.W_inverse @ dS @ self.W_inverse, du - self.u / self.l * dl

    def distance_to_border(self, direction: tuple[Array, Array, Array]) -> float:
        """Longest step that keeps S, l, Z and u not negative."""
        dx, dZ, du = direction
        dS, dl = self.program.matrices(dx), self.program.scalars @ dx
        rates = [-dl / self.l, -du / self.u]
        if len(self.S):
            rates.append(-np.linalg.eigvalsh(self.inverse_root @ dS @ self.inverse_root)[:, 0])
            lower = np.linalg.cholesky(self.Z)
            inner = np.linalg.solve(lower, dZ)
            rates.append(-np.linalg.eigvalsh(np.linalg.solve(lower, np.swapaxes(inner, -1, -2)))[:, 0])
        fastest = max((float(rate.max()) for rate in rates if rate.size), default=0.0)
        return 1 / fastest if fastest > 0 else np.inf

    def moved(self, direction: tuple[Array, Array, Array], length: float) -> "_State":
        dx, dZ, du = direction
        Z = self.Z + length * dZ
        return _State(self.program, self.x + length * dx, 0.5 * (Z + np.swapaxes(Z, -1, -2)), self.u + length * du)

    def gap(self, correction: Array) -> float:
        """Bound of objective minus optimum: KKT residual in the Hessian's norm, plus what complementarity lacks."""
        program = self.program
        bodies = np.abs(self.pairs - program.body_weights[:, None]).sum()
        scalars = np.abs(self.u * self.l - program.scalar_weights).sum()
        return float(abs(self.dual_residual() @ correction) + bodies + scalars)


def _factor(hessian: Array) -> tuple[tuple[Array, bool], Array]:
    """Cholesky factor of the symmetrically scaled Hessian."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    scaled = hessian * scale[:, None] * scale
    jitter = 0.0
    for _ in range(8):
        try:
            return scipy.linalg.cho_factor(scaled + jitter * np.eye(len(scale)), check_finite=False), scale
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, 1e-14)
    raise IdentificationError("solver: the Hessian is not positive definite; check the data for absurd values")


def _apply(factor: tuple[Array, bool], scale: Array, right: Array) -> Array:
    return scale * scipy.linalg.cho_solve(factor, scale * right, check_finite=False)
