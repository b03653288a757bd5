"""Identified parameters that a controller receives: values, torque and checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.config.robot import DRIVE_TERMS, TERM_SIGNALS
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, is_consistent, symmetric
from inertid_ros.msg import CoupledDrive, InertialParameters
from inertid_ros.robot.drives import friction_direction, friction_torque, term_torque
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import COUPLING_TERMS, NON_NEGATIVE_TERMS, UserTerm, misnamed
from inertid_ros.robot.model import RobotModel

_CORNERS = 200  # positions at limits or half-way, speeds at limits or zero
_MAX_EFFORT_RATIO, _MAX_TORQUE = 100.0, 1e6  # multiple of the URDF's effort limit; if there is none, N m or N


@dataclass(frozen=True)
class ReceivedParameters:
    """An InertialParameters message, its values as arrays, and the torque computed from them.

    Attributes
    ----------
    bodies : (nb, 10), parameters of the links about the joint frame origins.
    drives : map from drive term to its values ``(n,)``, one per joint.
    stribeck_speed, transition_speed : ``(n,)``, one per joint.
    couplings : for each coupled drive, the ratio of every joint ``(n,)``, and the drive's terms by name.
    terms : torque terms that the user's configuration added, with their parameters.
    """

    message: InertialParameters
    bodies: Array
    drives: Mapping[str, Array]
    stribeck_speed: Array
    transition_speed: Array
    couplings: tuple[tuple[Array, Mapping[str, float]], ...] = ()
    terms: tuple[UserTerm, ...] = ()

    @property
    def link_names(self) -> tuple[str, ...]:
        return tuple(link.name for link in self.message.links)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.message.joints)

    def friction(self, velocity: Array) -> Array:
        """Friction torque ``(..., n)`` at joint velocities ``(..., n)``, without the sensor's offset."""
        torque = friction_torque(velocity, self.drives, self.stribeck_speed, self.transition_speed)
        for ratios, terms in self.couplings:
            speed, turning = velocity @ ratios, np.sqrt(ratios**2 @ self.transition_speed**2)
            direction = friction_direction(speed, turning)
            torque = torque + (terms["viscous"] * speed + terms["coulomb"] * direction)[..., None] * ratios
        return torque

    def drive_torque(self, motion: tuple[Array, Array, Array], load: Array) -> Array:
        """Torque ``(N, n)`` of rotors, friction, stiffness and user terms, without the sensor's offset.

        Parameters
        ----------
        motion : position, velocity and acceleration of the joints, ``(N, n)`` each.
        load : torque ``(N, n)`` of the bodies.
        """
        position, velocity, acceleration = motion
        torque = self.drives["rotor_inertia"] * acceleration + self.drives["stiffness"] * position
        torque = torque + self.friction(velocity)
        for ratios, terms in self.couplings:
            torque = torque + np.outer(terms["rotor_inertia"] * (acceleration @ ratios), ratios)
        if not self.terms:
            return torque
        direction = friction_direction(velocity, self.transition_speed)
        signals = dict(zip(TERM_SIGNALS, (*motion, direction), strict=False))
        signals["load"] = load
        values = np.array([value for term in self.terms for value in term.values])
        return torque + term_torque(self.terms, values, self.joint_names, signals)

    def objection(self, robot: RobotModel) -> str:
        """Return why a controller of ``robot`` cannot use the parameters; empty if the controller can."""
        links, joints = self.link_names, self.joint_names
        if (links, joints) != (robot.link_names, robot.joint_names):
            return "their links or joints differ from this robot's"
        if not (consistent := is_consistent(self.bodies)).all():
            return f"link '{links[int(np.argmin(consistent))]}' is not physically consistent"
        for term, values in self.drives.items():
            if not (real := np.isfinite(values) & ((values >= 0) | (term not in NON_NEGATIVE_TERMS))).all():
                joint = int(np.argmin(real))
                return f"{term} of '{joints[joint]}' is {values[joint]:g}, which is impossible"
        if not ((self.stribeck_speed > 0).all() and (self.transition_speed >= 0).all()):
            return "a Stribeck or transition speed is out of range"
        return self._objection_to_couplings(joints) or self._objection_to_terms(joints) or self._at_corners(robot)

    def _objection_to_couplings(self, joints: Sequence[str]) -> str:
        for coupling, (_, terms) in zip(self.message.couplings, self.couplings, strict=True):
            known = set(coupling.joints) <= set(joints) and len(set(coupling.joints)) == len(coupling.joints)
            if not known or len(coupling.joints) != len(coupling.ratios):
                return f"coupling '{coupling.name}' has unknown or repeated joints, or a wrong number of ratios"
            if not (np.isfinite(coupling.ratios).all() and all(0 <= value < np.inf for value in terms.values())):
                return f"coupling '{coupling.name}' has an impossible value"
        return ""

    def _objection_to_terms(self, joints: Sequence[str]) -> str:
        """Return why user terms cannot be computed; formulas are never executed as code."""
        for term in self.terms:
            if len(term.values) != len(term.expressions) or not np.isfinite(term.values).all():
                return f"term '{term.name}' has {len(term.expressions)} formulas and values {term.values}"
        try:
            return misnamed(self.terms, joints)
        except ValueError as error:  # from a formula
            return f"a term {error}"

    def _at_corners(self, robot: RobotModel) -> str:
        """Return why the torque is impossible at rest or at random corners of the robot's range."""
        rng, limits, shape = np.random.default_rng(0), robot.limits, (_CORNERS, robot.joints)
        lower, upper, speed = limits.range_to_sample
        q = np.asarray(lower + rng.integers(0, 3, shape) / 2 * (upper - lower), dtype=float)
        v = np.asarray(speed * rng.integers(-1, 2, shape), dtype=float)
        a = rng.integers(-1, 2, shape).astype(float)
        v[0] = a[0] = 0.0

        load = np.zeros(shape)
        if not robot.free:  # else the load depends on the motion of the base, which is unknown here
            load = rigid_torque(robot, self.bodies, q, v, a)
        with np.errstate(all="ignore"):
            torque = np.abs(load + self.drive_torque((q, v, a), load))
        given = np.isfinite(limits.effort) & (limits.effort > 0)
        bound = np.where(given, _MAX_EFFORT_RATIO * limits.effort, _MAX_TORQUE)
        if (usable := (torque <= bound).all(axis=0)).all():
            return ""
        joint = int(np.argmin(usable))
        return f"their torque at '{robot.joint_names[joint]}' is not finite or impossibly large in the joint's range"


