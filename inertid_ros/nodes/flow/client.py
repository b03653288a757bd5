"""FlowClient: a step-by-step client of services, actions and lifecycle nodes, that can be interrupted anywhere."""

import math
import signal
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any, TypeVar

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.action import ActionClient
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from inertid_ros.core.blas_threads import check_address_space
from inertid_ros.core.errors import InertidError
from inertid_ros.nodes.spin import LEAST_MIB
from inertid_ros.ros.diagnostics import OK, DiagnosticsPublisher, Status
from inertid_ros.ros.discovery import ClientDiscovery
from inertid_ros.ros.qos import COMMAND

from .progress_line import ProgressLine

T = TypeVar("T")

_ANSWER_S = 10.0
_CANCEL_S = 15.0
_LEASE_S = 0.1
_STALE_S = 5.0  # nodes publish their status at least once a second
_TRANSITIONS = {
    Transition.TRANSITION_CONFIGURE: "configure",
    Transition.TRANSITION_ACTIVATE: "activate",
    Transition.TRANSITION_DEACTIVATE: "deactivate",
}


class FlowError(InertidError):
    """A step of a flow failed; the message names the remedy."""


class Interrupted(Exception):  # noqa: N818 - an interruption is no error
    """SIGINT or SIGTERM came."""


class ReceivedMessages:
    """The last message of a topic, and how long ago it was received."""

    def __init__(self) -> None:
        self.last: Any = None
        self._at = -math.inf

    def take(self, message: Any) -> None:
        """Keep a message that was received now."""
        self.last, self._at = message, time.monotonic()

    def stale(self, node: str) -> str:
        """Return why a node must be taken for dead; empty while its messages are fresh."""
        silent = time.monotonic() - self._at
        return f"no message from {node} for {silent:.0f} s; see its output" if silent > _STALE_S else ""


