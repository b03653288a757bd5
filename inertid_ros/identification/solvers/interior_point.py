"""Primal-dual interior point method for convex programs of identification.

One method covers soft and hard physical consistency: see
:class:`~inertid_ros.identification.solvers.convex_program.ConvexProgram`. The method iterates the multipliers ``Z_b =
w_b S_b^{-1}`` along with ``x`` under Nesterov-Todd scaling [Nesterov1998]_. Then a start far from the optimum costs
two dozen steps instead of hundreds, and a body on the border of the cone causes no problem.

The Hessian of a Newton step is ``R^T R`` of the data plus the curvature of bodies, drives and constraints. If data
outweigh the prior by more than half of the digits, as without noise, the sum loses the prior; QR of the rows keeps it.
So Cholesky of the sum or QR of the rows factors the Hessian as ``T^T T``; in the coordinates ``y = T x`` the Hessian
is the identity.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, lapack

from inertid_ros.core.arrays import Array, append_rows, is_positive_definite
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS

from .convex_program import ConvexProgram, Solution

_MAX_LOST_CURVATURE = 1e-4  # rounding errors of R^T R, in units of the curvature of a prior
_MAX_GAP_RATIO = 10.0  # after short steps, products rise to this multiple of the gradient's share of the gap
_BASIS_ROWS = PSEUDO_INERTIA_BASIS.reshape(BODY_PARAMETERS, 16)
_MAX_STEPS = 100
_TO_BORDER_SHARE = 0.98  # share of the way to the border that a step may take
_SHORT_STEP = 0.2
# Complementarity product at the start: share of the largest slope, and lower bound.
_START_SLOPE_SHARE, _MIN_START_PRODUCT = 1e-3, 1e-3
_STUCK_STEP = 1e-7  # a shorter step makes no progress; constraints that are not met then leave no room
_MAX_STUCK_STEPS = 10  # short steps allowed if constraints hold; the first may be short if data far outweigh the prior


class Factor:
    """Factor ``T`` of a Hessian ``T^T T``; in the coordinates ``y = T x`` the Hessian is the identity.

    ``triangle`` is the transpose of T, lower; ``data_slope`` is the gradient in ``y`` of half the data's squared
    error.
    """

    def __init__(self, triangle: Array, data_slope: Array) -> None:
        self.triangle, self.data_slope = triangle, data_slope

    def into(self, gradient: Array) -> Array:
        """Convert a gradient ``(p,)`` or ``(p, k)`` with respect to ``x`` to a gradient with respect to ``y``."""
        return np.asarray(lapack.dtrtrs(self.triangle, gradient, lower=1)[0])

    def out(self, y: Array) -> Array:
        """Convert a step in ``y``, ``(p,)`` or ``(p, k)``, to parameters."""
        return np.asarray(lapack.dtrtrs(self.triangle, y, lower=1, trans=1)[0])


Factorise = Callable[[ConvexProgram, Array, "NewtonSystem"], Factor]


def from_squares(convex_program: ConvexProgram, x: Array, curvature: "NewtonSystem") -> Factor:
    """Factor the Hessian by Cholesky, whose accuracy does not depend on the scale of rows and columns."""
    hessian = convex_program.gram + curvature.matrix
    for jitter in (0.0, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10):
        whole = hessian + np.diag(jitter * np.diagonal(hessian)) if jitter else hessian
        triangle, failed = lapack.dpotrf(whole.T, lower=1, clean=0)  # transposed: the order LAPACK reads
        if not failed:
            factor = Factor(triangle, x)
            factor.data_slope = factor.into(convex_program.R.T @ (convex_program.R @ x - convex_program.z))
            return factor
    raise ConvergenceError("solver: the Hessian is not positive definite; check the data for absurd values")


def from_rows(convex_program: ConvexProgram, x: Array, curvature: "NewtonSystem") -> Factor:
    """Factor the Hessian by QR of its square-root rows, without forming products.

    The gradient of the data term comes from the rotated residual.
    """
    size, rows = len(x), curvature.rows
    whole = np.zeros((size + 1, size + 1), order="F")
    whole[:, :size] = convex_program.r_factor[:, :size]
    whole[:, size] = convex_program.r_factor @ np.append(x, -1.0)
    whole = append_rows(whole, np.vstack([rows.T, np.zeros(len(rows))]))
    if not np.diagonal(whole)[:size].all():
        raise ConvergenceError(
            "solver: data and prior do not determine a combination of parameters; check the data for extreme values")
    return Factor(np.asfortranarray(whole[:size, :size].T), whole[:size, size])


class Iterate(NamedTuple):
    """Primal ``x``, ``S`` and slacks ``s`` of scalar constraints; duals ``Z`` of S, ``u`` of s, ``y`` of equalities."""

    x: Array
    S: Array
    Z: Array
    s: Array
    u: Array
    y: Array

    def moved(self, step: "Iterate", length: float) -> "Iterate":
        return Iterate(*(value + length * change for value, change in zip(self, step, strict=True)))


class NewtonSystem:
    """The Newton system at one iterate, factored once."""

    def __init__(self, convex_program: ConvexProgram, at: Iterate, factorise: Factorise) -> None:
        self.convex_program, self.at = convex_program, at
        self.bodies = len(convex_program.body_weights)
        self.size = BODY_PARAMETERS * self.bodies
        # Nesterov-Todd: with S = L L^T and L^T Z L = V diag(d^2) V^T, W^-1 = L^-T V diag(d) V^T L^-1.
        # The d^2 are the eigenvalues of S Z.
        root = np.linalg.cholesky(at.S)
        self.inverse_root = np.linalg.inv(root)
        self.pairs, vectors = np.linalg.eigh(root.transpose(0, 2, 1) @ at.Z @ root)
        deviations = np.sqrt(np.maximum(self.pairs, 1e-300))[:, :, None]
        rows = vectors.transpose(0, 2, 1)
        scaled = rows @ self.inverse_root
        self.W_root = np.sqrt(deviations) * scaled
        self.W_inverse = self.W_root.transpose(0, 2, 1) @ self.W_root
        self.dual_inverse_root = (rows / deviations) @ root.transpose(0, 2, 1)
        self.ratio = at.u / at.s
        self.weights = np.concatenate([convex_program.body_weights, np.zeros(len(convex_program.blocks))])
        self.targets = np.concatenate([convex_program.positive_weights, np.zeros(len(convex_program.inequalities))])
        self.slack_error = at.s - np.concatenate([at.x[convex_program.positive], convex_program.inequalities(at.x)])
        self.block_error = at.S[self.bodies :] - convex_program.blocks(at.x)
        self.equality_error = convex_program.equalities(at.x)
        pull = self._pull(at.Z, at.u) + convex_program.equalities.matrix.T @ at.y
        self.factor = factorise(convex_program, at.x, self)
        self.residual = self.factor.data_slope + self.factor.into(convex_program.linear - pull)  # by y
        self.equalities = self.factor.into(convex_program.equalities.matrix.T).T
        self.schur = self.equalities @ self.equalities.T
        lacking = np.abs(self.pairs - self.weights[:, None]).sum() + np.abs(at.u * at.s - self.targets).sum()
        self.excess = lacking / max(4 * len(at.S) + len(at.s), 1)
        correction, _ = self._solve(self.residual, np.zeros(len(self.equality_error)))
        unbalanced = abs(self.residual @ correction)
        self.imbalance = _MAX_GAP_RATIO * unbalanced / max(4 * len(at.S) + len(at.s), 1)
        self.gap = float(unbalanced + lacking)  # bound of objective minus optimum
        errors = (self.slack_error, self.block_error, self.equality_error)
        self.infeasibility = float(max(np.abs(error).max(initial=0.0) for error in errors))

    def step(self, centring: float) -> Iterate:
        """Newton step towards complementarity products of ``weight + centring``."""
        convex_program, at = self.convex_program, self.at
        inverse = self.inverse_root.transpose(0, 2, 1) @ self.inverse_root
        dZ = (self.weights + centring)[:, None, None] * inverse - at.Z
        du = (self.targets + centring) / at.s - at.u
        regain = dZ.copy()
        outer = self.W_inverse[self.bodies :]
        regain[self.bodies :] += outer @ self.block_error @ outer
        right = self._pull(regain, du + self.ratio * self.slack_error)
        step, dy = self._solve(self.factor.into(right) - self.residual, self.equality_error)
        dx = self.factor.out(step)
        blocks = (convex_program.blocks.matrix @ dx).reshape(-1, 4, 4) - self.block_error
        dS = np.concatenate([convex_program.matrices(dx), blocks])
        ds = np.concatenate([dx[convex_program.positive], convex_program.inequalities.matrix @ dx]) - self.slack_error
        dZ = dZ - self.W_inverse @ dS @ self.W_inverse
        return Iterate(dx, dS, 0.5 * (dZ + dZ.transpose(0, 2, 1)), ds, du - self.ratio * ds, dy)

    def distance_to_border(self, step: Iterate) -> float:
        """Longest step that keeps S, Z, s and u from going below zero."""
        scaled = np.concatenate([self.inverse_root @ step.S @ self.inverse_root.transpose(0, 2, 1),
            self.dual_inverse_root @ step.Z @ self.dual_inverse_root.transpose(0, 2, 1)])
        rates = [-np.linalg.eigvalsh(scaled).min(initial=0.0)]
        rates += [float((-step.s / self.at.s).max(initial=0.0)), float((-step.u / self.at.u).max(initial=0.0))]
        fastest = max(rates)
        return 1 / fastest if fastest > 0 else np.inf

    def _pull(self, Z: Array, u: Array) -> Array:
        """Contribution ``(p,)`` of multipliers to the gradient of the Lagrangian."""
        convex_program, positive = self.convex_program, len(self.convex_program.positive)
        pull = convex_program.inequalities.matrix.T @ u[positive:]
        pull[: self.size] += (Z[: self.bodies].reshape(self.bodies, 16) @ _BASIS_ROWS.T).ravel()
        if len(convex_program.blocks):
            pull += np.einsum("kip,ki->p", convex_program.blocks.matrix, Z[self.bodies :].reshape(-1, 16))
        pull[convex_program.positive] += u[:positive]
        return pull

    @cached_property
    def products(self) -> Array:
        """``(nb, 10, 16)`` elements of ``W^-1/2 B_k W^-1/2``; their Gram matrix is the curvature of a body."""
        roots = self.W_root[: self.bodies, None]
        return (roots @ PSEUDO_INERTIA_BASIS @ roots.swapaxes(2, 3)).reshape(self.bodies, BODY_PARAMETERS, 16)

    @cached_property
    def matrix(self) -> Array:
        """``(p, p)`` curvature of bodies, drives and constraints, the Gram matrix of :attr:`rows`."""
        convex_program, positive = self.convex_program, len(self.convex_program.positive)
        matrix = np.zeros((len(self.at.x), len(self.at.x)))
        index = np.arange(self.bodies)
        blocks = matrix[: self.size, : self.size].reshape(self.bodies, BODY_PARAMETERS, self.bodies, BODY_PARAMETERS)
        blocks[index, :, index, :] += self.products @ self.products.swapaxes(1, 2)
        matrix[convex_program.positive, convex_program.positive] += self.ratio[:positive]
        for rows, outer in zip(convex_program.blocks.matrix, self.W_inverse[self.bodies :], strict=True):
            matrix += rows.T @ np.kron(outer, outer) @ rows
        if len(convex_program.inequalities):
            rows = convex_program.inequalities.matrix
            matrix += rows.T @ (self.ratio[positive:, None] * rows)
        return matrix

    @property
    def rows(self) -> Array:
        """``(k, p)`` rows whose Gram matrix is the curvature."""
        convex_program, size = self.convex_program, len(self.at.x)
        bodies = block_diag(*np.linalg.qr(self.products.swapaxes(1, 2), mode="r"))
        scalars = np.vstack([np.eye(size)[convex_program.positive], convex_program.inequalities.matrix])
        blocks = [
            np.kron(root, root) @ rows
            for rows, root in zip(convex_program.blocks.matrix, self.W_root[self.bodies :], strict=True)]
        bodies = np.pad(bodies, ((0, 0), (0, size - self.size)))
        return np.vstack([bodies, np.sqrt(self.ratio)[:, None] * scalars, *blocks])

    def _solve(self, right: Array, equality_error: Array) -> tuple[Array, Array]:
        """Solve ``y - E^T dy = right`` and ``E y = -equality_error`` for ``y`` and ``dy``."""
        if len(equality_error) == 0:
            return right, equality_error
        missing = equality_error + self.equalities @ right
        dy = -np.asarray(np.linalg.lstsq(self.schur, missing)[0], dtype=float)
        return right + self.equalities.T @ dy, dy


def solve(convex_program: ConvexProgram, start: Array, tolerance: float = 1e-8, warm: bool = False) -> Solution:
    """Minimise from a start inside every cone; linear constraints need not hold at the start.

    Parameters
    ----------
    start : (p,), every ``S_b`` is positive definite there and every positive parameter above zero
    warm : whether the start is the optimum of a similar convex program, see :func:`keeps_inside`
    """
    began, errors = time.perf_counter(), list[IdentificationError]()
    lost = np.finfo(float).eps * np.diagonal(convex_program.gram).max(initial=0.0) >= _MAX_LOST_CURVATURE
    with np.errstate(over="ignore", invalid="ignore"):
        for factorise in (from_rows, from_squares) if lost else (from_squares, from_rows):
            try:
                iterate = _start(convex_program, start, warm and not errors)
                solution = _solved(convex_program, iterate, tolerance, factorise)
                return replace(solution, seconds=time.perf_counter() - began)
            except np.linalg.LinAlgError:
                errors.append(ConvergenceError("solver: numbers overflow; check units of effort and masses"))
            except IdentificationError as error:
                if not errors and not isinstance(error, ConvergenceError):
                    raise
                errors.append(error)
    raise errors[0]


def keeps_inside(convex_program: ConvexProgram) -> bool:
    """Check whether the barriers of all bounds keep the optimum inside, so that a similar program may start there."""
    weights = np.concatenate([convex_program.body_weights, convex_program.positive_weights])
    return bool((weights > 0).all()) and not len(convex_program.blocks) and not len(convex_program.inequalities)


def _solved(convex_program: ConvexProgram, iterate: Iterate, tolerance: float, factorise: Factorise) -> Solution:
    # The objective is evaluated only once the gap is narrow.
    highest = 1 + abs(convex_program.objective(iterate.x))
    # Complementarity products agree with weights only up to rounding errors of numbers of their size.
    rounding = 1e-14 * float(4 * convex_program.body_weights.sum() + convex_program.positive_weights.sum())
    share = 0.45  # possible share of the last step; sets the centring of the next step
    stuck = 0
    for iteration in range(1, _MAX_STEPS + 1):
        newton = NewtonSystem(convex_program, iterate, factorise)
        # Optimal: gap and constraints are within the tolerances.
        if newton.gap <= 1e3 * (tolerance * highest + rounding) and newton.infeasibility <= 1e-8:
            objective = convex_program.objective(iterate.x)
            if np.isfinite(objective) and newton.gap <= tolerance * (1 + abs(objective)) + rounding:
                x, objective = _last_step(convex_program, iterate, newton, objective)
                return Solution(x=x, hessian=convex_program.gram + newton.matrix, objective=objective, gap=newton.gap,
                    solver="interior_point", iterations=iteration, seconds=0.0, curvature=newton.matrix)
        # If steps are short, the products have shrunk faster than the gradient: raise them until the gradient catches
        # up.
        level = newton.excess if share >= _SHORT_STEP else max(newton.excess, newton.imbalance)
        step = newton.step((1 - share) ** 2 * level)
        share = min(1.0, _TO_BORDER_SHARE * newton.distance_to_border(step))
        iterate = iterate.moved(step, share)
        stuck = stuck + 1 if share < _STUCK_STEP else 0
        # Stuck at the border: the constraints leave no room.
        if stuck == (_MAX_STUCK_STEPS if newton.infeasibility <= 1e-8 else 1):
            break
    raise _failure(convex_program, iterate, newton)


def _last_step(
        convex_program: ConvexProgram, iterate: Iterate, newton: NewtonSystem, objective: float) -> tuple[Array, float]:
    """Take one more step with the factored Hessian: near the optimum this step squares the error."""
    step = newton.step(0.0)
    last = iterate.moved(step, min(1.0, _TO_BORDER_SHARE * newton.distance_to_border(step)))
    reached = convex_program.objective(last.x)
    return (last.x, reached) if reached <= objective else (iterate.x, objective)


def _start(convex_program: ConvexProgram, x: Array, warm: bool) -> Iterate:
    """Set multipliers with one complementarity product for all constraints, from the largest slope of the data.

    With separate products, channels of very different scale would give neighbouring bodies very different products,
    and steps would end at the border of the body with the smallest product. A warm start near the optimum takes the
    weights as products.
    """
    S = convex_program.matrices(x)
    scalars = x[convex_program.positive]
    if not is_positive_definite(S):
        raise IdentificationError("solver: the prior is not physically consistent; correct the URDF's inertias")
    if (scalars <= 0).any():
        raise IdentificationError(
            "solver: the initial friction coefficients and rotor inertias must be positive; give positive values")
    if warm and keeps_inside(convex_program):
        Z = convex_program.body_weights[:, None, None] * np.linalg.inv(S)
        u = convex_program.positive_weights / scalars
        return Iterate(x, S, Z, scalars, u, np.zeros(len(convex_program.equalities)))
    slope = float(np.abs(convex_program.gradient(x)).max(initial=0.0))
    product = max(_START_SLOPE_SHARE * slope, float(convex_program.body_weights.max(initial=0.0)), _MIN_START_PRODUCT)
    blocks = convex_program.blocks(x)
    outside = np.linalg.eigvalsh(blocks)[:, 0] <= 0 if len(blocks) else np.zeros(0, dtype=bool)
    blocks[outside] = np.eye(4)
    whole = np.concatenate([S, blocks])
    slack = np.concatenate([scalars, np.maximum(convex_program.inequalities(x), 0.1)])
    return Iterate(
        x, whole, product * np.linalg.inv(whole), slack, product / slack, np.zeros(len(convex_program.equalities)))


def _failure(convex_program: ConvexProgram, iterate: Iterate, newton: NewtonSystem) -> IdentificationError:
    """Error that names the worst constraint, or the gap."""
    positive = len(convex_program.positive)
    blocks = np.abs(newton.block_error).reshape(-1, 16).max(axis=1, initial=0.0)
    violated = np.concatenate([newton.slack_error[positive:], np.abs(newton.equality_error), blocks])
    if newton.infeasibility > 1e-6 and len(violated):
        names = convex_program.inequalities.names + convex_program.equalities.names + convex_program.blocks.names
        worst = names[int(np.argmax(violated))]
        return IdentificationError(
            f"solver: the constraints contradict one another or the prior; relax the worst constraint: {worst}")
    return ConvergenceError(f"solver: no optimum after {_MAX_STEPS} iterations (gap {newton.gap:.1e});"
        " check units, limits and the prior")