def from_inertial_parameters(message: InertialParameters) -> ReceivedParameters:
    """Return the content of a message as arrays."""
    inertia = np.array([symmetric(link.inertia) for link in message.links]).reshape(-1, 3, 3)
    mass = np.array([link.mass for link in message.links])
    com = np.array([[link.com.x, link.com.y, link.com.z] for link in message.links]).reshape(-1, 3)
    joints = message.joints
    return ReceivedParameters(
        message,
        from_mass_com_inertia(mass, com, inertia),
        {term: np.array([getattr(joint, term) for joint in joints]) for term in DRIVE_TERMS},
        np.array([joint.stribeck_speed for joint in joints]),
        np.array([joint.transition_speed for joint in joints]),
        tuple(_coupling(drive, [joint.name for joint in joints]) for drive in message.couplings),
        tuple(
            UserTerm(term.name, term.joint, tuple(term.expressions), values=tuple(map(float, term.values)))
            for term in message.terms))


def _coupling(drive: CoupledDrive, joint_names: Sequence[str]) -> tuple[Array, Mapping[str, float]]:
    ratios = dict(zip(drive.joints, drive.ratios, strict=False))
    row = np.array([float(ratios.get(name, 0.0)) for name in joint_names])
    return row, {term: float(getattr(drive, term)) for term in COUPLING_TERMS}
