"""FlowClient: a step-by-step client of services, actions and lifecycle nodes; it can be interrupted at any time."""

import math
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TextIO, TypeVar

import rclpy
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from inertid_ros.core.errors import InertidError, check_address_space
from inertid_ros.ros.diagnostics import OK, ClientDiscovery, DiagnosticsPublisher, Liveliness, Status
from inertid_ros.ros.topics import COMMAND, LATCHED, STEADY

from .spin import MIN_ADDRESS_SPACE_MIB, end_within, handle_signals, init_rclpy

T = TypeVar("T")

_BAR_CHARACTERS = 30
_LOG_PERIOD_S = 20.0  # without a terminal, progress is logged after this time without another line
_ANSWER_TIMEOUT_S, _RETRY_PERIOD_S, _LEASE_PERIOD_S = 10.0, 0.5, 0.1
INTERRUPTED = 130  # exit status of a flow after a signal
_INTERRUPTED_END_S = 2.4  # from an interruption to the end of the process, so that all have ended after 3 s
_LEAVING_TIMEOUT_S = 1.8  # for all remaining steps after a failure or an interruption
_SIGNAL_DELAY_S = 0.25  # Ctrl-C in `ros2 launch` reaches some nodes this much later than other nodes
_STATUS_TIMEOUT_S = 60.0  # then a silent node counts as lost; on a busy machine, a status may pause for 15 s and more


