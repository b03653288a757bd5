"""Execution of flows, and the two ways to move a robot: by the excitation node, or by the robot's own motion."""

import sys
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from inertid_ros.action import Excite
from inertid_ros.config.nodes import CalibrateOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.node_parameters import check_given_parameters, declare
from inertid_ros.ros.topics import LATCHED, resolved

from .flow_client import INTERRUPTED, FlowClient, FlowError, Interrupted
from .spin import end_within

DONE, FAILED, REJECTED = 0, 2, 3  # exit statuses of flows, in addition to INTERRUPTED
_MOTION_TIMEOUT_S = 1800.0  # for planning and one motion
_AT_REST = "the robot is at rest"
_EXCITE_ACTION = "excitation/excite"
_STATES_WITHOUT_GOAL = (ExcitationStatus.UNARMED, ExcitationStatus.LATCHED)


def run_flow(name: str, options: type, flow: Callable[[FlowClient, Any], Any]) -> int:
    """Run a flow as the node ``name`` with its parameters; report errors as one line and an exit status.

    A flow has ``run()``, which returns the exit status, or raises FlowError with one line that names the remedy;
    ``leave()``, which disarms the robot and ends recordings and goals; and ``mover``, which moves the robot.
    """
    try:
        with FlowClient(name) as client:
            status = FAILED
            try:
                parameters: Any = declare(client.node, options)
                check_given_parameters(client.node)
                status = _run(client, flow(client, parameters))
            except InertidError as error:  # in the parameters
                client.show_error(str(error))
            end_within(status)
            return status
    except InertidError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED


def _run(client: FlowClient, flow: Any) -> int:
    try:
        return flow.run()
    except (InertidError, Interrupted) as error:
        client.fail(error)
        if client.is_interrupted:
            client.show(f"interrupted; {flow.mover.rest}")
        flow.leave()
        return INTERRUPTED if client.is_interrupted else FAILED
    except Exception:  # after any error the robot must be disarmed, and its recording end
        flow.leave()
        raise


class ExcitationMover:
    """Move the robot by the excitation node, which is armed only from :meth:`arm` to :meth:`disarm`."""

    name = "excitation"

    def __init__(self, client: FlowClient, wait_s: float) -> None:
        self._client, self._wait_s = client, wait_s
        self._node = client.serving_node("excitation", ExcitationStatus, "its last command ends with the robot at rest")
        self._armed = False

    @property
    def rest(self) -> str:
        status = self._node.last
        has_ended = status is not None and status.state in _STATES_WITHOUT_GOAL
        if has_ended or _EXCITE_ACTION not in self._client.open_goals:
            return _AT_REST
        return self._node.lost or "excitation has not reported rest yet; its commands end with the robot at rest"

    def wait(self, timeout_s: float) -> None:
        for service_type, name in ((GetState, "get_state"), (ChangeState, "change_state")):
            self._client.wait_for_service(service_type, f"excitation/{name}", timeout_s)
        self._client.wait_for_action(Excite, _EXCITE_ACTION, timeout_s)

    def arm(self) -> None:
        """Activate the node from any state; this also clears a latched fault."""
        state = self._client.call(GetState, "excitation/get_state", GetState.Request()).current_state.id
        if state == State.PRIMARY_STATE_ACTIVE:
            self._change_state("deactivate")
        if state == State.PRIMARY_STATE_UNCONFIGURED:
            self._client.with_retries(lambda: self._change_state("configure"), self._wait_s)
        self._armed = True  # before the request, which may take effect although its answer is lost
        self._change_state("activate")
        self._client.show("excitation is armed")

    def disarm(self) -> None:
        self._node.needed = False
        if self._armed:
            self._armed = False
            self._change_state("deactivate")

    def _change_state(self, verb: str) -> None:
        request = ChangeState.Request(transition=Transition(id=getattr(Transition, f"TRANSITION_{verb.upper()}")))
        if not self._client.call(ChangeState, "excitation/change_state", request).success:
            self._armed = False  # a refused transition leaves nothing to undo
            why = self._node.last.message if self._node.last is not None else "see its log"
            raise FlowError(f"excitation refuses to {verb}: {why}")

    def move(self, purpose: str, goal: Excite.Goal, check: Callable[[], None]) -> None:
        """Let the node plan, show and execute a motion; an error from ``check`` ends the motion."""
        shown = False

        def describe(feedback: Excite.Feedback) -> tuple[str, float | None]:
            nonlocal shown
            if feedback.plan and not shown:
                shown = True
                self._client.show(f"{purpose} motion: {feedback.plan}")
                if goal.confirm:
                    go = self._client.node.resolve_service_name("excitation/go")
                    self._client.show(f"check it, then move the robot: ros2 service call {go} std_srvs/srv/Trigger")
            if not feedback.stage:
                return f"{purpose}: checking", None
            return f"{purpose}: {feedback.stage}", feedback.fraction

        goal.lease = True
        status, result = self._client.run_action(Excite, _EXCITE_ACTION, goal, describe, _MOTION_TIMEOUT_S, check)
        if status != GoalStatus.STATUS_SUCCEEDED:
            raise FlowError(f"{purpose} motion: {result.message}")
        self._client.show(f"{purpose} motion: {result.message}, condition number {result.condition_number:.1f}")


class SelfMovingRobot:
    """A robot that moves by its own controller when a service is called, such as a balancing robot."""

    name = "the robot"

    def __init__(self, client: FlowClient, options: CalibrateOptions) -> None:
        self._client, self._options = client, options
        for name in (options.move_service, options.moving_topic):
            resolved(client.node, name)
        self._moving = client.received(Bool, options.moving_topic, LATCHED)

    @property
    def rest(self) -> str:
        return "the robot moves by itself" if self._is_moving() else _AT_REST

    def wait(self, timeout_s: float) -> None:
        self._client.wait_for_service(Trigger, self._options.move_service, timeout_s)

    def arm(self) -> None:
        pass

    def disarm(self) -> None:
        pass

    def move(self, purpose: str, goal: Excite.Goal, check: Callable[[], None]) -> None:
        """Request a motion and wait for its end; ``goal`` has no effect."""
        client, options = self._client, self._options
        answer = client.trigger(options.move_service)
        if not answer.success:
            raise FlowError(f"{purpose} motion: {answer.message}")
        client.show(f"{purpose} motion: {answer.message}")
        unmoved = f"{options.moving_topic} does not report that the robot moves; check the topic"
        client.until(self._is_moving, unmoved, options.wait_s)

        def has_ended() -> bool:
            check()
            return not self._is_moving()

        client.until(has_ended, f"{purpose} motion: the robot has not finished it", _MOTION_TIMEOUT_S)

    def _is_moving(self) -> bool:
        return self._moving.last is not None and bool(self._moving.last.data)


Mover = ExcitationMover | SelfMovingRobot
"""Moves a robot for a flow; after an interruption, ``rest`` states whether the robot is at rest."""
