"""Solvers by CVXPY, imported when they are needed: Clarabel for any convex program, OSQP for bodies of point masses."""

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy

from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError, optional_module

from .convex_program import ConvexProgram, Solution

_ACCEPTED_GAP = 1e-7  # relative, of a solver that calls its result inaccurate
POINTS_PER_BODY = 100  # random points per body
_REGION_EXTENT = 1.5  # default region of a body: this multiple of the solid ellipsoid with the body's second moments
_EXACTNESS_WEIGHT = 1e4  # weight of the prior's ten parameters against an even distribution of its mass
_REALIZED_ERROR = 1e-6  # largest relative error of a prior made up of the points
_HADAMARD = 0.5 * np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
_log = logging.getLogger(__name__)


class CvxpySolver(NamedTuple):
    """A solver that CVXPY calls by its name, its relative tolerance and options, and the remedy if it fails."""

    name: str
    gap: float
    options: Mapping[str, Any]
    otherwise: str


CLARABEL = CvxpySolver("clarabel", 1e-8, {}, "use the built-in solver")  # the default tolerance
OSQP = CvxpySolver("osqp", 1e-9, {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 100_000, "polishing": True},
    "use the entropic regularizer")


def cvxpy_problem(convex_program: ConvexProgram) -> tuple[Any, Any]:
    """State the convex program as CVXPY's ``Problem``, with its ``Variable`` ``(p,)``."""
    cp = _cvxpy()
    x = cp.Variable(convex_program.R.shape[1])
    objective = (0.5 * cp.sum_squares(convex_program.R @ x - convex_program.z) + convex_program.linear @ x
        + convex_program.constant)
    constraints = []
    for body, weight in enumerate(convex_program.body_weights):
        start = inertial.BODY_PARAMETERS * body
        matrix = sum(x[start + k] * basis for k, basis in enumerate(inertial.PSEUDO_INERTIA_BASIS))
        if weight > 0:
            objective -= weight * cp.log_det(matrix)
        else:
            constraints.append(matrix >> 0)
    soft = convex_program.positive_weights > 0
    if soft.any():
        objective -= convex_program.positive_weights[soft] @ cp.log(x[convex_program.positive[soft]])
    if (~soft).any():
        constraints.append(x[convex_program.positive[~soft]] >= 0)
    if len(convex_program.inequalities):
        constraints.append(convex_program.inequalities.matrix @ x + convex_program.inequalities.shift >= 0)
    for rows, shift in zip(convex_program.blocks.matrix, convex_program.blocks.shift, strict=True):
        constraints.append(cp.reshape(rows @ x, (4, 4), order="C") + shift >> 0)
    if len(convex_program.equalities):
        constraints.append(convex_program.equalities.matrix @ x + convex_program.equalities.shift == 0)
    return cp.Problem(cp.Minimize(objective), constraints), x


def solve_by_cvxpy(convex_program: ConvexProgram, solver: CvxpySolver = CLARABEL) -> Solution:
    """Solve by CVXPY with Clarabel, the reference for the built-in solver, or with OSQP, for quadratic programs."""
    cp = _cvxpy(solver.name)
    began = time.perf_counter()
    problem, x = cvxpy_problem(convex_program)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CVXPY warns of inaccuracy; the status below decides
            problem.solve(solver=solver.name.upper(), **solver.options)
    except cp.SolverError as error:
        raise IdentificationError(f"{solver.name} failed ({str(error).splitlines()[0]}); {solver.otherwise}") from None
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        names = [rows.names for rows in (convex_program.inequalities, convex_program.equalities, convex_program.blocks)]
        raise IdentificationError(
            f"solver: the constraints contradict one another or the bodies; relax one of: {', '.join(sum(names, ()))}")
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or x.value is None:
        raise IdentificationError(f"{solver.name} stopped with status '{problem.status}'; {solver.otherwise}")
    solution = np.asarray(x.value, dtype=float)
    barrier_gradient, barrier_hessian = convex_program.barrier_derivatives(solution)
    hessian = convex_program.gram + barrier_hessian
    objective = convex_program.objective(solution)
    gap = solver.gap * (1 + abs(objective))
    if problem.status == cp.OPTIMAL_INACCURATE:  # unreliable; the KKT residual of a smooth program is reliable
        gradient = convex_program.gradient(solution) + barrier_gradient
        gap = float(gradient @ np.linalg.lstsq(hessian, gradient)[0])
        if problem.constraints or not gap <= _ACCEPTED_GAP * (1 + abs(objective)):
            raise IdentificationError(f"{solver.name} missed its accuracy; {solver.otherwise}")
    return Solution(x=solution, hessian=hessian, objective=objective, gap=gap, solver=solver.name,
        iterations=int(problem.solver_stats.num_iters or 0), seconds=time.perf_counter() - began)