class FlowClient:
    """Node and executor of a flow; use as a context manager. Every wait has a limit and ends on a signal.

    Parameters
    ----------
    name : str
        Of the node.
    lease_topic : str
        Where the lease of a motion is renewed.

    Attributes
    ----------
    note : callable
        What to show beside the progress of an action; an empty string for nothing.
    """

    def __init__(self, name: str, lease_topic: str) -> None:
        check_address_space("a node", LEAST_MIB)
        self._interrupted = self._cleaning = self._leasing = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node(name)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._lease = self.node.create_publisher(Empty, lease_topic, COMMAND)
        self.node.create_timer(_LEASE_S, self._renew, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._line, self._step = ProgressLine(), "starting"
        self.note: Callable[[], str] = lambda: ""
        self._diagnostics = DiagnosticsPublisher(self.node, self._statuses)

    def __enter__(self) -> "FlowClient":
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.end()
        self._executor.shutdown(timeout_sec=0.0)
        self.node.destroy_node()
        rclpy.try_shutdown()

    # Messages to the user

    def show(self, message: str) -> None:
        """Print one line of progress."""
        self._step = message
        self._line.print(message)

    def show_warning(self, message: str) -> None:
        """Print one line of what to be careful of."""
        self._line.end()
        print(f"warning: {message}", file=sys.stderr, flush=True)

    def show_error(self, message: str) -> None:
        """Print one line of what went wrong."""
        self._line.end()
        print(f"error: {message}", file=sys.stderr, flush=True)

    # Requests to nodes

    def received(self, message_type: Any, topic: str, qos: QoSProfile) -> ReceivedMessages:
        """Subscribe to a topic and return what is received."""
        received = ReceivedMessages()
        self.node.create_subscription(message_type, topic, received.take, qos)
        return received

    def until(self, condition: Callable[[], Any], otherwise: str | Callable[[], str], timeout_s: float) -> None:
        """Spin until a condition holds.

        Raises
        ------
        FlowError
            With ``otherwise``, or what it returns then, when it does not within the time.
        Interrupted
            A signal came.
        """
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                raise FlowError(otherwise if isinstance(otherwise, str) else otherwise())
            self._executor.spin_once(timeout_sec=0.05)
            if self._interrupted and not self._cleaning:
                self._cleaning = True  # stopping and disarming from here on is not interrupted again
                raise Interrupted

    def wait_for_service(self, name: str, timeout_s: float) -> None:
        """Wait until a service is there; raise FlowError where it does not appear."""
        full = self.node.resolve_service_name(name)
        owner = full.rpartition("/")[0]

        def there() -> bool:
            return any(service == full for service, _ in self.node.get_service_names_and_types())

        self.until(there, f"{full} is not there; start {owner}", timeout_s)

    def wait_for_action(self, action_type: Any, name: str, timeout_s: float) -> None:
        """Wait until an action is there; raise FlowError where it does not appear."""
        client = ActionClient(self.node, action_type, name)
        owner = name.rpartition("/")[0]
        self.until(client.server_is_ready, f"action {name} is not there; start {owner}", timeout_s)
        client.destroy()

    def call(self, service_type: Any, name: str, request: Any) -> Any:
        """Return the answer of a service.

        Raises
        ------
        FlowError
            There is no answer.
        """
        client = self.node.create_client(service_type, name)
        discovery = ClientDiscovery(self.node, client.srv_name.rpartition("/")[0])
        silent = f"{client.srv_name} does not answer; is its node still running?"
        try:
            absent = f"{client.srv_name} is not there; is its node still running?"
            self.until(client.service_is_ready, absent, _ANSWER_S)
            self.until(discovery.done, silent, _ANSWER_S)
            future = client.call_async(request)
            self.until(future.done, silent, _ANSWER_S)
            return future.result()
        finally:
            discovery.close()
            self.node.destroy_client(client)

    def trigger(self, name: str) -> Trigger.Response:
        """Answer of a Trigger service."""
        answer: Trigger.Response = self.call(Trigger, name, Trigger.Request())
        return answer

    def lifecycle_state(self, node: str) -> int:
        """Constant of ``lifecycle_msgs/State``."""
        return int(self.call(GetState, f"{node}/get_state", GetState.Request()).current_state.id)

    def change_state(self, node: str, transition: int) -> None:
        """Raise FlowError unless a lifecycle node makes the transition."""
        request = ChangeState.Request(transition=Transition(id=transition))
        if not self.call(ChangeState, f"{node}/change_state", request).success:
            raise FlowError(f"{node} refuses to {_TRANSITIONS[transition]}; see its log and {node}/status")

    def with_retries(self, step: Callable[[], T], timeout_s: float) -> T:
        """Return the result of a step, repeated while what it needs is not there yet.

        Raises
        ------
        FlowError
            Of the step, once the time is over.
        Interrupted
            A signal came.
        """
        end = time.monotonic() + timeout_s
        while True:
            try:
                return step()
            except FlowError:
                if time.monotonic() > end:
                    raise
                self._pause(0.5)

    def attempt_all(self, steps: Iterable[Callable[[], object]]) -> None:
        """Take every step that leaves the robot safe, whatever the others do, and show what went wrong."""
        for step in steps:
            try:
                step()
            except (InertidError, Interrupted) as error:
                self.show_error(str(error))

    def run_action(
        self,
        action_type: Any,
        name: str,
        goal: Any,
        describe: Callable[[Any], tuple[str, float | None]],
        timeout_s: float,
        lease: bool = False,
        watch: Callable[[], str] = lambda: "",
    ) -> tuple[int, Any]:
        """Send a goal and wait for its end. An interruption cancels it and waits until it has ended.

        Parameters
        ----------
        action_type, name, goal
            The action and its goal.
        describe : callable
            Label and fraction of a feedback, None where it is not known. :attr:`note` is shown beside it.
        timeout_s : float
            Longest time [s].
        lease : bool
            Whether to renew the lease meanwhile.
        watch : callable
            Asked all the time; why the goal has become useless, or an empty string.

        Returns
        -------
        tuple of int and message
            Status of the goal and its result.

        Raises
        ------
        FlowError
            Refused, not ended in time or useless; then it is canceled.
        Interrupted
            A signal came and the goal has ended.
        """
        client = ActionClient(self.node, action_type, name)
        self._leasing = lease
        try:
            self.until(client.server_is_ready, f"action {name} is not there; is its node still running?", _ANSWER_S)

            def show(message: Any) -> None:
                self._line.show(*describe(message.feedback), self.note())

            sent = client.send_goal_async(goal, feedback_callback=show)
            self.until(sent.done, f"action {name} does not answer; is its node still running?", _ANSWER_S)
            handle = sent.result()
            if not handle.accepted:
                raise FlowError(f"action {name} refuses the goal; another one is active")
            return self._finish(client, handle, watch, f"action {name}", timeout_s)
        finally:
            self._leasing = False
            self._line.end()
            client.destroy()

    def _finish(
        self, client: ActionClient, handle: Any, watch: Callable[[], str], name: str, timeout_s: float
    ) -> tuple[int, Any]:
        ended: Future = handle.get_result_async()
        problem = ""

        def over() -> bool:
            nonlocal problem
            problem = "" if ended.done() else watch()
            return ended.done() or bool(problem)

        try:
            self.until(over, f"{name} takes longer than {timeout_s:g} s", timeout_s)
            if problem:
                raise FlowError(problem)
        except (FlowError, Interrupted) as error:
            handle.cancel_goal_async()
            try:
                # A server that has ended, as all nodes do on Ctrl-C in `ros2 launch`, will not answer any more.
                self.until(lambda: ended.done() or not client.server_is_ready(), "", _CANCEL_S)
            except FlowError:
                reason = str(error) or "interrupted"
                raise FlowError(f"{reason}; {name} does not react to its cancellation") from None
            raise
        return ended.result().status, ended.result().result

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end, "", seconds + 1.0)

    def _statuses(self) -> list[Status]:
        return [Status("flow", OK, self._step, {"Moves the robot": self._leasing})]

    def _renew(self) -> None:
        if self._leasing:
            self._lease.publish(Empty())

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupted = True
