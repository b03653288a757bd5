"""Passivity-based adaptive tracking, with laws of adaptation that differ in the metric of the parameters.

([Lee2019]_ eqs. 5.2.10-15, 5.4.51, and remark 5.1 for the gains ``K = lambda M``, ``Lambda = lambda 1``.)
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.robot.bodies.inertial_parameters import (
    BODY_PARAMETERS,
    is_consistent,
)
from inertid_ros.robot.model import RobotModel

from .inertial_manifold import geodesic_step, natural_gradient, straight_step, within_factor


class Law(Enum):
    """Metric of the parameters in which a law of adaptation descends."""

    NONE = "no adaptation"
    EUCLIDEAN = "Euclidean"
    PULLBACK = "constant pullback"
    NATURAL = "natural"


@dataclass(frozen=True)
class AdaptationOptions:
    """Gains of an adaptive controller.

    Attributes
    ----------
    bandwidth : float
        lambda of both gains [1/s].
    speed : float
        Speed of adaptation, 1 / gamma.
    law : Law
        Metric.
    adapted : tuple of int
        Indices of the bodies that are adapted; empty for all.
    largest_factor : float
        By which a body may differ from the first estimate, in mass or in second moments of any direction.
    effort_limit : ndarray or None, shape (n,)
        Of the joints [N m or N]; adaptation waits while a joint is at it, so that nothing winds up.
    """

    bandwidth: float = 10.0
    speed: float = 1.0
    law: Law = Law.NATURAL
    adapted: tuple[int, ...] = ()
    largest_factor: float = 20.0
    effort_limit: Array | None = None


@dataclass(frozen=True)
class Reference:
    """Position, velocity and acceleration ``(n,)`` that are asked for [rad or m, per s, per s^2]."""

    position: Array
    velocity: Array
    acceleration: Array


class AdaptiveController:
    """Torques that track a reference while parameters adapt.

    Parameters
    ----------
    model : RobotModel
        Robot on a fixed base.
    bodies : ndarray, shape (nb, 10)
        First estimate, physically consistent.
    options : AdaptationOptions, optional
        Gains and law.

    Attributes
    ----------
    bodies : ndarray, shape (nb, 10)
        Estimate; consistent at every step, whatever step and gain. The Euclidean law, which is there to be compared
        with, knows no border.

    Raises
    ------
    IdentificationError
        The first estimate is not consistent, or the base of the robot is free.
    """

    def __init__(self, model: RobotModel, bodies: Array, options: AdaptationOptions | None = None) -> None:
        if model.free:
            raise IdentificationError("adaptation: the robot has a free base; give one on a fixed base")
        if not is_consistent(bodies).all():
            raise IdentificationError("adaptation: the first parameters are not physically consistent; repair them")
        self.bodies = bodies.copy()
        self.options = options or AdaptationOptions()
        self._model, self._data = model.pinocchio, model.pinocchio.createData()
        self._first = bodies.copy()
        self._adapted = np.array(self.options.adapted or range(len(bodies)), dtype=int)

    def step(self, position: Array, velocity: Array, reference: Reference, dt: float) -> Array:
        """Torque ``(n,)`` at a state, and a step of adaptation.

        Parameters
        ----------
        position, velocity : ndarray, shape (n,)
            Measured.
        reference : Reference
            Asked for.
        dt : float
            Time since the last step [s].

        Raises
        ------
        IdentificationError
            ``dt`` is negative, or a number is not finite.
        """
        numbers = (position, velocity, reference.position, reference.velocity, reference.acceleration)
        if dt < 0 or not all(np.isfinite(each).all() for each in numbers):
            raise IdentificationError("adaptation: dt is negative or a state is not finite; keep the last torque")
        gain = self.options.bandwidth
        error, rate = position - reference.position, velocity - reference.velocity
        wanted = reference.velocity - gain * error
        r = velocity - wanted
        Y = slotine_li_regressor(
            self._model, self._data, position, velocity, reference.acceleration - gain * rate - gain * r, wanted
        )
        torque = Y @ self.bodies.ravel()
        limit = np.inf if self.options.effort_limit is None else self.options.effort_limit
        if (np.abs(torque) <= limit).all():
            self._adapt((Y.T @ r).reshape(-1, BODY_PARAMETERS), self.options.speed * dt)
        return np.asarray(np.clip(torque, -limit, limit))

    def _adapt(self, b: Array, size: float) -> None:
        rows, law = self._adapted, self.options.law
        bodies, first = self.bodies[rows], self._first[rows]
        if law is Law.EUCLIDEAN:
            self.bodies[rows] = bodies - size * b[rows]
        elif law is not Law.NONE:
            if law is Law.NATURAL:
                moved = geodesic_step(bodies, b[rows], size)
            else:
                moved = straight_step(bodies, -size * natural_gradient(first, b[rows]))
            self.bodies[rows] = within_factor(moved, first, self.options.largest_factor)


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
