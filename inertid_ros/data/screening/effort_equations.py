"""How well this robot, with bodies as far from the URDF's as is plausible and any friction, explains its efforts.

Torque is linear in the pseudo-inertias ``J = L (1 + E) L^T`` of the bodies; ``L L^T`` is the URDF's, and ``E``, without
units, the deviation from it. The prior of ``E`` is the Bregman divergence of ([Lee2019]_ sec. 3.3), made symmetric,
because a tenth of a body is no likelier than ten times of it. Friction is not negative, and unexplained efforts count
by the logarithm of their share, so that one joint without a sensor does not dominate. The costs of two fits are
negative log-likelihoods, which can be compared.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.robot.drives import term_columns
from inertid_ros.robot.dynamics import body_torques, rigid_torque
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

EFFORT_FLOOR_SHARE = 0.1  # of a joint's effort: error that friction and elasticity beyond these models leave
INDEPENDENT_SAMPLES = 20.0  # of a motion with few periods; errors of a model are not independent in time
_PRIOR_SPREAD = 0.5  # of E: half or twice the masses of the URDF are not unusual
_OFFSET_SHARE = 0.3  # prior deviation of an offset, of a joint's RMS effort
_FRICTION_RATIO = 10.0  # prior deviation of friction, of a joint's RMS effort: it only keeps proportional columns apart
_MAX_NEWTON_STEPS = 10
_CONVERGED_CHANGE = 1e-3  # relative change of the squared errors
_SHARE_TO_BORDER = 0.9  # of the step at which a body would have no extension
_RIDGE_SHARE = 1e-10  # of every column: columns may be proportional to one another
_MOMENT_PARAMETERS = 4  # mass and first moment
_ROWS, _COLUMNS = np.triu_indices(4)
# Orthonormal symmetric matrices (10, 4, 4), each with one or two non-zero elements.
_BASIS = np.zeros((len(_ROWS), 4, 4))
_BASIS[np.arange(len(_ROWS)), _ROWS, _COLUMNS] = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(0.5))
_BASIS = np.maximum(_BASIS, np.swapaxes(_BASIS, 1, 2))


@dataclass(frozen=True)
class Motion:
    """Position, velocity, acceleration ``(N, nq), (N, nv), (N, nv)`` in the model's order, and the direction of sliding
    of every drive, -1 to 1, ``(N, n + couplings)``."""

    q: Array
    v: Array
    a: Array
    direction: Array


class BodyColumns:
    """Columns in which the torque of the joints is linear along a motion: bodies near those of a robot's URDF."""

    def __init__(self, model: RobotModel, motion: Motion) -> None:
        self._model, self._motion = model, motion
        self._joints = slice(model.velocities - model.joints, None)
        self._deviations: dict[tuple[float, ...], Array] = {}

    def deviations(self, gravity: Array) -> Array:
        """Columns ``(n, N, 10 nb)`` of ``1 + E`` of all bodies, for a gravity ``(3,)`` [m/s^2]."""
        key = tuple(gravity.tolist())
        if key not in self._deviations:
            inertial, weights = self._parameters
            out = inertial.copy()
            out[..., :_MOMENT_PARAMETERS] += np.tensordot(gravity, weights, 1)
            n, rows, count, _ = out.shape
            columns = np.swapaxes(out.reshape(n * rows, count, -1), 0, 1) @ self._directions
            self._deviations[key] = np.swapaxes(columns, 0, 1).reshape(n, rows, -1)
        return self._deviations[key]

    def moments(self, body: int, gravity: Array) -> Array:
        """Torques ``(n, N, 4)`` of mass and first moment of a body, for a gravity ``(3,)`` [m/s^2]."""
        inertial, weights = self._parameters
        return np.asarray(inertial[:, :, body, :_MOMENT_PARAMETERS] + np.tensordot(gravity, weights[:, :, :, body], 1))

    @cached_property
    def torque_of_urdf(self) -> Array:
        """Torque ``(N, n)`` of the bodies of the URDF [N m or N]."""
        return self._rigid_torque(self._motion.v, self._motion.a)

    @property
    def weight_of_urdf(self) -> Array:
        """Torque ``(N, n)`` of the bodies of the URDF at rest [N m or N]."""
        still = np.zeros_like(self._motion.v)
        return self._rigid_torque(still, still)

    def _rigid_torque(self, v: Array, a: Array) -> Array:
        return rigid_torque(self._model, self._model.consistent_body_prior, self._motion.q, v, a)[:, self._joints]

    @cached_property
    def _parameters(self) -> tuple[Array, Array]:
        """Torques ``(n, N, nb, 10)`` of the parameters without gravity, and ``(3, n, N, nb, 4)`` of unit gravities."""
        q, v, a = self._motion.q, self._motion.v, self._motion.a
        still = np.zeros_like(v)
        inertial = body_torques(self._model, np.zeros(3), (q, v, a))[self._joints]
        at_rest = (q, still, still)
        weights = [body_torques(self._model, axis, at_rest, _MOMENT_PARAMETERS)[self._joints] for axis in np.eye(3)]
        return inertial, np.array(weights)

    @cached_property
    def _directions(self) -> Array:
        """Parameters ``(nb, 10, 10)`` of ``L E_k L^T`` for the basis ``E_k`` of symmetric matrices."""
        roots = np.linalg.cholesky(pseudo_inertia(self._model.consistent_body_prior))
        out = np.empty((len(roots), BODY_PARAMETERS, BODY_PARAMETERS))
        for k, basis in enumerate(_BASIS):
            out[:, :, k] = from_pseudo_inertia(roots @ basis @ np.swapaxes(roots, 1, 2))
        return out


