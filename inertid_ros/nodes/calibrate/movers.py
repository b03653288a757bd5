"""Who moves the robot: the excitation node, or the robot itself, when it balances with a controller of its own."""

from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from inertid_ros.action import Excite
from inertid_ros.nodes.flow.client import FlowClient, FlowError
from inertid_ros.nodes.flow.excitation_mover import AT_REST, MOTION_S, Check, ExcitationMover
from inertid_ros.ros.qos import LATCHED

from .parameters import CalibrateOptions


class SelfMovingRobot:
    """A robot that moves by itself when a service asks it to; which motion is its own choice."""

    name = "the robot"

    def __init__(self, client: FlowClient, options: CalibrateOptions) -> None:
        self._client, self._options = client, options
        self._moving = client.received(Bool, options.moving_topic, LATCHED)

    @property
    def rest(self) -> str:
        """What is known of the robot."""
        return "the robot moves by itself" if self._is_moving() else AT_REST

    def wait(self, timeout_s: float) -> None:
        """Wait until its service is there."""
        self._client.wait_for_service(Trigger, self._options.move_service, timeout_s)

    def arm(self) -> None:
        """Nothing to do."""

    def disarm(self) -> None:
        """Nothing to do."""

    def move(self, purpose: str, goal: Excite.Goal, check: Check) -> None:
        """Ask it to move, and wait until it has."""
        client, options = self._client, self._options
        answer = client.trigger(options.move_service)
        if not answer.success:
            raise FlowError(f"{purpose} motion: {answer.message}")
        client.show(f"{purpose} motion: {answer.message}")
        unmoved = f"{options.moving_topic} does not show that the robot moves; check the topic"
        client.until(self._is_moving, unmoved, options.wait_s)

        def ended() -> bool:
            if problem := check():
                raise FlowError(problem)
            return not self._is_moving()

        client.until(ended, f"{purpose} motion: the robot does not end it", MOTION_S)

    def _is_moving(self) -> bool:
        return self._moving.last is not None and bool(self._moving.last.data)


Mover = ExcitationMover | SelfMovingRobot
"""What moves the robot along one motion after the other; armed before the first, disarmed after the last."""
