"""Comparison of regularizers at equal training residual (C 3.5.1).

The same weight means something else to every regularizer. Fair is the projection of the prior onto the set of
parameters with a bounded residual, ``min d(x, prior)^2`` subject to ``|R x - z|^2 <= c`` (C 3.5.52), which is the
regularized problem at some weight: the weight is found by a search for its root.
"""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.convex_program import Solution
from inertid_ros.identification.prior.regularizers import Belief

from .map_problem import Problem

_WIDEST = np.log(1e7)  # of the search, around the first weight
_EVALUATIONS = 60


@dataclass(frozen=True)
class Projection:
    """Nearest parameters to the prior, in a regularizer's distance, with a bounded residual.

    Attributes
    ----------
    belief: with the spread that makes the residual what it is.
    residual: ``|R x - z|^2``.
    """

    solution: Solution
    belief: Belief
    residual: float


def project_onto_residual(
    problem: Problem, equations: tuple[Array, Array], belief: Belief, bound: float, tolerance: float = 1e-6
) -> Projection:
    """Solve for the weight at which the squared residual equals a bound.

    Parameters
    ----------
    equations: whitened ``R, z`` in normalised coordinates; ``|R x - z|^2`` is bounded.
    belief: with the regularizer, and the spread at which the search begins. Each solve starts at the one before.
    tolerance: relative, on the residual.

    Raises
    ------
    IdentificationError: no parameters of the regularizer have so small a residual, or so large a one.
    """
    search = _Search(problem, equations, belief, bound)
    low = high = search.at(0.0)
    reach = np.log(10.0)
    while low.excess > tolerance:
        if low.log_weight <= -_WIDEST:
            raise IdentificationError(
                f"comparison: the least squared residual of '{belief.regularizer}' is {low.residual:.6g}, above the"
                f" bound of {bound:.6g}; raise the bound"
            )
        high, low = low, search.at(-min(reach, _WIDEST))
        reach *= 2
    while high.excess < -tolerance:
        if high.log_weight >= _WIDEST:
            raise IdentificationError(
                f"comparison: the prior's own squared residual is below the bound of {bound:.6g}; lower the bound"
            )
        low, high = high, search.at(min(reach, _WIDEST))
        reach *= 2
    best = search.root(low, high, tolerance)
    return Projection(best.solution, best.belief, best.residual)


@dataclass(frozen=True)
class _Point:
    """A solved weight; ``excess`` is the logarithm of the residual over the bound."""

    log_weight: float
    excess: float
    residual: float
    solution: Solution
    belief: Belief


class _Search:
    """Evaluations of the residual as a function of the logarithm of the weight over the first one."""

    def __init__(self, problem: Problem, equations: tuple[Array, Array], belief: Belief, bound: float) -> None:
        if not bound > 0:
            raise IdentificationError(f"comparison: bound on the squared residual is {bound:g}; give one above zero")
        self.problem, self.equations, self.belief, self.bound = problem, equations, belief, bound
        self.last: Solution | None = None

    def at(self, log_weight: float) -> _Point:
        R, z = self.equations
        belief = replace(self.belief, spread=self.belief.spread * float(np.exp(-0.5 * log_weight)))
        self.last = self.problem.solve(R, z, belief, self.last)
        residual = float(np.sum((R @ self.last.x - z) ** 2))
        return _Point(log_weight, float(np.log(residual / self.bound)), residual, self.last, belief)

    def root(self, low: _Point, high: _Point, tolerance: float) -> _Point:
        """False position with halved weights (Illinois): safe on a curve that grows all the way."""
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
            f"comparison: the residual of '{self.belief.regularizer}' jumps near {middle.residual:.6g}; loosen the"
            " tolerance"
        )