def _cvxpy(solver: str = CLARABEL.name) -> ModuleType:
    cp = optional_module("cvxpy", IdentificationError(
        "solver 'clarabel' and regularizer 'point_mass' need CVXPY, which is not installed; pip install cvxpy"))
    if solver.upper() not in cp.installed_solvers():
        raise IdentificationError(f"solver '{solver}' is not installed; pip install {solver}")
    return cp


@dataclass(frozen=True)
class PointMasses:
    """Positions and prior masses of the points of all bodies.

    Attributes
    ----------
    blocks : (10, k) per body, map from its masses to its parameters, in normalised coordinates
    prior : (N,), masses [kg] of all bodies that make up the prior, as even as possible
    """

    blocks: tuple[Array, ...]
    prior: Array
    positions: tuple[Array, ...]

    @property
    def scale(self) -> float:
        """Factor that makes ``|mu - mu0|^2`` agree with squared geodesic distance if all masses grow by one factor."""
        return 2 * len(self.blocks) / float(self.prior @ self.prior)

    @property
    def metric(self) -> Array:
        """``(nb, 10, 10)`` metric of the least ``|mu - mu0|^2`` that yields a change of the parameters."""
        return self.scale * np.array([np.linalg.inv(block @ block.T) for block in self.blocks])


def point_masses(bodies: Array, normalise: Array, regions: Sequence[tuple[str, tuple[inertial.Ellipsoid, ...]]],
        rng: np.random.Generator, count: int = POINTS_PER_BODY) -> PointMasses:
    """Draw points for bodies that consist of point masses: ``pi = R mu`` with ``mu >= 0`` ([Lee2019]_ sec. 3.5.1).

    Most points are uniform in the regions. A few further points make up the prior exactly if it is realizable in the
    region.

    Parameters
    ----------
    bodies : (nb, 10), priors, physically consistent
    normalise : (nb, 10, 10), map from normalised to physical parameters of each body
    regions : name of each body and the ellipsoids whose union holds its mass; empty for a region of the body's shape
    """
    columns, masses, positions = [], [], []
    for pi, matrix, (name, region) in zip(bodies, normalise, regions, strict=True):
        shapes = region or (inertial.Ellipsoid.from_body(pi, _REGION_EXTENT),)
        volume = np.array([np.sqrt(np.linalg.det(shape.shape)) for shape in shapes])
        shares = rng.multinomial(count, volume / volume.sum())
        uniform = [shape.uniform(rng, share) for shape, share in zip(shapes, shares, strict=True)]
        points = np.vstack([*uniform, _exact(pi, shapes)])
        lifted = np.column_stack([points, np.ones(len(points))])
        made = inertial.from_pseudo_inertia(lifted[:, :, None] * lifted[:, None, :])
        columns.append(np.linalg.solve(matrix, made.T))
        masses.append(_even_masses(pi, made, matrix, name))
        positions.append(points)
    return PointMasses(tuple(columns), np.concatenate(masses), tuple(positions))


