"""The robot's controller: the topic of its commands, and what its manager says of it."""

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.task import Future

from inertid_ros.robot.recorded_joints import RecordedJoints
from inertid_ros.ros.topics import COMMAND, Publishers


class CommandTopic:
    """A topic on which a robot is commanded.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    joints : RecordedJoints
        What the controller calls the joints.
    """

    def __init__(self, node: Node, message_type: Any, topic: str, joints: RecordedJoints) -> None:
        self._node, self._joints = node, joints
        self._publisher = node.create_publisher(message_type, topic, COMMAND)
        self._publishers = Publishers(node, self._publisher.topic_name)

    @property
    def name(self) -> str:
        """Resolved name of the topic."""
        return str(self._publisher.topic_name)

    @property
    def has_controller(self) -> bool:
        """Whether somebody subscribes."""
        return bool(self._publisher.get_subscription_count())

    def begin(self) -> None:
        """Nothing to forget."""

    def halt(self) -> str:
        """Nothing: a topic tells of no goal that was given up."""
        return ""

    def problem(self) -> str:
        """Why commands do not arrive, in one line; empty if they do. Who else commands is told by name."""
        if not self.has_controller:
            return (
                f"nobody subscribes to {self.name}; start and activate the robot's controller, or set the parameter"
                " controller to its name"
            )
        own = (self._node.get_name(), self._node.get_namespace())
        others = [publisher for publisher in self._publishers.look() if publisher != own]
        if not others:
            return ""
        name, namespace = others[0]
        return f"{namespace.rstrip('/')}/{name} commands the robot on {self.name} too; stop it"


def of_controller(controller: str, name: str) -> str:
    """Return the name of a topic or action of a controller; the name itself where that has none."""
    return f"{controller}/{name}" if controller else name


_QUESTION_PERIOD_S = 0.5  # between two questions
_QUESTION_TIMEOUT_S = 1.0  # a question that is not answered by then is asked again


class ControllerManager:
    """Asks the controller manager beside the node, where there is one and its messages are installed.

    Parameters
    ----------
    node : Node
    controller : str
        Name of the controller; empty asks nothing.

    Attributes
    ----------
    joints : tuple of str
        That are to be moved, as controllers call them.
    """

    def __init__(self, node: Node, controller: str) -> None:
        self.joints: tuple[str, ...] = ()
        self._name = controller.strip("/").rpartition("/")[2]
        self._known: list[Any] | None = None
        self._tolerances: dict[str, float] | None = None  # until the controller has told them
        self._list, self._parameters = _Question(node), _Question(node)
        self._request = _list_controllers()
        if self._name and self._request is not None:
            self._list.ask_of(self._request, "controller_manager/list_controllers")
            self._parameters.ask_of(GetParameters, f"{controller}/get_parameters")

    def poll(self, now: float) -> None:
        """Take answers, and ask where that is due; to be called at every tick, ``now`` is the steady clock [s]."""
        if self._request is None or not self._name:
            return
        answer = self._list.poll(now, self._request.Request)
        if answer is not None:
            self._known = answer.controller
        if self._known is not None and self._tolerances is None and self.joints:
            self._take_tolerances(self._parameters.poll(now, self._tolerance_request))

    def _tolerance_request(self) -> GetParameters.Request:
        return GetParameters.Request(names=[f"constraints.{joint}.trajectory" for joint in self.joints])

    def _take_tolerances(self, answer: Any) -> None:
        if answer is not None:
            values = map(parameter_value_to_python, answer.values)
            pairs = zip(self.joints, values, strict=False)
            self._tolerances = {joint: value for joint, value in pairs if isinstance(value, float) and value > 0}

    def problem(self) -> str:
        """Why the controller cannot move the joints, in one line; empty where it can, or nobody knows."""
        return "" if self._known is None else controller_problem(self._known, self._name, self.joints)

    def inactivity(self) -> str:
        """That the controller is not active, so that nothing that it holds moves the robot; empty otherwise."""
        own = [controller for controller in self._known or () if controller.name == self._name]
        return _inactivity(own[0]) if own else ""

    @property
    def tolerance(self) -> float | None:
        """Smallest distance [rad or m] from a trajectory at which the controller gives up; None if unknown."""
        return min((self._tolerances or {}).values(), default=None)


def controller_problem(controllers: Sequence[Any], name: str, joints: Sequence[str]) -> str:
    """Why a controller cannot move joints, in one line; empty where it can.

    Parameters
    ----------
    controllers : sequence
        ``controller_manager_msgs/ControllerState`` of all.
    name : str
        Of the robot's controller.
    joints : sequence of str
        As controllers call them.
    """
    own = next((controller for controller in controllers if controller.name == name), None)
    if own is None:
        others = ", ".join(controller.name for controller in controllers) or "none"
        return f"the controller manager has no {name}, but {others}; set the parameter controller"
    inactivity = _inactivity(own)
    if inactivity:
        return inactivity
    claimed = {part for interface in own.claimed_interfaces for part in interface.split("/")}
    missing = [joint for joint in joints if joint not in claimed]
    if own.claimed_interfaces and missing:
        return (
            f"{name} does not command {', '.join(missing)}; hold them (robot.locked_joints), give their names"
            " (robot.joint_names), or set the parameter controller"
        )
    return ""


def _inactivity(controller: Any) -> str:
    if controller.state == "active":
        return ""
    name = controller.name
    return f"{name} is {controller.state}; activate it: ros2 control switch_controllers --activate {name}"


class _Question:
    """A service that is asked now and then, and never waited for."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._client: Client | None = None
        self._answer: Future | None = None
        self._asked = -float("inf")

    def ask_of(self, service: Any, name: str) -> None:
        self._client = self._node.create_client(service, name)

    def poll(self, now: float, request: Any) -> Any:
        """The answer, once, where one has come; ask where that is due."""
        if self._client is None:
            return None
        if self._answer is not None and self._answer.done():
            answer, self._answer = self._answer.result(), None
            return answer
        if self._answer is not None and now - self._asked > _QUESTION_TIMEOUT_S:
            self._client.remove_pending_request(self._answer)
            self._answer = None
        if self._answer is None and now - self._asked >= _QUESTION_PERIOD_S and self._client.service_is_ready():
            self._asked, self._answer = now, self._client.call_async(request())
        return None


def _list_controllers() -> Any:
    """Type of the question for all controllers; None where controller_manager_msgs is not installed."""
    try:
        from controller_manager_msgs.srv import ListControllers
    except ImportError:
        return None
    return ListControllers
