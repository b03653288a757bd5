"""Newton system of the interior point method, under Nesterov-Todd scaling [Nesterov1998]_."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.prior.convex_program import ConvexProgram
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS

from .factors import Factorise

_AHEAD = 10.0  # how much larger the complementarity's share of the gap may be than the gradient's
_BASIS = PSEUDO_INERTIA_BASIS.reshape(BODY_PARAMETERS, 16)
_ROWS, _COLUMNS = np.triu_indices(4)


def _pairs() -> Array:
    """``(100, 100)``: products of the ten elements ``W_ij W_kl``, ``i <= j`` and ``k <= l``, to ``tr(B_a W B_b W)``."""
    whole = np.zeros((10, 4, 4))
    whole[np.arange(10), _ROWS, _COLUMNS] = 1.0
    whole = np.maximum(whole, whole.transpose(0, 2, 1))
    bases = PSEUDO_INERTIA_BASIS
    return np.einsum("aij,bkl,mjk,nli->mnab", bases, bases, whole, whole, optimize=True).reshape(100, 100)


_PAIRS = _pairs()


class Iterate(NamedTuple):
    """Primal ``x``, ``S``, slacks ``s`` of scalar constraints; their duals ``Z``, ``u``, and ``y``."""

    x: Array
    S: Array
    Z: Array
    s: Array
    u: Array
    y: Array

    def moved(self, step: "Iterate", length: float) -> "Iterate":
        """The iterate after a share of a step."""
        return Iterate(*(value + length * change for value, change in zip(self, step, strict=True)))


class NewtonSystem:
    """The Newton system at one iterate, factored once.

    Attributes
    ----------
    gap : float
        Bound of objective minus optimum.
    """

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
        self.imbalance = _AHEAD * unbalanced / max(4 * len(at.S) + len(at.s), 1)
        self.gap = float(unbalanced + lacking)
        errors = (self.slack_error, self.block_error, self.equality_error)
        self.infeasibility = float(max(np.abs(error).max(initial=0.0) for error in errors))

    def step(self, centring: float) -> Iterate:
        """Direction towards complementarity products of ``weight + centring``."""
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
        scaled = np.concatenate(
            [
                self.inverse_root @ step.S @ self.inverse_root.transpose(0, 2, 1),
                self.dual_inverse_root @ step.Z @ self.dual_inverse_root.transpose(0, 2, 1),
            ]
        )
        rates = [-np.linalg.eigvalsh(scaled).min(initial=0.0)]
        rates += [float((-step.s / self.at.s).max(initial=0.0)), float((-step.u / self.at.u).max(initial=0.0))]
        fastest = max(rates)
        return 1 / fastest if fastest > 0 else np.inf

    def _pull(self, Z: Array, u: Array) -> Array:
        """What multipliers contribute to the gradient of the Lagrangian, ``(p,)``."""
        convex_program, positive = self.convex_program, len(self.convex_program.positive)
        pull = convex_program.inequalities.matrix.T @ u[positive:]
        pull[: self.size] += (Z[: self.bodies].reshape(self.bodies, 16) @ _BASIS.T).ravel()
        if len(convex_program.blocks):
            pull += np.einsum("kip,ki->p", convex_program.blocks.matrix, Z[self.bodies :].reshape(-1, 16))
        pull[convex_program.positive] += u[:positive]
        return pull

    @cached_property
    def matrix(self) -> Array:
        """``(p, p)`` curvature of bodies, drives and constraints."""
        convex_program, positive = self.convex_program, len(self.convex_program.positive)
        matrix = np.zeros((len(self.at.x), len(self.at.x)))
        index = np.arange(self.bodies)
        blocks = matrix[: self.size, : self.size].reshape(self.bodies, BODY_PARAMETERS, self.bodies, BODY_PARAMETERS)
        blocks[index, :, index, :] += _curvature(self.W_inverse[: self.bodies])
        matrix[convex_program.positive, convex_program.positive] += self.ratio[:positive]
        for rows, outer in zip(convex_program.blocks.matrix, self.W_inverse[self.bodies :], strict=True):
            matrix += rows.T @ np.kron(outer, outer) @ rows
        if len(convex_program.inequalities):
            rows = convex_program.inequalities.matrix
            matrix += rows.T @ (self.ratio[positive:, None] * rows)
        return matrix

    @property
    def triangle(self) -> Array:
        """``(p, p)`` upper triangle of the curvature of bodies and of parameters that are not negative."""
        positive = self.convex_program.positive
        triangle = np.zeros((len(self.at.x), len(self.at.x)))
        index = np.arange(self.bodies)
        roots = self.W_root[: self.bodies, None]
        products = roots @ PSEUDO_INERTIA_BASIS @ roots.swapaxes(2, 3)
        products = products[..., _ROWS, _COLUMNS] * np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2))
        blocks = triangle[: self.size, : self.size].reshape(self.bodies, BODY_PARAMETERS, self.bodies, BODY_PARAMETERS)
        blocks[index, :, index, :] = np.linalg.qr(products.transpose(0, 2, 1), mode="r")
        triangle[positive, positive] = np.sqrt(self.ratio[: len(positive)])
        return triangle

    @property
    def rows(self) -> Array:
        """``(k, p)`` of which the curvature of the other constraints is the Gram matrix."""
        convex_program, positive = self.convex_program, len(self.convex_program.positive)
        slopes = np.sqrt(self.ratio[positive:, None]) * convex_program.inequalities.matrix
        blocks = [
            np.kron(root, root) @ rows
            for rows, root in zip(convex_program.blocks.matrix, self.W_root[self.bodies :], strict=True)
        ]
        return np.vstack([slopes, *blocks])

    def _solve(self, right: Array, equality_error: Array) -> tuple[Array, Array]:
        """``y`` and ``dy`` of ``y - E^T dy = right`` and ``E y = -equality_error``."""
        if len(equality_error) == 0:
            return right, equality_error
        missing = equality_error + self.equalities @ right
        dy = -np.asarray(np.linalg.lstsq(self.schur, missing)[0], dtype=float)
        return right + self.equalities.T @ dy, dy


def _curvature(outer: Array) -> Array:
    """``(nb, 10, 10)`` of ``tr(B_a W^-1 B_b W^-1)`` for ``W^-1`` ``(nb, 4, 4)``."""
    elements = outer[:, _ROWS, _COLUMNS]
    products = elements[:, :, None] * elements[:, None, :]
    return (products.reshape(-1, 100) @ _PAIRS).reshape(-1, BODY_PARAMETERS, BODY_PARAMETERS)
