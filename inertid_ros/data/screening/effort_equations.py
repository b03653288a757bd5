"""Fit of efforts by a robot with any friction, and with bodies that deviate plausibly from the URDF.

Torque is linear in the pseudo-inertias ``J = L (1 + E) L^T`` of the bodies: ``L L^T`` is the pseudo-inertia in the
URDF, and ``E``, without units, is the deviation from the URDF. ``1 + E`` is the pseudo-inertia of the ten parameters
that are fitted for each body. The prior of ``E`` is the Bregman divergence ([Lee2019]_ sec. 3.3), made symmetric: a
tenth of a body is as likely as ten times the body. Friction is not negative. The cost of a joint grows with the
logarithm of its unexplained share of effort, so that one joint without a sensor does not dominate. Costs are negative
log-likelihoods, so that the costs of two fits can be compared.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.inertial_parameters import PSEUDO_INERTIA_BASIS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.regressors.drives import DriveMotion, drive_rows, joint_columns
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

EFFORT_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset")  # drive terms of all joints
_EFFORT_FLOOR_SHARE = 0.1  # error over a joint's effort that unmodelled friction and elasticity leave
_INDEPENDENT_SAMPLES = 20.0  # in a motion with few periods; errors of a model are not independent in time
URDF_SPREAD = 0.5  # prior deviation of E: half or twice the masses of the URDF are not unusual
FREE_SPREAD = 30.0  # prior deviation of E for a URDF without information on its bodies, such as placeholders
_OFFSET_SHARE = 0.3  # prior deviation of an offset over a joint's RMS effort
_FRICTION_RATIO = 10.0  # prior deviation of friction over a joint's RMS effort: it only separates proportional columns
_MAX_FACTOR_DEVIATION = 0.3  # relative; with more, a joint's effort does not determine its factor
_NEWTON_STEPS_PER_SPREAD = 20  # bodies far heavier than placeholders of the URDF take some hundred steps
_CONVERGED_CHANGE = 1e-3  # relative change of the squared errors
_SHARE_TO_BORDER = 0.9  # share of the step at which a body stops being a valid mass distribution
_RIDGE_SHARE = 1e-10  # relative ridge of every column: columns may be proportional to one another


@dataclass(frozen=True)
class EffortFit:
    """Best fit of the efforts on one motion.

    Attributes
    ----------
    cost : negative logarithm of the likelihood of the efforts, up to a constant.
    share : (n,), RMS residual over the standard deviation of the effort.
    far : part of the cost for bodies unlike the URDF's.
    parameters : (c,), fitted ``1 + E`` of the bodies, then drives.
    """

    cost: float
    share: Array
    far: float
    parameters: Array


class _Joint(NamedTuple):
    """Parameters ``(c,)`` on which a joint's torque depends, its columns ``(N, c)``, and their Gram matrix."""

    parameters: Indices
    columns: Array
    gram: Array


