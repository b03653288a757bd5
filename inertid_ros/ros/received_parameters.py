"""Identified parameters that a controller receives: values, torque, checks, and the subscriber that applies them."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from rclpy.node import Node

from inertid_ros.config.robot import DRIVE_TERMS, TERM_SIGNALS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import one_line
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, is_consistent, symmetric
from inertid_ros.msg import CoupledDrive, InertialParameters
from inertid_ros.regressors.drives import friction_direction, friction_torque, term_torque
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import COUPLING_TERMS, NON_NEGATIVE_TERMS, UserTerm, misnamed
from inertid_ros.robot.model import RobotModel, refuse_carried
from inertid_ros.ros.conversions import to_nanoseconds
from inertid_ros.ros.topics import LATCHED

_CORNERS = 200  # positions at limits or half-way, speeds at limits or zero
_MAX_EFFORT_RATIO, _MAX_TORQUE = 100.0, 1e6  # multiple of the URDF's effort limit; if there is none, N m or N
_USABLE = (InertialParameters.NO_VERDICT, InertialParameters.USE, InertialParameters.USE_WITH_CARE)


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

    def of_joints(field: str) -> Array:
        return np.array([getattr(joint, field) for joint in message.joints])

    names = [joint.name for joint in message.joints]
    terms = (UserTerm(term.name, term.joint, tuple(term.expressions), values=tuple(map(float, term.values)))
        for term in message.terms)
    return ReceivedParameters(
        message, from_mass_com_inertia(mass, com, inertia), {term: of_joints(term) for term in DRIVE_TERMS},
        of_joints("stribeck_speed"), of_joints("transition_speed"),
        tuple(_coupling(drive, names) for drive in message.couplings), tuple(terms))


def _coupling(drive: CoupledDrive, joint_names: Sequence[str]) -> tuple[Array, Mapping[str, float]]:
    ratios = dict(zip(drive.joints, drive.ratios, strict=False))
    row = np.array([float(ratios.get(name, 0.0)) for name in joint_names])
    return row, {term: float(getattr(drive, term)) for term in COUPLING_TERMS}


class ParameterSubscriber:
    """Receive ``InertialParameters``, and apply them to a Pinocchio model when the controller calls :meth:`update`.

    A message is refused, with one log line, if it belongs to another robot (model hash), if its validation failed, or
    if its verdict is "do not use" or, with ``only_use``, not "use". :meth:`.ReceivedParameters.objection` also refuses
    bodies that are not physically consistent, other links or joints, impossible drive parameters, and torque that is
    not finite. The subscription is latched: parameters that were published before the controller started arrive, too.

    Only :meth:`update` changes ``model``; call :meth:`update` between two control steps, from the control thread. Every
    other method may be called from any thread.

    Parameters
    ----------
    node : the controller's node, which must be spun.
    robot : the robot, read from its URDF before calibration.
    model : model to update, made from the same URDF with the same joints locked; default a copy of ``robot``'s model.

    Attributes
    ----------
    model : pinocchio.Model
    refused : number of messages that were refused.
    refusal : why the last message was refused, in one line; empty if it was accepted.
    """

    def __init__(
            self, node: Node, robot: RobotModel, topic: str = "identifier/parameters", model: pin.Model | None = None,
            only_use: bool = False) -> None:
        refuse_carried(robot)
        names = None if model is None else tuple(model.names)[1 + robot.free :]
        if names not in (None, robot.joint_names):
            raise ValueError(f"model has joints {names}, the robot {robot.joint_names}")
        self.model = pin.Model(robot.pinocchio) if model is None else model
        self._robot, self._only_use = robot, only_use
        self._logger = node.get_logger()
        self._lock = threading.Lock()
        self._waiting: ReceivedParameters | None = None
        drives = {term: np.array(robot.drive_prior[term]) for term in DRIVE_TERMS}
        speeds = robot.layout.stribeck_speed, robot.layout.transition_speed[: robot.joints]
        self._in_use = ReceivedParameters(InertialParameters(), robot.body_prior, drives, *speeds)
        self._data = self.model.createData()
        self.refused, self.refusal = 0, ""
        self._subscription = node.create_subscription(InertialParameters, topic, self._receive, LATCHED)

    @property
    def waiting(self) -> bool:
        """True if the next :meth:`update` will change the model."""
        with self._lock:
            return self._waiting is not None

    @property
    def sequence(self) -> int:
        """Sequence number of the parameters in use; 0 while the URDF's parameters are in use."""
        return int(self._in_use.message.sequence)

    def update(self) -> bool:
        """Write newly received parameters into ``model``; return True if there were any."""
        with self._lock:
            received, self._waiting = self._waiting, None
        if received is None:
            return False
        for index, pi in enumerate(received.bodies):
            self.model.inertias[index + 1] = pin.Inertia.FromDynamicParameters(pi)
        self._in_use = received
        return True

    @property
    def stamp_ns(self) -> int | None:
        """Stamp of the parameters in use [ns]; None while the URDF's parameters are in use."""
        message = self._in_use.message
        return to_nanoseconds(message.header.stamp) if message.links else None

    def drive(self, term: str) -> Array:
        """Return a drive term in use ``(n,)``, one of :data:`~inertid_ros.config.robot.DRIVE_TERMS`."""
        return self._in_use.drives[term]

    def friction(self, velocity: Array) -> Array:
        """Return the friction torque ``(n,)`` at a joint velocity ``(n,)``, without the sensor's offset."""
        return self._in_use.friction(velocity)

    def inverse_dynamics(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        """Return the torque of a motion of a robot with a fixed base, ``(n,)`` or ``(N, n)`` like its arguments.

        It is the sum of bodies, rotors, friction, stiffness and user terms, without the sensor's offset.
        """
        q, v, a = (np.atleast_2d(values) for values in (position, velocity, acceleration))
        load = np.array([pin.rnea(self.model, self._data, *state) for state in zip(q, v, a, strict=True)])
        torque: Array = load + self._in_use.drive_torque((q, v, a), load)
        return torque.reshape(np.shape(position))

    def gravity(self, position: Array) -> Array:
        """Return the torque of gravity on the bodies at joint positions, ``(n,)`` or ``(N, n)`` like these."""
        torque = [pin.computeGeneralizedGravity(self.model, self._data, q) for q in np.atleast_2d(position)]
        return np.reshape(torque, np.shape(position))

    def _receive(self, message: InertialParameters) -> None:
        received = from_inertial_parameters(message)
        if reason := self._objection(received):
            self.refused += 1
            self.refusal = one_line(f"parameters {message.sequence} refused: {reason}")
            self._logger.error(f"{self.refusal}; the last good parameters stay in use")
            return
        self.refusal = ""
        with self._lock:
            self._waiting = received
        self._logger.info(f"parameters {message.sequence} received for {len(message.links)} links")

    def _objection(self, received: ReceivedParameters) -> str:
        robot, message = self._robot, received.message
        if message.model_hash != robot.hash:
            return f"they belong to another robot (model hash {message.model_hash[:12]}, here {robot.hash[:12]})"
        if message.validation_status not in (InertialParameters.PASSED, InertialParameters.NOT_VALIDATED):
            return "they did not pass their validation"
        if message.verdict not in _USABLE:
            return "their verdict is 'do not use'"
        if self._only_use and message.verdict != InertialParameters.USE:
            return "their verdict is not 'use', and only_use is set"
        return received.objection(robot)
