"""Adaptive tracking, with laws of adaptation that differ in the metric of the parameters.

Passivity-based ([Lee2019]_ eqs. 5.2.10-15, and remark 5.1 for the gains ``K = lambda M``, ``Lambda = lambda 1``) or by
computed torque ([Lee2019]_ eqs. 5.2.4-9), both with the geometric law of adaptation ([Lee2019]_ eq. 5.4.51).
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.robot.bodies.inertial_parameters import (
    BODY_PARAMETERS,
    is_consistent,
)
from inertid_ros.robot.model import RobotModel

from .drives import CalibratedDrives
from .inertial_manifold import geodesic_step, natural_gradient, straight_step, within_factor
from .tracking import ComputedTorque, PassivityBased, Reference, TrackingController, TrackingState


class Law(Enum):
    """Metric of the parameters in which a law of adaptation descends."""

    NONE = "no adaptation"
    EUCLIDEAN = "Euclidean"
    PULLBACK = "constant pullback"
    NATURAL = "natural"


class Tracking(Enum):
    """How the torque follows from the error of tracking."""

    PASSIVITY = "passivity-based"
    COMPUTED_TORQUE = "computed torque"


_CONTROLLERS: dict[Tracking, type[TrackingController]] = {
    Tracking.PASSIVITY: PassivityBased,
    Tracking.COMPUTED_TORQUE: ComputedTorque,
}


@dataclass(frozen=True)
class AdaptationOptions:
    """Gains of an adaptive controller.

    Attributes
    ----------
    bandwidth : float
        lambda of both gains [1/s]; errors of position decay with two poles at it.
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
    tracking : Tracking
        Kind of the controller.
    dead_zone : float
        Error ``r`` of a joint (velocity plus bandwidth times position) below which it adapts nothing [rad/s or m/s]:
        noise and stiction say nothing of bodies.
    """

    bandwidth: float = 10.0
    speed: float = 1.0
    law: Law = Law.NATURAL
    adapted: tuple[int, ...] = ()
    largest_factor: float = 20.0
    effort_limit: Array | None = None
    tracking: Tracking = Tracking.PASSIVITY
    dead_zone: float = 0.0


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
    drives : CalibratedDrives, optional
        Friction and rotor inertia, which are added to the torque and do not adapt; none where not given.

    Attributes
    ----------
    bodies : ndarray, shape (nb, 10)
        Estimate; consistent at every step, whatever step and gain. The Euclidean law, which is there to be compared
        with, knows no border.
    saturated : ndarray, shape (n,)
        Whether the last torque of a joint was cut off at its limit.

    Raises
    ------
    IdentificationError
        The first estimate is not consistent, or the base of the robot is free.
    """

    def __init__(
        self,
        model: RobotModel,
        bodies: Array,
        options: AdaptationOptions | None = None,
        drives: CalibratedDrives | None = None,
    ) -> None:
        if model.free:
            raise IdentificationError("adaptation: the robot has a free base; give one on a fixed base")
        if not is_consistent(bodies).all():
            raise IdentificationError("adaptation: the first parameters are not physically consistent; repair them")
        self.bodies = bodies.copy()
        self.options = options or AdaptationOptions()
        self.saturated = np.zeros(model.joints, dtype=bool)
        self._controller = _CONTROLLERS[self.options.tracking](model, bodies, self.options.bandwidth, drives)
        self._first = bodies.copy()
        self._adapted = np.array(self.options.adapted or range(len(bodies)), dtype=int)

    def step(
        self, position: Array, velocity: Array, reference: Reference, dt: float, adapt: bool = True
    ) -> Array:
        """Torque ``(n,)`` at a state, and a step of adaptation.

        Parameters
        ----------
        position, velocity : ndarray, shape (n,)
            Measured.
        reference : Reference
            Asked for.
        dt : float
            Time since the last step [s].
        adapt : bool
            Whether parameters adapt in this step.

        Raises
        ------
        IdentificationError
            ``dt`` is negative, or a number is not finite.
        """
        numbers = (position, velocity, reference.position, reference.velocity, reference.acceleration)
        if dt < 0 or not all(np.isfinite(each).all() for each in numbers):
            raise IdentificationError("adaptation: dt is negative or a state is not finite; keep the last torque")
        options = self.options
        effort = self._controller.effort(TrackingState(position, velocity, reference), self.bodies)
        limit = np.inf if options.effort_limit is None else options.effort_limit
        self.saturated = np.abs(effort) > limit
        if adapt and dt > 0 and not self.saturated.any():
            b = self._controller.covector(self.bodies, dt, options.dead_zone)
            if b.any():
                self._adapt(b.reshape(-1, BODY_PARAMETERS), options.speed * dt)
        return np.asarray(np.clip(effort, -limit, limit))

    def _adapt(self, b: Array, size: float) -> None:
        rows = self._adapted
        self.bodies[rows] = adapted_bodies(self.bodies[rows], self._first[rows], b[rows], self.options, size)


def adapted_bodies(bodies: Array, first: Array, b: Array, options: AdaptationOptions, size: float) -> Array:
    """Bodies after one step of the law of adaptation ([Lee2019]_ eq. 5.4.51), each by itself.

    Parameters
    ----------
    bodies, first : ndarray, shape (k, 10)
        Estimates now and at first.
    b : ndarray, shape (k, 10)
        Covectors.
    options : AdaptationOptions
        Law, and largest factor.
    size : float
        Speed of adaptation times the time since the last step.

    Returns
    -------
    ndarray, shape (k, 10)
    """
    if options.law is Law.NONE:
        return bodies
    if options.law is Law.EUCLIDEAN:
        return bodies - size * b
    if options.law is Law.NATURAL:
        moved = geodesic_step(bodies, b, size)
    else:
        moved = straight_step(bodies, -size * natural_gradient(first, b))
    return within_factor(moved, first, options.largest_factor)
