"""How well this robot, with bodies as far from the URDF's as is plausible and any friction, explains its efforts.

Bodies are as far from the URDF's as ``E`` of :mod:`.torque_columns` says, by the Bregman divergence of ([Lee2019]_ sec.
3.3), made symmetric, since bodies of a tenth are no likelier than bodies ten times as heavy. Friction is not negative,
and efforts that nothing explains count by the logarithm of their share, so that one joint without a sensor does not
drown what the others say. The costs of two fits are negative log-likelihoods that can be compared.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .torque_columns import BASIS, PAIRS

PRIOR_SPREAD = 0.5  # of E: half or twice the masses of the URDF are still nothing special
FLOOR = 0.1  # of a joint's effort: what friction and elasticity beyond these models leave of it
INDEPENDENT = 20.0  # samples: those of a motion with few periods; errors of a model are not independent in time
_OFFSET = 0.3  # of a joint's RMS effort
_FRICTION = 10.0  # times a joint's RMS effort: no bound, only what keeps proportional columns apart
_ITERATIONS = 10
_SETTLED = 1e-3  # relative change of the squared errors
_TO_BORDER = 0.9  # of the way to where a body had no extension
_RIDGE = 1e-10  # of every column: they may be proportional to one another


@dataclass(frozen=True)
class EffortFit:
    """The best explanation of efforts by one motion.

    Attributes
    ----------
    cost : float
        Negative logarithm of the likelihood of the efforts, up to a constant.
    share : ndarray, shape (n,)
        RMS residual over the standard deviation of the effort.
    far : float
        Part of the cost that is for bodies unlike those of the URDF.
    rigid : ndarray, shape (n, N)
        Torque of the bodies that were found [N m or N].
    """

    cost: float
    share: Array
    far: float
    rigid: Array


@dataclass(frozen=True)
class _JointEquations:
    """Columns on which a joint's torque depends, their values ``(N, c)`` and their Gram matrix ``(c, c)``."""

    columns: NDArray[np.intp]
    values: Array
    gram: Array

    def square(self, x: Array, cross: Array) -> float:
        """``|A x|^2 - 2 b^T A x`` with the parameters of all joints, and ``A^T b``."""
        own = x[self.columns]
        return float((self.gram @ own - 2 * cross) @ own)


