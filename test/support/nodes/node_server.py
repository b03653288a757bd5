"""Starts node processes without their imports: they are forked from a process that has made these.

A node takes more than a second to import what it needs, and a run of the tests starts a hundred nodes. ``python -m
support.nodes.node_server FD`` imports once and forks for each :class:`Start` that comes over the connection of that
file descriptor; :class:`ForkedProcess` is what a test has of such a process, with the methods of a ``Popen``.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from support.paths import TEST

from inertid_ros.nodes import MODULES, end_at_once_on_signals

_BLOCKED = {signal.SIGINT, signal.SIGTERM}
_SIGNAL_AT_PARENTS_END = 1  # PR_SET_PDEATHSIG of prctl(2)
_IMPORTED = (*MODULES.values(), "support.nodes.fake_robot_process")


@dataclass(frozen=True)
class Start:
    """A process to be started.

    Attributes
    ----------
    target : str
        Module with a ``main()``, or path of a script.
    arguments : list of str
    environment : dict
        The whole of it.
    folder, output : Path
        Working directory, and file that takes all that is printed.
    """

    target: str
    arguments: list[str]
    environment: dict[str, str]
    folder: Path
    output: Path

    def alone(self) -> subprocess.Popen:
        """Start it as a user would."""
        run = "import sys; from inertid_ros.nodes import run; sys.exit(run('{}'))"  # as the installed executables do
        nodes = {module: ["-c", run.format(name)] for name, module in MODULES.items()}
        script = [self.target] if self.target.endswith(".py") else nodes.get(self.target, ["-m", self.target])
        command = [sys.executable, *script, *self.arguments]
        with self.output.open("wb") as output:
            return subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder, env=self.environment
            )

    def run(self) -> int:
        """Be this process, and return its exit status."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, module in MODULES.items():
            if module == self.target:
                end_at_once_on_signals(name)  # as the installed executables do
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)
        output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        paths = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [path for path in paths if path and path not in sys.path]
        sys.argv = [self.target, *self.arguments]
        try:
            if self.target.endswith(".py"):
                runpy.run_path(self.target, run_name="__main__")
                status: object = 0
            else:
                status = importlib.import_module(self.target).main()
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 1
        threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does at its end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        return status if isinstance(status, int) else int(status is not None)


class ForkedProcess:
    """A process of the server; like a ``Popen``."""

    def __init__(self, start: Start) -> None:
        self.returncode: int | None = None
        self.pid: int = _ask(start)
        self._ended = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Exit status, minus the number of the signal that ended it; None while it runs."""
        return self._poll(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Exit status, once it has ended; raise TimeoutExpired where it does not within the time [s]."""
        end = None if timeout is None else time.monotonic() + timeout
        status = self._poll(None if end is None else max(end - time.monotonic(), 0.0))
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _poll(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            self.returncode = _ask(self.pid)
            os.close(self._ended)
        return self.returncode


def _ask(request: Start | int) -> int:
    connection = _server()
    connection.send(request)
    return int(connection.recv())


@cache
def _server() -> Connection:
    """Connection to the server of this test process, which ends with it."""
    own, other = Pipe()
    path = os.pathsep.join([str(TEST), os.environ.get("PYTHONPATH", "")])
    with other:
        command = [sys.executable, "-m", "support.nodes.node_server", str(other.fileno())]
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, pass_fds=[other.fileno()])
    return own


def _serve(connection: Connection) -> None:
    while True:
        request = connection.recv()
        if isinstance(request, int):
            connection.send(os.waitstatus_to_exitcode(os.waitpid(request, 0)[1]))
            continue
        signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)  # this process ignores what would end that one
        process = os.fork()
        if process == 0:
            # A test run that is killed must not leave robots that another run would see.
            ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_END, signal.SIGKILL)
            connection.close()
            os._exit(request.run())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _BLOCKED)
        connection.send(process)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.modules["support.nodes.node_server"] = sys.modules["__main__"]  # where requests are unpickled
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    with Connection(int(sys.argv[1])) as requests, contextlib.suppress(EOFError, ConnectionError):
            _serve(requests)
