"""Primal-dual interior point method for convex programs of identification.

One method for soft and hard physical consistency: see
:class:`~inertid_ros.identification.prior.convex_program.ConvexProgram`. The multipliers ``Z_b = w_b S_b^{-1}`` are
iterated along with ``x`` under Nesterov-Todd scaling [Nesterov1998]_, so that a start far from the optimum costs two
dozen steps and not hundreds, and a body on the border of the cone does no harm.
"""

import time
from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.identification.prior.convex_program import ConvexProgram, Solution

from .factors import Factorise, from_rows, from_squares, keeps_prior
from .newton_system import Iterate, NewtonSystem

MAX_ITERATIONS = 100
_TO_BORDER = 0.98  # share of the way to the border that a step may take
_SHORT = 0.2
_START, _LEAST_PRODUCT = 1e-3, 1e-3  # complementarity product at the start: share of the largest slope, and least
_STUCK = 1e-7  # a shorter step leads nowhere where constraints are not met: they leave no room
_STUCK_STEPS = 10  # elsewhere as many do; the first ones may be short where data outweighs the prior by far


def solve(convex_program: ConvexProgram, start: Array, tolerance: float = 1e-8, warm: bool = False) -> Solution:
    """Minimise from a start inside every cone; linear constraints need not hold there.

    Parameters
    ----------
    start : ndarray, shape (p,)
        With every ``S_b`` positive definite and every positive parameter above zero.
    tolerance : float, optional
        On the gap, relative to one plus the objective.
    warm : bool
        The start is the optimum of a similar convex program, see :func:`keeps_inside`.

    Raises
    ------
    IdentificationError
        The start is outside, the constraints contradict one another (names one), or there is no optimum within the
        iterations.
    """
    first, second = (from_squares, from_rows) if keeps_prior(convex_program) else (from_rows, from_squares)
    try:
        return _attempt(convex_program, start, tolerance, first, warm)
    except ConvergenceError as error:
        try:
            return _attempt(convex_program, start, tolerance, second)
        except IdentificationError:
            raise error from None


def keeps_inside(convex_program: ConvexProgram) -> bool:
    """Whether the weights of all bounds keep the optimum inside, so that it may be the start of a similar one."""
    weights = np.concatenate([convex_program.body_weights, convex_program.positive_weights])
    return bool((weights > 0).all()) and not len(convex_program.blocks) and not len(convex_program.inequalities)


def _attempt(
    convex_program: ConvexProgram, start: Array, tolerance: float, factorise: Factorise, warm: bool = False
) -> Solution:
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            began = time.perf_counter()
            solution = _solved(convex_program, _start(convex_program, start, warm), tolerance, factorise)
            return replace(solution, seconds=time.perf_counter() - began)
        except np.linalg.LinAlgError:
            raise ConvergenceError("solver: numbers overflow; check units of effort and masses") from None


def _solved(convex_program: ConvexProgram, iterate: Iterate, tolerance: float, factorise: Factorise) -> Solution:
    # Spares evaluating the objective while the gap is far too wide.
    highest = 1 + abs(convex_program.objective(iterate.x))
    # Complementarity products agree with weights no better than rounding errors of numbers of their size allow.
    rounding = 1e-14 * float(4 * convex_program.body_weights.sum() + convex_program.positive_weights.sum())
    share = 0.45  # of the last step that was possible; decides how much the next one centres
    stuck = 0
    for iteration in range(1, MAX_ITERATIONS + 1):
        newton = NewtonSystem(convex_program, iterate, factorise)
        if newton.gap <= 1e3 * (tolerance * highest + rounding) and newton.infeasibility <= 1e-8:
            objective = convex_program.objective(iterate.x)
            if np.isfinite(objective) and newton.gap <= tolerance * (1 + abs(objective)) + rounding:
                x, objective = _last_step(convex_program, iterate, newton, objective)
                return Solution(
                    x=x,
                    hessian=convex_program.gram + newton.matrix,
                    objective=objective,
                    gap=newton.gap,
                    solver="interior_point",
                    iterations=iteration,
                    seconds=0.0,
                    curvature=newton.matrix,
                )
        # Where steps are short, the products have shrunk ahead of the gradient: they are raised until it catches up.
        level = newton.excess if share >= _SHORT else max(newton.excess, newton.imbalance)
        step = newton.step((1 - share) ** 2 * level)
        share = min(1.0, _TO_BORDER * newton.distance_to_border(step))
        iterate = iterate.moved(step, share)
        stuck = stuck + 1 if share < _STUCK else 0
        if stuck == (_STUCK_STEPS if newton.infeasibility <= 1e-8 else 1):
            break
    raise _failure(convex_program, iterate, newton)


