"""Functions that a worker runs in another process."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from inertid_ros.core.errors import RecordingError

Report = Callable[[object], None]


def add(a: float, b: float, progress: Report) -> float:
    progress("adding")
    time.sleep(0.3)
    return a + b


def refuse(progress: Report) -> None:
    raise RecordingError("run1: holds no samples; record again")


def fail(progress: Report) -> None:
    raise ValueError("first line\nsecond line")


def end(status: int, progress: Report) -> None:
    os._exit(status)


def die(progress: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def allocate(megabytes: int, progress: Report) -> int:
    return len(bytearray(megabytes * 2**20))


def run_forever(file: str, progress: Report) -> None:
    Path(file).write_text(str(os.getpid()))
    while True:
        time.sleep(0.05)
