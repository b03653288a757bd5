"""Many adaptive arms in parallel: same law and same physics for every row of an array.

Every arm behaves like an :class:`.AdaptiveController` (passivity-based, without drives or limits of effort);
``check_batch`` compares a few arms with this class, step by step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.adaptive_control.controller import (
    AdaptationOptions,
    AdaptiveController,
    Reference,
    adapted_bodies,
)
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, is_consistent
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.model import RobotModel

_LOST = 1e3  # rad/s
_CHECK_EVERY = 10  # steps


@dataclass(frozen=True)
class Batch:
    """Arms that differ in their first estimate.

    Attributes
    ----------
    model : RobotModel
    tree : pinocchio.Model
        Tree with the true bodies.
    first : ndarray, shape (N, nb, 10)
        First estimates.
    options : AdaptationOptions
        Options of all arms.
    start : ndarray, shape (n,)
        Position at rest.
    """

    model: RobotModel
    tree: pin.Model
    first: Array
    options: AdaptationOptions
    start: Array


def track(batch: Batch, reference: Callable[[float], Reference], steps: int, dt: float) -> tuple[Array, Array]:
    """Follow a reference, with one step of the articulated body algorithm per control step.

    Returns
    -------
    squares : ndarray, shape (steps, N)
        Mean over the joints of the squared errors of position [rad^2]; infinite after tracking was lost.
    consistent : ndarray of bool, shape (N,)
        Whether all estimates were physically consistent, checked every tenth step.
    """
    count, bodies_each = batch.first.shape[:2]
    gain, speed = batch.options.bandwidth, batch.options.speed
    first = batch.first.reshape(-1, BODY_PARAMETERS)
    bodies, consistent, lost = first.copy(), np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    q, v = np.tile(batch.start, (count, 1)), np.zeros((count, len(batch.start)))
    pool, squares = pin.ModelPool(batch.tree, 1), np.zeros((steps, count))
    a = np.zeros((len(batch.start), count))
    for step in range(steps):
        asked = reference(step * dt)
        error, rate = q - asked.position, v - asked.velocity
        squares[step] = np.where(lost, np.inf, np.mean(error**2, axis=1))
        r = rate + gain * error
        wanted = asked.velocity - gain * error
        Y = slotine_li_regressors(batch.model, q, v, asked.acceleration - gain * rate - gain * r, wanted)
        effort = np.einsum("njk,nk->nj", Y, bodies.reshape(count, -1))
        b = np.einsum("njk,nj->nk", Y, r).reshape(-1, BODY_PARAMETERS)
        b[np.repeat(lost, bodies_each)] = 0.0
        bodies = adapted_bodies(bodies, first, b, batch.options, speed * dt)
        pin.abaInParallel(1, pool, q.T, v.T, effort.T, a)
        v = v + dt * np.where(lost[:, None], 0.0, a.T)
        q = q + dt * v
        lost |= ~np.isfinite(v).all(axis=1) | (np.abs(v) > _LOST).any(axis=1)
        q[lost], v[lost] = batch.start, 0.0
        if step % _CHECK_EVERY == 0 or step == steps - 1:
            consistent &= is_consistent(bodies).reshape(count, -1).all(axis=1)
    return squares, consistent


def slotine_li_regressors(model: RobotModel, q: Array, velocity: Array, a: Array, v: Array) -> Array:
    """``(N, n, 10 nb)``; see :func:`inertid_ros.adaptive_control.controller.slotine_li_regressor`."""
    zero = np.zeros_like(q)
    speeds, accelerations = (zero, velocity + v, velocity, v, zero), (a, zero, zero, zero, zero)
    five = joint_torque_regressor(model, np.tile(q, (5, 1)), np.vstack(speeds), np.vstack(accelerations))
    at_rest, both, measured, wanted, gravity = five.reshape(5, len(q), *five.shape[1:])
    return np.asarray(at_rest + 0.5 * (both - measured - wanted + gravity))


def check_batch(batch: Batch, reference: Callable[[float], Reference], arms: Sequence[int], dt: float) -> float:
    """Largest difference of squared errors [rad^2] between arms of a batch and separate controllers, 300 steps."""
    steps, worst = 300, 0.0
    squares, _ = track(batch, reference, steps, dt)
    data = batch.tree.createData()
    for arm in arms:
        controller = AdaptiveController(batch.model, batch.first[arm], batch.options)
        q, v = batch.start.copy(), np.zeros_like(batch.start)
        for step in range(steps):
            asked = reference(step * dt)
            worst = max(worst, abs(float(np.mean((q - asked.position) ** 2)) - squares[step, arm]))
            effort = controller.step(q, v, asked, dt)
            v = v + dt * pin.aba(batch.tree, data, q, v, effort)
            q = q + dt * v
    return worst