class EffortEquations:
    """Normal equations of all joints, for any linear combination of their efforts.

    Parameters
    ----------
    bodies : ndarray, shape (n, N, 10 nb)
        Columns, see :meth:`.TorqueColumns.bodies`.
    drives : sequence of tuple
        Parameters and columns of the drives of every joint, see :meth:`.TorqueColumns.drives`.
    not_negative : ndarray of bool, shape (d,)
        Drives.
    efforts : ndarray, shape (N, n)
        As measured [N m or N].
    counted : ndarray of bool, shape (n,)
        Joints whose efforts are compared.
    """

    def __init__(
        self, bodies: Array, drives: Sequence[tuple[list[int], Array]], not_negative: NDArray[np.bool_],
        efforts: Array, counted: NDArray[np.bool_],
    ) -> None:
        self._bodies, self._counted = bodies, np.flatnonzero(counted)
        # Columns whose parameters may have either sign come first.
        order = np.argsort(not_negative, kind="stable")
        place = np.argsort(order)
        size, self._rows = bodies.shape[2], len(efforts)
        self._joints = []  # a joint's torque depends on the bodies that it moves, and on its own drives
        for of_bodies, (driven, of_drives) in zip(bodies, drives, strict=True):
            moved = np.flatnonzero(of_bodies.any(axis=0))
            columns, values = np.append(moved, size + place[driven]), np.hstack([of_bodies[:, moved], of_drives])
            self._joints.append(_JointEquations(columns, values, values.T @ values))
        self._start = np.zeros(size + len(order))
        self._start[:size] = self.unchanged(size)
        self._size, self._free = size, size + len(order) - int(not_negative.sum())
        self._share = np.full(len(order), _FRICTION)
        self._share[3 * len(counted) : 4 * len(counted)] = _OFFSET
        self._share = self._share[order]
        self._take(efforts)

    def of(self, efforts: Array) -> "EffortEquations":
        """The equations of other efforts ``(N, n)`` on the same motion."""
        other = copy(self)
        other._take(efforts)
        return other

    def _take(self, efforts: Array) -> None:
        self._cross = [own.values.T @ efforts for own in self._joints]
        self._squares, self._mean = efforts.T @ efforts, efforts.mean(axis=0)

    @staticmethod
    def unchanged(size: int) -> Array:
        """``(10 nb,)`` values of the bodies' columns for the bodies of the URDF."""
        return np.tile(np.eye(4)[PAIRS[:, 0], PAIRS[:, 1]], size // BODY_PARAMETERS)

    def fit(self, mixing: Array) -> EffortFit:
        """Fit efforts ``mixing @ efforts``, ``(n, n)``."""
        cross = [own @ row for own, row in zip(self._cross, mixing, strict=True)]
        squares = np.einsum("ji,ik,jk->j", mixing, self._squares, mixing) / self._rows
        variance = np.maximum(squares - (mixing @ self._mean) ** 2, 1e-300)
        precision = self._precision(squares)
        error, at, x = variance.copy(), self._counted, self._start
        for _ in range(_ITERATIONS):
            weights = np.zeros(len(error))
            weights[at] = INDEPENDENT / self._rows / (FLOOR**2 * variance[at] + error[at])
            x = self._within(x, self._solve(weights, cross, precision, x))
            explained = [own.square(x, right) for own, right in zip(self._joints, cross, strict=True)]
            before, error = error, np.maximum(squares + np.array(explained) / self._rows, 0.0)
            if (np.abs(error - before) <= _SETTLED * before).all():
                break
        share = np.zeros_like(error)
        share[at] = np.sqrt(error[at] / variance[at])
        unlikely = 0.5 * INDEPENDENT * np.log1p((share[at] / FLOOR) ** 2).sum()
        far = divergence(x[: self._size]) / PRIOR_SPREAD**2
        drives = 0.5 * np.sum(precision * x[self._size :] ** 2)
        rigid = self._bodies @ x[: self._size]
        return EffortFit(float(unlikely + far + drives), share, far, rigid)

    def _within(self, before: Array, after: Array) -> Array:
        """Step of every body as far as its mass distribution stays one; drives go all the way."""
        count = self._size
        start, step = _matrices(before[:count]), _matrices(after[:count] - before[:count])
        root = np.linalg.inv(np.linalg.cholesky(start))
        smallest = np.linalg.eigvalsh(root @ step @ np.swapaxes(root, 1, 2))[:, 0]
        share = np.minimum(1.0, _TO_BORDER / np.maximum(-smallest, 1e-12))
        out = after.copy()
        out[:count] = before[:count] + np.repeat(share, BODY_PARAMETERS) * (after - before)[:count]
        return out

    def _precision(self, squares: Array) -> Array:
        """``(d,)`` of the priors of the drives, by the effort that they may take."""
        largest = np.zeros(len(self._start))
        for own, square in zip(self._joints, squares.tolist(), strict=True):
            if square > 0:
                size = np.sqrt(np.diagonal(own.gram) / self._rows / square)
                largest[own.columns] = np.maximum(largest[own.columns], size)
        largest = largest[self._size :]
        return np.asarray(np.maximum((largest / self._share) ** 2, 1e-12))

    def _solve(self, weights: Array, cross: list[Array], precision: Array, before: Array) -> Array:
        """One step of Newton's method from the parameters before it."""
        size, free = self._size, self._free
        hessian, gradient = np.zeros((len(before), len(before))), np.zeros(len(before))
        for own, right, weight in zip(self._joints, cross, weights.tolist(), strict=True):
            if weight:
                hessian[np.ix_(own.columns, own.columns)] += weight * own.gram
                gradient[own.columns] += weight * right
        curvature, right = _expanded(before[:size])
        for first, of_body in zip(range(0, size, BODY_PARAMETERS), curvature, strict=True):
            block = slice(first, first + BODY_PARAMETERS)
            hessian[block, block] += of_body / PRIOR_SPREAD**2
        gradient[:size] += right / PRIOR_SPREAD**2
        diagonal = hessian.reshape(-1)[:: len(hessian) + 1]
        diagonal[size:] += precision
        scale = 1 / np.sqrt(diagonal)
        hessian *= scale
        hessian *= scale[:, None]
        gradient *= scale
        diagonal += _RIDGE
        _, across, singular = scipy.linalg.lapack.dposv(
            hessian[:free, :free], np.column_stack([hessian[:free, free:], gradient[:free]])
        )
        if singular:
            raise np.linalg.LinAlgError("effort equations are singular")
        reduced = hessian[free:, free:] - hessian[free:, :free] @ across[:, :-1]
        right = gradient[free:] - hessian[free:, :free] @ across[:, -1]
        root = np.linalg.cholesky(reduced + _RIDGE * np.eye(len(reduced)))
        x = np.empty_like(gradient)
        x[free:] = scipy.optimize.nnls(root.T, scipy.linalg.lapack.dtrtrs(root, right, lower=1)[0])[0]
        x[:free] = across[:, -1] - across[:, :-1] @ x[free:]
        return np.asarray(scale * x)


def divergence(bodies: Array) -> float:
    """Mean Bregman divergence of all bodies ``(10 nb,)`` from those of the URDF and of those from them.

    That is ``tr(X + 1/X - 2) / 2`` for ``X = 1 + E``, which is convex.
    """
    values = np.linalg.eigvalsh(_matrices(bodies))
    return float(0.5 * np.sum(values + 1 / values - 2))


def _expanded(bodies: Array) -> tuple[Array, Array]:
    """``(nb, 10, 10)`` Hessians of the divergence, and ``(10 nb,)`` their right-hand side of a Newton step."""
    inverse = np.linalg.inv(_matrices(bodies))
    turned = np.einsum("bij,pjk->bpik", inverse, BASIS)
    twice = turned @ inverse[:, None]
    blocks = np.einsum("bpij,bqji->bpq", turned, twice)
    slopes = 0.5 * (np.einsum("pii->p", BASIS) - np.einsum("bpii->bp", twice))
    right = np.einsum("bpq,bq->bp", blocks, bodies.reshape(len(blocks), -1)) - slopes
    return blocks, right.ravel()


def _matrices(bodies: Array) -> Array:
    """``(nb, 4, 4)`` matrices ``1 + E``."""
    return np.einsum("bp,pij->bij", bodies.reshape(-1, BODY_PARAMETERS), BASIS)
