"""MAP problem: equations and a regularization, minimised by the method that suits the regularizer."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.qr import marginal_hessian
from inertid_ros.identification.prior.constrained_convex_program import constrained
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.identification.prior.convex_program import ConvexProgram, Solution
from inertid_ros.identification.prior.coordinates import Coordinates
from inertid_ros.identification.prior.distances import PULLBACK
from inertid_ros.identification.prior.point_masses import point_masses
from inertid_ros.identification.prior.regularizers import Regularization, euclidean_metric, regularized, relative_metric
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .clarabel import solve_with_clarabel
from .geodesic_least_squares import geodesic_least_squares
from .interior_point import keeps_inside, solve
from .osqp import solve_point_masses
from .riemannian import solve_riemannian


@dataclass(frozen=True)
class MapProblem:
    """Maximum a posteriori problem: what stays the same while equations are weighted again.

    Attributes
    ----------
    coordinates : Coordinates
        Normalised ones, in which all is solved.
    prior : ndarray, shape (p,)
        Physical parameters, at which ``fixed`` ones are held.
    solver : str
        Of the convex regularizers, one of :data:`~inertid_ros.config.identification.SOLVERS`.
    """

    coordinates: Coordinates
    prior: Array
    constraints: Constraints = field(default_factory=Constraints)
    solver: str = "interior_point"

    def completed(
        self, regularization: Regularization, bodies: Array, rng: np.random.Generator | None = None
    ) -> Regularization:
        """The regularization with the metric that its regularizer needs of this robot.

        Parameters
        ----------
        bodies : ndarray, shape (nb, 10)
            Physical prior of links and rotors, less what is locked.
        rng : numpy.random.Generator, optional
            Of the positions of point masses.
        """
        if regularization.regularizer == "euclidean":
            return replace(regularization, metric=euclidean_metric(self.coordinates, bodies[:, 0]))
        if regularization.regularizer == "relative":
            layout, coordinates = self.coordinates.layout, self.coordinates
            own = self.prior - coordinates.offset
            centre: Array = np.linalg.solve(coordinates.matrix, own)[: layout.inertial_size].astype(float)
            metric = relative_metric(coordinates, layout.all_bodies(own))
            return replace(regularization, metric=metric, centre=layout.all_bodies(centre))
        if regularization.regularizer == "point_mass":
            regions = [(name, self.constraints.inside.get(name, ())) for name in self.coordinates.layout.body_names]
            points = point_masses(bodies, self.coordinates.blocks, regions, rng or np.random.default_rng(0))
            return replace(regularization, metric=points.metric, points=points)
        return regularization

    def solve(self, R: Array, z: Array, regularization: Regularization, start: Solution | None = None) -> Solution:
        """Maximum a posteriori parameters, in normalised coordinates.

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
            known = start.x if start is not None and keeps_inside(convex_program) else None
            solution = solve(convex_program, self._start(convex_program, known), warm=known is not None)
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
        """Without the pieces of bodies in unions of ellipsoids."""
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
    """Solution by another solver where the built-in one ended with an error, which stands if that one fails, too."""
    try:
        return solve_with_clarabel(convex_program)
    except (IdentificationError, ArithmeticError, ValueError):
        raise error from None