class DriveColumns:
    """Columns in which the torque of the joints is linear along a motion: drives, couplings and user terms.

    The parameters are rotor inertia, viscous and Coulomb friction and offset of the joints, then the first three of the
    couplings, then those of the user terms.
    """

    def __init__(self, layout: ParameterLayout, motion: Motion, bodies: BodyColumns) -> None:
        self._layout, self._motion, self._bodies = layout, motion, bodies
        self._bases: dict[int, Array] = {}  # orthonormal columns of the drives of a joint

    def of_joint(self, joint: int) -> tuple[list[int], Array]:
        """Indices of the parameters that act on a joint, and their columns ``(N, k)``."""
        n, count = len(self._layout.joints), len(self._layout.couplings)
        columns, values = [3 * n + joint], [np.ones(len(self._motion.q))]
        for gear in np.flatnonzero(self._layout.drive_ratios[:, joint]).tolist():
            for index, signal in enumerate(self._signals):
                columns.append(index * n + gear if gear < n else 4 * n + index * count + gear - n)
                values.append(self._layout.drive_ratios[gear, joint] * signal[:, gear])
        for index, (term_joint, column) in enumerate(self._terms):
            if term_joint == joint:
                columns.append(4 * n + 3 * count + index)
                values.append(column)
        return columns, np.stack(values, axis=1)

    @property
    def not_negative(self) -> NDArray[np.bool_]:
        """Flag the parameters ``(d,)`` that are not negative: all but offsets and some user terms."""
        n, layout = len(self._layout.joints), self._layout
        of_terms = [term.non_negative for term in layout.terms for _ in term.expressions]
        return np.r_[np.ones(3 * n), np.zeros(n), np.ones(3 * len(layout.couplings)), of_terms] > 0

    def unexplained(self, joint: int, values: Array) -> Array:
        """Remainder of values ``(N, k)`` of a joint's torque that its drives cannot explain."""
        if joint not in self._bases:
            drives = self.of_joint(joint)[1]
            columns, size, _ = np.linalg.svd(drives[:, np.any(drives != 0, axis=0)], full_matrices=False)
            self._bases[joint] = columns[:, size > 1e-9 * size.max(initial=0.0)]
        basis = self._bases[joint]
        return np.asarray(values - basis @ (basis.T @ values))

    @cached_property
    def _signals(self) -> tuple[Array, Array, Array]:
        """Acceleration, speed and direction of every drive, joints first."""
        n, ratios = len(self._layout.joints), self._layout.drive_ratios
        v, a = (channel[:, channel.shape[1] - n :] @ ratios.T for channel in (self._motion.v, self._motion.a))
        return a, v, self._motion.direction

    @cached_property
    def _terms(self) -> list[tuple[int, Array]]:
        """Joint and column ``(N,)`` of every user term's parameter."""
        motion, layout, n = self._motion, self._layout, len(self._layout.joints)
        signals = {"q": motion.q[:, -n:], "v": motion.v[:, -n:], "a": motion.a[:, -n:]}
        signals["direction"] = motion.direction[:, :n]
        if any(term.uses_load for term in layout.terms):
            signals["load"] = self._bodies.torque_of_urdf
        return term_columns(layout.terms, layout.joints, signals)


