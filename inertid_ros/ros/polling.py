"""PolledSubscription: messages that are taken by hand, many at once, instead of waking an executor one by one."""

import time
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile


class _Polled(CallbackGroup):
    """Of subscriptions that no executor wakes up for: each time it wakes it builds its wait set anew."""

    def can_execute(self, entity: Any) -> bool:
        """No: it is read by hand."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """No: it is read by hand."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Nothing began."""


class PolledSubscription:
    """A topic whose messages wait in the queue of the middleware until they are taken.

    Parameters
    ----------
    node : Node
    message_type : type
    topic : str
    qos : QoSProfile
        Its depth is how many messages may come between two times at which they are taken.
    """

    def __init__(self, node: Node, message_type: Any, topic: str, qos: QoSProfile) -> None:
        self._type, self._depth = message_type, qos.depth
        self._subscription = node.create_subscription(
            message_type, topic, lambda _message: None, qos, callback_group=_Polled()
        )
        self._taken = time.monotonic()

    def take(self) -> list[tuple[Any, float]]:
        """Return all messages that wait, oldest first, with their receipt on the steady clock [s].

        The receipt is the middleware's, not this call's. It is of the system's clock; where that has stepped, or the
        middleware tells none, it is a time between the last call and this one. At most as many messages as the queue
        is deep are returned, however fast others come.
        """
        before, now = self._taken, time.monotonic()
        offset = now - time.time()
        self._taken = now
        messages = []
        handle = self._subscription.handle
        with handle:
            for _ in range(self._depth):
                taken = handle.take_message(self._type, False)
                if taken is None:
                    break
                received = taken[1]["received_timestamp"] * 1e-9 + offset
                before = min(max(received, before), now)
                messages.append((taken[0], before))
        return messages
