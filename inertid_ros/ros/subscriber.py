"""ParameterSubscriber: checks identified parameters and applies them in a controller between its control steps."""

import threading

import numpy as np
import pinocchio as pin
from rclpy.node import Node

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import one_line
from inertid_ros.msg import InertialParameters
from inertid_ros.robot.model import RobotModel, refuse_carried

from .conversions import to_nanoseconds
from .received_parameters import ReceivedParameters, from_inertial_parameters
from .topics import LATCHED

_USABLE = (InertialParameters.NO_VERDICT, InertialParameters.USE, InertialParameters.USE_WITH_CARE)


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
