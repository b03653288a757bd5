"""What the ROS tests share: nodes as real processes, and a client node that waits for things to happen."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

import yaml  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import QoSProfile  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from inertid_ros.ros.qos import LATCHED  # noqa: E402

LWR_URDF_OF = "kuka_lwr4/kuka_lwr4.urdf"
# What must keep time while a robot moves. All nodes before all else would leave planning and fitting no time at all.
_ROBOT_SIDE = ("simulator", "excitation", "recorder")


def hurry(process: int = 0) -> None:
    """Run a process before others where we may: robots do not share their machine with other test runs."""
    with suppress(OSError):
        os.sched_setscheduler(process, os.SCHED_FIFO, os.sched_param(5))


class NodeProcess:
    """One node of the package in a process of its own; ``log()`` is everything that it printed."""

    def __init__(
        self,
        name: str,
        folder: Path,
        parameters: Mapping[str, Any] | None = None,
        namespace: str = "",
        remaps: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        label = f"{namespace.strip('/').replace('/', '_') or 'root'}_{name}"
        count = len(list(folder.glob(f"{label}*.log")))
        self._log = folder / f"{label}_{count}.log"
        command = [sys.executable, "-m", f"inertid_ros.nodes.{name}.node", "--ros-args"]
        if parameters:
            file = folder / f"{label}_{count}.yaml"
            file.write_text(yaml.safe_dump({"/**": {"ros__parameters": _nested(parameters)}}))
            command += ["--params-file", str(file)]
        if namespace:
            command += ["-r", f"__ns:={namespace}"]
        for old, new in (remaps or {}).items():
            command += ["-r", f"{old}:={new}"]
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, **(environment or {})}
            )
        if name in _ROBOT_SIDE:
            hurry(self.process.pid)

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, timeout: float = 10.0) -> int:
        """End it as a launch file would and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.name} did not end within {timeout} s of SIGINT:\n{self.log()}") from None

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Bench:
    """A client node with everything that a test needs of ROS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        self.node = rclpy.create_node("bench", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._processes: list[NodeProcess] = []

    def start(self, name: str, parameters: Mapping[str, Any] | None = None, **keywords: Any) -> NodeProcess:
        process = NodeProcess(name, self.folder, parameters, **keywords)
        self._processes.append(process)
        return process

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._executor.spin_once(timeout_sec=max(0.0, min(0.02, end - time.monotonic())))

    def until(self, condition: Callable[[], Any], what: str, timeout: float = 15.0) -> Any:
        """Spin until ``condition()`` holds and return its value."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > end:
                logs = "\n".join(f"--- {p.name}\n{p.log()}" for p in self._processes)
                raise AssertionError(f"{what} did not happen within {timeout} s\n{logs}")
            self._executor.spin_once(timeout_sec=0.02)
        return value

    def listen(self, kind: Any, topic: str, qos: QoSProfile = LATCHED) -> list:
        """Messages of a topic, as they come."""
        received: list = []
        self.node.create_subscription(kind, topic, received.append, qos)
        return received

    def trigger(self, service: str, timeout: float = 15.0) -> Trigger.Response:
        client = self.node.create_client(Trigger, service)
        self.until(client.service_is_ready, f"service {service}", timeout)
        future = client.call_async(Trigger.Request())
        self.until(future.done, f"answer of {service}", timeout)
        return future.result()

    def call(self, kind: Any, service: str, request: Any, timeout: float = 15.0) -> Any:
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready, f"service {service}", timeout)
        future = client.call_async(request)
        self.until(future.done, f"answer of {service}", timeout)
        return future.result()

    def send_goal(self, kind: Any, action: str, goal: Any, timeout: float = 15.0) -> Any:
        """Goal handle of an action; ``accepted`` says whether it runs."""
        client = ActionClient(self.node, kind, action)
        self.until(client.server_is_ready, f"action {action}", timeout)
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
        for process in self._processes:
            process.kill()
        self._executor.shutdown(timeout_sec=0.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)


@contextmanager
def bench_in(folder: Path) -> Iterator[Bench]:
    """A bench whose processes have all ended afterwards."""
    bench = Bench(folder)
    try:
        yield bench
    finally:
        bench.close()


def _nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in parameters.items()}
