"""Comparison of regularizers at equal training residual ([Lee2019]_ sec. 3.5.1).

A weight has another meaning for every regularizer. Comparable is the projection of the prior onto the set of
parameters with a bounded residual, ``min d(x, prior)^2`` subject to ``|R x - z|^2 <= c`` ([Lee2019]_ eq. 3.5.52), which
is the regularized problem at some weight: the weight is found by a search for its root.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.identification.prior.convex_program import Solution
from inertid_ros.identification.prior.coordinates import ENERGY_SHARE, TYPICAL_PRIOR_SPREAD, prior_coordinates
from inertid_ros.identification.prior.regularizers import Regularization
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.bodies.inertial_parameters import geodesic_distance

COMPARED = ("euclidean", "pullback", "entropic", "riemannian", "point_mass")
"""Regularizers that [Lee2019]_ compares."""

_WIDEST = np.log(1e7)  # of the search, around the first weight
_EVALUATIONS = 60


@dataclass(frozen=True)
class EqualResidualFit:
    """Parameters of one regularizer, at the residual of all.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        In SI units.
    residual : float
        ``|A x - b|^2`` over all equations, each channel by its weight.
    distance : float
        Geodesic distance of the bodies to their prior, root of the sum of squares; infinite where one cannot exist.
    projection : Projection
        With the weight that was found.
    """

    parameters: Array
    residual: float
    distance: float
    projection: "Projection"


def fits_at_equal_residual(
    equations: Equations,
    recordings: Sequence[Samples],
    bound: float,
    regularizers: Sequence[str] = COMPARED,
    constraints: Constraints | None = None,
    weights: Array | None = None,
) -> dict[str, EqualResidualFit]:
    """Fits of the same residual under several regularizers ([Lee2019]_ sec. 3.5.1, figs. 3.5 to 3.12).

    Parameters
    ----------
    bound : float
        Of ``|A x - b|^2`` over all equations.
    regularizers : sequence of str
        Names of :data:`~inertid_ros.config.identification.REGULARIZERS`.
    constraints : Constraints, optional
        Beyond physical consistency, such as ellipsoids around the bodies.
    weights : ndarray, shape (c,), optional
        Of every channel's equations; one of all.

    Raises
    ------
    IdentificationError
        No parameters under a regularizer have a residual so small, or so large.
    """
    model, information = equations.model, compress(equations, recordings)
    weights = np.ones(equations.count) if weights is None else np.asarray(weights, dtype=float)
    coordinates = prior_coordinates(model, information)
    map_problem = MapProblem(coordinates, model.prior, constraints or Constraints())
    R, z = information.whitened(weights)
    zero = np.array([channel.squared_error(np.zeros(model.layout.size)) for channel in information.channels])
    least = float(weights**2 @ zero - z @ z)  # what no parameters remove
    whole = coordinates.normalise(np.vstack([R, np.zeros(R.shape[1])]), np.append(z, np.sqrt(max(least, 0.0))))
    bodies = model.consistent_prior - model.inertial_locked
    fits = {}
    for name in regularizers:
        plain = Regularization(name, TYPICAL_PRIOR_SPREAD, drive_weight=1.0, offset_deviation=1 / ENERGY_SHARE)
        regularization = map_problem.completed(plain, bodies)
        found = project_onto_residual(map_problem, whole, regularization, bound)
        parameters = coordinates.physical(found.solution.x)
        distance = np.linalg.norm(geodesic_distance(model.layout.all_bodies(parameters), model.consistent_prior))
        fits[name] = EqualResidualFit(parameters, found.residual, float(distance), found)
    return fits


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
