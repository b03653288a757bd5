"""How well this robot, with bodies as far from the URDF's as is plausible and any friction, explains its efforts."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.robot.drives import term_columns
from inertid_ros.robot.dynamics import body_torques, rigid_torque
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import RobotModel

_MOMENT_PARAMETERS = 4
_PRIOR_SPREAD = 0.5  # of E: half or twice the masses of the URDF are still nothing special
EFFORT_FLOOR_SHARE = 0.1  # of a joint's effort: what friction and elasticity beyond these models leave of it
INDEPENDENT_SAMPLES = 20.0  # samples: those of a motion with few periods; errors of a model are not independent in time
_OFFSET_SHARE = 0.3  # of a joint's RMS effort
_FRICTION_RATIO = 10.0  # times a joint's RMS effort: no bound, only what keeps proportional columns apart
_MAX_NEWTON_STEPS = 10
_CONVERGED_CHANGE = 1e-3  # relative change of the squared errors
_SHARE_TO_BORDER = 0.9  # of the way to where a body had no extension
_RIDGE_SHARE = 1e-10  # of every column: they may be proportional to one another


def _basis() -> Array:
    """``(10, 4, 4)`` orthonormal symmetric matrices."""
    basis = np.zeros((len(PAIRS), 4, 4))
    for matrix, (row, column) in zip(basis, PAIRS, strict=True):
        matrix[row, column] = matrix[column, row] = 1.0 if row == column else np.sqrt(0.5)
    return basis


PAIRS = np.array([(row, column) for row in range(4) for column in range(row, 4)])


BASIS = _basis()
"""``(10, 4, 4)`` orthonormal symmetric matrices, each with one or two elements that are not zero, at PAIRS."""


@dataclass(frozen=True)
class Motion:
    """Motion of ``N`` samples.

    Attributes
    ----------
    q, v, a : ndarray, shapes (N, nq), (N, nv), (N, nv)
        In the model's order.
    direction : ndarray, shape (N, n + couplings)
        Direction of sliding of every drive, -1 to 1.
    """

    q: Array
    v: Array
    a: Array
    direction: Array


class TorqueColumns:
    """What the torque of the joints is linear in, along one motion.

    Parameters
    ----------
    model : RobotModel
        The robot as given.
    motion : Motion
    """

    def __init__(self, model: RobotModel, motion: Motion) -> None:
        self.model, self.motion = model, motion
        self._joints = slice(model.velocities - model.joints, None)
        self._bodies: dict[tuple[float, ...], Array] = {}
        self._bases: dict[int, Array] = {}  # orthonormal columns of the drives of a joint

    def drives(self, joint: int) -> tuple[list[int], Array]:
        """Parameters of the drives that act on a joint, of ``d``, and their columns ``(N, k)``.

        Parameters are rotor inertia, viscous, Coulomb friction and offset of the joints, then of the couplings, then
        those of the user terms.
        """
        n, (gearing, motions) = self.model.joints, self._gears
        count = len(gearing) - n
        columns, values = [3 * n + joint], [np.ones(len(self.motion.q))]
        for gear in np.flatnonzero(gearing[:, joint]).tolist():
            for index, each in enumerate(motions):
                columns.append(index * n + gear if gear < n else 4 * n + index * count + gear - n)
                values.append(gearing[gear, joint] * each[:, gear])
        for index, (of_joint, each) in enumerate(self._terms):
            if of_joint == joint:
                columns.append(4 * n + 3 * count + index)
                values.append(each)
        return columns, np.stack(values, axis=1)

    @cached_property
    def _gears(self) -> tuple[Array, tuple[Array, Array, Array]]:
        """``(n + couplings, n)`` what turns every drive; acceleration, speed and direction ``(N, n + couplings)``."""
        gearing = np.vstack([np.eye(self.model.joints), self.model.layout.coupling_ratios])
        v, a = (channel[:, self._joints] @ gearing.T for channel in (self.motion.v, self.motion.a))
        return gearing, (a, v, self.motion.direction)

    @cached_property
    def _terms(self) -> list[tuple[int, Array]]:
        """Joint and column ``(N,)`` of every user term's parameter."""
        layout, count = self.model.layout, self.model.joints
        v, a = self.motion.v[:, self._joints], self.motion.a[:, self._joints]
        signals = {"q": self.motion.q[:, -count:], "v": v, "a": a, "direction": self.motion.direction[:, :count]}
        if any(term.uses_load for term in layout.terms):
            signals["load"] = self.torque_of_urdf
        return term_columns(layout.terms, layout.joints, signals)

    @property
    def not_negative(self) -> NDArray[np.bool_]:
        """``(d,)`` columns of the drives whose parameters are not negative: all but offsets and some user terms."""
        n, layout = self.model.joints, self.model.layout
        of_terms = [term.non_negative for term in layout.terms for _ in term.expressions]
        return np.r_[np.ones(3 * n), np.zeros(n), np.ones(3 * len(layout.couplings)), of_terms] > 0

    def with_coupling(self, coupling: Coupling) -> "TorqueColumns":
        """The same motion of a robot with one drive more that turns with several joints."""
        layout = replace(self.model.layout, couplings=(*self.model.layout.couplings, coupling))
        speed = self.motion.v[:, self._joints] @ layout.coupling_ratios[-1]
        direction = np.column_stack([self.motion.direction, np.sign(speed)])
        return TorqueColumns(replace(self.model, layout=layout), replace(self.motion, direction=direction))

    def with_terms(self, terms: tuple[UserTerm, ...]) -> "TorqueColumns":
        """The same motion of a robot on which more torques act."""
        layout = replace(self.model.layout, terms=(*self.model.layout.terms, *terms))
        return TorqueColumns(replace(self.model, layout=layout), self.motion)

    def without_drives(self, joint: int, values: Array) -> Array:
        """What friction, rotor and offset of a joint cannot take of ``(N, k)`` values of its torque."""
        if joint not in self._bases:
            own = self.drives(joint)[1]
            columns, size, _ = np.linalg.svd(own[:, np.any(own != 0, axis=0)], full_matrices=False)
            self._bases[joint] = columns[:, size > 1e-9 * size.max(initial=0.0)]
        basis = self._bases[joint]
        return np.asarray(values - basis @ (basis.T @ values))

    def bodies(self, gravity: Array) -> Array:
        """``(n, N, 10 nb)`` columns of ``1 + E`` of all bodies, for a gravity ``(3,)`` [m/s^2]."""
        key = tuple(gravity.tolist())
        if key not in self._bodies:
            inertial, weights = self._parameters
            out = inertial.copy()
            out[..., :_MOMENT_PARAMETERS] += np.tensordot(gravity, weights, 1)
            n, rows, count, _ = out.shape
            columns = np.swapaxes(out.reshape(n * rows, count, -1), 0, 1) @ _directions(self.model)
            self._bodies[key] = np.swapaxes(columns, 0, 1).reshape(n, rows, -1)
        return self._bodies[key]

    def moments(self, body: int, gravity: Array) -> Array:
        """``(n, N, 4)`` torques of mass and first moment of a body, for a gravity ``(3,)`` [m/s^2]."""
        inertial, weights = self._parameters
        return np.asarray(inertial[:, :, body, :_MOMENT_PARAMETERS] + np.tensordot(gravity, weights[:, :, :, body], 1))

    @cached_property
    def torque_of_urdf(self) -> Array:
        """``(N, n)`` torque of the bodies of the URDF [N m or N]."""
        motion = self.motion
        return rigid_torque(self.model, self.model.consistent_body_prior, motion.q, motion.v, motion.a)[:, self._joints]

    @property
    def weight_of_urdf(self) -> Array:
        """``(N, n)`` torque of the bodies of the URDF at rest [N m or N]."""
        q, still = self.motion.q, np.zeros_like(self.motion.v)
        return rigid_torque(self.model, self.model.consistent_body_prior, q, still, still)[:, self._joints]

    @cached_property
    def _parameters(self) -> tuple[Array, Array]:
        """``(n, N, nb, 10)`` torques of the parameters without gravity, and ``(3, n, N, nb, 4)`` of unit gravities."""
        q, v, a = self.motion.q, self.motion.v, self.motion.a
        still = np.zeros_like(v)
        inertial = body_torques(self.model, np.zeros(3), (q, v, a))[self._joints]
        weights = [body_torques(self.model, axis, (q, still, still), _MOMENT_PARAMETERS)[self._joints] for axis in np.eye(3)]
        return inertial, np.array(weights)


