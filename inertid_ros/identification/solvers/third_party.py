"""Solvers of other packages, imported when they are chosen: CVXPY with Clarabel, and OSQP for point masses."""

import importlib
import logging
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy
from scipy import sparse
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import (
    BODY_PARAMETERS,
    PSEUDO_INERTIA_BASIS,
    Ellipsoid,
    from_pseudo_inertia,
    pseudo_inertia,
)

from .convex_program import ConvexProgram, Solution
from .coordinates import TRACE, Entropic

_CLARABEL_GAP = 1e-8  # relative; Clarabel's default tolerance
_CLARABEL_ACCEPTED_GAP = 1e-7
_OSQP_TOLERANCE = 1e-9
_OSQP_ACCEPTED_GAP = 1e-6
_OSQP_ITERATIONS = 100_000
POINTS_PER_BODY = 100  # random points per body
_REGION_EXTENT = 1.5  # default region of a body: this multiple of the solid ellipsoid with the body's second moments
_EXACTNESS_WEIGHT = 1e4  # weight of the prior's ten parameters against an even distribution of its mass
_REALIZED_ERROR = 1e-6  # largest relative error of a prior made up of the points
_HADAMARD = 0.5 * np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
_log = logging.getLogger(__name__)


def cvxpy_problem(convex_program: ConvexProgram) -> tuple[Any, Any]:
    """State the convex program as CVXPY's ``Problem``, with its ``Variable`` ``(p,)``."""
    cp = _cvxpy()
    x = cp.Variable(convex_program.R.shape[1])
    objective = (
        0.5 * cp.sum_squares(convex_program.R @ x - convex_program.z)
        + convex_program.linear @ x
        + convex_program.constant)
    constraints = []
    for body, weight in enumerate(convex_program.body_weights):
        start = BODY_PARAMETERS * body
        matrix = sum(x[start + k] * PSEUDO_INERTIA_BASIS[k] for k in range(BODY_PARAMETERS))
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


def solve_with_clarabel(convex_program: ConvexProgram) -> Solution:
    """Solve by CVXPY and Clarabel, the reference for the built-in solver."""
    cp = _cvxpy()
    began = time.perf_counter()
    problem, x = cvxpy_problem(convex_program)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # CVXPY warns of inaccuracy; the status below decides
            problem.solve(solver=cp.CLARABEL)
    except cp.SolverError as error:
        raise IdentificationError(f"Clarabel failed ({str(error).splitlines()[0]}); use the built-in solver") from None
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or x.value is None:
        raise IdentificationError(f"Clarabel stopped with status '{problem.status}'; use the built-in solver")
    solution = np.asarray(x.value, dtype=float)
    hessian = _soft_hessian(convex_program, solution)
    objective = convex_program.objective(solution)
    gap = _CLARABEL_GAP * (1 + abs(objective))
    if problem.status == cp.OPTIMAL_INACCURATE:  # unreliable; the KKT residual of a smooth program is reliable
        gap = _squared_residual(convex_program, solution, hessian)
        if problem.constraints or not gap <= _CLARABEL_ACCEPTED_GAP * (1 + abs(objective)):
            raise IdentificationError("Clarabel missed its accuracy; use the built-in solver")
    return Solution(
        x=solution, hessian=hessian, objective=objective, gap=gap, solver="clarabel",
        iterations=int(problem.solver_stats.num_iters or 0), seconds=time.perf_counter() - began)


def _squared_residual(convex_program: ConvexProgram, x: Array, hessian: Array) -> float:
    bodies, positive = x[: BODY_PARAMETERS * len(convex_program.body_weights)], convex_program.positive
    pull = TRACE - Entropic().gradient(bodies.reshape(-1, BODY_PARAMETERS))  # tr(S^-1 E_k)
    gradient = convex_program.gradient(x)
    gradient[: bodies.size] -= (convex_program.body_weights[:, None] * pull).ravel()
    gradient[positive] -= convex_program.positive_weights / x[positive]
    return float(gradient @ np.linalg.lstsq(hessian, gradient)[0])


