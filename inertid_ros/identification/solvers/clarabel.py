"""The convex program through CVXPY with Clarabel: the reference for the built-in solver.

CVXPY is imported when it is chosen; identification by the default solver does not need it.
"""

import importlib
import time
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.convex_program import ConvexProgram, Solution
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS

_CLARABEL_GAP = 1e-8  # relative, its default tolerance
_ACCEPTED_GAP = 1e-7


def cvxpy_problem(convex_program: ConvexProgram) -> tuple[Any, Any]:
    """The convex program as CVXPY's ``Problem``, and its ``Variable`` ``(p,)``.

    Raises
    ------
    IdentificationError
        CVXPY or Clarabel is not installed.
    """
    cp = _cvxpy()
    x = cp.Variable(convex_program.R.shape[1])
    objective = (
        0.5 * cp.sum_squares(convex_program.R @ x - convex_program.z)
        + convex_program.linear @ x
        + convex_program.constant
    )
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
    """Solve by CVXPY and Clarabel.

    Raises
    ------
    IdentificationError
        CVXPY or Clarabel is not installed, or the solver found no optimum.
    """
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
    if problem.status == cp.OPTIMAL_INACCURATE:  # not to be relied on; the KKT residual of a smooth convex program is
        gap = _squared_residual(convex_program, solution, hessian)
        if problem.constraints or not gap <= _ACCEPTED_GAP * (1 + abs(objective)):
            raise IdentificationError("Clarabel missed its accuracy; use the built-in solver")
    return Solution(
        x=solution,
        hessian=hessian,
        objective=objective,
        gap=gap,
        solver="clarabel",
        iterations=int(problem.solver_stats.num_iters or 0),
        seconds=time.perf_counter() - began,
    )


def _squared_residual(convex_program: ConvexProgram, x: np.ndarray, hessian: np.ndarray) -> float:
    """Squared Newton decrement of a convex program without hard constraints."""
    gradient = convex_program.gradient(x)
    inverses = np.linalg.inv(convex_program.matrices(x))
    pull = convex_program.body_weights[:, None] * np.einsum("kij,bij->bk", PSEUDO_INERTIA_BASIS, inverses)
    gradient[: pull.size] -= pull.ravel()
    gradient[convex_program.positive] -= convex_program.positive_weights / x[convex_program.positive]
    return float(gradient @ np.linalg.lstsq(hessian, gradient)[0])


def _soft_hessian(convex_program: ConvexProgram, x: np.ndarray) -> np.ndarray:
    """Hessian of the objective; hard constraints add nothing."""
    hessian = convex_program.gram.copy()
    for body, (weight, S) in enumerate(zip(convex_program.body_weights, convex_program.matrices(x), strict=True)):
        if weight > 0:
            products = np.linalg.solve(S, PSEUDO_INERTIA_BASIS)
            rows = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
            hessian[rows, rows] += weight * np.einsum("kij,lji->kl", products, products)
    soft = convex_program.positive_weights > 0
    columns = convex_program.positive[soft]
    hessian[columns, columns] += convex_program.positive_weights[soft] / x[columns] ** 2
    return hessian


def _cvxpy() -> ModuleType:
    try:
        cp = importlib.import_module("cvxpy")
    except ImportError:
        raise IdentificationError("solver 'clarabel' needs CVXPY, which is not installed; pip install cvxpy") from None
    if "CLARABEL" not in cp.installed_solvers():
        raise IdentificationError("solver 'clarabel' is not installed; pip install clarabel")
    return cp