def _directions(model: RobotModel) -> Array:
    """``(nb, 10, 10)`` parameters of ``L E_k L^T`` for an orthonormal basis of symmetric matrices."""
    matrices = pseudo_inertia(model.consistent_body_prior)
    roots = np.linalg.cholesky(matrices)
    out = np.empty((len(roots), BODY_PARAMETERS, BODY_PARAMETERS))
    for k, basis in enumerate(BASIS):
        out[:, :, k] = from_pseudo_inertia(roots @ basis @ np.swapaxes(roots, 1, 2))
    return out


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
        self._share = np.full(len(order), _FRICTION_RATIO)
        self._share[3 * len(counted) : 4 * len(counted)] = _OFFSET_SHARE
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
        for _ in range(_MAX_NEWTON_STEPS):
            weights = np.zeros(len(error))
            weights[at] = INDEPENDENT_SAMPLES / self._rows / (EFFORT_FLOOR_SHARE**2 * variance[at] + error[at])
            x = self._within(x, self._solve(weights, cross, precision, x))
            explained = [own.square(x, right) for own, right in zip(self._joints, cross, strict=True)]
            before, error = error, np.maximum(squares + np.array(explained) / self._rows, 0.0)
            if (np.abs(error - before) <= _CONVERGED_CHANGE * before).all():
                break
        share = np.zeros_like(error)
        share[at] = np.sqrt(error[at] / variance[at])
        unlikely = 0.5 * INDEPENDENT_SAMPLES * np.log1p((share[at] / EFFORT_FLOOR_SHARE) ** 2).sum()
        far = divergence(x[: self._size]) / _PRIOR_SPREAD**2
        drives = 0.5 * np.sum(precision * x[self._size :] ** 2)
        rigid = self._bodies @ x[: self._size]
        return EffortFit(float(unlikely + far + drives), share, far, rigid)

    def _within(self, before: Array, after: Array) -> Array:
        """Step of every body as far as its mass distribution stays one; drives go all the way."""
        count = self._size
        start, step = _matrices(before[:count]), _matrices(after[:count] - before[:count])
        root = np.linalg.inv(np.linalg.cholesky(start))
        smallest = np.linalg.eigvalsh(root @ step @ np.swapaxes(root, 1, 2))[:, 0]
        share = np.minimum(1.0, _SHARE_TO_BORDER / np.maximum(-smallest, 1e-12))
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
            hessian[block, block] += of_body / _PRIOR_SPREAD**2
        gradient[:size] += right / _PRIOR_SPREAD**2
        diagonal = hessian.reshape(-1)[:: len(hessian) + 1]
        diagonal[size:] += precision
        scale = 1 / np.sqrt(diagonal)
        hessian *= scale
        hessian *= scale[:, None]
        gradient *= scale
        diagonal += _RIDGE_SHARE
        _, across, singular = scipy.linalg.lapack.dposv(
            hessian[:free, :free], np.column_stack([hessian[:free, free:], gradient[:free]])
        )
        if singular:
            raise np.linalg.LinAlgError("effort equations are singular")
        reduced = hessian[free:, free:] - hessian[free:, :free] @ across[:, :-1]
        right = gradient[free:] - hessian[free:, :free] @ across[:, -1]
        root = np.linalg.cholesky(reduced + _RIDGE_SHARE * np.eye(len(reduced)))
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