@dataclass(frozen=True)
class EffortFit:
    """Best explanation of efforts by one motion.

    Attributes
    ----------
    cost : negative logarithm of the likelihood of the efforts, up to a constant.
    share : (n,), RMS residual over the standard deviation of the effort.
    far : part of the cost for bodies unlike those of the URDF.
    rigid : (n, N), torque of the fitted bodies [N m or N].
    """

    cost: float
    share: Array
    far: float
    rigid: Array


@dataclass(frozen=True)
class _JointEquations:
    """Columns on which a joint's torque depends, their values ``(N, c)`` and Gram matrix ``(c, c)``."""

    columns: NDArray[np.intp]
    values: Array
    gram: Array

    def square(self, x: Array, cross: Array) -> float:
        """``|A x|^2 - 2 b^T A x``, from the parameters of all joints and ``A^T b``."""
        parameters = x[self.columns]
        return float((self.gram @ parameters - 2 * cross) @ parameters)


class EffortEquations:
    """Normal equations of all joints, for any linear combination of their efforts.

    Parameters
    ----------
    bodies : (n, N, 10 nb), columns, see :meth:`BodyColumns.deviations`.
    efforts : (N, n), as measured [N m or N].
    counted : bool (n,), joints whose efforts are compared.
    """

    def __init__(self, bodies: Array, drives: DriveColumns, efforts: Array, counted: NDArray[np.bool_]) -> None:
        self._bodies, self._counted = bodies, np.flatnonzero(counted)
        # Columns whose parameters may have either sign come first.
        not_negative = drives.not_negative
        order = np.argsort(not_negative, kind="stable")
        place = np.argsort(order)
        size, self._rows = bodies.shape[2], len(efforts)
        self._joints = []  # a joint's torque depends on the bodies that it moves, and on its own drives
        for joint, of_bodies in enumerate(bodies):
            driven, of_drives = drives.of_joint(joint)
            moved = np.flatnonzero(of_bodies.any(axis=0))
            columns, values = np.append(moved, size + place[driven]), np.hstack([of_bodies[:, moved], of_drives])
            self._joints.append(_JointEquations(columns, values, values.T @ values))
        self._start = np.append(no_deviation(size), np.zeros(len(order)))
        self._size, self._free = size, size + len(order) - int(not_negative.sum())
        self._share = np.full(len(order), _FRICTION_RATIO)
        self._share[3 * len(counted) : 4 * len(counted)] = _OFFSET_SHARE
        self._share = self._share[order]
        self._take(efforts)

    def with_efforts(self, efforts: Array) -> "EffortEquations":
        """Equations of other efforts ``(N, n)`` on the same motion."""
        other = copy(self)
        other._take(efforts)
        return other

    def _take(self, efforts: Array) -> None:
        self._cross = [joint.values.T @ efforts for joint in self._joints]
        self._squares, self._mean = efforts.T @ efforts, efforts.mean(axis=0)

    def fit(self, mixing: Array) -> EffortFit:
        """Fit the efforts ``mixing @ efforts``, ``(n, n)``."""
        cross = [right @ row for right, row in zip(self._cross, mixing, strict=True)]
        squares = np.einsum("ji,ik,jk->j", mixing, self._squares, mixing) / self._rows
        variance = np.maximum(squares - (mixing @ self._mean) ** 2, 1e-300)
        precision = self._precision(squares)
        error, at, x = variance.copy(), self._counted, self._start
        for _ in range(_MAX_NEWTON_STEPS):
            # Weights that make the logarithmic cost of each joint's error a quadratic one.
            weights = np.zeros(len(error))
            weights[at] = INDEPENDENT_SAMPLES / self._rows / (EFFORT_FLOOR_SHARE**2 * variance[at] + error[at])
            x = self._within(x, self._solve(weights, cross, precision, x))
            explained = [joint.square(x, right) for joint, right in zip(self._joints, cross, strict=True)]
            before, error = error, np.maximum(squares + np.array(explained) / self._rows, 0.0)
            if (np.abs(error - before) <= _CONVERGED_CHANGE * before).all():
                break
        share = np.zeros_like(error)
        share[at] = np.sqrt(error[at] / variance[at])
        unlikely = 0.5 * INDEPENDENT_SAMPLES * np.log1p((share[at] / EFFORT_FLOOR_SHARE) ** 2).sum()
        far = _divergence(x[: self._size]) / _PRIOR_SPREAD**2
        drives = 0.5 * np.sum(precision * x[self._size :] ** 2)
        return EffortFit(float(unlikely + far + drives), share, far, self._bodies @ x[: self._size])

    def _within(self, before: Array, after: Array) -> Array:
        """Step every body as far as it stays a mass distribution; drives go all the way."""
        count = self._size
        start, step = _matrices(before[:count]), _matrices(after[:count] - before[:count])
        root = np.linalg.inv(np.linalg.cholesky(start))
        smallest = np.linalg.eigvalsh(root @ step @ np.swapaxes(root, 1, 2))[:, 0]
        share = np.minimum(1.0, _SHARE_TO_BORDER / np.maximum(-smallest, 1e-12))
        out = after.copy()
        out[:count] = before[:count] + np.repeat(share, BODY_PARAMETERS) * (after - before)[:count]
        return out

    def _precision(self, squares: Array) -> Array:
        """Precision ``(d,)`` of the priors of the drives, by the effort that they may explain."""
        largest = np.zeros(len(self._start))
        for joint, square in zip(self._joints, squares.tolist(), strict=True):
            if square > 0:
                size = np.sqrt(np.diagonal(joint.gram) / self._rows / square)
                largest[joint.columns] = np.maximum(largest[joint.columns], size)
        largest = largest[self._size :]
        return np.asarray(np.maximum((largest / self._share) ** 2, 1e-12))

    def _solve(self, weights: Array, cross: list[Array], precision: Array, before: Array) -> Array:
        """Take one Newton step from the parameters ``before``."""
        size, free = self._size, self._free
        hessian, gradient = np.zeros((len(before), len(before))), np.zeros(len(before))
        for joint, right, weight in zip(self._joints, cross, weights.tolist(), strict=True):
            if weight:
                hessian[np.ix_(joint.columns, joint.columns)] += weight * joint.gram
                gradient[joint.columns] += weight * right
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
        # Eliminate the parameters of either sign, and solve for the others with non-negative least squares.
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


