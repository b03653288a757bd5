"""Gradient of a weighted sum of regressor elements with respect to the motion, without the gradient of each element.

The sum ``<Z, Y(q, v, a)>`` over the elements of a regressor is differentiated in reverse mode ([Ayusawa2017]_ eqs.
18-40; [Lee2019]_ sec. B.3). The wrench that moves a body, in the root frame, is linear in the parameters of the body.
Its product with the screw of a joint is the torque of the joint; its components are the reaction wrench at the root.
The weights of all rows therefore add up to six weights per parameter of a body, ``D_b`` below. These six weights give
the derivatives with respect to the motion of the body alone; sums over subtrees give the derivatives with respect to
the motion of each joint. No array of size rows times columns times joints is needed: the gradient costs as much as
about two regressors, for any number of motion parameters. Rows of the reaction wrench add no cost, because their screws
are unit vectors.

``F`` are the wrenches per unit parameter, ``D_b = sum_j S_j Z_jb``, and ``gV, gA`` the derivatives with respect to the
velocity and acceleration of body ``b`` at constant placement. The derivatives with respect to the motion of a joint
with the screw ``S`` are

``dq: S . sum(u - t) + r . sum(gV + V x* gA) + s . sum gA``,
``dv: S . sum(gV + V x* gA) + 2 r . sum gA``,  ``da: S . sum gA``

with sums over the bodies that the joint moves. ``r = V' x S`` and ``s = A' x S + V' x r`` contain the velocity ``V'``
and acceleration ``A'`` of the body before the joint. ``t_b = sum_c D_bc x* F_bc`` accounts for wrenches ``F`` that turn
with their bodies, and ``u_j = S_j x* sum_b F Z_j`` for screws in ``D`` that turn with the joint.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array, cross
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.dynamics import WRENCH_TABLE, wrench_products
from inertid_ros.robot.kinematics import TreeKinematics, TreeState, force_cross, motion_cross, turned_forces

_TABLE = WRENCH_TABLE.reshape(6 * BODY_PARAMETERS, -1)
_TRANSPOSED_TABLE = np.ascontiguousarray(_TABLE.T)


@dataclass(frozen=True)
class BodyWrenches:
    """Wrenches of all bodies at N samples ([Lee2019]_ eq. B.3; [Ayusawa2017]_ eqs. 18-23).

    Attributes
    ----------
    angular_velocity : (N, nb, 3), of each body in its own frame [rad/s].
    regressor : (N, 6, 10 nb), (force, torque) about the root origin, in the root frame, per unit of each parameter.
    """

    angular_velocity: Array
    regressor: Array

    @classmethod
    def of(cls, state: TreeState) -> "BodyWrenches":
        """Wrenches from the motion of the bodies."""
        x, A = state.placements[..., :3, 3], state.acceleration
        v, w = state.velocity[..., :3], state.velocity[..., 3:]
        at_origin = A[..., :3] + cross(A[..., 3:], x) + cross(w, v + cross(w, x))
        local = np.stack([at_origin, A[..., 3:], w], axis=-2) @ state.placements[..., :3, :3]  # rows: R^T applied
        products = wrench_products(local[..., 0, :], local[..., 1, :], local[..., 2, :])
        samples, bodies, count = products.shape
        wrenches = (products.reshape(-1, count) @ _TRANSPOSED_TABLE).reshape(samples, bodies, 6, BODY_PARAMETERS)
        regressor = turned_forces(state.placements, wrenches).swapaxes(1, 2)
        return cls(local[..., 2, :], regressor.reshape(samples, 6, bodies * BODY_PARAMETERS))


def moved_columns(kinematics: TreeKinematics) -> Array:
    """Mask ``(n, 10 nb)``: 1 for columns of bodies that a joint moves, else 0."""
    return np.repeat(kinematics.ancestry, BODY_PARAMETERS, axis=1).astype(float)


@dataclass(frozen=True)
class MotionGradient:
    """``<Z, Y>`` and its derivatives ``(N, n)`` with respect to position, velocity and acceleration."""

    value: float
    position: Array
    velocity: Array
    acceleration: Array


def regressor_product_gradient(kinematics: TreeKinematics, state: TreeState, joint_weights: Array | float = 0.0,
        base_weights: Array | float = 0.0, wrenches: BodyWrenches | None = None) -> MotionGradient:
    """Value and gradient of ``<Z, Y>`` at the states of ``N`` samples; ``wrenches`` are computed if not given.

    Parameters
    ----------
    joint_weights : ndarray, shape (N, n, 10 nb)
        Weights of the joint torque regressor; elements of bodies that a joint does not move have no effect.
    base_weights : (N, 6, 10 nb), weights of the regressor of the reaction wrench at the root (force, torque).
    """
    wrenches = wrenches or BodyWrenches.of(state)
    S, V, F = state.screws, state.velocity, wrenches.regressor
    weights = np.zeros_like(F)
    turning = np.zeros_like(S)
    if np.ndim(joint_weights):
        Z = joint_weights * moved_columns(kinematics)
        weights += S.swapaxes(1, 2) @ Z
        turning = force_cross(S, Z @ F.swapaxes(1, 2))
    weights += base_weights
    alone = _column_cross(weights, F)
    by_velocity, by_acceleration = _by_body_motion(state, wrenches.angular_velocity, weights)
    dragged = by_velocity + force_cross(V, by_acceleration)
    turned, dragged, pushed = kinematics.subtree_sums(np.stack([turning - alone, dragged, by_acceleration]))
    before, lifted = kinematics.parent_motion(state)
    rate = motion_cross(before, S)
    second = motion_cross(lifted, S) + motion_cross(before, rate)
    return MotionGradient(
        float(np.vdot(weights, F)), _dot(S, turned) + _dot(rate, dragged) + _dot(second, pushed),
        _dot(S, dragged) + 2 * _dot(rate, pushed), _dot(S, pushed))


def _by_body_motion(state: TreeState, spin: Array, weights: Array) -> tuple[Array, Array]:
    """Derivatives ``(N, nb, 6)`` with respect to velocity and acceleration of each body, at constant placements."""
    R, x = state.placements[..., :3, :3], state.placements[..., :3, 3]
    w, u = state.velocity[..., 3:], state.velocity[..., :3]
    samples, bodies = R.shape[:2]
    D = weights.reshape(samples, 2, 3, bodies, BODY_PARAMETERS).transpose(0, 3, 1, 2, 4).copy()
    D[:, :, 0] += cross(D[:, :, 1].swapaxes(-1, -2), x[:, :, None]).swapaxes(-1, -2)
    local = R.swapaxes(-1, -2)[:, :, None] @ D
    z = (local.reshape(samples * bodies, -1) @ _TABLE).reshape(samples, bodies, -1)
    turn = np.empty_like(spin)
    turn[..., 0] = 2 * z[..., 6] * spin[..., 0] + z[..., 7] * spin[..., 1] + z[..., 8] * spin[..., 2]
    turn[..., 1] = z[..., 7] * spin[..., 0] + 2 * z[..., 9] * spin[..., 1] + z[..., 10] * spin[..., 2]
    turn[..., 2] = z[..., 8] * spin[..., 0] + z[..., 10] * spin[..., 1] + 2 * z[..., 11] * spin[..., 2]
    pull, push, turn = np.moveaxis(np.stack([z[..., :3], z[..., 3:6], turn], axis=-2) @ R.swapaxes(-1, -2), -2, 0)
    by_linear = cross(pull, w)
    by_acceleration = np.concatenate([pull, push + cross(x, pull)], axis=-1)
    angular = turn + cross(u + cross(w, x), pull) + cross(x, by_linear)
    return np.concatenate([by_linear, angular], axis=-1), by_acceleration


def _column_cross(D: Array, F: Array) -> Array:
    """Sum ``(N, nb, 6)`` of ``D x* F`` over the columns of each body, for ``D`` and ``F`` ``(N, 6, 10 nb)``."""
    shape = (len(D), 6, -1, BODY_PARAMETERS)
    left, right = (np.moveaxis(x.reshape(shape), 2, 1) for x in (D, F))
    E = left @ right.swapaxes(-1, -2)  # (N, nb, 6, 6) sums of outer products over the columns
    linear, angular = E[..., 3:, :3], E[..., 3:, 3:]
    return np.concatenate([_vee(linear), _vee(angular) + _vee(E[..., :3, :3])], axis=-1)


def _vee(E: Array) -> Array:
    """Sum of cross products ``(..., 3)`` from the sum of outer products ``(..., 3, 3)``."""
    return np.stack([E[..., 1, 2] - E[..., 2, 1], E[..., 2, 0] - E[..., 0, 2], E[..., 0, 1] - E[..., 1, 0]], axis=-1)


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("nbk,nbk->nb", a, b), dtype=float)
