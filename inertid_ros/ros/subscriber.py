"""ParameterSubscriber: takes identified parameters into a controller, checked, and between its control steps."""

import threading

import numpy as np
import pinocchio as pin
from rclpy.node import Node

from inertid_ros.config.robot import DRIVE_TERMS, TERM_SIGNALS
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.drives import friction_direction, friction_torque, term_torque
from inertid_ros.robot.layout import UserTerm, misnamed
from inertid_ros.robot.model import RobotModel

from .parameter_messages import ReceivedParameters, from_inertial_parameters
from .topics import LATCHED


class ParameterSubscriber:
    """Receives ``InertialParameters`` and applies them to a Pinocchio model when the controller asks for it.

    A message is refused, with one log line, if it belongs to another robot (model hash), has the verdict "do not use"
    or, with ``only_use``, any verdict but "use", holds a body that is not physically consistent, or names other links
    or joints. The subscription is latched: parameters that were published before the controller started arrive, too.

    Only ``update()`` changes ``model``; call it between two control steps, from the control thread. Every other method
    may be called from any thread.

    Parameters
    ----------
    node : the controller's node, which must be spun.
    robot : the robot, read from its URDF before calibration.
    model : model to update, made from the same URDF with the same joints locked; default a copy of ``robot``'s model.

    Attributes
    ----------
    model : pinocchio.Model
    refused : number of messages that were refused.
    """

    def __init__(
            self, node: Node, robot: RobotModel, topic: str = "identifier/parameters", model: pin.Model | None = None,
            only_use: bool = False) -> None:
        if model is not None and tuple(model.names)[1:] != robot.joint_names:
            raise ValueError(f"model has joints {list(model.names)[1:]}, the robot {list(robot.joint_names)}")
        self.model = pin.Model(robot.pinocchio) if model is None else model
        self._robot, self._only_use = robot, only_use
        self._logger = node.get_logger()
        self._lock = threading.Lock()
        self._waiting: ReceivedParameters | None = None
        drives = {term: np.array(robot.drive_prior[term]) for term in DRIVE_TERMS}
        speeds = robot.layout.stribeck_speed, robot.layout.transition_speed[: robot.joints]
        self._in_use = ReceivedParameters(InertialParameters(), robot.body_prior, drives, *speeds)
        self._data = self.model.createData()
        self.refused = 0
        self._subscription = node.create_subscription(InertialParameters, topic, self._receive, LATCHED)

    @property
    def waiting(self) -> bool:
        """Whether the next :meth:`update` will change the model."""
        with self._lock:
            return self._waiting is not None

    @property
    def sequence(self) -> int:
        """Of the parameters in use; 0 before the first, while those of the URDF are used."""
        return int(self._in_use.message.sequence)

    def update(self) -> bool:
        """Write parameters that have arrived into ``model``; return whether there were any."""
        with self._lock:
            received, self._waiting = self._waiting, None
        if received is None:
            return False
        for index, pi in enumerate(received.bodies):
            self.model.inertias[index + 1] = pin.Inertia.FromDynamicParameters(pi)
        self._in_use = received
        return True

    def drive(self, term: str) -> Array:
        """Return a drive term in use ``(n,)``: ``rotor_inertia``, ``viscous``, ``coulomb`` or ``offset``."""
        return self._in_use.drives[term]

    def friction(self, velocity: Array) -> Array:
        """Return the friction torque ``(n,)`` at a joint velocity ``(n,)``, without the sensor's offset."""
        used = self._in_use
        torque = friction_torque(velocity, used.drives, used.stribeck_speed, used.transition_speed)
        for ratios, terms in used.couplings:
            speed, turning = ratios @ velocity, np.sqrt(ratios**2 @ used.transition_speed**2)
            direction = friction_direction(speed, turning)
            torque = torque + ratios * (terms["viscous"] * speed + terms["coulomb"] * direction)
        return torque

    def terms(self, position: Array, velocity: Array, acceleration: Array) -> Array:
        """Return the torque ``(n,)`` of terms that the configuration added, such as springs; zero without terms."""
        used, joint_names = self._in_use, self._robot.joint_names
        if not used.terms:
            return np.zeros(len(joint_names))
        state = (np.asarray(position), np.asarray(velocity), np.asarray(acceleration))
        direction = friction_direction(state[1], used.transition_speed)
        signals = dict(zip(TERM_SIGNALS, (*state, direction), strict=False))
        if any(term.uses_load for term in used.terms):
            signals["load"] = pin.rnea(self.model, self._data, *state)
        values = np.array([value for term in used.terms for value in term.values])
        rows = {name: signal[None] for name, signal in signals.items()}
        return term_torque(used.terms, values, joint_names, rows)[0]

    def _receive(self, message: InertialParameters) -> None:
        received = from_inertial_parameters(message)
        if reason := self._objection(received):
            self.refused += 1
            self._logger.error(f"parameters {message.sequence} refused: {reason}; the last good ones stay in use")
            return
        with self._lock:
            self._waiting = received
        self._logger.info(f"parameters {message.sequence} received for {len(message.links)} links")

    def _objection(self, received: ReceivedParameters) -> str:
        robot, message = self._robot, received.message
        if message.model_hash != robot.hash:
            return f"they belong to another robot (model hash {message.model_hash[:12]}, here {robot.hash[:12]})"
        if message.validation_status not in (InertialParameters.PASSED, InertialParameters.NOT_VALIDATED):
            return "they did not pass their validation"
        if message.verdict == InertialParameters.DO_NOT_USE:
            return "the verdict on them is 'do not use'"
        if self._only_use and message.verdict != InertialParameters.USE:
            return "they are to be used with care, if at all, and only_use is set"
        link_names = tuple(link.name for link in message.links)
        if link_names != robot.link_names or tuple(joint.name for joint in message.joints) != robot.joint_names:
            return "their links or joints are not this robot's"
        consistent = is_consistent(received.bodies)
        if not consistent.all():
            return f"link '{link_names[int(np.argmin(consistent))]}' is not physically consistent"
        values = np.array([received.drives[term] for term in DRIVE_TERMS])
        coupled = [number for ratios, terms in received.couplings for number in (*ratios, *terms.values())]
        if not (np.isfinite(values).all() and np.isfinite(coupled).all()):
            return "a drive parameter is not finite"
        if not ((received.stribeck_speed > 0).all() and (received.transition_speed >= 0).all()):
            return "a speed of friction is not above zero"
        return self._objection_to_terms(received.terms)

    def _objection_to_terms(self, terms: tuple[UserTerm, ...]) -> str:
        """Why user terms cannot be computed; formulas are never executed as code."""
        for term in terms:
            if len(term.values) != len(term.expressions) or not np.isfinite(term.values).all():
                return f"term '{term.name}' has {len(term.expressions)} formulas and values {term.values}"
        try:
            return misnamed(terms, self._robot.joint_names)
        except ValueError as error:  # of a formula
            return f"a term {error}"
