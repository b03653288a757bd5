"""What nodes report of themselves and see of others: diagnostics, liveliness and discovery."""

import math
import os
import select
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.srv import GetParameterTypes
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile
from rclpy.task import Future
from std_msgs.msg import String

from inertid_ros.data.screening.live_watch import StreamReport

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE,
)  # fmt: skip
_DIAGNOSTICS_PERIOD_S = 1.0  # an aggregator takes a status for stale after five seconds


@dataclass(frozen=True)
class Status:
    """How one aspect of a node is.

    Attributes
    ----------
    aspect : str
        The same for good, as aggregators choose by it.
    level : bytes
        OK, WARN, ERROR, or STALE where nothing is known.
    message : str
        One line a person can act on.
    values : mapping of str to object
        Always the same keys, with units; what is not known is None or NaN.
    """

    aspect: str
    level: bytes
    message: str
    values: Mapping[str, object]


def gravest(*objections: tuple[bytes, str], otherwise: str) -> tuple[bytes, str]:
    """Return the first objection whose message is not empty, else OK with another message."""
    return next(((level, message) for level, message in objections if message), (OK, otherwise))


def stream_values(report: StreamReport, channels: Sequence[str] = ()) -> dict[str, object]:
    """Values of a stream; its saturated channels are told by name, those beyond the names by number."""
    names = [channels[index] if index < len(channels) else str(index) for index in report.saturated]
    return {
        "Messages": report.messages,
        "Actual frequency (Hz)": report.rate_hz,
        "Gaps in window": report.gaps,
        "Longest step (s)": report.longest_step_s,
        "Delay (s)": report.delay_s,
        "Longest delay (s)": report.longest_delay_s,
        "Saturated": ", ".join(names),
    }


class DiagnosticsPublisher:
    """Publishes the statuses of a node on ``/diagnostics`` once a second, and by ``~/alive`` that the node lives.

    Parameters
    ----------
    node : Node
    statuses : callable
        Returns all of them.
    robot : callable
        Name of the robot, which is the hardware; empty where none is known.
    """

    def __init__(
        self, node: Node, statuses: Callable[[], Iterable[Status]], robot: Callable[[], str] = lambda: ""
    ) -> None:
        self._node, self._statuses, self._robot = node, statuses, robot
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        offer_liveliness(node)
        node.create_timer(_DIAGNOSTICS_PERIOD_S, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self) -> None:
        name = self._node.get_fully_qualified_name().strip("/")
        hardware = self._robot() or self._node.get_namespace().strip("/") or "none"
        array = DiagnosticArray()
        array.header.stamp = self._node.get_clock().now().to_msg()
        for status in self._statuses():
            message = DiagnosticStatus(level=status.level, name=f"{name}: {status.aspect}", message=status.message)
            message.hardware_id = hardware
            message.values = [KeyValue(key=key, value=_text(value)) for key, value in status.values.items()]
            array.status.append(message)
        self._publisher.publish(array)


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_REQUEST_PERIOD_S = 1.0
_LIVELINESS_PERIOD_S = 0.2  # longest time between two renewals
_LIVELINESS_LEASE_S = 0.5  # a process that has renewed nothing for so long is lost
_LOSS_CONFIRMATION_S = 0.25  # if it still is after this time, in which what has waited for this process is taken
_MAX_STARVATION_S = 5.0  # that a process which is known to run may wait for a processor


class ClientDiscovery:
    """Whether another node has discovered all endpoints that a node had when this was created.

    A service is ready for its client before the server has discovered the client, and the middleware drops an answer
    whose receiver it does not discover within 100 ms. Endpoints are discovered in the order in which they were created,
    so that an answer to a request made here, which changes nothing and can be repeated, shows that those of before are
    known.

    Parameters
    ----------
    node : Node
        Of the client, which must be spinning while :meth:`done` is asked.
    server : str
        Name of the other node, relative to the namespace of ``node`` or absolute.
    """

    def __init__(self, node: Node, server: str) -> None:
        self._node = node
        self._client = node.create_client(GetParameterTypes, f"{server}/get_parameter_types")
        self._answers: list[Future] = []
        self._next = 0.0

    def done(self) -> bool:
        """Ask again where no answer came in time; True once one has come, or where the node has no such service."""
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
        """Take the client away."""
        self._node.destroy_client(self._client)


def _profile(lease_s: float) -> QoSProfile:
    return QoSProfile(
        depth=1,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
        liveliness=LivelinessPolicy.AUTOMATIC,
        liveliness_lease_duration=Duration(seconds=lease_s),
    )


def _system() -> str:
    """The running system whose numbers of processes this process sees."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def offer_liveliness(node: Node) -> None:
    """Let others see that a node lives, by its topic ``~/alive``.

    It holds, latched, which process the node is. The middleware renews the publisher's liveliness from a thread of its
    own, whatever Python does.
    """
    node.create_publisher(String, "~/alive", _profile(_LIVELINESS_PERIOD_S)).publish(String(data=f"{_system()} {os.getpid()}"))


class Liveliness:
    """Whether another node lives; told within a second of its death.

    The end of a process of the same system is seen at once, and one that only waits for a processor is not taken for
    dead. Elsewhere the liveliness of its topic ``alive`` tells it.

    Parameters
    ----------
    node : Node
        That watches, and is spun.
    name : str
        Name of the other, relative to the namespace of ``node``.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._node, self._topic = node, f"{name}/alive"
        self._lost_at = math.inf
        self._pid, self._process = 0, -1  # number and file descriptor of the process, where it runs on this system
        events = SubscriptionEventCallbacks(liveliness=self._change)
        node.create_subscription(String, self._topic, self._identify, _profile(_LIVELINESS_LEASE_S), event_callbacks=events)

    @property
    def lost(self) -> str:
        """How the node was lost; empty while it lives, and where it was never seen."""
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
        return "" if now < self._lost_at + _MAX_STARVATION_S else "has got no processor for seconds"

    @property
    def _is_suspended(self) -> bool:
        try:
            state = Path(f"/proc/{self._pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
        except OSError:
            return False
        return state in "Tt"

    def _identify(self, message: String) -> None:
        system, _, pid = message.data.rpartition(" ")
        if self._process >= 0:
            os.close(self._process)
        self._pid, self._process, self._lost_at = int(pid), -1, math.inf
        if system and system == _system():
            try:
                self._process = os.pidfd_open(self._pid)
            except OSError:  # it has ended already, which its liveliness tells
                return

    def _change(self, event: Any) -> None:
        self._lost_at = math.inf if event.alive_count else min(self._lost_at, time.monotonic())
