"""Comparison of regularizers at equal training residual ([Lee2019]_ sec. 3.5.1).

A weight has another meaning for every regularizer. Comparable is the projection of the prior onto the set of
parameters with a bounded residual, ``min d(x, prior)^2`` subject to ``|R x - z|^2 <= c`` ([Lee2019]_ eq. 3.5.52), which
is the regularized problem at some weight: the weight is found by a search for its root.
"""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.convex_program import Solution
from inertid_ros.identification.prior.regularizers import Regularization
from inertid_ros.identification.solvers.map_problem import MapProblem

_WIDEST = np.log(1e7)  # of the search, around the first weight
_EVALUATIONS = 60


@dataclass(frozen=True)
class Projection:
    """Nearest parameters to the prior, in a regularizer's distance, with a bounded residual.

    Attributes
    ----------
    solution : Solution
        Of that projection.
    regularization : Regularization
        With the prior spread at which the residual is reached.
    residual : float
        ``|R x - z|^2``.
    """

    solution: Solution
    regularization: Regularization
    residual: float


def project_onto_residual(
    map_problem: MapProblem,
    equations: tuple[Array, Array],
    regularization: Regularization,
    bound: float,
    tolerance: float = 1e-6,
) -> Projection:
    """Solve for the weight at which the squared residual equals a bound.

    Parameters
    ----------
    equations : tuple of (ndarray, ndarray)
        Whitened ``R, z`` in normalised coordinates; ``|R x - z|^2`` is bounded.
    regularization : Regularization
        With the regularizer, and the prior spread at which the search begins. Each solve starts at the one before.
    tolerance : float, optional
        Relative, on the residual.

    Raises
    ------
    IdentificationError
        No parameters under the regularizer have a residual so small, or so large.
    """
    search = _Search(map_problem, equations, regularization, bound)
    low = high = search.at(0.0)
    width = np.log(10.0)
    while low.excess > tolerance:
        if low.log_weight <= -_WIDEST:
            raise IdentificationError(
                f"comparison: the least squared residual of '{regularization.regularizer}' is {low.residual:.6g}, above"
                f" the bound of {bound:.6g}; raise the bound"
            )
        high, low = low, search.at(-min(width, _WIDEST))
        width *= 2
    while high.excess < -tolerance:
        if high.log_weight >= _WIDEST:
            raise IdentificationError(
                f"comparison: the prior's own squared residual is below the bound of {bound:.6g}; lower the bound"
            )
        low, high = high, search.at(min(width, _WIDEST))
        width *= 2
    best = search.root(low, high, tolerance)
    return Projection(best.solution, best.regularization, best.residual)


@dataclass(frozen=True)
class _Point:
    """A solved weight; ``excess`` is the logarithm of the residual over the bound."""

    log_weight: float
    excess: float
    residual: float
    solution: Solution
    regularization: Regularization


class _Search:
    """Evaluations of the residual as a function of the logarithm of the weight over the first one."""

    def __init__(
        self, map_problem: MapProblem, equations: tuple[Array, Array], regularization: Regularization, bound: float
    ) -> None:
        if not bound > 0:
            raise IdentificationError(f"comparison: bound on the squared residual is {bound:g}; give one above zero")
        self.map_problem, self.equations, self.regularization, self.bound = (
            map_problem,
            equations,
            regularization,
            bound,
        )
        self.last: Solution | None = None

    def at(self, log_weight: float) -> _Point:
        """Solution at a weight, started at the last one."""
        R, z = self.equations
        regularization = replace(
            self.regularization, prior_spread=self.regularization.prior_spread * float(np.exp(-0.5 * log_weight))
        )
        self.last = self.map_problem.solve(R, z, regularization, self.last)
        residual = float(np.sum((R @ self.last.x - z) ** 2))
        return _Point(log_weight, float(np.log(residual / self.bound)), residual, self.last, regularization)

    def root(self, low: _Point, high: _Point, tolerance: float) -> _Point:
        """False position with halved weights (Illinois): safe on a monotonic curve."""
        left, right = low.excess, high.excess
        for point in (low, high):
            if abs(point.excess) <= tolerance:
                return point
        side = 0
        for _ in range(_EVALUATIONS):
            share = left / (left - right)
            middle = self.at(low.log_weight + share * (high.log_weight - low.log_weight))
            if abs(middle.excess) <= tolerance:
                return middle
            if middle.excess < 0:
                low, left = middle, middle.excess
                right = 0.5 * right if side < 0 else high.excess
                side = -1
            else:
                high, right = middle, middle.excess
                left = 0.5 * left if side > 0 else low.excess
                side = 1
        raise IdentificationError(
            f"comparison: the residual of '{self.regularization.regularizer}' jumps near {middle.residual:.6g}; loosen"
            " the tolerance"
        )
