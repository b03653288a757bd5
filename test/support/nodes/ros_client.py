"""A ROS node of the test's own, with which it starts the package's nodes, calls them, and waits for what they do."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from rclpy.action import ActionClient  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.nodes.processes import NodeProcess  # noqa: E402

from inertid_ros.ros.diagnostics import ClientDiscovery  # noqa: E402
from inertid_ros.ros.topics import LATCHED  # noqa: E402

# Tests in which several nodes work for long: one after another, beside those of single nodes.
FLOWS = pytest.mark.xdist_group("flows")


class RosClient:
    """Services, actions and topics from the test's own thread. Timeouts only end a test that fails [s]."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.node = rclpy.create_node("test_client", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._processes: list[NodeProcess] = []
        self._clients: dict[str, Any] = {}  # by their service or action
        self._seen: dict[str, int] = {}  # number of endpoints that the server of an action has discovered

    def start(self, name: str, parameters: Mapping[str, Any] | None = None, **keywords: Any) -> NodeProcess:
        self._clients.clear()  # a node that starts again has discovered none of them
        self._seen.clear()
        process = NodeProcess(name, self.folder, parameters, **keywords)
        self._processes.append(process)
        return process

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=max(0.0, min(0.02, end - time.monotonic())))

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 30.0) -> Any:
        """Spin until ``condition()`` holds and return its value."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > end:
                logs = "\n".join(f"--- {p.name}\n{p.log()}" for p in self._processes)
                raise AssertionError(f"{what} did not happen within {timeout} s\n{logs}")
            self._executor.spin_once(timeout_sec=0.02)
        return value

    def listen(self, type_: Any, topic: str, qos: QoSProfile = LATCHED) -> list:
        """Messages of a topic, as they come."""
        received: list = []
        self.node.create_subscription(type_, topic, received.append, qos)
        return received

    def trigger(self, service: str, timeout: float = 30.0) -> Trigger.Response:
        return self.call(Trigger, service, Trigger.Request(), timeout)

    def call(self, type_: Any, service: str, request: Any, timeout: float = 30.0) -> Any:
        future = self.client(type_, service, timeout).call_async(request)
        self.until(future.done, f"answer of {service}", timeout)
        return future.result()

    def client(self, type_: Any, service: str, timeout: float = 30.0) -> Any:
        """Client of a service that has discovered it."""
        client = self._clients.get(service) or self.node.create_client(type_, service)
        self.until(client.service_is_ready, f"service {service}", timeout)
        if service not in self._clients:
            self._wait_for_discovery(service, timeout)
        self._clients[service] = client
        return client

    def _wait_for_discovery(self, service: str, timeout: float) -> None:
        """Until the service's node has discovered all clients of this one."""
        server = service.rpartition("/")[0]
        discovery = ClientDiscovery(self.node, server)
        self.until(discovery.done, f"discovery by {server}", timeout)
        discovery.close()

    def send_goal(self, type_: Any, action: str, goal: Any, timeout: float = 30.0) -> Any:
        """Goal handle of an action; ``accepted`` says whether it runs."""
        client = self._clients.get(action) or ActionClient(self.node, type_, action)
        self.until(client.server_is_ready, f"action {action}", timeout)
        endpoints = len([*self.node.publishers, *self.node.subscriptions])
        if self._seen.get(action) != endpoints:  # the server is to know what a test has made before its goal
            self._wait_for_discovery(action, timeout)
        self._clients[action], self._seen[action] = client, endpoints
        future = client.send_goal_async(goal)
        self.until(future.done, f"answer of {action}", timeout)
        handle = future.result()
        handle.client = client  # keeps it alive
        return handle

    def result(self, handle: Any, timeout: float = 60.0) -> Any:
        """Status and result of a goal."""
        future = handle.get_result_async()
        self.until(future.done, "result of the action", timeout)
        return future.result()

    def close(self) -> None:
        try:  # before processes are killed: Fast DDS unmaps memory that was shared with them while it closes
            self._executor.shutdown(timeout_sec=0.0)
            self.node.destroy_node()
            rclpy.try_shutdown(context=self._context)
        finally:
            for process in self._processes:
                process.kill()


@contextmanager
def ros_client_in(folder: Path) -> Iterator[RosClient]:
    """A client whose processes have all ended afterwards."""
    client = RosClient(folder)
    try:
        yield client
    finally:
        client.close()
