"""Topics: quality of service, message types by name, polled subscriptions, and publishers by node."""

import functools
import importlib
import math
import re
import time
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rclpy._rclpy_pybind11 import RCLError
from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from inertid_ros.core.errors import ConfigurationError, InertidError
from inertid_ros.data.screening.live_watch import ahead_of_steady

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""Clock for timers and waits, independent of steps of the system clock and of simulated time."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""For publishers and subscribers: a late subscriber still receives the last message."""

COMMAND = QoSProfile(depth=1)
"""Only the newest command counts: old commands must not arrive in a burst after a pause."""

STATE = QoSProfile(depth=20, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For sensor values from reliable or best-effort publishers; the queue covers short delays of the subscriber."""

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For subscribers that read only the newest value."""

BATCH = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Recorded batches: all must arrive, and an identifier that restarts receives them again."""

UNNAMED = "_NODE_NAME_UNKNOWN_"
"""Node name of a publisher whose node is not in the ROS graph yet, or was killed and is still in the graph."""

_MAX_TAKEN = 250  # messages per call, so that timers run on time while a long queue is taken
_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_PRIMITIVES = _INTEGERS | {"bool", "byte", "char", "float32", "float64", "string", "wstring"}



def resolved(node: Node, name: str) -> str:
    """Full name of a topic or service after remapping; ConfigurationError if ROS does not allow the name."""
    try:
        return str(node.resolve_topic_name(name))
    except RCLError as error:
        reason = str(error).partition(", at /")[0].rpartition(": ")[2]
        raise ConfigurationError(f"{name!r} is not the name of a topic: {reason}; correct the parameter") from None


def recording_profile(reliability: str) -> QoSProfile:
    """Return a profile with a deep queue; ``reliability`` is ``reliable`` or ``best_effort``.

    The queue holds 5 s of messages at 1 kHz, so that a recorder that waits for a processor or a disk loses nothing.
    Fast DDS holds no more by default.
    """
    return QoSProfile(depth=5000, reliability=ReliabilityPolicy[reliability.upper()])


@functools.cache
def message_class(type_name: str) -> Any:
    """Return the class of ``PACKAGE/msg/NAME``; raise InertidError for another form or a missing package."""
    parts = type_name.split("/")
    if len(parts) != 3 or parts[1] != "msg":
        raise InertidError(f"message type '{type_name}': is not of the form PACKAGE/msg/NAME")
    try:
        return getattr(importlib.import_module(f"{parts[0]}.msg"), parts[2])
    except (AttributeError, ModuleNotFoundError) as error:
        raise InertidError(f"message type '{type_name}': cannot be loaded ({error}); install its package") from None


def message_definition(type_name: str) -> str:
    """Return the definition of ``PACKAGE/msg/NAME`` as in bags (ros2msg): its text and the texts of its field types.

    Raises InertidError if a package is not installed with its ``.msg`` files.
    """
    texts: dict[str, str] = {}
    _collect_definitions(type_name, texts)
    first, *others = texts.items()
    return "\n".join([first[1], *(f"{'=' * 80}\nMSG: {name.replace('/msg/', '/')}\n{text}" for name, text in others)])


def _collect_definitions(type_name: str, texts: dict[str, str]) -> None:
    if type_name in texts:
        return
    package, _, name = type_name.split("/")
    try:
        path = Path(get_package_share_directory(package)) / "msg" / f"{name}.msg"
        texts[type_name] = path.read_text(encoding="utf-8")
    except (PackageNotFoundError, OSError):
        raise InertidError(f"message type '{type_name}': its definition is not installed; install {package}") from None
    for line in texts[type_name].splitlines():
        fields = line.split("#")[0].split()
        if len(fields) < 2 or "=" in fields[0]:  # empty, or a constant
            continue
        element = re.sub(r"(\[.*\]|<=\d+)+$", "", fields[0])  # without the size of an array or a string
        if element not in _PRIMITIVES:
            owner, _, short = element.rpartition("/")
            owner = owner.split("/")[0] or ("std_msgs" if short == "Header" else package)
            _collect_definitions(f"{owner}/msg/{short}", texts)


class _Polled(CallbackGroup):
    """Group of subscriptions whose messages do not wake the executor, which would rebuild its wait set; events may."""

    def __init__(self, events: bool) -> None:
        super().__init__()
        self._events = events

    def can_execute(self, entity: Any) -> bool:
        """Return True for an event if ``events`` is set; messages are polled."""
        return self._events and not isinstance(entity, Subscription)

    def beginning_execution(self, entity: Any) -> bool:
        return self.can_execute(entity)

    def ending_execution(self, entity: Any) -> None:
        pass


class PacedGroup(CallbackGroup):
    """Group of an action client whose messages are taken in short intervals only.

    Whenever a goal changes its state, a server publishes the states of all its goals of the last seconds. Between
    intervals, only the newest of these messages is kept. An interval begins with a message, at the earliest ``period``
    [s] after the start of the previous interval, and ends after ``length`` [s] of processor time.
    """

    def __init__(self, period: float, length: float) -> None:
        super().__init__()
        self._period, self._length = period, length
        self._next = self._end = 0.0

    def can_execute(self, entity: Any) -> bool:
        return time.thread_time() <= self._end or time.monotonic() >= self._next

    def beginning_execution(self, entity: Any) -> bool:
        now = time.monotonic()
        if now >= self._next:
            self._next, self._end = now + self._period, time.thread_time() + self._length
        return True

    def ending_execution(self, entity: Any) -> None:
        pass


class PolledSubscription:
    """Subscription whose messages wait in the queue of the middleware until they are taken, up to the queue's depth.

    ``raw`` messages stay serialized; the executor calls ``events``.

    Attributes
    ----------
    numbered_since : steady-clock time since which the messages' sequence numbers increase, as with a single publisher
        [s]; infinite if the last message broke the order, or if the middleware gives no numbers.
    """

    def __init__(
            self, node: Node, message_type: Any, topic: str, qos: QoSProfile, raw: bool = False,
            events: SubscriptionEventCallbacks | None = None) -> None:
        self._type, self._taken_at_once, self._raw = message_type, min(qos.depth, _MAX_TAKEN), raw
        self._number, self.numbered_since = 0, math.inf
        group = _Polled(events is not None)
        self._subscription = node.create_subscription(
            message_type, topic, lambda _message: None, qos, callback_group=group, event_callbacks=events)
        self._taken = time.monotonic()

    def take(self) -> list[tuple[Any, float]]:
        """Return waiting messages, oldest first, with their receipt on the steady clock [s]; at most 250.

        The middleware stamps the receipt by the system clock. If that clock has stepped, or the stamp is missing, the
        receipt lies between the last call and this call.
        """
        return [(message, received) for message, received, _arrival in self.take_with_arrival()]

    def take_with_arrival(self) -> list[tuple[Any, float, int]]:
        """Return messages and receipts like :meth:`take`, and the arrival by the system clock [ns], 0 if unknown."""
        before, now = self._taken, time.monotonic()
        offset = -ahead_of_steady(time.time)
        self._taken = now
        messages = []
        handle = self._subscription.handle
        with handle:
            for _ in range(self._taken_at_once):
                taken = handle.take_message(self._type, self._raw)
                if taken is None:
                    break
                arrival = int(taken[1]["received_timestamp"])
                received = arrival * 1e-9 + offset
                before = min(max(received, before), now)
                self._count(taken[1]["publication_sequence_number"], before)
                messages.append((taken[0], before, arrival))
        return messages

    def _count(self, number: int | None, received: float) -> None:
        if number is None or number <= self._number:
            self.numbered_since = math.inf
        elif self.numbered_since == math.inf:
            self.numbered_since = received
        self._number = number or 0


class Publishers:
    """Nodes that publish a topic (resolved name); an unnamed node counts when :meth:`look` finds it twice in a row."""

    def __init__(self, node: Node, topic: str) -> None:
        self._node, self.topic = node, topic
        self._saw_unnamed = False

    def look(self) -> list[tuple[str, str]]:
        """Return name and namespace of the node of each publisher, known names first."""
        infos = self._node.get_publishers_info_by_topic(self.topic)
        publishers = [(info.node_name, info.node_namespace) for info in infos]
        named = [publisher for publisher in publishers if publisher[0] != UNNAMED]
        unnamed = [publisher for publisher in publishers if publisher[0] == UNNAMED]
        saw_unnamed, self._saw_unnamed = self._saw_unnamed, bool(unnamed)
        return named + unnamed if saw_unnamed else named
