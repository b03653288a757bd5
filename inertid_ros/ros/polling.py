"""Messages that do not wake an executor one by one: taken by hand, or in short intervals."""

import math
import time
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from inertid_ros.data.live.clock_difference import ahead_of_steady


class _Polled(CallbackGroup):
    """Of subscriptions that no executor wakes up for, but for their events where these are wanted.

    Each time that it wakes up, it builds its wait set anew.
    """

    def __init__(self, events: bool) -> None:
        super().__init__()
        self._events = events

    def can_execute(self, entity: Any) -> bool:
        """Whether it is an event that is wanted; messages are read by hand."""
        return self._events and not isinstance(entity, Subscription)

    def beginning_execution(self, entity: Any) -> bool:
        """As :meth:`can_execute`."""
        return self.can_execute(entity)

    def ending_execution(self, entity: Any) -> None:
        """Nothing began."""


class PacedGroup(CallbackGroup):
    """Of an action client whose messages are taken in short intervals, all that wait, and not between them.

    A server tells the states of all its goals of the last seconds whenever one of them changes; of these only the
    newest is kept until the next interval.

    Parameters
    ----------
    period : float
        From the begin of one interval to that of the next [s].
    length : float
        Processor time of an interval, which begins with a message [s].
    """

    def __init__(self, period: float, length: float) -> None:
        super().__init__()
        self._period, self._length = period, length
        self._next = self._end = 0.0

    def can_execute(self, entity: Any) -> bool:
        """Whether there is an interval, or the next one may begin."""
        return time.thread_time() <= self._end or time.monotonic() >= self._next

    def beginning_execution(self, entity: Any) -> bool:
        """Yes: what has been found ready is taken."""
        now = time.monotonic()
        if now >= self._next:
            self._next, self._end = now + self._period, time.thread_time() + self._length
        return True

    def ending_execution(self, entity: Any) -> None:
        """Others may be executed at the same time."""


class PolledSubscription:
    """A topic whose messages wait in the queue of the middleware until they are taken.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    qos : QoSProfile
        Its depth is how many messages may come between two times at which they are taken.
    raw : bool
        Whether messages stay serialized.
    events : SubscriptionEventCallbacks, optional
        What the executor calls on events of the subscription.

    Attributes
    ----------
    numbered_since : float
        Time of the steady clock from which on all messages have increasing sequence numbers, as those of one
        publisher do and those of several that publish at once do not [s]; infinite where the last message broke their
        order or the middleware tells no numbers.
    """

    def __init__(
        self,
        node: Node,
        message_type: Any,
        topic: str,
        qos: QoSProfile,
        raw: bool = False,
        events: SubscriptionEventCallbacks | None = None,
    ) -> None:
        self._type, self._depth, self._raw = message_type, qos.depth, raw
        self._number, self.numbered_since = 0, math.inf
        group = _Polled(events is not None)
        self._subscription = node.create_subscription(
            message_type, topic, lambda _message: None, qos, callback_group=group, event_callbacks=events
        )
        self._taken = time.monotonic()

    def take(self) -> list[tuple[Any, float]]:
        """Return all messages that wait, oldest first, with their receipt on the steady clock [s].

        The receipt is the middleware's, not this call's. It is of the system's clock; where that has stepped, or the
        middleware tells none, it is a time between the last call and this one. At most as many messages as the queue
        is deep are returned, however fast others come.
        """
        return [(message, received) for message, received, _arrival in self.take_with_arrival()]

    def take_with_arrival(self) -> list[tuple[Any, float, int]]:
        """Return the same with the arrival by the system's clock as the middleware tells it [ns]; 0 if it does not."""
        before, now = self._taken, time.monotonic()
        offset = -ahead_of_steady(time.time)
        self._taken = now
        messages = []
        handle = self._subscription.handle
        with handle:
            for _ in range(self._depth):
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
        """Take the sequence number that a publisher gave to a message, None where the middleware tells none."""
        if number is None or number <= self._number:
            self.numbered_since = math.inf
        elif self.numbered_since == math.inf:
            self.numbered_since = received
        self._number = number or 0
