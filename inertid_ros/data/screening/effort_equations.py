"""How well this robot, with bodies as far from the URDF's as is plausible and any friction, explains its efforts.

Torque is linear in the pseudo-inertias ``J = L (1 + E) L^T`` of the bodies; ``L L^T`` is the URDF's, and ``E``, without
units, the deviation from it. The prior of ``E`` is the Bregman divergence of ([Lee2019]_ sec. 3.3), made symmetric,
because a tenth of a body is no likelier than ten times of it. Friction is not negative, and unexplained efforts count
by the logarithm of their share, so that one joint without a sensor does not dominate. The costs of two fits are
negative log-likelihoods, which can be compared.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.regressors.drive_regressor import DriveMotion, drive_rows, joint_columns
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

EFFORT_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset")  # drive terms of all joints
EFFORT_FLOOR_SHARE = 0.1  # of a joint's effort: error that friction and elasticity beyond these models leave
INDEPENDENT_SAMPLES = 20.0  # of a motion with few periods; errors of a model are not independent in time
URDF_SPREAD = 0.5  # prior deviation of E: half or twice the masses of the URDF are not unusual
FREE_SPREAD = 30.0  # of a URDF that may say nothing of its bodies, as one with placeholders
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


class BodyColumns:
    """Columns in which the torque of the joints is linear along a motion: bodies near those of a robot's URDF."""

    def __init__(self, robot: RobotModel, motion: DriveMotion) -> None:
        self._robot, self._motion = robot, motion
        self._regressors: dict[tuple[float, ...], Array] = {}

    def deviations(self, gravity: Array) -> Array:
        """Columns ``(n, N, 10 nb)`` of ``1 + E`` of all bodies, for a gravity ``(3,)`` [m/s^2]."""
        columns = np.moveaxis(self._regressor(gravity), 2, 0) @ self._directions[:, None]
        return np.moveaxis(columns, 0, 2).reshape(*columns.shape[1:3], -1)

    def moments(self, body: int, gravity: Array) -> Array:
        """Torques ``(n, N, 4)`` of mass and first moment of a body, for a gravity ``(3,)`` [m/s^2]."""
        return self._regressor(gravity)[:, :, body, :_MOMENT_PARAMETERS]

    def torque(self, gravity: Array) -> Array:
        """Torque ``(n, N)`` of the bodies of the URDF under a gravity ``(3,)`` [m/s^2]."""
        return np.einsum("jnbp,bp->jn", self._regressor(gravity), self._robot.consistent_body_prior)

    @cached_property
    def torque_of_urdf(self) -> Array:
        """Torque ``(N, n)`` of the bodies of the URDF [N m or N]."""
        return rigid_torque(self._robot, self._robot.consistent_body_prior, *self._motion[:3])

    @property
    def weight_of_urdf(self) -> Array:
        """Torque ``(N, n)`` of the bodies of the URDF at rest [N m or N]."""
        still = np.zeros_like(self._motion.v)
        return rigid_torque(self._robot, self._robot.consistent_body_prior, self._motion.q, still, still)

    def _regressor(self, gravity: Array) -> Array:
        """``(n, N, nb, 10)`` torque per unit of the parameters of each body."""
        key = tuple(gravity.tolist())
        if key not in self._regressors:
            regressor = joint_torque_regressor(self._robot, *self._motion[:3], gravity).swapaxes(0, 1)
            self._regressors[key] = regressor.reshape(*regressor.shape[:2], -1, BODY_PARAMETERS)
        return self._regressors[key]

    @cached_property
    def _directions(self) -> Array:
        """Parameters ``(nb, 10, 10)`` of ``L E_k L^T`` for the basis ``E_k`` of symmetric matrices."""
        roots = np.linalg.cholesky(pseudo_inertia(self._robot.consistent_body_prior))
        turned = [from_pseudo_inertia(roots @ basis @ np.swapaxes(roots, 1, 2)) for basis in _BASIS]
        return np.stack(turned, axis=-1)