@dataclass(frozen=True, eq=False)
class EffortEquations:
    """Torque of the joints along a motion, linear in ``1 + E`` of the bodies and in drives, couplings and user terms.

    Attributes
    ----------
    gravity : (3,), m/s^2 in the root frame.
    """

    robot: RobotModel
    motion: DriveMotion
    gravity: Array

    @cached_property
    def regressor(self) -> Array:
        """``(n, N, nb, 10)`` torque per unit of the parameters of each body."""
        regressor = joint_torque_regressor(self.robot, *self.motion[:3], self.gravity).swapaxes(0, 1)
        return regressor.reshape(*regressor.shape[:2], len(self.robot.layout.links), -1)

    @cached_property
    def torque_of_urdf(self) -> Array:
        """Torque ``(N, n)`` of the bodies of the URDF, in the robot's own gravity [N m or N]."""
        return rigid_torque(self.robot, self.robot.consistent_body_prior, *self.motion[:3])

    @property
    def weight_of_urdf(self) -> Array:
        """Torque ``(N, n)`` of the bodies of the URDF at rest [N m or N]."""
        still = np.zeros_like(self.motion.v)
        return rigid_torque(self.robot, self.robot.consistent_body_prior, self.motion.q, still, still)

    @cached_property
    def urdf(self) -> Array:
        """Parameters ``(c,)`` of the URDF's bodies, with zeros for the drives."""
        layout = self.robot.layout
        bodies = np.tile(from_pseudo_inertia(np.eye(4)), len(layout.links))
        return np.append(bodies, np.zeros(layout.size - layout.inertial_size))

    def rigid(self, parameters: Array) -> Array:
        """Torque ``(N, n)`` of the bodies [N m or N]."""
        return (self._deviations @ parameters[: self._size]).T

    def torque(self, parameters: Array) -> Array:
        """Torque ``(N, n)`` of bodies and drives [N m or N]."""
        return np.stack([joint.columns @ parameters[joint.parameters] for joint in self._joints], axis=1)

    def fit(self, efforts: Array, counted: Mask, spread: float = URDF_SPREAD) -> EffortFit:
        """Fit efforts ``(N, n)`` of the ``counted`` joints ``(n,)``; ``spread`` is the prior deviation of bodies."""
        rows, at, x = len(efforts), np.flatnonzero(counted), self.urdf
        cross = [joint.columns.T @ effort for joint, effort in zip(self._joints, efforts.T, strict=True)]
        squares = np.mean(efforts**2, axis=0)
        variance = np.maximum(squares - efforts.mean(axis=0) ** 2, 1e-300)
        precision = self._precision(squares, rows)
        error = variance.copy()
        for _ in range(round(_NEWTON_STEPS_PER_SPREAD * spread)):
            # Weights that turn the logarithmic cost of each joint's error into a quadratic cost.
            weights = np.zeros(len(error))
            weights[at] = _INDEPENDENT_SAMPLES / rows / (_EFFORT_FLOOR_SHARE**2 * variance[at] + error[at])
            x = self._within(x, self._newton_step(weights, cross, precision, x, spread))
            before, error = error, np.empty_like(error)
            for index, (joint, right) in enumerate(zip(self._joints, cross, strict=True)):
                own = x[joint.parameters]
                error[index] = max(squares[index] + (joint.gram @ own - 2 * right) @ own / rows, 0.0)
            if (np.abs(error - before) <= _CONVERGED_CHANGE * before).all():
                break
        share = np.zeros_like(error)
        share[at] = np.sqrt(error[at] / variance[at])
        unlikely = 0.5 * _INDEPENDENT_SAMPLES * np.log1p((share[at] / _EFFORT_FLOOR_SHARE) ** 2).sum()
        far = _divergence(x[: self._size]) / spread**2
        drives = 0.5 * np.sum(precision * x[self._size :] ** 2)
        return EffortFit(float(unlikely + far + drives), share, far, x)

    def cost_of_urdf(self, efforts: Array, counted: Mask) -> float:
        """Cost with the bodies of the URDF and any friction; computes inverse dynamics once at most."""
        variance, cost = np.maximum(np.var(efforts, axis=0), 1e-300), 0.0
        rest = efforts - self.torque_of_urdf
        for joint in np.flatnonzero(counted).tolist():
            error = self._unexplained(joint, rest[:, joint])
            share = np.mean(error**2) / (_EFFORT_FLOOR_SHARE**2 * variance[joint])
            cost += 0.5 * _INDEPENDENT_SAMPLES * float(np.log1p(share))
        return cost

    def ratios(self, rigid: Array, efforts: Array, counted: Mask) -> tuple[Array, Mask]:
        """Factor ``(n,)`` of each joint from ``rigid`` torque to effort, both ``(N, n)``; whether it is determined."""
        ratio, determined = np.ones(len(counted)), np.zeros(len(counted), dtype=bool)
        for joint in np.flatnonzero(counted).tolist():
            torque, effort = (self._unexplained(joint, values[:, joint]) for values in (rigid, efforts))
            power = float(torque @ torque)
            if power <= 1e-12 * float(rigid[:, joint] @ rigid[:, joint]):
                continue
            ratio[joint] = torque @ effort / power
            rest = effort - ratio[joint] * torque
            deviation = np.sqrt(float(rest @ rest) / _INDEPENDENT_SAMPLES / power)
            determined[joint] = deviation < _MAX_FACTOR_DEVIATION * abs(ratio[joint])
        return ratio, determined

    def explained(self, columns: Array, known: Array, efforts: Array, counted: Mask) -> Array:
        """Factors ``(p,)`` of columns ``(N, n, p)`` that, with the drives, explain efforts minus ``known`` torques."""
        count = columns.shape[2]
        normal, right = np.zeros((count, count)), np.zeros(count)
        for joint in np.flatnonzero(counted).tolist():
            free = np.column_stack([columns[:, joint], efforts[:, joint] - known[:, joint]])
            free = self._unexplained(joint, free) / max(float(np.std(efforts[:, joint])), 1e-12)
            normal += free[:, :count].T @ free[:, :count]
            right += free[:, :count].T @ free[:, count]
        return np.asarray(np.linalg.lstsq(normal, right, rcond=1e-6)[0])

    def _unexplained(self, joint: int, values: Array) -> Array:
        """Remainder of values ``(N, ...)`` of a joint's torque that its drives cannot explain."""
        basis = self._drive_bases[joint]
        return np.asarray(values - basis @ (basis.T @ values))

    @property
    def _size(self) -> int:
        """Number of parameters of the bodies, which come first."""
        return self.robot.layout.body_size

    @cached_property
    def _deviations(self) -> Array:
        """Columns ``(n, N, 10 nb)`` of ``1 + E`` of all bodies."""
        roots = np.linalg.cholesky(pseudo_inertia(self.robot.consistent_body_prior))
        turned = [from_pseudo_inertia(roots @ basis @ np.swapaxes(roots, 1, 2)) for basis in PSEUDO_INERTIA_BASIS]
        columns = np.moveaxis(self.regressor, 2, 0) @ np.stack(turned, axis=-1)[:, None]
        return np.moveaxis(columns, 0, 2).reshape(*columns.shape[1:3], -1)

    @cached_property
    def _drives(self) -> list[Array]:
        """Columns ``(N, k)`` of the drives, couplings and user terms of every joint."""
        rows = drive_rows(self.robot.layout, self.motion, self.torque_of_urdf)
        return [np.stack(columns, axis=1) for columns in rows]

    @cached_property
    def _drive_bases(self) -> list[Array]:
        """Orthonormal basis of the drive columns of every joint."""
        bases = []
        for drives in self._drives:
            columns, size, _ = np.linalg.svd(drives[:, np.any(drives != 0, axis=0)], full_matrices=False)
            bases.append(columns[:, size > 1e-9 * size.max(initial=0.0)])
        return bases

    @cached_property
    def _joints(self) -> list[_Joint]:
        """Equations of every joint; they depend on the bodies that the joint moves, and on its drives."""
        layout, joints = self.robot.layout, []
        for index, (bodies, drives) in enumerate(zip(self._deviations, self._drives, strict=True)):
            moved = np.flatnonzero(bodies.any(axis=0))
            columns = np.hstack([bodies[:, moved], drives])
            driven = joint_columns(layout, index) - layout.inertial_size + self._size
            joints.append(_Joint(np.append(moved, driven), columns, columns.T @ columns))
        return joints

    def _within(self, before: Array, after: Array) -> Array:
        """Shorten the step of every body so that the body stays physically consistent; drives take the full step."""
        count = self._size
        start, step = _matrices(before[:count]), _matrices(after[:count] - before[:count])
        root = np.linalg.inv(np.linalg.cholesky(start))
        smallest = np.linalg.eigvalsh(root @ step @ np.swapaxes(root, 1, 2))[:, 0]
        share = np.minimum(1.0, _SHARE_TO_BORDER / np.maximum(-smallest, 1e-12))
        change = share[:, None] * (after - before)[:count].reshape(len(share), -1)
        return np.append(before[:count] + change.ravel(), after[count:])

    def _precision(self, squares: Array, rows: int) -> Array:
        """Precision ``(d,)`` of the priors of drive parameters, from the effort that each parameter may explain."""
        layout, largest = self.robot.layout, np.zeros(len(self.urdf))
        for joint, square in zip(self._joints, squares.tolist(), strict=True):
            if square > 0:
                size = np.sqrt(np.diagonal(joint.gram) / rows / square)
                largest[joint.parameters] = np.maximum(largest[joint.parameters], size)
        offsets = np.isin(np.arange(layout.inertial_size, layout.size), np.r_[layout.drive("offset")])
        share = np.where(offsets, _OFFSET_SHARE, _FRICTION_RATIO)
        return np.asarray(np.maximum((largest[self._size :] / share) ** 2, 1e-12))

    def _newton_step(self, weights: Array, cross: list[Array], precision: Array, before: Array, spread: float) -> Array:
        size, layout = self._size, self.robot.layout
        hessian, gradient = np.zeros((len(before), len(before))), np.zeros(len(before))
        for joint, right, weight in zip(self._joints, cross, weights.tolist(), strict=True):
            if weight:
                hessian[joint.parameters[:, None], joint.parameters] += weight * joint.gram
                gradient[joint.parameters] += weight * right
        curvature, right = _expanded(before[:size])
        for index, of_body in enumerate(curvature):
            hessian[layout.body(index), layout.body(index)] += of_body / spread**2
        gradient[:size] += right / spread**2
        diagonal = hessian.reshape(-1)[:: len(hessian) + 1]
        diagonal[size:] += precision
        scale = 1 / np.sqrt(diagonal)
        hessian *= scale
        hessian *= scale[:, None]
        gradient *= scale
        diagonal += _RIDGE_SHARE
        # Parameters of either sign come first in the Cholesky factor, so that its last rows are a non-negative least
        # squares problem of the other parameters alone.
        bound = np.sort(layout.non_negative) - layout.inertial_size
        bound = size + bound[bound >= 0]
        free = np.delete(np.arange(len(before)), bound)
        order, count, x = np.append(free, bound), len(free), np.empty_like(gradient)
        root = np.linalg.cholesky(hessian[order[:, None], order])
        right, _ = scipy.linalg.lapack.dtrtrs(root, gradient[order], lower=1)
        x[bound] = scipy.optimize.nnls(root[count:, count:].T, right[count:])[0]
        right = right[:count] - root[count:, :count].T @ x[bound]
        x[free], _ = scipy.linalg.lapack.dtrtrs(root[:count, :count], right, lower=1, trans=1)
        return np.asarray(scale * x)