def no_deviation(size: int) -> Array:
    """Values ``(10 nb,)`` of the bodies' columns for the bodies of the URDF."""
    return np.tile(np.eye(4)[_ROWS, _COLUMNS], size // BODY_PARAMETERS)


def _divergence(bodies: Array) -> float:
    """Mean Bregman divergence of all bodies ``(10 nb,)`` from those of the URDF and in reverse.

    That is ``tr(X + 1/X - 2) / 2`` for ``X = 1 + E``, which is convex.
    """
    values = np.linalg.eigvalsh(_matrices(bodies))
    return float(0.5 * np.sum(values + 1 / values - 2))


def _expanded(bodies: Array) -> tuple[Array, Array]:
    """Hessians ``(nb, 10, 10)`` of the divergence, and the right-hand side ``(10 nb,)`` of a Newton step."""
    inverse = np.linalg.inv(_matrices(bodies))
    turned = np.einsum("bij,pjk->bpik", inverse, _BASIS)
    twice = turned @ inverse[:, None]
    blocks = np.einsum("bpij,bqji->bpq", turned, twice)
    slopes = 0.5 * (np.einsum("pii->p", _BASIS) - np.einsum("bpii->bp", twice))
    right = np.einsum("bpq,bq->bp", blocks, bodies.reshape(len(blocks), -1)) - slopes
    return blocks, right.ravel()


def _matrices(bodies: Array) -> Array:
    """Matrices ``1 + E``, ``(nb, 4, 4)``."""
    return np.einsum("bp,pij->bij", bodies.reshape(-1, BODY_PARAMETERS), _BASIS)
