"""Controllers of an arm that track a reference while the parameters of the bodies adapt.

The control law is passivity-based ([Lee2019]_ eqs. 5.2.10-15, and remark 5.1 for the gains ``K = lambda M``,
``Lambda = lambda 1``) or computed torque ([Lee2019]_ eqs. 5.2.4-9). The parameters adapt by the geometric law
([Lee2019]_ eq. 5.4.51), which descends along a covector ``b`` ([Lee2019]_ eq. 5.4.46). The control law gives ``b``:
the gradient of ``dV/dt`` with respect to the parameter error, with the tracking part ``V`` of its Lyapunov function.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, is_consistent
from inertid_ros.regressors.drives import DriveMotion, drive_torque, fading_direction, friction_direction
from inertid_ros.robot.model import RobotModel

from . import inertial_manifold as manifold

_ADAPTED_FRICTION = ("viscous", "coulomb")
_MIN_FRICTION_SHARE = 1e-3  # of the effort limit: least first friction, since zero would not adapt
_MIN_TURNING_SPEED = 0.02  # rad/s or m/s; with a smaller transition speed, friction torque would chatter at rest


@dataclass(frozen=True)
class Reference:
    """Desired position, velocity and acceleration ``(n,)`` [rad or m, per s, per s^2]."""

    position: Array
    velocity: Array
    acceleration: Array


@dataclass(frozen=True)
class TrackingState:
    """Measured position and velocity ``(n,)``, and the reference at that time."""

    position: Array
    velocity: Array
    reference: Reference

    def error(self, bandwidth: float) -> Array:
        """``r = (v - v_d) + lambda (q - q_d)``, ``(n,)`` ([Lee2019]_ eq. 5.2.13)."""
        wanted = self.reference
        return np.asarray(self.velocity - wanted.velocity + bandwidth * (self.position - wanted.position))


@dataclass(frozen=True)
class CalibratedDrives:
    """Torque of friction, rotor inertia, offsets, couplings and user terms of a calibrated robot.

    ``parameters (p,)`` come from the calibration; body parameters only give the load that user terms depend on.

    Raises
    ------
    IdentificationError
        The robot has rotors that are separate bodies.
    """

    model: RobotModel
    parameters: Array

    def __post_init__(self) -> None:
        if self.model.layout.rotors:
            raise IdentificationError(
                "adaptation: rotors that are separate bodies are not compensated; give a calibration without"
                " robot.rotors")

    def effort(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        """Torque ``(n,)`` of all drives [N m or N] at position, velocity and acceleration ``(n,)``."""
        layout, direction, n = self.model.layout, self._direction(velocity), self.model.joints
        fading = fading_direction(direction[:n], velocity, layout.stribeck_speed)
        motion = DriveMotion(*(signal[None] for signal in (position, velocity, acceleration, direction, fading)))
        load = None
        if any(term.uses_load for term in layout.terms):
            load = pin.rnea(*self._loads, position, velocity, acceleration)[None]
        return drive_torque(layout, self.parameters, motion, load)[0]

    def friction_columns(self, velocity: Array) -> Array:
        """Torque ``(2, n)`` per unit of viscous and of Coulomb friction of the joints at a velocity ``(n,)``."""
        return np.array([velocity, self._direction(velocity)[: self.model.joints]])

    @property
    def friction(self) -> Array:
        """``(2, n)`` viscous and Coulomb friction of the joints."""
        layout = self.model.layout
        return np.array([self.parameters[layout.drive(term)] for term in _ADAPTED_FRICTION])

    def with_friction(self, friction: Array) -> "CalibratedDrives":
        """Copy with other viscous and Coulomb friction ``(2, n)``."""
        parameters = self.parameters.copy()
        for term, values in zip(_ADAPTED_FRICTION, friction, strict=True):
            parameters[self.model.layout.drive(term)] = values
        return CalibratedDrives(self.model, parameters)

    def _direction(self, velocity: Array) -> Array:
        layout = self.model.layout
        turning = np.maximum(layout.transition_speed, _MIN_TURNING_SPEED)
        return friction_direction(layout.drive_ratios @ velocity, turning)

    @cached_property
    def _loads(self) -> tuple[pin.Model, pin.Data]:
        tree = self.model.with_bodies(self.model.layout.bodies(self.parameters))
        return tree, tree.createData()


class TrackingLaw(ABC):
    """Control law whose torque is linear in the parameters of the bodies; ``bandwidth`` is lambda [1/s]."""

    def __init__(self, model: RobotModel, bodies: Array, bandwidth: float) -> None:
        self._model, self._data = model.pinocchio, model.pinocchio.createData()
        self._first, self._bandwidth = bodies, bandwidth

    @abstractmethod
    def regressor(self, state: TrackingState) -> tuple[Array, Array, Array]:
        """Regressor ``(n, 10 nb)`` of the torque at a state, and velocity and acceleration ``(n,)`` for the drives."""

    @abstractmethod
    def weights(self, bodies: Array, dt: float, dead_zone: float) -> tuple[Array, Array, Array]:
        """Regressor ``(n, 10 nb)``, velocity of the drives and weight of the joints ``(n,)``.

        They are of the state of the last :meth:`regressor`, ``dt`` [s] after the previous state. The regressor's
        transpose times the weights is the covector ``b`` of the bodies.
        """


class PassivityBased(TrackingLaw):
    """``tau = M a + C v + g - K r`` ([Lee2019]_ eq. 5.2.10), without measured acceleration or inverse of ``M``."""

    def regressor(self, state: TrackingState) -> tuple[Array, Array, Array]:
        gain, wanted = self._bandwidth, state.reference
        r = state.error(gain)
        v = wanted.velocity - gain * (state.position - wanted.position)
        a = wanted.acceleration - gain * (state.velocity - wanted.velocity) - gain * r
        self._last = slotine_li_regressor(self._model, self._data, state.position, state.velocity, a, v), v, r
        return self._last[0], v, a

    def weights(self, bodies: Array, dt: float, dead_zone: float) -> tuple[Array, Array, Array]:
        """``b = Y^T r`` ([Lee2019]_ eq. 5.2.15)."""
        regressor, v, r = self._last
        return regressor, v, outside(r, dead_zone)


class ComputedTorque(TrackingLaw):
    """``tau = M (a_d - 2 lambda e' - lambda^2 e) + C v + g`` ([Lee2019]_ eq. 5.2.4).

    The adaptation law needs the acceleration (eq. 5.2.9), computed from the difference of the last two velocities.
    This difference amplifies velocity noise by ``1 / dt``: on a real robot, prefer the passivity-based controller.

    With ``P`` from the Lyapunov equation (5.2.8) for poles at ``lambda``, ``B^T P e = D r`` for any diagonal ``D``.
    Here ``D`` is the diagonal of the first mass matrix, so that this controller adapts at a similar speed as the
    passivity-based controller.
    """

    def __init__(self, model: RobotModel, bodies: Array, bandwidth: float) -> None:
        super().__init__(model, bodies, bandwidth)
        self._weight: Array | None = None
        self._before: TrackingState | None = None

    def regressor(self, state: TrackingState) -> tuple[Array, Array, Array]:
        gain, wanted = self._bandwidth, state.reference
        error, rate = state.position - wanted.position, state.velocity - wanted.velocity
        a = wanted.acceleration - 2 * gain * rate - gain**2 * error
        regressor = pin.computeJointTorqueRegressor(self._model, self._data, state.position, state.velocity, a)
        self._between = self._before, state
        self._before = state
        return np.array(regressor), wanted.velocity, a

    def weights(self, bodies: Array, dt: float, dead_zone: float) -> tuple[Array, Array, Array]:
        """``b = Y^T M^-1 D r`` ([Lee2019]_ eq. 5.2.9); zero at the first state."""
        before, now = self._between
        if before is None:
            none: Array = np.zeros(len(now.position))
            return np.zeros((len(none), bodies.size)), none, none
        q, v = 0.5 * (before.position + now.position), 0.5 * (before.velocity + now.velocity)
        if self._weight is None:
            self._weight = np.diag(self.mass_matrix(q, self._first))
        r = 0.5 * (before.error(self._bandwidth) + now.error(self._bandwidth))
        weighted = np.linalg.solve(self.mass_matrix(q, bodies), self._weight * outside(r, dead_zone))
        acceleration = (now.velocity - before.velocity) / dt
        regressor = np.array(pin.computeJointTorqueRegressor(self._model, self._data, q, v, acceleration))
        return regressor, v, np.asarray(weighted)

    def mass_matrix(self, q: Array, bodies: Array) -> Array:
        """Mass matrix ``(n, n)`` from unit accelerations at rest, without gravity."""
        zero = np.zeros_like(q)
        gravity, *columns = (
            pin.computeJointTorqueRegressor(self._model, self._data, q, zero, unit) @ bodies.ravel()
            for unit in np.vstack([zero, np.eye(len(q))]))
        return np.array(columns).T - gravity[:, None]


def outside(r: Array, dead_zone: float) -> Array:
    """Return the error ``r (n,)`` minus the dead zone."""
    return np.asarray(r - np.clip(r, -dead_zone, dead_zone))


def slotine_li_regressor(model: pin.Model, data: pin.Data, q: Array, velocity: Array, a: Array, v: Array) -> Array:
    """Regressor ``(n, 10 nb)`` of ``M(q) a + C(q, velocity) v + g(q)`` ([Lee2019]_ eq. 5.2.10).

    With Christoffel symbols, ``C(q, x) y`` is bilinear and symmetric in ``x`` and ``y``. It therefore follows from the
    torques at the velocities ``x + y``, ``x`` and ``y``.
    """
    zero = np.zeros_like(a)

    def ordinary(speed: Array, acceleration: Array) -> Array:
        return np.array(pin.computeJointTorqueRegressor(model, data, q, speed, acceleration))

    centripetal = ordinary(velocity + v, zero) - ordinary(velocity, zero) - ordinary(v, zero) + ordinary(zero, zero)
    return np.asarray(ordinary(zero, a) + 0.5 * centripetal)


class Law(Enum):
    """Metric on the parameters in which the adaptation law descends."""

    NONE = "no adaptation"
    EUCLIDEAN = "Euclidean"
    PULLBACK = "constant pullback"
    NATURAL = "natural"


class Tracking(Enum):
    """Control law from tracking error to torque."""

    PASSIVITY = "passivity-based"
    COMPUTED_TORQUE = "computed torque"


@dataclass(frozen=True)
class AdaptationOptions:
    """Gains of an adaptive controller.

    Attributes
    ----------
    bandwidth : lambda in both gains; both poles of the position error [1/s].
    speed : speed of adaptation, 1 / gamma.
    adapted : indices of the bodies that adapt; empty for all.
    bounds : bounds of bodies by their index, kept by barriers; such bodies follow the natural law.
    friction_weight : weight of the friction's manifold relative to a body's ([Lee2019]_ eq. 5.3.43; 0.5 there): with a
        smaller weight, viscous and Coulomb friction of the joints adapt faster; 0 keeps them.
    largest_factor : largest ratio of a body to the first estimate, in mass or in second moments of any direction; also
        of friction.
    effort_limit : (n,) [N m or N]; adaptation pauses while a joint is at its limit, to prevent wind-up.
    dead_zone : error ``r`` of a joint (velocity error plus bandwidth times position error) below which the joint causes
        no adaptation [rad/s or m/s]; noise and stiction carry no information about bodies.
    """

    bandwidth: float = 10.0
    speed: float = 1.0
    law: Law = Law.NATURAL
    adapted: tuple[int, ...] = ()
    bounds: Mapping[int, manifold.HalfSpaces] = field(default_factory=dict)
    largest_factor: float = 20.0
    friction_weight: float = 0.0
    effort_limit: Array | float = np.inf
    tracking: Tracking = Tracking.PASSIVITY
    dead_zone: float = 0.0


class AdaptiveController:
    """Track a reference while parameters of bodies adapt.

    Parameters
    ----------
    bodies : (nb, 10), first estimate, physically consistent.
    drives : calibrated drives, whose torque is added; of their parameters, friction adapts if it has a weight.

    Attributes
    ----------
    drives : the same drives with present friction.
    bodies : (nb, 10), present estimate; consistent for any step size and gain, except with the Euclidean law.
    saturated : (n,), True if the last torque of a joint was clipped at its limit.

    Raises
    ------
    IdentificationError
        The first estimate is not consistent, or the base of the robot is free.
    """

    def __init__(
            self, model: RobotModel, bodies: Array, options: AdaptationOptions | None = None,
            drives: CalibratedDrives | None = None) -> None:
        if model.free:
            raise IdentificationError("adaptation: the robot has a free base; give a robot on a fixed base")
        if not is_consistent(bodies).all():
            raise IdentificationError("adaptation: the first parameters are not physically consistent; repair them")
        self.bodies = bodies.copy()
        self.options = options or AdaptationOptions()
        self.saturated = np.zeros(model.joints, dtype=bool)
        kind = ComputedTorque if self.options.tracking is Tracking.COMPUTED_TORQUE else PassivityBased
        self._first, self.drives = bodies.copy(), drives
        self._friction: manifold.Intervals | None = None
        if self.options.friction_weight > 0:
            self.drives, self._friction = adapted_friction(drives, model, self.options.largest_factor)
        self._tracking: TrackingLaw = kind(model, self._first, self.options.bandwidth)
        self._adapted = np.array(self.options.adapted or range(len(bodies)), dtype=int)

    def step(self, position: Array, velocity: Array, reference: Reference, dt: float, adapt: bool = True) -> Array:
        """Return the torque ``(n,)`` at a measured state, ``dt`` seconds after the last step; adapt if ``adapt``.

        Raises
        ------
        IdentificationError
            ``dt`` is negative, or a number is not finite.
        """
        numbers = (position, velocity, reference.position, reference.velocity, reference.acceleration)
        if dt < 0 or not all(np.isfinite(values).all() for values in numbers):
            raise IdentificationError("adaptation: dt is negative or a state is not finite; keep the last torque")
        options, limit = self.options, self.options.effort_limit
        regressor, v, a = self._tracking.regressor(TrackingState(position, velocity, reference))
        effort = regressor @ self.bodies.ravel()
        if self.drives is not None:  # desired velocity: with the measured velocity, friction would chatter at rest
            effort = effort + self.drives.effort(position, v, a)
        self.saturated = np.abs(effort) > limit
        if adapt and dt > 0 and not self.saturated.any():
            regressor, v, weights = self._tracking.weights(self.bodies, dt, options.dead_zone)
            if weights.any():
                rows, b = self._adapted, (regressor.T @ weights).reshape(-1, BODY_PARAMETERS)
                size = options.speed * dt
                free = np.setdiff1d(rows, list(options.bounds))
                self.bodies[free] = adapted_bodies(self.bodies[free], self._first[free], b[free], options, size)
                if options.law is not Law.NONE:
                    for row in np.intersect1d(rows, list(options.bounds)):
                        change = options.bounds[row].step(self.bodies[row], b[row], size) - self.bodies[row]
                        self.bodies[row] = manifold.step_within_factor(
                            self.bodies[row], change, self._first[row], options.largest_factor)
                self._adapt_friction(v, weights, size)
        return np.asarray(np.clip(effort, -limit, limit))

    def _adapt_friction(self, velocity: Array, weights: Array, size: float) -> None:
        if self._friction is None or self.drives is None or self.options.law is Law.NONE:
            return
        b = self.drives.friction_columns(velocity) * weights / self.options.friction_weight
        self.drives = self.drives.with_friction(self._friction.step(self.drives.friction, b, size))


def adapted_friction(
    drives: CalibratedDrives | None, model: RobotModel, factor: float
) -> tuple[CalibratedDrives, manifold.Intervals]:
    """Drives whose friction can adapt, and the bounds of their friction ([Lee2019]_ eqs. 5.3.34-36).

    Without calibrated drives, adaptation begins with the friction of the URDF, at least a small share of the effort
    limits: friction of zero would stay zero.
    """
    drives = drives or CalibratedDrives(model, model.prior)
    if missing := [term for term in _ADAPTED_FRICTION if term not in drives.model.layout.drive_terms]:
        raise IdentificationError(
            f"adaptation: friction cannot adapt without the drive terms {', '.join(missing)}; calibrate with them")
    effort = np.where(np.isfinite(model.limits.effort), model.limits.effort, 1.0)
    speed = np.where(np.isfinite(model.limits.velocity), model.limits.velocity, 1.0)
    least = _MIN_FRICTION_SHARE * np.array([effort / speed, effort])
    first = np.maximum(drives.friction, least)
    return drives.with_friction(first), manifold.Intervals(first / factor, first * factor)


def adapted_bodies(bodies: Array, first: Array, b: Array, options: AdaptationOptions, size: float) -> Array:
    """Take one step of the adaptation law with each body ``(k, 10)`` independently ([Lee2019]_ eq. 5.4.51).

    ``b (k, 10)`` are covectors; ``size`` is the speed of adaptation times the time since the last step.
    """
    if options.law is Law.NONE:
        return bodies
    if options.law is Law.EUCLIDEAN:
        return bodies - size * b
    if options.law is Law.NATURAL:
        moved = manifold.geodesic_step(bodies, b, size)
    else:
        moved = manifold.straight_step(bodies, -size * manifold.natural_gradient(first, b))
    return manifold.within_factor(moved, first, options.largest_factor)
