"""Quadratic programs by OSQP: bodies made of point masses that must not be negative ([Lee2019]_ eq. 3.5.54).

OSQP is imported when it is chosen; identification by the default regularizer does not need it.
"""

import importlib
import time
from types import ModuleType

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.prior.convex_program import ConvexProgram, Solution
from inertid_ros.identification.prior.point_masses import PointMasses

_TOLERANCE = 1e-9
_ACCEPTED_GAP = 1e-6
_ITERATIONS = 100_000


def solve_point_masses(convex_program: ConvexProgram, points: PointMasses, weight: float) -> Solution:
    """Minimise a convex program over masses of points instead of body parameters, plus ``weight`` times their distance.

    Parameters
    ----------
    convex_program : ConvexProgram
        Without any distance of the bodies; with linear constraints but no blocks. Weak log barriers of its positive
        parameters become plain bounds.

    Returns
    -------
    Solution
        Parameters of the bodies in ``x``. The Hessian is that of the parameters without the bounds on masses.

    Raises
    ------
    IdentificationError
        OSQP is not installed, the constraints contradict one another, or it reached no optimum.
    """
    if len(convex_program.blocks):
        raise IdentificationError(
            f"point masses: '{convex_program.blocks.names[0]}' is no linear constraint; drop it or use another"
            " regularizer"
        )
    began = time.perf_counter()
    inertial = len(points.matrix)
    others = np.eye(convex_program.R.shape[1] - inertial)
    expansion = block_diag(points.matrix, others)  # unknowns to parameters: masses of all points, then the drives
    solver = _osqp().OSQP()
    solver.setup(
        *_matrices(convex_program, points, weight, expansion),
        eps_abs=_TOLERANCE,
        eps_rel=_TOLERANCE,
        max_iter=_ITERATIONS,
        polishing=True,
        verbose=False,
    )
    result = solver.solve(raise_error=False)
    if "infeasible" in result.info.status:
        names = convex_program.inequalities.names + convex_program.equalities.names
        raise IdentificationError(
            f"solver: the constraints contradict one another or the points, among {', '.join(names)}; relax one"
        )
    masses = np.asarray(result.x[: expansion.shape[1]], dtype=float)
    masses[: len(points.prior)] = np.maximum(masses[: len(points.prior)], 0.0)
    x = expansion @ masses
    objective = _objective(convex_program, points, weight, x, masses)
    gap = abs(float(result.info.duality_gap)) + float(result.info.prim_res + result.info.dual_res)
    if not (result.info.status.startswith("solved") and gap <= _ACCEPTED_GAP * (1 + abs(objective))):
        raise IdentificationError(
            f"OSQP stopped with '{result.info.status}' (gap {gap:.1e}); use the entropic regularizer"
        )
    return Solution(
        x=x,
        hessian=_hessian(convex_program, points, weight),
        objective=objective,
        gap=gap,
        solver="osqp",
        iterations=int(result.info.iter),
        seconds=time.perf_counter() - began,
    )


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


def _objective(convex_program: ConvexProgram, points: PointMasses, weight: float, x: Array, masses: Array) -> float:
    residual = convex_program.R @ x - convex_program.z
    change = masses[: len(points.prior)] - points.prior
    value = 0.5 * float(residual @ residual) + float(convex_program.linear @ x) + convex_program.constant
    return value + weight * points.scale * float(change @ change)


def _hessian(convex_program: ConvexProgram, points: PointMasses, weight: float) -> Array:
    """``(p, p)`` of the parameters: of the equations, and of the prior on masses."""
    hessian = convex_program.gram.copy()
    inertial = len(points.matrix)
    hessian[:inertial, :inertial] += block_diag(*(2 * weight * points.metric))
    return hessian


def _osqp() -> ModuleType:
    try:
        return importlib.import_module("osqp")
    except ImportError:
        raise IdentificationError(
            "regularizer 'point_mass' needs OSQP, which is not installed; pip install osqp"
        ) from None
