"""The robot's controller: the topic of its commands, and its state from the controller manager."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.task import Future

from inertid_ros.core.errors import ConfigurationError, optional_module
from inertid_ros.ros.topics import COMMAND, Publishers, resolved

_QUESTION_PERIOD_S = 0.5
_QUESTION_TIMEOUT_S = 1.0  # then the request is repeated


class CommandTopic:
    """A topic for commands to a robot."""

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        self._node = node
        self._publisher = node.create_publisher(message_type, topic, COMMAND)
        self.name = str(self._publisher.topic_name)
        self._publishers = Publishers(node, self.name)

    @property
    def has_controller(self) -> bool:
        return bool(self._publisher.get_subscription_count())

    def publish(self, message: Any) -> None:
        self._publisher.publish(message)

    def problem(self) -> str:
        """Return why commands do not arrive, or which other node commands the robot, in one line; else empty."""
        if not self.has_controller:
            return (
                f"{self.name} has no subscriber; start and activate the robot's controller, or set the parameter"
                " controller to its name")
        this_node = (self._node.get_name(), self._node.get_namespace())
        others = [publisher for publisher in self._publishers.look() if publisher != this_node]
        if not others:
            return ""
        name, namespace = others[0]
        return f"{namespace.rstrip('/')}/{name} also commands the robot on {self.name}; stop it"


def of_controller(controller: str, name: str) -> str:
    """Return the name of a topic or action of a controller; only ``name`` if ``controller`` is empty."""
    return f"{controller}/{name}" if controller else name


def state_topic(node: Node, controller: str) -> str:
    """Return the topic of the controller's state, next to the topic of its trajectories, which may be remapped.

    The topic is empty if neither ``controller`` nor a remapping names the controller.
    """
    if controller:
        return f"{controller}/controller_state"
    owner = node.resolve_topic_name("joint_trajectory").rpartition("/")[0]
    return f"{owner}/controller_state" if owner != node.get_namespace().rstrip("/") else ""


class ControllerManager:
    """Query the controller manager in the node's namespace without blocking.

    No request is sent if ``controller`` is empty or controller_manager_msgs is not installed. ``joints`` are the joints
    to be moved, by their names in controllers. ConfigurationError: no names of ROS can begin with ``controller``.
    """

    def __init__(self, node: Node, controller: str) -> None:
        resolved(node, of_controller(controller, "follow_joint_trajectory/_action/cancel_goal"))  # its longest name
        self.joints: tuple[str, ...] = ()
        self._name = controller.strip("/").rpartition("/")[2]
        self._controllers: list[Any] | None = None  # from the last answer
        self._tolerances: list[float] | None = None
        self._questions: tuple[Question, Question] | None = None
        service = optional_type("controller_manager_msgs.srv", "ListControllers")
        if self._name and service is not None:
            self._questions = (
                Question(node, service, "controller_manager/list_controllers"),
                Question(node, GetParameters, f"{controller}/get_parameters"))

    def poll(self, now: float) -> None:
        """Process answers, and send requests that are due; to be called at every tick with the steady clock [s]."""
        if self._questions is None:
            return
        controllers, parameters = self._questions
        if (answer := controllers.poll(now)) is not None:
            self._controllers = answer.controller
        if self._controllers is None or self._tolerances is not None or not self.joints:
            return
        names = [f"constraints.{joint}.trajectory" for joint in self.joints]
        if (answer := parameters.poll(now, names=names)) is not None:
            values = (value.double_value for value in answer.values if value.type == ParameterType.PARAMETER_DOUBLE)
            self._tolerances = [value for value in values if value > 0]

    def problem(self) -> str:
        """Return why the controller cannot move the joints; empty if it can, or if its state was not received yet."""
        return "" if self._controllers is None else controller_problem(self._controllers, self._name, self.joints)

    def inactivity(self) -> str:
        """Return a message if the controller is known not to be active; else empty."""
        named = [controller for controller in self._controllers or () if controller.name == self._name]
        return _inactivity(named[0]) if named else ""

    @property
    def tolerance(self) -> float | None:
        """Smallest distance from a trajectory at which the controller aborts [rad or m]; None if unknown."""
        return min(self._tolerances or (), default=None)


def controller_problem(controllers: Sequence[Any], name: str, joints: Sequence[str]) -> str:
    """Return why the controller ``name`` cannot move the joints, in one line; empty if it can.

    ``controllers`` are ``controller_manager_msgs/ControllerState``.
    """
    controller = next((controller for controller in controllers if controller.name == name), None)
    if controller is None:
        others = ", ".join(controller.name for controller in controllers) or "none"
        return f"the controller manager has no {name} (controllers: {others}); set the parameter controller"
    if inactivity := _inactivity(controller):
        return inactivity
    claimed = {part for interface in controller.claimed_interfaces for part in interface.split("/")}
    missing = [joint for joint in joints if joint not in claimed]
    if controller.claimed_interfaces and missing:
        return (
            f"{name} does not command {', '.join(missing)}; hold them (robot.locked_joints), give their names"
            " (robot.joint_names), or set the parameter controller")
    return ""


def _inactivity(controller: Any) -> str:
    if controller.state == "active":
        return ""
    name = controller.name
    return f"{name} is {controller.state}; activate it: ros2 control switch_controllers --activate {name}"


class Question:
    """Client that calls a service periodically, without blocking."""

    def __init__(self, node: Node, service: Any, name: str) -> None:
        self._service, self._client = service, node.create_client(service, name)
        self._answer: Future | None = None
        self._asked = -float("inf")

    def poll(self, now: float, **request: Any) -> Any:
        """Return each answer once, else None; if the next request is due, send it with the fields ``request``."""
        if self._answer is not None and self._answer.done():
            answer, self._answer = self._answer.result(), None
            return answer
        if self._answer is not None and now - self._asked > _QUESTION_TIMEOUT_S:
            self._client.remove_pending_request(self._answer)
            self._answer = None
        if self._answer is None and now - self._asked >= _QUESTION_PERIOD_S and self._client.service_is_ready():
            self._asked, self._answer = now, self._client.call_async(self._service.Request(**request))
        return None


def optional_type(module: str, name: str) -> Any:
    """Return a message or service type; None if its package is not installed."""
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None


def follow_joint_trajectory() -> Any:
    """Return the type of the action; ConfigurationError if control_msgs is not installed."""
    return optional_module("control_msgs.action", ConfigurationError(
        "command_interface follow_joint_trajectory needs control_msgs, which is not installed; install it or use"
        " joint_trajectory")).FollowJointTrajectory