def _last_step(
    convex_program: ConvexProgram, iterate: Iterate, newton: NewtonSystem, objective: float
) -> tuple[Array, float]:
    """One more step, for which the Hessian is already factored: near the optimum it squares the error."""
    step = newton.step(0.0)
    last = iterate.moved(step, min(1.0, _TO_BORDER * newton.distance_to_border(step)))
    reached = convex_program.objective(last.x)
    return (last.x, reached) if reached <= objective else (iterate.x, objective)


def _start(convex_program: ConvexProgram, x: Array, warm: bool) -> Iterate:
    """Multipliers of one complementarity product for all constraints, by the largest slope of the data.

    With products of their own, channels of very different scale would set those of neighbouring bodies many orders
    apart, and steps end at the border of the body of the smallest. Near the optimum the products are the weights.
    """
    S = convex_program.matrices(x)
    scalars = x[convex_program.positive]
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        raise IdentificationError(
            "solver: the prior is not physically consistent; correct the URDF's inertias"
        ) from None
    if (scalars <= 0).any():
        raise IdentificationError("solver: the start has a friction or rotor inertia of zero; start above zero")
    if warm and keeps_inside(convex_program):
        Z = convex_program.body_weights[:, None, None] * np.linalg.inv(S)
        u = convex_program.positive_weights / scalars
        return Iterate(x, S, Z, scalars, u, np.zeros(len(convex_program.equalities)))
    slope = float(np.abs(convex_program.gradient(x)).max(initial=0.0))
    product = max(_START * slope, float(convex_program.body_weights.max(initial=0.0)), _LEAST_PRODUCT)
    blocks = convex_program.blocks(x)
    outside = np.linalg.eigvalsh(blocks)[:, 0] <= 0 if len(blocks) else np.zeros(0, dtype=bool)
    blocks[outside] = np.eye(4)
    whole = np.concatenate([S, blocks])
    slack = np.concatenate([scalars, np.maximum(convex_program.inequalities(x), 0.1)])
    return Iterate(
        x, whole, product * np.linalg.inv(whole), slack, product / slack, np.zeros(len(convex_program.equalities))
    )


def _failure(convex_program: ConvexProgram, iterate: Iterate, newton: NewtonSystem) -> IdentificationError:
    """Error where there is no optimum: the worst constraint, or the gap."""
    positive = len(convex_program.positive)
    blocks = np.abs(newton.block_error).reshape(-1, 16).max(axis=1, initial=0.0)
    violated = np.concatenate([newton.slack_error[positive:], np.abs(newton.equality_error), blocks])
    if newton.infeasibility > 1e-6 and len(violated):
        names = convex_program.inequalities.names + convex_program.equalities.names + convex_program.blocks.names
        worst = names[int(np.argmax(violated))]
        return IdentificationError(
            f"solver: the constraints contradict one another or the data's prior, worst is {worst}; relax it"
        )
    return ConvergenceError(
        f"solver: no optimum after {MAX_ITERATIONS} iterations (gap {newton.gap:.1e});"
        " check units, limits and the prior"
    )
