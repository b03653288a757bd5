"""Damped Newton for ``1/2 |R x - z|^2 + sum of smooth convex terms`` on the compressed problem.

Every term is self-concordant (up to its weight) or quadratic, so the Newton decrement bounds the distance to the
optimum: the result carries that bound, and a result without it is never returned as optimal.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..errors import IdentificationError
from ..robot.parameters import Array
from .regularizers import Term

MAX_ITERATIONS = 200


@dataclass(frozen=True)
class Solution:
    """Minimiser and how good it is known to be.

    Attributes
    ----------
    x: ``(p,)``.
    hessian: ``(p, p)`` of the objective at ``x``.
    objective: value at ``x``, without the constant of the data.
    gap: bound (Newton) or solver's statement (CVXPY) of objective minus optimum.
    status: "optimal", always: anything else is raised as an error.
    """

    x: Array
    hessian: Array
    objective: float
    gap: float
    solver: str
    iterations: int
    seconds: float
    status: str = "optimal"


def minimize(R: Array, z: Array, terms: Sequence[Term], start: Array, tolerance: float = 1e-10) -> Solution:
    """Minimise from a point inside the domain of every term.

    Parameters
    ----------
    R, z: ``(k, p)`` and ``(k,)``, whitened equations.
    start: ``(p,)``.
    tolerance: on the bound of the gap, relative to one plus the objective.

    Raises
    ------
    IdentificationError: the start is outside the domain, or no optimum within the iterations.
    """
    began = time.perf_counter()
    gram, right = R.T @ R, R.T @ z
    constant = 0.5 * float(z @ z)

    def value(x: Array) -> float:
        residual = R @ x - z
        return 0.5 * float(residual @ residual) + sum(term.value(x) for term in terms)

    x, objective = start, value(start)
    if not np.isfinite(objective):
        raise IdentificationError("solver: the prior is not physically consistent; correct the URDF's inertias")
    for iteration in range(1, MAX_ITERATIONS + 1):
        gradient, hessian = gram @ x - right, gram.copy()
        for term in terms:
            derivatives = term.derivatives(x)
            gradient += derivatives.gradient
            hessian += derivatives.hessian
        step = _newton_step(hessian, gradient)
        decrement = float(-gradient @ step)  # squared Newton decrement
        if decrement <= 2 * tolerance * (1 + abs(objective)):
            return Solution(x, hessian, objective, decrement, "newton", iteration, time.perf_counter() - began)
        length, trial = 1.0, value(x + step)
        while not trial <= objective - 1e-4 * length * decrement:
            length *= 0.5
            if length < 1e-12:
                if decrement <= 1e-6 * (1 + abs(objective) + constant):  # as far as rounding lets it go
                    return Solution(x, hessian, objective, decrement, "newton", iteration, time.perf_counter() - began)
                raise IdentificationError(
                    f"solver: no descent at iteration {iteration} (gap {decrement:.2e}); the data or prior is badly"
                    " scaled: check units"
                )
            trial = value(x + length * step)
        x, objective = x + length * step, trial
    raise IdentificationError(f"solver: no optimum after {MAX_ITERATIONS} iterations; check units and the prior")


def _newton_step(hessian: Array, gradient: Array) -> Array:
    """Newton step with symmetric scaling, so that columns of very different size do not spoil the factorisation."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    scaled = hessian * scale[:, None] * scale
    jitter = 0.0
    for _ in range(8):
        try:
            factor = scipy.linalg.cho_factor(scaled + jitter * np.eye(len(scale)), check_finite=False)
            return -scale * scipy.linalg.cho_solve(factor, scale * gradient, check_finite=False)
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, 1e-14)
    raise IdentificationError("solver: the Hessian is not positive definite; check the data for absurd values")