def _exact(pi: Array, shapes: Sequence[inertial.Ellipsoid]) -> Array:
    """Sets of four points in the ellipsoid that suits the body best; each set makes up the body exactly.

    For any ``C = L U`` with U orthogonal, ``J = C C^T``, so the columns of C are points with masses that make up the
    body. For ``U = V H``, with V the eigenvectors of ``L^T Q L`` and H a Hadamard matrix, the ellipsoid's form is a
    quarter of ``tr(J Q)`` at all points. So all points lie inside if the body is realizable in the ellipsoid
    ([Wensing2018]_ Thm. 4).
    """
    best = max(shapes, key=lambda shape: float(shape.row @ pi))
    if best.row @ pi < 0:
        return np.zeros((0, 3))
    lower = np.linalg.cholesky(inertial.pseudo_inertia(pi))
    vectors = np.linalg.eigh(lower.T @ best.quadric @ lower)[1]
    points = []
    for signs in ((1, 1, 1, 1), (1, 1, 1, -1), (1, 1, -1, 1), (1, -1, 1, 1)):
        columns = lower @ (vectors * np.array(signs)) @ _HADAMARD
        kept = np.abs(columns[3]) > 1e-6 * np.sqrt(pi[0])
        points.append((columns[:3, kept] / columns[3, kept]).T)
    return np.vstack(points)


def _even_masses(pi: Array, made: Array, matrix: Array, name: str) -> Array:
    """Masses ``(k,)``, not negative and as even as possible, that make up the body."""
    units = pi[0] * np.linalg.solve(matrix, made.T)
    target = np.linalg.solve(matrix, pi)
    even = np.full(len(made), 1 / len(made))
    rows = np.vstack([_EXACTNESS_WEIGHT * units, np.eye(len(made))])
    shares, _ = scipy.optimize.nnls(rows, np.concatenate([_EXACTNESS_WEIGHT * target, even]))
    error = np.linalg.norm(units @ shares - target) / np.linalg.norm(target)
    if error > _REALIZED_ERROR:
        _log.warning(
            "point masses: the prior of '%s' does not fit into the ellipsoids given for it (relative error %.1g);"
            " the nearest prior that fits is used instead", name, error)
    return np.asarray(pi[0] * shares)


def solve_point_masses(convex_program: ConvexProgram, points: PointMasses, weight: float) -> Solution:
    """Minimise a convex program over masses of points instead of body parameters, plus ``weight`` times their distance.

    Bodies consist of point masses that must not be negative ([Lee2019]_ eq. 3.5.54): a quadratic program for OSQP, or
    for Clarabel if ellipsoids hold centres of mass. The Hessian is with respect to the parameters, without the bounds
    on masses.

    Parameters
    ----------
    convex_program : ConvexProgram
        Program without a distance of the bodies. Weak log barriers of its positive parameters become plain bounds.
    """
    size, count = inertial.BODY_PARAMETERS * len(points.blocks), len(points.prior)
    # Unknowns are the masses of all points, then the drives; the distance becomes rows of the equations.
    expansion = scipy.linalg.block_diag(*points.blocks, np.eye(convex_program.R.shape[1] - size))
    over_masses, root = convex_program.over(expansion), np.sqrt(2 * weight * points.scale)
    positive = np.concatenate([np.arange(count), convex_program.positive + count - size])
    over_masses = replace(over_masses, R=np.vstack([over_masses.R, root * np.eye(count, expansion.shape[1])]),
        z=np.concatenate([over_masses.z, root * points.prior]), body_weights=np.zeros(0), positive=positive,
        positive_weights=np.zeros(len(positive)))
    solution = solve_by_cvxpy(over_masses, CLARABEL if len(over_masses.blocks) else OSQP)
    unknowns = solution.x.copy()
    unknowns[positive] = np.maximum(unknowns[positive], 0.0)
    hessian = convex_program.gram.copy()
    hessian[:size, :size] += scipy.linalg.block_diag(*(2 * weight * points.metric))
    return replace(solution, x=expansion @ unknowns, hessian=hessian)
