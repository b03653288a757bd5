"""Discovery of a client by a server, without which the answer to its first request can be lost."""

import time

from rcl_interfaces.srv import GetParameterTypes
from rclpy.node import Node
from rclpy.task import Future

_REPEAT_S = 1.0


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
            self._next = time.monotonic() + _REPEAT_S
            self._answers.append(self._client.call_async(GetParameterTypes.Request()))
        return False

    def close(self) -> None:
        """Take the client away."""
        self._node.destroy_client(self._client)
