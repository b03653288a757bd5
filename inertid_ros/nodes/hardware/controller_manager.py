"""What the controller manager says of the robot's controller: whether it is active, which joints it commands, and how
far it lets them be from a trajectory."""

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.task import Future

_PERIOD_S = 0.5  # between two questions
_ANSWER_S = 1.0  # a question that is not answered by then is asked again


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
        if self._answer is not None and now - self._asked > _ANSWER_S:
            self._client.remove_pending_request(self._answer)
            self._answer = None
        if self._answer is None and now - self._asked >= _PERIOD_S and self._client.service_is_ready():
            self._asked, self._answer = now, self._client.call_async(request())
        return None


def _list_controllers() -> Any:
    """Type of the question for all controllers; None where controller_manager_msgs is not installed."""
    try:
        from controller_manager_msgs.srv import ListControllers
    except ImportError:
        return None
    return ListControllers