class DriveColumns:
    """Columns in which the torque of the joints is linear along a motion: drives, couplings and user terms.

    Attributes
    ----------
    indices, values : for every joint, the ``k`` parameters that act on it, and their columns ``(N, k)``.
    shares : (d,), prior deviation of each parameter, of a joint's RMS effort.
    either_sign : number of the parameters, the first ones, that may have either sign.
    """

    def __init__(self, layout: ParameterLayout, motion: DriveMotion, load: Array) -> None:
        parameters = np.arange(layout.inertial_size, layout.size)
        not_negative = np.isin(parameters, layout.non_negative)
        order = np.argsort(not_negative, kind="stable")
        place = np.argsort(order)
        joints = range(len(layout.joints))
        self.indices = [place[joint_columns(layout, joint) - layout.inertial_size] for joint in joints]
        self.values = [np.stack(columns, axis=1) for columns in drive_rows(layout, motion, load)]
        offsets = np.isin(parameters[order], np.r_[layout.drive("offset")])
        self.shares = np.where(offsets, _OFFSET_SHARE, _FRICTION_RATIO)
        self.either_sign = len(order) - np.count_nonzero(not_negative)
        self._bases: dict[int, Array] = {}  # orthonormal columns of the drives of a joint

    def torque(self, parameters: Array) -> Array:
        """Torque ``(n, N)`` of the drives with parameters ``(d,)`` [N m or N]."""
        return np.stack([columns @ parameters[of] for columns, of in zip(self.values, self.indices, strict=True)])

    def unexplained(self, joint: int, values: Array) -> Array:
        """Remainder of values ``(N, k)`` of a joint's torque that its drives cannot explain."""
        if joint not in self._bases:
            drives = self.values[joint]
            columns, size, _ = np.linalg.svd(drives[:, np.any(drives != 0, axis=0)], full_matrices=False)
            self._bases[joint] = columns[:, size > 1e-9 * size.max(initial=0.0)]
        basis = self._bases[joint]
        return np.asarray(values - basis @ (basis.T @ values))


@dataclass(frozen=True)
class EffortFit:
    """Best explanation of efforts by one motion.

    Attributes
    ----------
    cost : negative logarithm of the likelihood of the efforts, up to a constant.
    share : (n,), RMS residual over the standard deviation of the effort.
    far : part of the cost for bodies unlike those of the URDF.
    rigid : (n, N), torque of the fitted bodies [N m or N].
    drives : (d,), fitted parameters of the drives.
    """

    cost: float
    share: Array
    far: float
    rigid: Array
    drives: Array


class _JointEquations(NamedTuple):
    """Columns ``(c,)`` on which a joint's torque depends, Gram matrix ``(c, c)``, and products with efforts ``(c, n)``.
    """

    columns: NDArray[np.intp]
    gram: Array
    products: Array

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
        self._bodies, self._counted, self._share = bodies, np.flatnonzero(counted), drives.shares
        size, self._rows = bodies.shape[2], len(efforts)
        self._joints = []  # a joint's torque depends on the bodies that it moves, and on its own drives
        for of_bodies, driven, of_drives in zip(bodies, drives.indices, drives.values, strict=True):
            moved = np.flatnonzero(of_bodies.any(axis=0))
            values = np.hstack([of_bodies[:, moved], of_drives])
            self._joints.append(_JointEquations(np.append(moved, size + driven), values.T @ values, values.T @ efforts))
        self._squares, self._mean = efforts.T @ efforts, efforts.mean(axis=0)
        # Columns whose parameters may have either sign come first.
        self._size, self._free = size, size + drives.either_sign
        urdf = np.tile(np.eye(4)[_ROWS, _COLUMNS], size // BODY_PARAMETERS)
        self._start = np.append(urdf, np.zeros(len(drives.shares)))

    def fit(self, mixing: Array, spread: float = URDF_SPREAD) -> EffortFit:
        """Fit the efforts ``mixing @ efforts``, ``(n, n)``, with bodies that deviate from the URDF's by a spread."""
        cross = [joint.products @ row for joint, row in zip(self._joints, mixing, strict=True)]
        squares = np.einsum("ji,ik,jk->j", mixing, self._squares, mixing) / self._rows
        variance = np.maximum(squares - (mixing @ self._mean) ** 2, 1e-300)
        precision = self._precision(squares)
        error, at, x = variance.copy(), self._counted, self._start
        for _ in range(_MAX_NEWTON_STEPS):
            # Weights that make the logarithmic cost of each joint's error a quadratic one.
            weights = np.zeros(len(error))
            weights[at] = INDEPENDENT_SAMPLES / self._rows / (EFFORT_FLOOR_SHARE**2 * variance[at] + error[at])
            x = self._within(x, self._solve(weights, cross, precision, x, spread))
            explained = [joint.square(x, right) for joint, right in zip(self._joints, cross, strict=True)]
            before, error = error, np.maximum(squares + np.array(explained) / self._rows, 0.0)
            if (np.abs(error - before) <= _CONVERGED_CHANGE * before).all():
                break
        share = np.zeros_like(error)
        share[at] = np.sqrt(error[at] / variance[at])
        unlikely = 0.5 * INDEPENDENT_SAMPLES * np.log1p((share[at] / EFFORT_FLOOR_SHARE) ** 2).sum()
        far = _divergence(x[: self._size]) / spread**2
        drives = 0.5 * np.sum(precision * x[self._size :] ** 2)
        cost, rigid = float(unlikely + far + drives), self._bodies @ x[: self._size]
        return EffortFit(cost, share, far, rigid, x[self._size :])

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

    def _solve(self, weights: Array, cross: list[Array], precision: Array, before: Array, spread: float) -> Array:
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
            hessian[block, block] += of_body / spread**2
        gradient[:size] += right / spread**2
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
