"""Run long work in another process, so that watchdogs and services stay alive even if the work crashes or hangs.

A :class:`Worker` starts a fresh interpreter (a fork would inherit threads and middleware), and hands it a function and
its arguments. The owner polls the worker. The process ends with its owner.
"""

import contextlib
import importlib
import logging
import multiprocessing
import os
import pickle
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar, cast

from .errors import InertidError

MAX_MEMORY_MB = 8192  # default limit of a job; the largest known jobs need a tenth
_READING_S, _READING_MB, _READER_POLL_S = 8.0, 4096, 0.01  # MuJoCo takes seconds for the meshes of most robots
_READ_BYTES_PER_S = 1e7
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


Result = TypeVar("Result")
Progress = TypeVar("Progress")


class WorkerError(InertidError):
    """The work crashed, took too long, or was stopped."""


class WorkerProcess:
    """Fresh interpreter that waits for one job.

    Parameters
    ----------
    module : module to import in advance; may be empty.
    memory_mb : limit of the process's address space [MiB]; 0: no limit.
    nice : minimum nice value of the process: 10 lets nodes that monitor a robot go first; 0 if the owner waits for it.

    Attributes
    ----------
    connection : connection to the process; closing it ends the process.
    """

    def __init__(self, module: str = "", memory_mb: int = MAX_MEMORY_MB, nice: int = 10) -> None:
        self.connection, other = multiprocessing.Pipe()
        with other:
            numbers = (str(number) for number in (other.fileno(), memory_mb, nice))
            self.process = subprocess.Popen(
                [sys.executable, "-m", "inertid_ros.core.worker", *numbers, module], stdin=subprocess.DEVNULL,
                pass_fds=(other.fileno(),), start_new_session=True,
                env={**os.environ, **dict.fromkeys(_THREAD_VARIABLES, "1")})


