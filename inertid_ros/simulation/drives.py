"""Drives of the simulated robot, which a URDF does not describe."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.config.simulation import DriveOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.dynamics.friction import dry_friction
from inertid_ros.robot.bodies.layout import STRIBECK_SPEED
from inertid_ros.robot.model import RobotModel

TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stribeck")


@dataclass(frozen=True)
class Drives:
    """``tau = rotor_inertia a + viscous v + (coulomb + stribeck exp(-|v| / stribeck_speed)) sign(v) + offset`` per
    joint, ``(n,)`` each, SI."""

    rotor_inertia: Array
    viscous: Array
    coulomb: Array
    offset: Array
    stribeck: Array | float = 0.0
    stribeck_speed: Array | float = STRIBECK_SPEED

    def __post_init__(self) -> None:
        for name in (*TERMS, "stribeck_speed"):
            value = np.broadcast_to(np.array(getattr(self, name), dtype=float), np.shape(self.viscous))
            if not np.isfinite(value).all() or (name != "offset" and (value < 0).any()):
                raise ModelError(f"simulation: {name} {value} is not finite or below zero; correct it")
            object.__setattr__(self, name, value)

    def dry_friction(self, velocity: Array) -> Array:
        """``(n,)`` size of the friction that holds or brakes the joints at a velocity ``(n,)`` [N m or N]."""
        return dry_friction(velocity, self.coulomb, np.asarray(self.stribeck), np.asarray(self.stribeck_speed))

    def term(self, name: str) -> Array:
        """``(n,)`` true value of a drive term of the parameter layout; zero for those that are not simulated."""
        return getattr(self, name) if name in TERMS else np.zeros_like(self.viscous)


def effort_scale(robot: RobotModel) -> Array:
    """``(n,)`` effort limits; where the URDF gives none, 1.5 times the largest gravity torque, at least 1 N m."""
    given = robot.limits.effort
    if np.isfinite(given).all():
        return given
    import pinocchio as pin

    rng, model = np.random.default_rng(0), robot.pinocchio
    data = model.createData()
    torques = [pin.computeGeneralizedGravity(model, data, q) for q in rng.uniform(-np.pi, np.pi, (100, robot.joints))]
    return np.where(np.isfinite(given), given, np.maximum(1.5 * np.abs(torques).max(axis=0), 1.0))


def typical_drives(robot: RobotModel, options: DriveOptions, rng: np.random.Generator) -> Drives:
    """Drives for a robot, different for every joint; the offset has either sign."""
    effort, n = effort_scale(robot), robot.joints
    velocity = np.where(np.isfinite(robot.limits.velocity), robot.limits.velocity, 2.0)
    factor = 1 + options.variation * rng.uniform(-1, 1, (4, n))
    return Drives(
        rotor_inertia=options.rotor_inertia * effort * factor[0],
        viscous=options.viscous * effort / velocity * factor[1],
        coulomb=options.coulomb * effort * factor[2],
        offset=options.offset * effort * factor[3] * rng.choice([-1.0, 1.0], n),
    )
