"""Derivative of a weighted sum of regressor entries with respect to the motion, without the derivative of each entry.

For weights ``Z`` of the shape of the joint torque regressor ``Y``, the sum ``<Z, Y(q, v, a)>`` is a sum of joint
torques: row ``r`` of ``Z`` plays the inertial parameters of the robot whose torque at joint ``r`` counts. The
derivatives of inverse dynamics then apply row by row (A eqs. 24-40; the closed form in the root frame follows
S. Echeandia and P. M. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel symbols", 2021).
All samples and rows are worked out together; the cost is that of a few regressors, whatever the number of
parameters of the motion.
"""

from dataclasses import dataclass

import numpy as np

from ..robot.parameters import Array, pseudo_inertia
from .chain import Chain, ChainState, cross, force_cross, motion_cross


@dataclass(frozen=True)
class MotionGradient:
    """``<Z, Y>`` and its derivatives ``(N, n)`` with respect to position, velocity and acceleration."""

    value: float
    position: Array
    velocity: Array
    acceleration: Array


def regressor_product_gradient(chain: Chain, state: ChainState, weights: Array) -> MotionGradient:
    """Value and gradient of ``<Z, Y>``.

    Parameters
    ----------
    state: from ``chain.state(q, v, a)``, N samples.
    weights: ``(N, n, 10 nb)``; entries of bodies that a joint does not carry have no effect.
    """
    samples, n = state.screws.shape[:2]
    T = state.placements[:, None]
    inertia = T @ pseudo_inertia(weights.reshape(samples, n, n, 10)) @ np.swapaxes(T, -1, -2)
    S = state.screws[:, :, None]  # of the row
    V, A = state.velocity[:, None], state.acceleration[:, None]  # of the body
    momentum = _apply(inertia, V)
    pushed = _apply(inertia, np.broadcast_to(S, momentum.shape))
    force = _apply(inertia, A) + force_cross(V, momentum)
    # S_r' I and 2 S_r' B of every row and body, as vectors.
    coriolis = force_cross(V, pushed) - _apply(inertia, motion_cross(V, S)) - force_cross(S, momentum)
    sums = np.concatenate([pushed, coriolis, force], axis=-1)
    for body in range(n - 1, -1, -1):
        if chain.parents[body] >= 0:
            sums[:, :, chain.parents[body]] += sums[:, :, body]
    pushed, coriolis, force = sums[..., :6], sums[..., 6:12], sums[..., 12:]

    screws, before = state.screws, _of_parent(chain, state.velocity)
    lifted = _of_parent(chain, state.acceleration, -chain.gravity)
    rate = motion_cross(before, screws)
    second = motion_cross(lifted, screws) + motion_cross(before, rate)
    # d screw / dt: the part of the body's own velocity along the screw drops out.
    doubled = 2 * rate

    own = np.arange(n)
    down = chain.ancestry & ~np.eye(n, dtype=bool)  # row r strictly above joint i: composite at i
    up = chain.ancestry.T  # joint i at or above row r: composite at r
    value = float(np.einsum("nrk,nrk->", screws, force[:, own, own]))
    result = []
    for first, other in ((rate, second), (screws, doubled), (None, screws)):
        above = np.einsum("nrk,nik->nri", pushed[:, own, own], other)
        below = np.einsum("nrik,nik->nri", pushed, other)
        if first is not None:
            above += np.einsum("nrk,nik->nri", coriolis[:, own, own], first)
            below += np.einsum("nrik,nik->nri", coriolis, first)
        if first is rate:
            below += np.einsum("nrk,nrik->nri", screws, force_cross(screws[:, None], force))
        result.append(np.where(up, above, 0.0).sum(axis=1) + np.where(down, below, 0.0).sum(axis=1))
    return MotionGradient(value, *result)


def _of_parent(chain: Chain, quantity: Array, root: Array | float = 0.0) -> Array:
    out = np.empty_like(quantity)
    for joint, parent in enumerate(chain.parents):
        out[:, joint] = root if parent < 0 else quantity[:, parent]
    return out


def _apply(inertia: Array, M: Array) -> Array:
    """Spatial inertia, given as pseudo-inertia ``(..., 4, 4)`` about the root origin, times motions ``(..., 6)``."""
    sigma, h, m = inertia[..., :3, :3], inertia[..., :3, 3], inertia[..., 3:4, 3]
    v, w = M[..., :3], M[..., 3:]
    trace = np.trace(sigma, axis1=-2, axis2=-1)[..., None]
    angular = trace * w - (sigma @ w[..., None])[..., 0] + cross(h, v)
    return np.concatenate([m * v + cross(w, h), angular], axis=-1)
