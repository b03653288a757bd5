"""Diagnostics of a node, and detection of the liveliness and discovery of other nodes."""

import math
import os
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.srv import GetParameterTypes
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile
from rclpy.task import Future
from std_msgs.msg import String

from inertid_ros.data.screening.live_watch import StreamReport

from .topics import STEADY

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE)
_DIAGNOSTICS_PERIOD_S = 1.0  # an aggregator counts a status as stale after five seconds
_REQUEST_PERIOD_S = 1.0  # between two unanswered requests
# A node is lost if its middleware stops renewing the lease. Waiting events are handled before a loss is confirmed.
_LIVELINESS_PERIOD_S, _LIVELINESS_LEASE_S, _LOSS_CONFIRMATION_S = 0.2, 0.5, 0.25
_MAX_STARVATION_S = 5.0  # longest wait of a running process for a processor


@dataclass(frozen=True)
class Status:
    """State of one aspect of a node."""

    aspect: str  # constant, as aggregators select statuses by aspect
    level: bytes
    message: str
    values: Mapping[str, object]  # always the same keys, with units; unknown values are None or NaN


def judged(aspect: str, values: Mapping[str, object], *objections: tuple[bytes, str], otherwise: str) -> Status:
    """Return the status by the first objection (level, message) with a message; if there is none, it is OK."""
    level, text = next(((level, message) for level, message in objections if message), (OK, otherwise))
    return Status(aspect, level, text, values)


def wrong_clock(report: StreamReport, max_delay_s: float = 1.0, max_advance_s: float = 0.01) -> str:
    """Return a message if the delay of a stream shows that its stamps come from another clock, else an empty string.

    The default ``max_delay_s`` assumes that a network delays messages by less than a second.
    """
    if report.delay_s > max_delay_s or report.delay_s < -max_advance_s:
        return f"stamps are off by {abs(report.delay_s):.3f} s; check the clocks and use_sim_time"
    return ""


def gaps_between(messages: str, report: StreamReport) -> str:
    """Return a message if a stream has gaps, else an empty string."""
    return f"gaps between {messages}; check the network and the load of the machine" if report.gaps else ""


def stream_values(report: StreamReport, channels: Sequence[str] = ()) -> dict[str, object]:
    """Return the values of a stream; a saturated channel without a name is listed by its number."""
    names = [channels[index] if index < len(channels) else str(index) for index in report.saturated]
    return {
        "Messages": report.messages,
        "Actual frequency (Hz)": report.rate_hz,
        "Gaps in window": report.gaps,
        "Longest step (s)": report.longest_step_s,
        "Delay (s)": report.delay_s,
        "Longest delay (s)": report.longest_delay_s,
        "Saturated": ", ".join(names)}


class DiagnosticsPublisher:
    """Publish all statuses of a node on ``/diagnostics`` once a second, and its PID once on the latched ``~/alive``.

    ``robot`` returns the name of the robot for ``hardware_id``; empty if unknown.
    """

    def __init__(
            self, node: Node, statuses: Callable[[], Iterable[Status]], robot: Callable[[], str] = lambda: "") -> None:
        self._node, self._statuses, self._robot = node, statuses, robot
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        # The middleware renews the liveliness in its own thread, even while Python is busy.
        alive = node.create_publisher(String, "~/alive", _alive_profile(_LIVELINESS_PERIOD_S))
        alive.publish(String(data=f"{_system()} {os.getpid()}"))
        node.create_timer(_DIAGNOSTICS_PERIOD_S, self._publish, clock=STEADY)

    def _publish(self) -> None:
        name = self._node.get_fully_qualified_name().strip("/")
        hardware = self._robot() or self._node.get_namespace().strip("/") or "none"
        array = DiagnosticArray(status=[
            DiagnosticStatus(
                level=status.level, name=f"{name}: {status.aspect}", message=status.message, hardware_id=hardware,
                values=[KeyValue(key=key, value=_text(value)) for key, value in status.values.items()])
            for status in self._statuses()])
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class ClientDiscovery:
    """Check that another node has discovered all endpoints that ``node`` had when this object was created.

    A client considers a service ready even before the server has discovered the client. The server's middleware drops
    an answer if it does not discover the client within 100 ms. Endpoints are discovered in the order of their creation.
    Therefore, the answer to a harmless, repeatable request by this class proves that all earlier endpoints are
    discovered.

    ``node`` must be spun between calls of :meth:`done`; ``server`` is the other node's name, relative or absolute.
    """

    def __init__(self, node: Node, server: str) -> None:
        self._node = node
        self._client = node.create_client(GetParameterTypes, f"{server}/get_parameter_types")
        self._answers: list[Future] = []
        self._next = 0.0

    def done(self) -> bool:
        """Return True once an answer has arrived, or if the server lacks the service; send a request each second."""
        if any(answer.done() for answer in self._answers):
            return True
        if not self._client.service_is_ready():
            services = self._node.get_service_names_and_types()
            return not any(name == self._client.srv_name for name, _ in services)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _REQUEST_PERIOD_S
            self._answers.append(self._client.call_async(GetParameterTypes.Request()))
        return False

    def close(self) -> None:
        self._node.destroy_client(self._client)


def _alive_profile(lease_s: float) -> QoSProfile:
    return QoSProfile(
        depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, liveliness=LivelinessPolicy.AUTOMATIC,
        liveliness_lease_duration=Duration(seconds=lease_s))


def _system() -> str:
    """Return the identity of the system and of this process's PID namespace; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


class Liveliness:
    """Detect the death of another node within a second.

    If the other node runs on this system, the end of its process is detected at once, and a process that waits for a
    processor counts as lost only after 5 s. On other systems, the liveliness of the topic ``alive`` decides.

    ``node`` watches and must be spun; ``name`` is the other node's name, relative to the namespace of ``node``.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._node, self._topic = node, f"{name}/alive"
        self._lost_at = math.inf
        self.living = 0  # number of living nodes of this name
        self._pid, self._process = 0, -1  # number and file descriptor of the process, if it runs on this system
        events, profile = SubscriptionEventCallbacks(liveliness=self._change), _alive_profile(_LIVELINESS_LEASE_S)
        node.create_subscription(String, self._topic, self._identify, profile, event_callbacks=events)

    @property
    def lost(self) -> str:
        """Reason for the loss of the node; empty while the node lives, and before its discovery."""
        now, ended = time.monotonic(), self._process >= 0 and bool(select.select([self._process], [], [], 0.0)[0])
        if ended:
            self._lost_at = min(self._lost_at, now)
        if now < self._lost_at + _LOSS_CONFIRMATION_S:
            return ""
        if ended or not self._node.count_publishers(self._topic):
            return "has ended"
        if self._process < 0:
            return "was killed, is suspended or cannot be reached"
        if self._is_suspended:
            return "is suspended"
        return "" if now < self._lost_at + _MAX_STARVATION_S else "has received no processor time for seconds"

    @property
    def _is_suspended(self) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] in "Tt"
        return False

    def _identify(self, message: String) -> None:
        system, _, pid = message.data.rpartition(" ")
        if not (pid.isascii() and pid.isdigit() and len(pid) < 10):  # not from a node of this package
            return
        if self._process >= 0:
            os.close(self._process)
        self._pid, self._process, self._lost_at = int(pid), -1, math.inf
        if system and system == _system():
            with suppress(OSError):  # the process has already ended; its liveliness reports this
                self._process = os.pidfd_open(self._pid)

    def _change(self, event: Any) -> None:
        self.living = event.alive_count
        self._lost_at = math.inf if event.alive_count else min(self._lost_at, time.monotonic())
