"""Child processes of the demo in their own ROS domain."""

import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from inertid_ros.core.errors import InertidError

SERVING_NODES = ("simulator", "excitation", "recorder", "identifier")  # needed by a calibration
_STOP_TIMEOUT_S = 8.0
_DOMAINS = range(101, 0, -1)  # 1 to 101 is safe on every system


@contextmanager
def claim_domain() -> Iterator[int]:
    """Reserve a ROS domain by a file lock until the context is left; raise InertidError if all domains are claimed."""
    folder = Path(tempfile.gettempdir()) / f"inertid_ros_domains_{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for domain in _DOMAINS:
        with (folder / str(domain)).open("w") as candidate:
            try:
                fcntl.flock(candidate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield domain
            return
    raise InertidError(f"all ROS domains are claimed by locks in {folder}; end some of the processes that hold them")


class Processes:
    """Child processes with logs ``<name>.log`` in a directory; leaving the context ends all of them."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> "Processes":
        return self

    def start(self, name: str, command: Sequence[str], *, own_terminal: bool = False) -> None:
        """Start a process whose output goes to its log, or to this terminal if ``own_terminal`` is set."""
        if own_terminal:
            self._running[name] = subprocess.Popen(command)
            return
        with (self._logs / f"{name}.log").open("wb") as log:
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def wait(self, name: str, timeout_s: float) -> int:
        """Return the exit status of a process; raise InertidError if another process ends, or after the timeout."""
        end = time.monotonic() + timeout_s
        while (status := self._running[name].poll()) is None:
            for other, process in self._running.items():
                if other != name and process.poll() is not None:
                    raise InertidError(f"{other} ended with status {process.returncode}:\n{self.tail(other)}")
            if time.monotonic() > end:
                raise InertidError(f"{name} took longer than {timeout_s:g} s:\n{self.tail(name)}")
            time.sleep(0.05)
        del self._running[name]
        return status

    def tail(self, name: str, lines: int = 15) -> str:
        """Return the last lines of a log."""
        log = self._logs / f"{name}.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""

    def __exit__(self, *_error: object) -> None:
        # End the calibration first: it brings the robot to rest while the other nodes still run.
        order = sorted(self._running.items(), key=lambda entry: entry[0] in SERVING_NODES)
        for _, process in order:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        end = time.monotonic() + _STOP_TIMEOUT_S
        for _, process in order:
            try:
                process.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