def _divergence(bodies: Array) -> float:
    """Symmetric Bregman divergence between the bodies ``(10 nb,)`` and the URDF's bodies, summed over all bodies.

    The mean of both directions is ``tr(X + 1/X - 2) / 2`` for each body, with ``X = 1 + E``; it is convex.
    """
    values = np.linalg.eigvalsh(_matrices(bodies))
    return float(0.5 * np.sum(values + 1 / values - 2))


def _expanded(bodies: Array) -> tuple[Array, Array]:
    """Hessians ``(nb, 10, 10)`` of the divergence, and the right-hand side ``(10 nb,)`` of a Newton step."""
    inverse = np.linalg.inv(_matrices(bodies))
    turned = np.einsum("bij,pjk->bpik", inverse, PSEUDO_INERTIA_BASIS)
    twice = turned @ inverse[:, None]
    blocks = np.einsum("bpij,bqji->bpq", turned, twice)
    slopes = 0.5 * (np.einsum("pii->p", PSEUDO_INERTIA_BASIS) - np.einsum("bpii->bp", twice))
    right = np.einsum("bpq,bq->bp", blocks, bodies.reshape(len(blocks), -1)) - slopes
    return blocks, right.ravel()


def _matrices(bodies: Array) -> Array:
    """Matrices ``1 + E``, ``(nb, 4, 4)``."""
    return pseudo_inertia(bodies.reshape(-1, len(PSEUDO_INERTIA_BASIS)))
