"""MAP problem: equations and a regularization, minimised by the method that suits the regularizer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import attrs
import numpy as np
import scipy

from inertid_ros.core.arrays import Array, marginal_hessian
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, geodesic_distance
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import Equations

from . import regularizers as priors
from .constraints import Constraints, constrained
from .convex_program import ConvexProgram, Solution
from .coordinates import TYPICAL_PRIOR_SPREAD, Coordinates, prior_coordinates
from .geodesic import geodesic_least_squares, solve_riemannian
from .interior_point import keeps_inside, solve
from .third_party import point_masses, solve_by_cvxpy, solve_point_masses

COMPARED_REGULARIZERS = ("euclidean", "pullback", "entropic", "riemannian", "point_mass")  # as in [Lee2019]_
_MAX_LOG_WEIGHT = np.log(1e7)  # largest distance of the search from the first weight
_LOG_WEIGHT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class MapProblem:
    """Maximum a posteriori problem, without the equations and weights that change between iterations.

    Attributes
    ----------
    prior : (p,), values at which ``fixed`` parameters are held
    solver : solver of the convex regularizers, one of :data:`~inertid_ros.config.identification.SOLVERS`
    """

    coordinates: Coordinates
    prior: Array
    constraints: Constraints = field(default_factory=Constraints)
    solver: str = "interior_point"

    def completed(self, regularization: priors.Regularization, bodies: Array) -> priors.Regularization:
        """Add the rotor inertias that have a prior, and the metric that the regularizer needs for this robot.

        Parameters
        ----------
        bodies : (nb, 10), physical prior of links and rotors, without links behind locked joints
        """
        coordinates, layout = self.coordinates, self.coordinates.layout
        rotors = layout.rotor_inertias
        regularization = replace(
            regularization, rotors=tuple(rotors[(self.prior[rotors] > 0) & (coordinates.prior[rotors] > 0)]))
        if regularization.regularizer == "euclidean":
            return replace(regularization, metric=priors.euclidean_metric(coordinates, bodies[:, 0]))
        if regularization.regularizer == "relative":
            unlocked = self.prior - coordinates.offset
            centre: Array = np.linalg.solve(coordinates.matrix, unlocked)[: layout.inertial_size].astype(float)
            metric = priors.relative_metric(coordinates, layout.all_bodies(unlocked))
            return replace(regularization, metric=metric, centre=layout.all_bodies(centre))
        if regularization.regularizer == "point_mass":
            regions = [(name, self.constraints.inside.get(name, ())) for name in layout.body_names]
            points = point_masses(bodies, coordinates.blocks, regions, np.random.default_rng(0))
            return replace(regularization, metric=points.metric, points=points)
        return regularization

    def solve(
            self, R: Array, z: Array, regularization: priors.Regularization, start: Solution | None = None) -> Solution:
        """Find the maximum a posteriori parameters of whitened equations ``R x = z``, in normalised coordinates.

        Parameters
        ----------
        start : solution of a similar problem, with the same regularizer

        Raises
        ------
        IdentificationError
            Contradicting constraints, constraints that the regularizer cannot take, or no optimum.
        """
        if regularization.regularizer == "point_mass":
            assert regularization.points is not None, "completed() comes first"
            points_lie_inside = replace(self, constraints=attrs.evolve(self.constraints, inside={}))
            convex_program = points_lie_inside.convex_program(R, z, replace(regularization, regularizer="riemannian"))
            return solve_point_masses(convex_program, regularization.points, regularization.weight)
        if regularization.regularizer == "geodesic":  # needs samples, see with_geodesic_bodies
            return self.solve(R, z, replace(regularization, regularizer="entropic"), start)
        convex_program = self.convex_program(R, z, regularization)
        if regularization.regularizer == "riemannian":
            first = start or self.solve(R, z, replace(regularization, regularizer="entropic"))
            starts = self._start(convex_program, first.x), self._start(convex_program)
            return self._without_pieces(solve_riemannian(convex_program, regularization.weight, *starts))
        if self.solver == "clarabel":
            return self._without_pieces(solve_by_cvxpy(convex_program))
        warm_start = start.x if start is not None and keeps_inside(convex_program) else None
        try:
            solution = solve(convex_program, self._start(convex_program, warm_start), warm=warm_start is not None)
        except ConvergenceError as error:
            try:
                solution = solve_by_cvxpy(convex_program)
            except (IdentificationError, ArithmeticError, ValueError):
                raise error from None
        if solution.curvature is not None:
            prior_rows = convex_program.R[len(R) :]
            solution = replace(solution, curvature=solution.curvature + prior_rows.T @ prior_rows)
        return self._without_pieces(solution)

    def convex_program(self, R: Array, z: Array, regularization: priors.Regularization) -> ConvexProgram:
        convex_program = priors.regularized(R, z, self.coordinates.layout, regularization)
        return constrained(convex_program, self.constraints, self.coordinates, self.prior)

    def _start(self, convex_program: ConvexProgram, x: Array | None = None) -> Array:
        layout = self.coordinates.layout
        start = np.zeros(convex_program.R.shape[1])  # pieces of bodies begin at zero
        start[: layout.size] = self.coordinates.prior if x is None else x
        if x is None:
            start[layout.non_negative] = 1.0
        return start

    def _without_pieces(self, solution: Solution) -> Solution:
        size = self.coordinates.layout.size
        if len(solution.x) == size:
            return solution
        curvature = None if solution.curvature is None else marginal_hessian(solution.curvature, size)
        hessian = marginal_hessian(solution.hessian, size)
        return replace(solution, x=solution.x[:size], hessian=hessian, curvature=curvature)

    def with_geodesic_bodies(
            self, entropic: Solution, A: Array, b: Array, regularization: priors.Regularization) -> Solution:
        """Replace the bodies of the entropic solution by geodesic least squares; its drives stay.

        Parameters
        ----------
        A, b : whitened equations ``(m, p)`` and ``(m,)`` of single samples, in normalised coordinates
        """
        layout = self.coordinates.layout
        size = layout.inertial_size
        bodies = entropic.x[:size].reshape(-1, BODY_PARAMETERS)
        fit = geodesic_least_squares(A[:, :size], b - A[:, size:] @ entropic.x[size:], regularization.weight, bodies)
        order = np.concatenate([np.arange(size, layout.size), np.arange(size)])
        drives = marginal_hessian(entropic.hessian[np.ix_(order, order)], layout.size - size)
        hessian = scipy.linalg.block_diag(fit.hessian, drives)
        seconds = entropic.seconds + fit.seconds
        return replace(fit, x=np.concatenate([fit.x, entropic.x[size:]]), hessian=hessian, seconds=seconds)


@dataclass(frozen=True)
class EqualResidualFit:
    """Fit under one regularizer at the residual shared by all regularizers.

    Attributes
    ----------
    distance : float
        Geodesic distance of the bodies to their prior, root of the sum of squares; infinite if a body cannot exist.
    """

    parameters: Array
    residual: float
    distance: float


def fits_at_equal_residual(equations: Equations, recordings: Sequence[Samples], bound: float,
        regularizers: Sequence[str] = COMPARED_REGULARIZERS,
        constraints: Constraints | None = None) -> dict[str, EqualResidualFit]:
    """Fit under several regularizers at the same residual ([Lee2019]_ sec. 3.5.1, figs. 3.5 to 3.12).

    A weight has a different meaning for every regularizer. So the fits project the prior onto the parameters of
    bounded residual, ``min d(x, prior)^2`` subject to ``|R x - z|^2 <= c`` ([Lee2019]_ eq. 3.5.52). Each projection is
    the regularized problem at a weight that a root search finds.

    Parameters
    ----------
    bound : bound of ``|A x - b|^2`` over all equations
    """
    model, information = equations.model, compress(equations, recordings)
    coordinates = prior_coordinates(model, information)
    map_problem = MapProblem(coordinates, model.prior, constraints or Constraints())
    R, z = information.whitened(np.ones(equations.count))
    least = information.squared_errors(np.zeros(model.layout.size)).sum() - z @ z  # irreducible squared error
    whole = coordinates.normalise(np.vstack([R, np.zeros(R.shape[1])]), np.append(z, np.sqrt(max(least, 0.0))))
    bodies = model.consistent_prior - model.inertial_locked
    fits = {}
    for name in regularizers:
        plain = priors.Regularization(name, TYPICAL_PRIOR_SPREAD, drive_weight=1.0)
        regularization = map_problem.completed(plain, bodies)
        solution, _ = project_onto_residual(map_problem, whole, regularization, bound)
        parameters = coordinates.physical(solution.x)
        distance = np.linalg.norm(geodesic_distance(model.layout.all_bodies(parameters), model.consistent_prior))
        fits[name] = EqualResidualFit(parameters, _squared_residual(*whole, solution), float(distance))
    return fits


def project_onto_residual(map_problem: MapProblem, equations: tuple[Array, Array],
        regularization: priors.Regularization, bound: float) -> tuple[Solution, priors.Regularization]:
    """Parameters whose squared residual ``|R x - z|^2`` equals a bound, and the regularization that yields them.

    The search begins at the prior spread of the regularization; each solve begins at the last solution.

    Raises
    ------
    IdentificationError
        The residuals under the regularizer do not reach the bound.
    """
    if not bound > 0:
        raise IdentificationError(f"comparison: bound on the squared residual is {bound:g}; set it above zero")
    last: Solution | None = None

    def at(log_weight: float) -> tuple[Solution, priors.Regularization]:
        nonlocal last
        weighted = replace(regularization, prior_spread=regularization.prior_spread * float(np.exp(-0.5 * log_weight)))
        last = map_problem.solve(*equations, weighted, last)
        return last, weighted

    def excess(log_weight: float) -> float:
        return float(np.log(_squared_residual(*equations, at(log_weight)[0]) / bound))

    # A larger weight of the prior makes a larger residual: go to the other side of the root in growing steps.
    near, side = 0.0, -1.0 if excess(0.0) > 0 else 1.0
    far = side * np.log(10.0)
    while side * excess(far) < 0:
        if abs(far) >= _MAX_LOG_WEIGHT:
            smallest = f"smallest squared residual with '{regularization.regularizer}' is above"
            largest = "squared residual of the prior is below"
            raise IdentificationError(
                f"comparison: the {smallest if side < 0 else largest} the bound of {bound:.6g};"
                f" {'raise' if side < 0 else 'lower'} the bound")
        near, far = far, side * min(2 * abs(far), _MAX_LOG_WEIGHT)
    return at(scipy.optimize.brentq(excess, near, far, xtol=_LOG_WEIGHT_TOLERANCE))


def _squared_residual(R: Array, z: Array, solution: Solution) -> float:
    return float(np.sum((R @ solution.x - z) ** 2))