def _soft_hessian(convex_program: ConvexProgram, x: Array) -> Array:
    hessian = convex_program.gram.copy()
    for body in np.flatnonzero(convex_program.body_weights > 0):
        rows = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
        hessian[rows, rows] += convex_program.body_weights[body] * Entropic().hessian(x[None, rows])[0]
    soft = convex_program.positive_weights > 0
    columns = convex_program.positive[soft]
    hessian[columns, columns] += convex_program.positive_weights[soft] / x[columns] ** 2
    return hessian


def _imported(name: str, use: str, title: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise IdentificationError(f"{use} needs {title}, which is not installed; pip install {name}") from None


def _cvxpy() -> ModuleType:
    cp = _imported("cvxpy", "solver 'clarabel'", "CVXPY")
    if "CLARABEL" not in cp.installed_solvers():
        raise IdentificationError("solver 'clarabel' is not installed; pip install clarabel")
    return cp


@dataclass(frozen=True)
class PointMasses:
    """Positions and prior masses of the points of all bodies.

    Attributes
    ----------
    matrix : (10 nb, N), map from masses to parameters of the bodies, in normalised coordinates
    prior : (N,), masses [kg] that make up the prior, as even as possible
    """

    matrix: Array
    prior: Array
    positions: tuple[Array, ...]

    @property
    def scale(self) -> float:
        """Factor that makes ``|mu - mu0|^2`` agree with squared geodesic distance if all masses grow by one factor."""
        return 2 * len(self.positions) / float(self.prior @ self.prior)

    @property
    def metric(self) -> Array:
        """``(nb, 10, 10)`` metric of the least ``|mu - mu0|^2`` that yields a change of the parameters."""
        starts = np.cumsum([0, *(len(positions) for positions in self.positions)])
        blocks = [self.matrix[10 * b : 10 * b + 10, starts[b] : starts[b + 1]] for b in range(len(self.positions))]
        return self.scale * np.array([np.linalg.inv(block @ block.T) for block in blocks])


def point_masses(
        bodies: Array, normalise: Array, regions: Sequence[tuple[str, tuple[Ellipsoid, ...]]], rng: np.random.Generator,
        count: int = POINTS_PER_BODY) -> PointMasses:
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
        shapes = region or (Ellipsoid.from_body(pi, _REGION_EXTENT),)
        points = np.vstack([_uniform(shapes, rng, count), _exact(pi, shapes)])
        lifted = np.column_stack([points, np.ones(len(points))])
        made = from_pseudo_inertia(lifted[:, :, None] * lifted[:, None, :])
        columns.append(np.linalg.solve(matrix, made.T))
        masses.append(_even_masses(pi, made, matrix, name))
        positions.append(points)
    return PointMasses(block_diag(*columns), np.concatenate(masses), tuple(positions))


def _uniform(shapes: Sequence[Ellipsoid], rng: np.random.Generator, count: int) -> Array:
    """Draw points ``(count, 3)`` in proportion to volume."""
    volume = np.array([np.sqrt(np.linalg.det(shape.shape)) for shape in shapes])
    shares = rng.multinomial(count, volume / volume.sum())
    return np.vstack([shape.uniform(rng, share) for shape, share in zip(shapes, shares, strict=True)])


def _exact(pi: Array, shapes: Sequence[Ellipsoid]) -> Array:
    """Sets of four points in the ellipsoid that suits the body best; each set makes up the body exactly.

    For any ``C = L U`` with U orthogonal, ``J = C C^T``, so the columns of C are points with masses that make up the
    body. For ``U = V H``, with V the eigenvectors of ``L^T Q L`` and H a Hadamard matrix, the ellipsoid's form is a
    quarter of ``tr(J Q)`` at all points. So all points lie inside if the body is realizable in the ellipsoid
    ([Wensing2018]_ Thm. 4).
    """
    best = max(shapes, key=lambda shape: float(shape.row @ pi))
    if best.row @ pi < 0:
        return np.zeros((0, 3))
    lower = np.linalg.cholesky(pseudo_inertia(pi))
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
            " the nearest prior that fits is used instead",
            name,
            error)
    return np.asarray(pi[0] * shares)


