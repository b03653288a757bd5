"""Diagnostics as ``rqt_robot_monitor`` and ``diagnostic_aggregator`` read them; docs/reference/diagnostics.md."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from inertid_ros.data.live.stream_watch import StreamReport

from .discovery import offer_liveliness

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR, DiagnosticStatus.STALE,
)  # fmt: skip
_PERIOD_S = 1.0  # an aggregator takes a status for stale after five seconds


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
        node.create_timer(_PERIOD_S, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

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
