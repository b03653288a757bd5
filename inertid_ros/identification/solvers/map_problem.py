"""MAP problem: equations and a regularization, minimised by the method that suits the regularizer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, geodesic_distance
from inertid_ros.core.qr import marginal_hessian
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.prior.constraints import Constraints, constrained
from inertid_ros.identification.prior.convex_program import ConvexProgram, Solution
from inertid_ros.identification.prior.coordinates import (
    ENERGY_SHARE,
    PULLBACK,
    TYPICAL_PRIOR_SPREAD,
    Coordinates,
    prior_coordinates,
)
from inertid_ros.identification.prior.regularizers import (
    Regularization,
    euclidean_metric,
    point_masses,
    regularized,
    relative_metric,
)
from inertid_ros.regressors.equations import Equations

from .geodesic import geodesic_least_squares, solve_riemannian
from .interior_point import keeps_inside, solve
from .third_party import solve_point_masses, solve_with_clarabel

COMPARED_REGULARIZERS = ("euclidean", "pullback", "entropic", "riemannian", "point_mass")  # as [Lee2019]_ does
_MAX_LOG_WEIGHT = np.log(1e7)  # of the search, around the first weight
_MAX_EVALUATIONS = 60


@dataclass(frozen=True)
class MapProblem:
    """Maximum a posteriori problem, without the equations and weights that change between iterations.

    Attributes
    ----------
    coordinates : Coordinates
        Normalised coordinates, in which all is solved.
    prior : ndarray, shape (p,)
        Physical parameters at which ``fixed`` ones are held.
    solver : str
        Solver of the convex regularizers, one of :data:`~inertid_ros.config.identification.SOLVERS`.
    """

    coordinates: Coordinates
    prior: Array
    constraints: Constraints = field(default_factory=Constraints)
    solver: str = "interior_point"

    def completed(
        self, regularization: Regularization, bodies: Array, rng: np.random.Generator | None = None
    ) -> Regularization:
        """Add the metric that the regularizer needs of this robot.

        Parameters
        ----------
        bodies : ndarray, shape (nb, 10)
            Physical prior of links and rotors, less what is locked.
        rng : numpy.random.Generator, optional
            Draws the positions of point masses.
        """
        if regularization.regularizer == "euclidean":
            return replace(regularization, metric=euclidean_metric(self.coordinates, bodies[:, 0]))
        if regularization.regularizer == "relative":
            layout, coordinates = self.coordinates.layout, self.coordinates
            unlocked = self.prior - coordinates.offset
            centre: Array = np.linalg.solve(coordinates.matrix, unlocked)[: layout.inertial_size].astype(float)
            metric = relative_metric(coordinates, layout.all_bodies(unlocked))
            return replace(regularization, metric=metric, centre=layout.all_bodies(centre))
        if regularization.regularizer == "point_mass":
            regions = [(name, self.constraints.inside.get(name, ())) for name in self.coordinates.layout.body_names]
            points = point_masses(bodies, self.coordinates.blocks, regions, rng or np.random.default_rng(0))
            return replace(regularization, metric=points.metric, points=points)
        return regularization

    def solve(self, R: Array, z: Array, regularization: Regularization, start: Solution | None = None) -> Solution:
        """Find the maximum a posteriori parameters, in normalised coordinates.

        Parameters
        ----------
        R, z : ndarray, shape (k, p) and (k,)
            Whitened equations ``R x = z`` in normalised coordinates.
        start : Solution, optional
            Solution of a similar problem, with the same regularizer.

        Raises
        ------
        IdentificationError
            Contradicting constraints, constraints that the regularizer cannot take, or no optimum.
        """
        if regularization.regularizer == "point_mass":
            return self._point_masses(R, z, regularization)
        if regularization.regularizer == "geodesic":
            return self._geodesic(R, z, regularization, start)
        convex_program = self.convex_program(R, z, regularization)
        if regularization.regularizer == "riemannian":
            first = start or self.solve(R, z, replace(regularization, regularizer="entropic"))
            starts = self._start(convex_program, first.x), self._start(convex_program)
            return self._without_pieces(solve_riemannian(convex_program, regularization.weight, *starts))
        if self.solver == "clarabel":
            return self._without_pieces(solve_with_clarabel(convex_program))
        try:
            warm_start = start.x if start is not None and keeps_inside(convex_program) else None
            solution = solve(convex_program, self._start(convex_program, warm_start), warm=warm_start is not None)
        except ConvergenceError as error:
            solution = _by_clarabel(convex_program, error)
        if solution.curvature is not None:
            prior_rows = convex_program.R[len(R) :]
            solution = replace(solution, curvature=solution.curvature + prior_rows.T @ prior_rows)
        return self._without_pieces(solution)

    def convex_program(self, R: Array, z: Array, regularization: Regularization) -> ConvexProgram:
        """Convex program of whitened equations in normalised coordinates, with the constraints."""
        convex_program = regularized(R, z, self.coordinates.layout, regularization)
        return constrained(convex_program, self.constraints, self.coordinates, self.prior)

    def _start(self, convex_program: ConvexProgram, x: Array | None = None) -> Array:
        layout = self.coordinates.layout
        start = np.zeros(convex_program.R.shape[1])  # pieces of unions begin at zero
        start[: layout.size] = self.coordinates.prior if x is None else x
        if x is None:
            start[layout.non_negative] = 1.0
        return start

    def _without_pieces(self, solution: Solution) -> Solution:
        """Drop the pieces of bodies in unions of ellipsoids."""
        size = self.coordinates.layout.size
        if len(solution.x) == size:
            return solution
        curvature = None if solution.curvature is None else marginal_hessian(solution.curvature, size)
        hessian = marginal_hessian(solution.hessian, size)
        return replace(solution, x=solution.x[:size], hessian=hessian, curvature=curvature)

    def _point_masses(self, R: Array, z: Array, regularization: Regularization) -> Solution:
        if regularization.points is None:
            raise IdentificationError("regularizer 'point_mass': the regularization holds no points; complete it first")
        if self.constraints.com_inside:
            raise IdentificationError(
                "regularizer 'point_mass': centres of mass cannot be bounded apart; bound the links or choose another"
            )
        points_lie_inside = replace(self.constraints, inside={})
        convex_program = replace(self, constraints=points_lie_inside).convex_program(
            R, z, replace(regularization, regularizer="riemannian")
        )
        return solve_point_masses(convex_program, regularization.points, regularization.weight)

    def _geodesic(self, R: Array, z: Array, regularization: Regularization, start: Solution | None) -> Solution:
        """Drives as the entropic regularizer finds them, then bodies by geodesic least squares.

        The equations are rotated until their hyperplanes are orthogonal in the pullback metric; equations that then
        hardly depend on any body are far from all of them and drop out.
        """
        if self.constraints != Constraints():
            raise IdentificationError("regularizer 'geodesic' takes no constraints; choose another, or drop them")
        layout = self.coordinates.layout
        size, bodies = layout.inertial_size, len(layout.body_names)
        entropic = self.solve(R, z, replace(regularization, regularizer="entropic"))
        A, b = R[:, :size], z - R[:, size:] @ entropic.x[size:]
        root = np.kron(np.eye(bodies), np.linalg.inv(np.linalg.cholesky(PULLBACK)).T)
        turn = np.linalg.svd(A @ root, full_matrices=False)[0]
        guess = (start or entropic).x[:size].reshape(bodies, BODY_PARAMETERS)
        fit = geodesic_least_squares(turn.T @ A, turn.T @ b, regularization.weight, guess)
        order = np.concatenate([np.arange(size, layout.size), np.arange(size)])
        drives = marginal_hessian(entropic.hessian[np.ix_(order, order)], layout.size - size)
        return Solution(
            x=np.concatenate([fit.bodies.ravel(), entropic.x[size:]]),
            hessian=block_diag(fit.hessian, drives),
            objective=fit.objective,
            gap=fit.gap,
            solver="geodesic least squares",
            iterations=fit.iterations,
            seconds=entropic.seconds + fit.seconds,
        )


def _by_clarabel(convex_program: ConvexProgram, error: ConvergenceError) -> Solution:
    """Solve with Clarabel after the built-in solver failed; the first error stands if Clarabel fails, too."""
    try:
        return solve_with_clarabel(convex_program)
    except (IdentificationError, ArithmeticError, ValueError):
        raise error from None


@dataclass(frozen=True)
class EqualResidualFit:
    """Fit under one regularizer at the residual that all share.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        Physical parameters (SI).
    residual : float
        ``|A x - b|^2`` over all equations, each channel by its weight.
    distance : float
        Geodesic distance of the bodies to their prior, root of the sum of squares; infinite if a body cannot exist.
    """

    parameters: Array
    residual: float
    distance: float


def fits_at_equal_residual(
    equations: Equations,
    recordings: Sequence[Samples],
    bound: float,
    regularizers: Sequence[str] = COMPARED_REGULARIZERS,
    constraints: Constraints | None = None,
    weights: Array | None = None,
) -> dict[str, EqualResidualFit]:
    """Fit under several regularizers at the same residual ([Lee2019]_ sec. 3.5.1, figs. 3.5 to 3.12).

    A weight has another meaning for every regularizer. Comparable is the projection of the prior onto the parameters of
    bounded residual, ``min d(x, prior)^2`` subject to ``|R x - z|^2 <= c`` ([Lee2019]_ eq. 3.5.52): the regularized
    problem at the weight that a root search finds.

    Parameters
    ----------
    bound : float
        Bound of ``|A x - b|^2`` over all equations.
    regularizers : sequence of str
        Names of :data:`~inertid_ros.config.identification.REGULARIZERS`.
    weights : ndarray, shape (c,), optional
        Weight of every channel's equations; one by default.

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
        projection = project_onto_residual(map_problem, whole, regularization, bound)
        parameters = coordinates.physical(projection.solution.x)
        distance = np.linalg.norm(geodesic_distance(model.layout.all_bodies(parameters), model.consistent_prior))
        fits[name] = EqualResidualFit(parameters, projection.residual, float(distance))
    return fits


