"""Nodes of the package as real processes."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from support.nodes.node_server import ForkedProcess, Start

from inertid_ros.nodes import MODULES

# What must keep time while a robot moves. All nodes before all else would leave planning and fitting no time at all.
_ROBOT_SIDE = ("simulator", "driver", "excitation", "adaptation", "recorder")


def raise_priority(process: int = 0) -> None:
    """Run a process before others where that is allowed: robots do not share their machine with other test runs.

    Not in real time (SCHED_FIFO): the middleware's threads wait actively for one another at times, and two such
    processes on two cores would then keep whatever they wait for from running, for ever.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, -15)


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
        script: Sequence[str] = (),  # and its arguments, in place of the node's own
    ) -> None:
        self.name = name
        label = f"{namespace.strip('/').replace('/', '_') or 'root'}_{name}"
        count = len(list(folder.glob(f"{label}*.log")))
        self._log = folder / f"{label}_{count}.log"
        target, *arguments = script or (MODULES[name],)
        arguments.append("--ros-args")
        if parameters:
            file = folder / f"{label}_{count}.yaml"
            file.write_text(yaml.safe_dump({"/**": {"ros__parameters": _nested(parameters)}}))
            arguments += ["--params-file", str(file)]
        if namespace:
            arguments += ["-r", f"__ns:={namespace}"]
        for old, new in (remaps or {}).items():
            arguments += ["-r", f"{old}:={new}"]
        self._log.touch()
        start = Start(target, arguments, {**os.environ, **(environment or {})}, folder, self._log)
        # The loader reads the environment once, when a process begins.
        self.process = ForkedProcess(start) if environment is None else start.alone()
        if name in _ROBOT_SIDE:
            raise_priority(self.process.pid)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

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


def _nested(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in parameters.items()}