class ProgressLine:
    """Progress as a changing last line on a terminal, or else as lines in a log.

    ``log`` is called with each line if ``stream`` (default: standard output) is not a terminal.
    """

    def __init__(self, log: Callable[[str], object], stream: TextIO | None = None) -> None:
        self._log, self._stream = log, stream or sys.stdout
        self.on_terminal = self._stream.isatty()
        self._open = False
        self._logged_at = -math.inf

    def show(self, label: str, fraction: float | None, note: str = "") -> None:
        """Show the label of a step, the completed fraction (None if unknown), and a note, cut to fit the line."""
        done = 0.0 if fraction is None else min(max(fraction, 0.0), 1.0)
        percent = "" if fraction is None else f"{100 * done:3.0f} %"
        if self.on_terminal:
            line = f"{label:<28.28s} [{'#' * round(_BAR_CHARACTERS * done):<{_BAR_CHARACTERS}}] {percent:<5s} {note}"
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{line:<{width}.{width}}")
            self._stream.flush()
            self._open = True
        elif time.monotonic() >= self._logged_at + _LOG_PERIOD_S:
            text = f"{label}: {percent.strip()}" if percent else label
            self.print(f"{text}, {note}" if note else text)

    def print(self, message: str) -> None:
        """End the progress line and print a message; without a terminal, log the message."""
        self.end()
        if self.on_terminal:
            print(message, file=self._stream, flush=True)
        else:
            self._log(message)
            self._logged_at = time.monotonic()

    def end(self) -> None:
        """End the changing line."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
        self._open = False


class FlowError(InertidError):
    """A step of a flow failed; the message names the remedy."""


class Interrupted(Exception):  # noqa: N818 - an interruption is not an error
    """SIGINT or SIGTERM was received."""


class LostNodeError(FlowError):
    """A node has ended, was killed or is silent."""


class ReceivedMessages:
    """The last message of a topic."""

    def __init__(self) -> None:
        self.last: Any = None

    def take(self, message: Any) -> None:
        self.last = message


class ServingNode(ReceivedMessages):
    """A node that serves a flow, with its last status and its liveliness.

    ``node`` is the node of the flow. ``name`` is the serving node, relative to the namespace of ``node``; ``status`` is
    the message type of its topic ``status``, or None without this topic. ``left`` is added to the message about a loss
    of the serving node, and describes the state after the loss. The loss of a ``needed`` node ends the flow.
    """

    def __init__(self, node: Node, name: str, status: Any = None, left: str = "") -> None:
        super().__init__()
        self.needed = True
        self._name, self._left = name, f"; {left}" if left else ""
        self._liveliness, self._received_at = Liveliness(node, name), math.inf
        if status is not None:
            node.create_subscription(status, f"{name}/status", self.take, LATCHED)

    def take(self, message: Any) -> None:
        self.last, self._received_at = message, time.monotonic()

    @property
    def lost(self) -> str:
        """Reason for the loss of the node; empty while the node lives, and before its discovery."""
        how, silent = self._liveliness.lost, time.monotonic() - self._received_at
        if not how and silent > _STATUS_TIMEOUT_S:
            how = f"has not sent its status for {silent:.0f} s"
        return f"{self._name} {how}{self._left}; see its output" if how else ""


class FlowClient:
    """Node and executor of a flow; use as a context manager. Every wait has a limit and ends on a signal.

    Attributes
    ----------
    on_terminal : True if messages go to a terminal and not to the log.
    note : function that returns a text to show next to the progress of an action.
    open_goals : names of actions whose goal was sent and is not known to have ended.
    is_interrupted : True if the flow ends because of a signal.
    """

    def __init__(self, name: str) -> None:
        check_address_space("a node", MIN_ADDRESS_SPACE_MIB)
        self._signaled = self.is_interrupted = self._leasing = False
        self._leave_by = math.inf  # deadline of the remaining steps after a failure
        init_rclpy()
        self.node = rclpy.create_node(name)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._lease = self.node.create_publisher(Empty, "excitation/lease", COMMAND)
        self.node.create_timer(_LEASE_PERIOD_S, self._renew, clock=STEADY)
        self._line, self._step = ProgressLine(self.node.get_logger().info), "starting"
        self.on_terminal = self._line.on_terminal
        self._servers: dict[str, ServingNode] = {}
        self._clients: dict[str, Client] = {}
        self._discovered: set[str] = set()  # services that have discovered their clients
        self._actions: dict[str, ActionClient] = {}
        self.open_goals: set[str] = set()
        self.note: Callable[[], str] = lambda: ""
        self._diagnostics = DiagnosticsPublisher(self.node, self._statuses)
        handle_signals(self._on_signal)  # until here, a signal ends the process at once

    def __enter__(self) -> "FlowClient":
        return self

    def __exit__(self, *_error: object) -> None:
        self._line.end()
        handle_signals(signal.SIG_IGN)
        self._executor.shutdown(timeout_sec=0.0)
        for action in self._actions.values():
            action.destroy()
        self.node.destroy_node()
        rclpy.try_shutdown()

    # Messages to the user

    def show(self, message: str) -> None:
        """Print one line of progress."""
        self._step = message
        self._line.print(message)

    def show_warning(self, message: str) -> None:
        """Print one line as a warning."""
        if not self._on_stderr(f"warning: {message}"):
            self.node.get_logger().warning(message)

    def show_error(self, message: str) -> None:
        """Print one line as an error."""
        if not self._on_stderr(f"error: {message}"):
            self.node.get_logger().error(message)

    def _on_stderr(self, message: str) -> bool:
        """Print a message on stderr and return True; without a terminal, only return False."""
        if self.on_terminal:
            self._line.end()
            print(message, file=sys.stderr, flush=True)
        return self.on_terminal

    # Requests to nodes

    def received(self, message_type: Any, topic: str, qos: QoSProfile) -> ReceivedMessages:
        """Subscribe to a topic and return the holder of its last message."""
        messages = ReceivedMessages()
        self.node.create_subscription(message_type, topic, messages.take, qos)
        return messages

    def serving_node(self, name: str, status: Any = None, left: str = "") -> ServingNode:
        """Return a serving node; from now on, every wait checks whether it is lost, see :class:`ServingNode`."""
        if name not in self._servers:
            self._servers[name] = ServingNode(self.node, name, status, left)
        return self._servers[name]

    def until(
            self, condition: Callable[[], Any], otherwise: str | Callable[[], str], timeout_s: float,
            server: str = "") -> None:
        """Spin until a condition holds; ``server`` is the node that answers the present request, if there is one.

        Raises LostNodeError if ``server`` or a needed node is lost, Interrupted after a signal, and FlowError after the
        timeout, with the message that ``otherwise`` is or returns. After :meth:`fail`, a signal or the loss of another
        node than ``server`` no longer raises an error.
        """
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > min(end, self._leave_by):
                raise FlowError(otherwise if isinstance(otherwise, str) else otherwise())
            self._executor.spin_once(timeout_sec=0.05)
            if self._signaled and not self._is_leaving:
                self.fail(Interrupted())
                raise Interrupted
            self._check_servers(server)

    def _check_servers(self, asked: str) -> None:
        for name, server in list(self._servers.items()):
            if self._is_leaving and name != asked or not (lost := server.lost):
                continue
            if server.needed or name == asked:
                raise LostNodeError(lost)
            del self._servers[name]
            self.show_warning(lost)

    @property
    def _is_leaving(self) -> bool:
        return self._leave_by < math.inf

    def fail(self, error: Exception) -> None:
        """Show once why the flow ends, and limit the time for its remaining steps."""
        if self._is_leaving:
            return
        end = time.monotonic() + (0.0 if isinstance(error, LostNodeError) else _SIGNAL_DELAY_S)
        while not self._signaled and time.monotonic() < end:  # a late signal to all nodes may explain the error
            self._executor.spin_once(timeout_sec=0.05)
        self.is_interrupted = self._signaled
        self._leave_by = time.monotonic() + _LEAVING_TIMEOUT_S
        if self.is_interrupted:  # the middleware may hold Python's lock at any step
            end_within(INTERRUPTED, _INTERRUPTED_END_S)
        else:
            self.show_error(str(error))

    def wait_for_service(self, service_type: Any, name: str, timeout_s: float) -> None:
        client = self._client(service_type, name)
        full = self.node.resolve_service_name(name)
        self.until(client.service_is_ready, f"{full} is not there; start {full.rpartition('/')[0]}", timeout_s)

    def wait_for_action(self, action_type: Any, name: str, timeout_s: float) -> None:
        ready = self.action(action_type, name).server_is_ready
        self.until(ready, f"action {name} is not there; start {_server(name)}", timeout_s)

    def action(self, action_type: Any, name: str) -> ActionClient:
        if name not in self._actions:
            self._actions[name] = ActionClient(self.node, action_type, name)
        return self._actions[name]

    def call(self, service_type: Any, name: str, request: Any) -> Any:
        """Return the answer of a service; raise FlowError if it does not answer."""
        client, server = self._client(service_type, name), _server(name)
        absent = f"{client.srv_name} is not there; check that its node runs"
        silent = f"{client.srv_name} does not answer; check that its node runs"
        self.until(client.service_is_ready, absent, _ANSWER_TIMEOUT_S, server)
        if name not in self._discovered:
            discovery = ClientDiscovery(self.node, server)
            try:
                self.until(discovery.done, silent, _ANSWER_TIMEOUT_S, server)
            finally:
                discovery.close()
            # The server has discovered all clients that were created before this request.
            self._discovered.update(service for service in self._clients if _server(service) == server)
        future = client.call_async(request)
        self.until(future.done, silent, _ANSWER_TIMEOUT_S, server)
        return future.result()

    def _client(self, service_type: Any, name: str) -> Client:
        if name not in self._clients:
            self._clients[name] = self.node.create_client(service_type, name)
        return self._clients[name]

    def trigger(self, name: str) -> Any:
        """Return the answer of a ``std_srvs/Trigger``."""
        return self.call(Trigger, name, Trigger.Request())

    def with_retries(self, step: Callable[[], T], timeout_s: float) -> T:
        """Return the result of a step; repeat the step while it raises FlowError, until the time is over."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                return step()
            except LostNodeError:
                raise
            except FlowError:
                if time.monotonic() > end:
                    raise
                self._pause(time.monotonic() + _RETRY_PERIOD_S)

    def _pause(self, end: float) -> None:
        self.until(lambda: time.monotonic() > end, "", 2 * _RETRY_PERIOD_S)

    def attempt_all(self, steps: Iterable[Callable[[], object]]) -> None:
        """Run every step, even after a failed step, and show all errors except the loss of a node."""
        for step in steps:
            try:
                with suppress(LostNodeError):
                    step()
            except InertidError as error:
                self.show_error(str(error))

    def run_action(
            self, action_type: Any, name: str, goal: Any, describe: Callable[[Any], tuple[str, float | None]],
            timeout_s: float, watch: Callable[[], None] = lambda: None) -> tuple[int, Any]:
        """Send a goal, wait for its end, and return its status and result.

        If the goal's field ``lease`` is set, the lease is renewed until the goal ends. ``describe`` returns the label
        and the completed fraction (None if unknown) of a feedback. ``watch`` is called repeatedly, and raises FlowError
        once the goal is useless.

        Raises FlowError if the goal is refused, takes too long or is useless, and Interrupted after a signal. In all of
        these cases, an accepted goal is canceled first.
        """
        client = self.action(action_type, name)
        self.until(client.server_is_ready, f"action {name} is not there; check that its node runs", _ANSWER_TIMEOUT_S)
        self._leasing = getattr(goal, "lease", False)
        self.open_goals.add(name)
        sent = client.send_goal_async(
            goal, feedback_callback=lambda message: self._line.show(*describe(message.feedback), self.note()))
        try:
            ended = self._accepted(name, sent)

            def is_over() -> bool:
                if not ended.done():
                    watch()
                return bool(ended.done())

            self.until(is_over, f"action {name} takes longer than {timeout_s:g} s", timeout_s)
            self.open_goals.discard(name)
            return ended.result().status, ended.result().result
        except (FlowError, Interrupted) as error:
            self.fail(error)
            if name in self.open_goals:
                with suppress(FlowError):
                    self._cancel(name, sent)
            raise
        finally:
            self._leasing = False
            self._line.end()

    def _accepted(self, name: str, sent: Future) -> Future:
        self.until(sent.done, f"action {name} does not answer; check that its node runs", _ANSWER_TIMEOUT_S)
        if not sent.result().accepted:
            self.open_goals.discard(name)
            raise FlowError(f"action {name} refuses the goal; another goal is active")
        return sent.result().get_result_async()

    def _cancel(self, name: str, sent: Future) -> None:
        """Cancel a goal and wait for its end; the wait fails if the goal's server is lost."""
        server = _server(name)
        self.until(sent.done, "", _ANSWER_TIMEOUT_S, server)
        if sent.result().accepted:
            sent.result().cancel_goal_async()
            ended = sent.result().get_result_async()
            self.until(ended.done, "", _ANSWER_TIMEOUT_S, server)
        self.open_goals.discard(name)

    def _statuses(self) -> list[Status]:
        return [Status("flow", OK, self._step, {"Moves the robot": self._leasing})]

    def _renew(self) -> None:
        if self._leasing:
            self._lease.publish(Empty())

    def _on_signal(self, *_signal: object) -> None:
        self._signaled = True


def _server(name: str) -> str:
    return name.rpartition("/")[0]
