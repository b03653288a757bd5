"""Convex program of identification, built by regularizers and constraints, and its solution."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from inertid_ros.core.arrays import Array, r_factor
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS, pseudo_inertia

_Constraints = TypeVar("_Constraints", bound="LinearConstraints")


@dataclass(frozen=True)
class LinearConstraints:
    """Rows ``matrix @ x + shift``, ``(k, p)`` and ``(k,)``, named for messages."""

    matrix: Array
    shift: Array
    names: tuple[str, ...]
    _shapes: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = (), ()  # of one row of matrix, without p, and of shift

    @classmethod
    def none(cls: type[_Constraints], size: int) -> _Constraints:
        row, shift = cls._shapes
        return cls(np.zeros((0, *row, size)), np.zeros((0, *shift)), ())

    def __len__(self) -> int:
        return len(self.shift)

    def __call__(self, x: Array) -> Array:
        return (self.matrix @ x).reshape(self.shift.shape) + self.shift

    def __add__(self: _Constraints, other: _Constraints) -> _Constraints:
        matrix, shift = (np.concatenate(pair) for pair in ((self.matrix, other.matrix), (self.shift, other.shift)))
        return replace(self, matrix=matrix, shift=shift, names=self.names + other.names)


class MatrixInequalities(LinearConstraints):
    """Positive semidefinite matrices ``reshape(matrix @ x) + shift``, ``(k, 16, p)`` and ``(k, 4, 4)``."""

    _shapes = (16,), (4, 4)


@dataclass(frozen=True)
class ConvexProgram:
    """Convex program over normalised parameters ``x``, with data and quadratic priors as rows of ``R x = z``::

        minimise    1/2 |R x - z|^2 + c^T x - sum_b w_b log det S_b(x) - sum_i v_i log x_i + constant
        subject to  inequalities(x) >= 0,  equalities(x) = 0,  blocks(x) positive semidefinite

    ``S_b`` are the normalised pseudo-inertias of the bodies and ``x_i`` parameters that must not be negative. A
    positive weight is an entropic regularizer ([Lee2019]_ eq. 3.5.45); a zero weight leaves the hard constraint ``S_b
    >= 0`` or ``x_i >= 0`` ([Lee2019]_ eq. 3.5.48, [Wensing2018]_ eq. 24-25).

    Attributes
    ----------
    linear : (p,), c of the linear term
    body_weights : (nb,), w, not negative; bodies are the first ``10 nb`` columns
    positive, positive_weights : (m,), columns i and their v, not negative
    constant : makes the regularizers zero at the prior
    """

    R: Array
    z: Array
    linear: Array
    body_weights: Array
    positive: np.ndarray
    positive_weights: Array
    inequalities: LinearConstraints
    equalities: LinearConstraints
    blocks: MatrixInequalities
    constant: float = 0.0

    @cached_property
    def gram(self) -> Array:
        return self.R.T @ self.R

    @cached_property
    def r_factor(self) -> Array:
        return r_factor(np.column_stack([self.R, self.z]))

    def over(self, expansion: Array) -> "ConvexProgram":
        """Program over unknowns ``u`` with ``x = expansion @ u``; bodies and positive columns keep their numbers."""
        constraints = {name: getattr(self, name) for name in ("inequalities", "equalities", "blocks")}
        return replace(
            self, R=self.R @ expansion, linear=expansion.T @ self.linear,
            **{name: replace(rows, matrix=rows.matrix @ expansion) for name, rows in constraints.items()})

    def gradient(self, x: Array) -> Array:
        """Gradient ``(p,)`` of the quadratic and linear part, without the rounding errors of ``gram``."""
        return self.R.T @ (self.R @ x - self.z) + self.linear

    def barrier_derivatives(self, x: Array) -> tuple[Array, Array]:
        """Gradient ``(p,)`` and Hessian ``(p, p)`` of the soft terms."""
        gradient, hessian = np.zeros(len(x)), np.zeros((len(x), len(x)))
        bodies = np.flatnonzero(self.body_weights)
        turned = np.linalg.inv(self.matrices(x)[bodies])[:, None] @ PSEUDO_INERTIA_BASIS  # S^-1 E_k (nb, 10, 4, 4)
        for body, basis in zip(bodies, turned, strict=True):
            inside, weight = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1)), self.body_weights[body]
            gradient[inside] -= weight * np.trace(basis, axis1=1, axis2=2)
            flat, transposed = (m.reshape(BODY_PARAMETERS, 16) for m in (basis, basis.swapaxes(1, 2)))
            hessian[inside, inside] += weight * flat @ transposed.T
        soft = self.positive_weights > 0
        columns, weights = self.positive[soft], self.positive_weights[soft]
        gradient[columns] -= weights / x[columns]
        hessian[columns, columns] += weights / x[columns] ** 2
        return gradient, hessian

    def matrices(self, x: Array) -> Array:
        bodies = len(self.body_weights)
        return pseudo_inertia(x[: BODY_PARAMETERS * bodies].reshape(bodies, BODY_PARAMETERS))

    def objective(self, x: Array) -> float:
        """Value at ``x``; infinite outside the domain of the soft terms, regardless of hard constraints."""
        residual = self.R @ x - self.z
        value = 0.5 * float(residual @ residual) + float(self.linear @ x) + self.constant
        soft = self.body_weights > 0
        if soft.any():
            try:
                factors = np.linalg.cholesky(self.matrices(x)[soft])
            except np.linalg.LinAlgError:
                return np.inf
            value -= 2 * float(self.body_weights[soft] @ np.log(np.einsum("bii->bi", factors)).sum(axis=1))
        soft = self.positive_weights > 0
        values = x[self.positive[soft]]
        if (values <= 0).any():
            return np.inf
        return value - float(self.positive_weights[soft] @ np.log(values))


@dataclass(frozen=True)
class Solution:
    """Minimiser, with a bound of its error.

    Attributes
    ----------
    hessian : (p, p), Hessian of the objective at ``x``, with the curvature that multipliers of hard constraints add
    gap : bound of objective minus optimum: squared norm of the KKT residual plus duality gap of hard constraints
    status : always "optimal": other outcomes raise an error
    curvature : ndarray or None, shape (p, p)
        Part of the Hessian that does not come from the data; None if the solver does not compute it. Subtracting the
        data's Hessian would lose this part if data outweigh it by many orders of magnitude.
    """

    x: Array
    hessian: Array
    objective: float
    gap: float
    solver: str
    iterations: int
    seconds: float
    status: str = "optimal"
    curvature: Array | None = None
