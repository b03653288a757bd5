"""Torque from the error of tracking, and what that error says about the parameters.

A controller gives the covector ``b`` of [Lee2019]_ eq. 5.4.46, by which the tracking part of its Lyapunov function
changes with the error of the parameters; the law of adaptation descends along it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel

from .drives import CalibratedDrives


@dataclass(frozen=True)
class Reference:
    """Position, velocity and acceleration ``(n,)`` that are asked for [rad or m, per s, per s^2]."""

    position: Array
    velocity: Array
    acceleration: Array


@dataclass(frozen=True)
class TrackingState:
    """Measured position and velocity ``(n,)``, and what was asked for at that time."""

    position: Array
    velocity: Array
    reference: Reference

    def error(self, bandwidth: float) -> Array:
        """``r = (v - v_d) + lambda (q - q_d)``, ``(n,)`` ([Lee2019]_ eq. 5.2.13)."""
        asked = self.reference
        return np.asarray(self.velocity - asked.velocity + bandwidth * (self.position - asked.position))


class TrackingController(ABC):
    """A controller whose torque is linear in the parameters of the bodies.

    Parameters
    ----------
    model : RobotModel
        Robot on a fixed base.
    bodies : ndarray, shape (nb, 10)
        First estimate.
    bandwidth : float
        lambda [1/s].
    drives : CalibratedDrives or None
        What is added for them.
    """

    def __init__(self, model: RobotModel, bodies: Array, bandwidth: float, drives: CalibratedDrives | None) -> None:
        self._model, self._data = model.pinocchio, model.pinocchio.createData()
        self._bandwidth, self._drives = bandwidth, drives

    @abstractmethod
    def effort(self, state: TrackingState, bodies: Array) -> Array:
        """Torque ``(n,)`` at a state, for an estimate ``(nb, 10)``."""

    @abstractmethod
    def covector(self, bodies: Array, dt: float, dead_zone: float) -> Array:
        """``b (10 nb,)`` of the state that :meth:`effort` was asked for last, ``dt`` after the one before."""

    def _drive_effort(self, state: TrackingState, velocity: Array, acceleration: Array) -> Array:
        """Of drives that move as they are wanted to: measured velocities would make friction chatter at rest."""
        if self._drives is None:
            return np.zeros_like(velocity)
        return self._drives.effort(state.position, velocity, acceleration)


class PassivityBased(TrackingController):
    """``tau = M a + C v + g - K r`` ([Lee2019]_ eq. 5.2.10); no measured acceleration, no inverse of ``M``."""

    def effort(self, state: TrackingState, bodies: Array) -> Array:
        """See the base class."""
        gain, asked = self._bandwidth, state.reference
        r = state.error(gain)
        v = asked.velocity - gain * (state.position - asked.position)
        a = asked.acceleration - gain * (state.velocity - asked.velocity) - gain * r
        self._r = r
        self._regressor = slotine_li_regressor(self._model, self._data, state.position, state.velocity, a, v)
        return np.asarray(self._regressor @ bodies.ravel() + self._drive_effort(state, v, a))

    def covector(self, bodies: Array, dt: float, dead_zone: float) -> Array:
        """``Y^T r`` ([Lee2019]_ eq. 5.2.15)."""
        return np.asarray(self._regressor.T @ outside(self._r, dead_zone))


class ComputedTorque(TrackingController):
    """``tau = M (a_d - 2 lambda e' - lambda^2 e) + C v + g`` ([Lee2019]_ eq. 5.2.4).

    Its law of adaptation needs the acceleration (eq. 5.2.9). That is the difference of the last two velocities, which
    is the mean between them, and the regressor is that of the state half way: noise of velocities counts by ``1 / dt``,
    so that the passivity-based controller is the better one on a robot.

    With ``P`` of the Lyapunov equation (5.2.8) for poles at ``lambda``, ``B^T P e = D r``. ``D`` may be any diagonal
    matrix; it is that of the first mass matrix, so that the speed of adaptation means the same for both controllers.
    """

    def __init__(self, model: RobotModel, bodies: Array, bandwidth: float, drives: CalibratedDrives | None) -> None:
        super().__init__(model, bodies, bandwidth, drives)
        self._first = bodies
        self._weight: Array | None = None
        self._before: TrackingState | None = None

    def effort(self, state: TrackingState, bodies: Array) -> Array:
        """See the base class."""
        gain, asked = self._bandwidth, state.reference
        error, rate = state.position - asked.position, state.velocity - asked.velocity
        a = asked.acceleration - 2 * gain * rate - gain**2 * error
        regressor = pin.computeJointTorqueRegressor(self._model, self._data, state.position, state.velocity, a)
        self._between = self._before, state
        self._before = state
        return np.asarray(regressor @ bodies.ravel() + self._drive_effort(state, asked.velocity, a))

    def covector(self, bodies: Array, dt: float, dead_zone: float) -> Array:
        """``Y^T M^-1 D r`` ([Lee2019]_ eq. 5.2.9); zero where there was no state before."""
        before, now = self._between
        if before is None:
            return np.zeros(bodies.size)
        q, v = 0.5 * (before.position + now.position), 0.5 * (before.velocity + now.velocity)
        if self._weight is None:
            self._weight = np.diag(self.mass_matrix(q, self._first))
        r = 0.5 * (before.error(self._bandwidth) + now.error(self._bandwidth))
        weighted = np.linalg.solve(self.mass_matrix(q, bodies), self._weight * outside(r, dead_zone))
        acceleration = (now.velocity - before.velocity) / dt
        return np.asarray(pin.computeJointTorqueRegressor(self._model, self._data, q, v, acceleration).T @ weighted)

    def mass_matrix(self, q: Array, bodies: Array) -> Array:
        """``(n, n)`` by unit accelerations at rest, without gravity."""
        zero = np.zeros_like(q)
        columns = [
            pin.computeJointTorqueRegressor(self._model, self._data, q, zero, unit) @ bodies.ravel()
            for unit in np.vstack([zero, np.eye(len(q))])
        ]
        return np.array(columns[1:]).T - columns[0][:, None]


def outside(r: Array, dead_zone: float) -> Array:
    """``r (n,)`` without what lies within the dead zone."""
    return np.asarray(r - np.clip(r, -dead_zone, dead_zone))


def slotine_li_regressor(model: pin.Model, data: pin.Data, q: Array, velocity: Array, a: Array, v: Array) -> Array:
    """Regressor ``(n, 10 nb)`` of ``M(q) a + C(q, velocity) v + g(q)`` ([Lee2019]_ eq. 5.2.10).

    ``C(q, x) y`` of Christoffel symbols is bilinear and symmetric, so that torques of ordinary motions at ``x + y``,
    ``x`` and ``y`` make it up.
    """
    zero = np.zeros_like(a)

    def ordinary(speed: Array, acceleration: Array) -> Array:
        return np.array(pin.computeJointTorqueRegressor(model, data, q, speed, acceleration))

    centripetal = ordinary(velocity + v, zero) - ordinary(velocity, zero) - ordinary(v, zero) + ordinary(zero, zero)
    return np.asarray(ordinary(zero, a) + 0.5 * centripetal)