def solve_point_masses(convex_program: ConvexProgram, points: PointMasses, weight: float) -> Solution:
    """Minimise a convex program over masses of points instead of body parameters, plus ``weight`` times their distance.

    Bodies consist of point masses that must not be negative ([Lee2019]_ eq. 3.5.54): a quadratic program for OSQP. The
    Hessian is with respect to the parameters, without the bounds on masses.

    Parameters
    ----------
    convex_program : ConvexProgram
        Program without a distance of the bodies; with linear constraints but without blocks. Weak log barriers of its
        positive parameters become plain bounds.
    """
    if len(convex_program.blocks):
        raise IdentificationError(
            f"point masses: '{convex_program.blocks.names[0]}' is not a linear constraint; drop it or use another"
            " regularizer")
    began = time.perf_counter()
    inertial = len(points.matrix)
    others = np.eye(convex_program.R.shape[1] - inertial)
    expansion = block_diag(points.matrix, others)  # unknowns to parameters: masses of all points, then the drives
    solver = _imported("osqp", "regularizer 'point_mass'", "OSQP").OSQP()
    solver.setup(
        *_matrices(convex_program, points, weight, expansion), eps_abs=_OSQP_TOLERANCE, eps_rel=_OSQP_TOLERANCE,
        max_iter=_OSQP_ITERATIONS, polishing=True, verbose=False)
    result = solver.solve(raise_error=False)
    if "infeasible" in result.info.status:
        names = convex_program.inequalities.names + convex_program.equalities.names
        raise IdentificationError(
            f"solver: the constraints contradict one another or the point masses; relax one of: {', '.join(names)}")
    unknowns, count = np.asarray(result.x[: expansion.shape[1]], dtype=float), len(points.prior)
    bounded = np.concatenate([np.arange(count), count + convex_program.positive - inertial])
    unknowns[bounded] = np.maximum(unknowns[bounded], 0.0)
    x, change = expansion @ unknowns, unknowns[:count] - points.prior
    residual = convex_program.R @ x - convex_program.z
    objective = 0.5 * float(residual @ residual) + float(convex_program.linear @ x) + convex_program.constant
    objective += weight * points.scale * float(change @ change)
    gap = abs(float(result.info.duality_gap)) + float(result.info.prim_res + result.info.dual_res)
    if not (result.info.status.startswith("solved") and gap <= _OSQP_ACCEPTED_GAP * (1 + abs(objective))):
        raise IdentificationError(
            f"OSQP stopped with '{result.info.status}' (gap {gap:.1e}); use the entropic regularizer")
    hessian = convex_program.gram.copy()
    hessian[:inertial, :inertial] += block_diag(*(2 * weight * points.metric))
    return Solution(
        x=x, hessian=hessian, objective=objective, gap=gap, solver="osqp", iterations=int(result.info.iter),
        seconds=time.perf_counter() - began)


def _matrices(convex_program: ConvexProgram, points: PointMasses, weight: float, expansion: Array) -> tuple:
    """OSQP's ``P, q, A, l, u``; unknowns are masses, drives and the residuals of the equations."""
    masses, count, rows = len(points.prior), expansion.shape[1], len(convex_program.z)
    curvature = np.concatenate([np.full(masses, 2 * weight * points.scale), np.zeros(count - masses), np.ones(rows)])
    linear = expansion.T @ convex_program.linear
    linear[:masses] -= 2 * weight * points.scale * points.prior
    lower = np.full(count, -np.inf)
    lower[:masses] = 0.0
    inertial = points.matrix.shape[0]
    lower[masses + convex_program.positive - inertial] = 0.0
    inequalities, equalities = convex_program.inequalities, convex_program.equalities
    constraint = np.vstack([convex_program.R, equalities.matrix, inequalities.matrix]) @ expansion
    slack = sparse.vstack([-sparse.eye(rows), sparse.csc_matrix((len(equalities) + len(inequalities), rows))])
    A = sparse.bmat([[sparse.csc_matrix(constraint), slack], [sparse.eye(count), None]], format="csc")
    fixed = np.concatenate([convex_program.z, -equalities.shift])
    low = np.concatenate([fixed, -inequalities.shift, lower])
    high = np.concatenate([fixed, np.full(len(inequalities) + count, np.inf)])
    return sparse.diags(curvature, format="csc"), np.concatenate([linear, np.zeros(rows)]), A, low, high