class Standby:
    """Process that has imported the module of the next job and waits, so that the job starts at once."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: WorkerProcess | None = None

    def prepare(self) -> None:
        """Start a process unless one is waiting already."""
        if self._process is None or self._process.process.poll() is not None:
            self._process = WorkerProcess(self._module)

    def take(self) -> WorkerProcess:
        """Return the waiting process, or a new process."""
        self.prepare()
        assert self._process is not None
        taken, self._process = self._process, None
        return taken


class Worker(Generic[Progress, Result]):
    """Call of a function in another process.

    The other process has one thread for linear algebra: the matrices are small, threads on busy cores wait for one
    another, and rounding must not depend on the number of cores.

    Parameters
    ----------
    name : name of the work in error messages.
    function : importable at module level; called with ``*arguments``, which are pickled, and ``progress=report``.
        ``report(value)`` may be called at any time with any value that can be pickled.
    timeout_s : the process is killed after this time [s].
    process : process to use; None starts a new process.
    reports : number of latest reported values to keep.

    Attributes
    ----------
    reports : latest reported values, in their order.
    """

    def __init__(self, name: str, function: Callable[..., Result], arguments: tuple[Any, ...], timeout_s: float = 600.0,
            process: WorkerProcess | None = None, reports: int = 1) -> None:
        self.name = name
        self.reports: deque[Progress] = deque(maxlen=reports)
        self._deadline = time.monotonic() + timeout_s
        self._timeout = timeout_s
        self._answer: tuple[str, Any] | None = None
        self._arrived: tuple[str, Any] | None = None
        job = pickle.dumps((function.__module__, function.__qualname__, arguments))
        process = process or WorkerProcess()
        self._connection, self._process = process.connection, process.process
        # The caller must not block: it has watchdogs to run.
        self._attendant = threading.Thread(target=self._attend, args=(job,), daemon=True)
        self._attendant.start()

    @property
    def progress(self) -> Progress | None:
        """Latest reported value; None before the first report."""
        return self.reports[-1] if self.reports else None

    @property
    def ended_by(self) -> str:
        """Name of the signal that ended the process; empty without a signal."""
        status = self._process.poll() or 0
        return signal.Signals(-status).name if status < 0 else ""

    def poll(self) -> bool:
        """Take the answer if it has arrived; True once the work is over, successful or not."""
        if self._answer is not None:
            return True
        ended = not self._attendant.is_alive()
        self._answer = self._arrived
        if self._answer is None and time.monotonic() > self._deadline:
            self.stop()
            self._answer = self._failure(f"took longer than {self._timeout:g} s; give it less work")
        elif self._answer is None and ended:
            status = self._process.wait()
            why = f"signal {self.ended_by}" if self.ended_by else f"exit status {status}"
            self._answer = self._failure(f"its process ended with {why}; see its output")
        return self._answer is not None

    def result(self) -> Result:
        """Return value of the function.

        Raises
        ------
        InertidError
            Raised by the function; WorkerError if the process crashed, took too long, or still runs.
        """
        content, value = self._answer or self._failure("is not over yet")
        if content == "error":
            raise value
        return cast(Result, value)

    def wait(self, poll_s: float) -> None:
        """Block until the work is over, and end the process."""
        try:
            while not self.poll():
                time.sleep(poll_s)
        finally:
            self.stop()

    def stop(self) -> None:
        """End the process now; a result that has not arrived is lost."""
        self._process.kill()

    def cancel(self) -> None:
        """Stop the work; its result is an error."""
        self.stop()
        self._answer = self._answer or self._failure("canceled")

    def _failure(self, reason: str) -> tuple[str, WorkerError]:
        return "error", WorkerError(f"{self.name}: {reason}")

    def _attend(self, job: bytes) -> None:
        """Send the job, receive reports and the answer, and make sure that the process ends."""
        try:
            with contextlib.suppress(EOFError, OSError), self._connection:
                self._connection.send_bytes(job)
                while self._arrived is None:
                    content, value = self._connection.recv()
                    if content == "progress":
                        self.reports.append(value)
                    else:
                        self._arrived = (content, value)
        except Exception as error:  # from unpickling the answer
            reason = " ".join(f"{error.__class__.__name__}: {error}".split())
            self._arrived = self._failure(f"its answer cannot be read ({reason})")
        finally:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
            self.stop()
            self._process.wait()


def read_apart(name: str, function: Callable[..., Result], *arguments: object, size: int = 0) -> Result:
    """Run a function in a :class:`Worker`, because its library may crash or hang on hostile files.

    ``size`` is the size of the files [bytes]; the limits of time and memory grow with it.
    """
    process = WorkerProcess(memory_mb=_READING_MB + 16 * (size >> 20), nice=0)
    timeout_s = _READING_S + size / _READ_BYTES_PER_S
    job: Worker[object, Result] = Worker(name, _silent, (function, *arguments), timeout_s, process)
    job.wait(_READER_POLL_S)
    try:
        return job.result()
    except WorkerError as error:
        raise WorkerError(f"{str(error).rpartition(';')[0]}; replace the file, or save it again") from None


def _silent(function: Callable[..., Result], *arguments: object, progress: object) -> Result:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries, and C++ when it aborts, write to stderr
    return function(*arguments, progress=progress)


def _serve(descriptor: int, memory_mb: int, nice: int, ahead: str) -> None:
    """Read one job, run it, and answer; this is the main function of the other process."""
    if memory_mb:
        bound, hard = memory_mb * 2**20, resource.getrlimit(resource.RLIMIT_AS)[1]
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), nice))
    logging.basicConfig(format="[%(levelname)s] [%(name)s]: %(message)s")
    threading.Thread(target=_end_with_owner, args=(descriptor,), daemon=True).start()
    connection: Connection[Any, Any] = Connection(descriptor)
    if ahead:
        with contextlib.suppress(Exception):  # the job repeats the import and reports the error
            importlib.import_module(ahead)
    try:
        job = connection.recv_bytes()
    except (EOFError, OSError):  # the owner has ended
        return
    module, name, arguments = pickle.loads(job)
    lock = threading.Lock()

    def send(content: str, value: object) -> None:
        sys.stdout.flush()  # once it has the answer, the owner ends this process
        with lock:
            connection.send((content, value))

    try:
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        value = function(*arguments, progress=lambda report: send("progress", report))
        send("result", value)
    except InertidError as error:
        send("error", error)
    except MemoryError:
        send("error", WorkerError(f"{name}: out of memory; use fewer or shorter recordings"))
    except Exception as error:  # any error is reported to the owner
        import traceback

        traceback.print_exc()
        send("error", WorkerError(f"{name}: {error.__class__.__name__}: {' '.join(str(error).split())}"))


def _end_with_owner(descriptor: int) -> None:
    """End this process when the other end of the connection is closed, even with unread data."""
    waiting = select.poll()
    waiting.register(descriptor, 0)
    waiting.poll()  # for POLLHUP, which is always reported
    os._exit(0)


if __name__ == "__main__":
    from inertid_ros.core import worker  # its errors must not be pickled as errors of __main__

    descriptor, memory_mb, nice = map(int, sys.argv[1:4])
    worker._serve(descriptor, memory_mb, nice, sys.argv[4])
    os._exit(0)  # the thread that watches the owner still reads
