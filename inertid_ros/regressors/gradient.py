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
from numpy.typing import NDArray

from ..robot.parameters import Array
from .chain import Chain, ChainState


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
    # Arrays are (component, pair, sample), a pair being a joint and a body that it carries: the innermost loop runs
    # over samples, and nothing is computed for pairs that do not touch.
    rows, bodies = chain.pairs
    S, V, A = (np.ascontiguousarray(x.transpose(2, 1, 0)) for x in (state.screws, state.velocity, state.acceleration))
    inertia = _inertia(state.placements, weights, rows, bodies)
    S_row, V_body = S[:, rows], V[:, bodies]
    momentum = _apply(inertia, V_body)
    pushed = _apply(inertia, S_row)
    force = _apply(inertia, A[:, bodies]) + _force_cross(V_body, momentum)
    # S_r' I and 2 S_r' B of every pair, as vectors; then summed over everything that the body carries.
    coriolis = _force_cross(V_body, pushed) - _force_cross(S_row, momentum)
    coriolis -= _apply(inertia, _motion_cross(V_body, S_row))
    for pair, parent in chain.inward:
        for quantity in (pushed, coriolis, force):
            quantity[:, parent] += quantity[:, pair]

    before, lifted = _of_parents(chain, V, np.zeros(6)), _of_parents(chain, A, -chain.gravity)
    rate = _motion_cross(before, S)  # of the screws: a body's own velocity along its screw drops out
    second = _motion_cross(lifted, S) + _motion_cross(before, rate)
    own = chain.own[bodies]
    into_rows, into_bodies = chain.selection
    result = []
    for first, other in ((rate, second), (S, 2 * rate), (None, S)):
        # What the joint's motion does to the torque of the body's own joint, and the other way round.
        above, below = _dot(pushed[:, own], other[:, rows]), _dot(pushed, other[:, bodies])
        if first is not None:
            above += _dot(coriolis[:, own], first[:, rows])
            below += _dot(coriolis, first[:, bodies])
        if first is rate:
            below += _dot(_motion_cross(S_row, S[:, bodies]), force)
        result.append((into_rows @ above + into_bodies @ below).T)
    value = float(_dot(S, force[:, chain.own]).sum())
    return MotionGradient(value, *result)


def _inertia(placements: Array, weights: Array, rows: NDArray[np.int_], bodies: NDArray[np.int_]) -> tuple[Array, ...]:
    """Mass, first moment (3, ...) and second moment (xx, xy, xz, yy, yz, zz) of every pair in the root frame."""
    samples = len(weights)
    z = np.ascontiguousarray(weights.reshape(samples, weights.shape[1], -1, 10)[:, rows, bodies].transpose(2, 1, 0))
    R = np.ascontiguousarray(placements[:, :, :3, :3].transpose(2, 3, 1, 0))[:, :, bodies]
    x = np.ascontiguousarray(placements[:, :, :3, 3].transpose(2, 1, 0))[:, bodies]
    half = 0.5 * (z[4] + z[6] + z[9])
    local = ((half - z[4], -z[5], -z[7]), (-z[5], half - z[6], -z[8]), (-z[7], -z[8], half - z[9]))
    h = [R[i, 0] * z[1] + R[i, 1] * z[2] + R[i, 2] * z[3] for i in range(3)]
    turned = [[sum(R[i, k] * local[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    first = np.stack([h[i] + z[0] * x[i] for i in range(3)])
    second = [
        turned[i][0] * R[j, 0] + turned[i][1] * R[j, 1] + turned[i][2] * R[j, 2] + h[i] * x[j] + x[i] * first[j]
        for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    ]
    return z[0], first, np.stack(second)


def _apply(inertia: tuple[Array, ...], M: Array) -> Array:
    """Spatial inertia times motions ``(6, ...)``: momentum or force, (linear, angular)."""
    mass, first, (xx, xy, xz, yy, yz, zz) = inertia
    v, (a, b, c) = M[:3], M[3:]
    out = np.empty_like(M)
    out[:3] = mass * v + _cross(M[3:], first)
    out[3:] = _cross(first, v)
    out[3] += (yy + zz) * a - xy * b - xz * c
    out[4] += (xx + zz) * b - xy * a - yz * c
    out[5] += (xx + yy) * c - xz * a - yz * b
    return out


def _cross(a: Array, b: Array) -> Array:
    out = np.empty_like(b)
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]
    return out


def _motion_cross(V: Array, M: Array) -> Array:
    out = np.empty_like(M)
    out[:3] = _cross(V[3:], M[:3]) + _cross(V[:3], M[3:])
    out[3:] = _cross(V[3:], M[3:])
    return out


def _force_cross(V: Array, F: Array) -> Array:
    out = np.empty_like(F)
    out[:3] = _cross(V[3:], F[:3])
    out[3:] = _cross(V[3:], F[3:]) + _cross(V[:3], F[:3])
    return out


def _dot(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("kpn,kpn->pn", a, b), dtype=float)


def _of_parents(chain: Chain, quantity: Array, root: Array) -> Array:
    out = quantity[:, list(chain.parents)]
    for joint, parent in enumerate(chain.parents):
        if parent < 0:
            out[:, joint] = root[:, None]
    return out
