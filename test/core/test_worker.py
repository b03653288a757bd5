"""Work in another process: results, progress, every way of ending, and no process left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import worker_jobs
from support.paths import ROOT

from inertid_ros.core.errors import RecordingError
from inertid_ros.core.worker import Standby, Worker, WorkerError, WorkerProcess

LONG_S = 30.0  # nothing here takes as long; what does is stuck


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process finds the functions too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "test"), os.environ.get("PYTHONPATH", "")]))


def wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def finished(worker: Worker[Any, Any]) -> Worker[Any, Any]:
    wait(worker.poll)
    return worker


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody waits for any more counts as ended."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_result_and_progress() -> None:
    worker: Worker[str, float] = Worker("sum", worker_jobs.add, (1.0, 2.0))
    with pytest.raises(WorkerError, match="sum: is not over yet"):
        worker.result()
    wait(lambda: worker.progress is not None)
    assert worker.progress == "adding"
    assert finished(worker).result() == 3.0


def test_the_functions_own_error_arrives() -> None:
    with pytest.raises(RecordingError, match="^run1: holds no samples; record again$"):
        finished(Worker("read", worker_jobs.refuse, ())).result()


def test_an_unexpected_error_is_one_line() -> None:
    with pytest.raises(WorkerError, match="^fail: ValueError: first line second line$"):
        finished(Worker("read", worker_jobs.fail, ())).result()


@pytest.mark.parametrize(
    ("job", "arguments", "reason"), [(worker_jobs.end, (3,), "exit status 3"), (worker_jobs.die, (), "signal SIGKILL")]
)
def test_a_crash_stays_there(job: Callable[..., object], arguments: tuple[int, ...], reason: str) -> None:
    with pytest.raises(WorkerError, match=f"^read: its process ended with {reason}"):
        finished(Worker("read", job, arguments)).result()


def test_a_limit_of_memory_is_kept() -> None:
    def allocate(megabytes: int) -> int:
        process = WorkerProcess(memory_mb=4000)
        return finished(Worker("read", worker_jobs.allocate, (megabytes,), process=process)).result()

    assert allocate(200) == 200 * 2**20
    with pytest.raises(WorkerError, match="out of memory"):
        allocate(8000)


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_work_that_does_not_end_is_ended(tmp_path: Path, how: str) -> None:
    file = tmp_path / "pid"
    timeout_s = 2.0 if how == "timeout" else LONG_S
    worker: Worker[None, None] = Worker("plan", worker_jobs.run_forever, (str(file),), timeout_s=timeout_s)
    wait(lambda: file.exists() and file.read_text() != "")
    if how == "cancel":
        worker.cancel()
    reason = {"timeout": "plan: took longer than 2 s", "cancel": "plan: canceled"}[how]
    with pytest.raises(WorkerError, match=reason):
        finished(worker).result()
    wait(lambda: is_gone(int(file.read_text())))


def test_the_process_ends_with_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import time\nfrom support import worker_jobs\nfrom inertid_ros.core.worker import Worker\n"
        f"worker = Worker('plan', worker_jobs.run_forever, ({str(file)!r},))\ntime.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait(lambda: file.exists() and file.read_text() != "")
    finally:
        owner.kill()
        owner.wait()
    wait(lambda: is_gone(int(file.read_text())))


def test_a_process_that_waits_takes_one_job_and_is_replaced_where_it_has_died() -> None:
    standby = Standby(worker_jobs.__name__)
    standby.prepare()
    for _ in range(2):
        waiting = standby.take()
        standby.prepare()
        assert finished(Worker("sum", worker_jobs.add, (1.0, 2.0), process=waiting)).result() == 3.0
        waiting.process.wait(30.0)  # it ends by itself
    taken = standby.take()
    taken.process.kill()
    taken.process.wait()
    with pytest.raises(WorkerError, match="sum: its process ended with signal SIGKILL"):
        finished(Worker("sum", worker_jobs.add, (1.0, 2.0), process=taken)).result()


def test_a_process_that_nobody_needs_any_more_ends() -> None:
    standby = Standby("inertid_ros.no_such_module")
    taken = standby.take()
    assert finished(Worker("sum", worker_jobs.add, (1.0, 2.0), process=taken)).result() == 3.0
    unused = WorkerProcess()
    unused.connection.close()
    wait(lambda: unused.process.poll() == 0)
