"""The optimization problem of identification, and its solution: where regularizers and solvers meet."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..robot.parameters import BODY_PARAMETERS, Array, pseudo_inertia


@dataclass(frozen=True)
class Program:
    """Convex problem over normalised parameters ``x``, with data and quadratic priors as rows of ``R x = z``::

        minimise 1/2 |R x - z|^2 + c^T x - sum_b w_b log det S_b(x) - sum_i v_i log l_i(x) + constant

    ``S_b`` are the normalised pseudo-inertias of the bodies and ``l = C x + d`` scalars that must stay positive.
    A positive weight is an entropic regularizer (C 3.5.45); a zero weight leaves the hard constraint ``S_b >= 0`` or
    ``l_i >= 0`` (C 3.5.48, E 24-25).

    Attributes
    ----------
    R, z: ``(k, p)``, ``(k,)``.
    slope: ``(p,)`` c.
    body_weights: ``(nb,)`` w, not negative; bodies are the first ``10 nb`` columns.
    scalars, shift, scalar_weights: ``(m, p)``, ``(m,)``, ``(m,)``: C, d, v.
    constant: makes the regularizers zero at the prior.
    """

    R: Array
    z: Array
    slope: Array
    body_weights: Array
    scalars: Array
    shift: Array
    scalar_weights: Array
    constant: float = 0.0

    @cached_property
    def gram(self) -> Array:
        """``(p, p)`` Hessian of the quadratic part."""
        return self.R.T @ self.R

    @cached_property
    def linear(self) -> Array:
        """``(p,)`` with gradient ``gram @ x - linear`` of the quadratic and linear part."""
        return self.R.T @ self.z - self.slope

    def matrices(self, x: Array) -> Array:
        """``(nb, 4, 4)`` normalised pseudo-inertias."""
        bodies = len(self.body_weights)
        return pseudo_inertia(x[: BODY_PARAMETERS * bodies].reshape(bodies, BODY_PARAMETERS))

    def objective(self, x: Array) -> float:
        """Value at ``x``; infinite outside the domain of the soft terms."""
        residual = self.R @ x - self.z
        value = 0.5 * float(residual @ residual) + float(self.slope @ x) + self.constant
        soft = self.body_weights > 0
        if soft.any():
            try:
                factors = np.linalg.cholesky(self.matrices(x)[soft])
            except np.linalg.LinAlgError:
                return np.inf
            value -= 2 * float(self.body_weights[soft] @ np.log(np.einsum("bii->bi", factors)).sum(axis=1))
        soft = self.scalar_weights > 0
        scalars = (self.scalars @ x + self.shift)[soft]
        if (scalars <= 0).any():
            return np.inf
        return value - float(self.scalar_weights[soft] @ np.log(scalars))


@dataclass(frozen=True)
class Solution:
    """Minimiser and how good it is known to be.

    Attributes
    ----------
    x: ``(p,)``.
    hessian: ``(p, p)`` of the objective at ``x``, with the curvature that multipliers of hard constraints add.
    objective: value at ``x``.
    gap: bound of objective minus optimum: squared norm of the KKT residual plus duality gap of hard constraints.
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