@dataclass(frozen=True)
class Projection:
    """Parameters of bounded residual nearest to the prior in a regularizer's distance.

    Attributes
    ----------
    solution : Solution
        Parameters and Hessian at the weight that was found.
    regularization : Regularization
        Regularization with the prior spread at which the residual is reached.
    residual : float
        ``|R x - z|^2``.
    log_weight : float
        Logarithm of the weight over the one at which the search began.
    excess : float
        Logarithm of the residual over its bound.
    """

    solution: Solution
    regularization: Regularization
    residual: float
    log_weight: float
    excess: float


def project_onto_residual(
    map_problem: MapProblem,
    equations: tuple[Array, Array],
    regularization: Regularization,
    bound: float,
    tolerance: float = 1e-6,
) -> Projection:
    """Find the weight at which the squared residual equals a bound.

    Parameters
    ----------
    equations : tuple of (ndarray, ndarray)
        Whitened ``R, z`` in normalised coordinates; ``|R x - z|^2`` is bounded.
    regularization : Regularization
        Regularizer, and the prior spread at which the search begins. Each solve starts at the last solution.
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
        if low.log_weight <= -_MAX_LOG_WEIGHT:
            raise IdentificationError(
                f"comparison: the least squared residual of '{regularization.regularizer}' is {low.residual:.6g}, above"
                f" the bound of {bound:.6g}; raise the bound"
            )
        high, low = low, search.at(-min(width, _MAX_LOG_WEIGHT))
        width *= 2
    while high.excess < -tolerance:
        if high.log_weight >= _MAX_LOG_WEIGHT:
            raise IdentificationError(
                f"comparison: the prior's own squared residual is below the bound of {bound:.6g}; lower the bound"
            )
        low, high = high, search.at(min(width, _MAX_LOG_WEIGHT))
        width *= 2
    return search.root(low, high, tolerance)


class _Search:
    """Residual as a function of the logarithm of the weight over the first one."""

    def __init__(
        self, map_problem: MapProblem, equations: tuple[Array, Array], regularization: Regularization, bound: float
    ) -> None:
        if not bound > 0:
            raise IdentificationError(f"comparison: bound on the squared residual is {bound:g}; give one above zero")
        self.map_problem, self.equations = map_problem, equations
        self.regularization, self.bound = regularization, bound
        self.last: Solution | None = None

    def at(self, log_weight: float) -> Projection:
        """Solve at a weight, started at the last solution."""
        R, z = self.equations
        regularization = replace(
            self.regularization, prior_spread=self.regularization.prior_spread * float(np.exp(-0.5 * log_weight))
        )
        self.last = self.map_problem.solve(R, z, regularization, self.last)
        residual = float(np.sum((R @ self.last.x - z) ** 2))
        return Projection(self.last, regularization, residual, log_weight, float(np.log(residual / self.bound)))

    def root(self, low: Projection, high: Projection, tolerance: float) -> Projection:
        """Find the root by false position with halved weights (Illinois), safe on a monotonic curve."""
        left, right = low.excess, high.excess
        for point in (low, high):
            if abs(point.excess) <= tolerance:
                return point
        side = 0
        for _ in range(_MAX_EVALUATIONS):
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
