"""Run tasks on the workers of a Dask cluster: local processes by default, or the workers of a scheduler."""

import importlib.util
import logging
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from inertid_ros import __version__
from inertid_ros.core.errors import InertidError

from .catalogue import FleetError, optional

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

_log = logging.getLogger(__name__)
_NO_CLUSTER = (OSError, TimeoutError, ValueError, ImportError, RuntimeError)
_TASKS_PER_THREAD = 4  # submitted at a time: enough to keep workers busy, few enough for the scheduler's memory
_TIMEOUT_S = 15
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_DISTRIBUTED = {
    "distributed.worker.daemon": True,
    # worker processes read this before they import NumPy
    "distributed.nanny.pre-spawn-environ": {**_THREADS, "MKL_NUM_THREADS": "1"},
    "distributed.scheduler.allowed-failures": 2,  # worker deaths under one task; then only this task fails
}


@dataclass(frozen=True)
class Failed:
    """A failed task, with the reason in one line."""

    message: str


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster, with its connected ``distributed.Client``."""

    client: Any

    @property
    def dashboard(self) -> str:
        """Address of the dashboard; empty if bokeh, which Dask needs for it, is not installed."""
        return str(self.client.dashboard_link or "") if importlib.util.find_spec("bokeh") else ""

    def results(self, function: Callable[..., Result],
            jobs: Mapping[Key, tuple[Any, ...]]) -> Iterator[tuple[Key, "Result | Failed"]]:
        """Call a function with the arguments of each job; yield the results in order of completion.

        If workers die during a task, only this task fails. Only some tasks are submitted at a time, so that neither the
        cluster nor this process holds all tasks.
        """
        distributed = optional("distributed")
        waiting, running = iter(jobs.items()), distributed.as_completed(with_results=False)
        keys: dict[str, Key] = {}

        def submit(count: int) -> None:
            for key, arguments in islice(waiting, count):
                future = self.client.submit(caught, function, arguments, pure=False)
                keys[future.key] = key
                running.add(future)

        submit(_TASKS_PER_THREAD * max(sum(self.client.nthreads().values()), 1))
        for future in running:
            key = keys.pop(future.key)
            try:
                result = future.result()
            except Exception as error:  # from Dask: its workers died, or do not have this package
                result = Failed(f"its worker failed ({_reason(error)})")
            future.release()
            submit(1)
            yield key, result


def caught(function: Callable[..., Result], arguments: tuple[Any, ...]) -> "Result | Failed":
    """Run a job on a worker; return its result, or its error in one line."""
    try:
        return function(*arguments)
    except InertidError as error:
        return Failed(str(error))
    except MemoryError:
        return Failed("out of memory; give workers more memory or fewer threads")
    except Exception as error:
        return Failed(f"unexpected {type(error).__name__}: {' '.join(str(error).split())}; report it")


@contextmanager
def cluster(scheduler: str = "", workers: int = 0) -> Iterator[Cluster]:
    """Connect to a scheduler at an address such as ``tcp://10.0.0.1:8786``, or start local processes.

    Without an address, ``workers`` local processes start, which end with this process; 0 means one per core. If
    processes cannot be started, for example in a sandbox, the workers are threads of this process.
    Raises FleetError: Dask is not installed, the scheduler does not answer, or local workers cannot be started.
    """
    dask, distributed = optional("dask"), optional("distributed")
    for name in ("distributed", "distributed.nanny", "distributed.scheduler", "distributed.worker"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_DISTRIBUTED))
        try:
            if scheduler:
                client = stack.enter_context(distributed.Client(scheduler, timeout=_TIMEOUT_S))
            else:
                client = stack.enter_context(_local_client(workers or os.cpu_count() or 1))
        except _NO_CLUSTER as error:
            raise FleetError(
                f"{scheduler}: the Dask scheduler does not answer; check the address, or omit --scheduler"
                if scheduler else f"cannot start workers, as processes or as threads ({_reason(error)}); correct this,"
                " or give the address of a scheduler (--scheduler)") from None
        if scheduler:
            check_workers(client, scheduler)
        yield Cluster(client)


@contextmanager
def _local_client(workers: int) -> Iterator[Any]:
    """Yield a client of local processes, or of threads if processes cannot be started."""
    distributed = optional("distributed")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="inertid_fleet_"))
        common = {"local_directory": folder, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
        try:
            local = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, **common)
        except _NO_CLUSTER as error:
            _log.warning("worker processes cannot be started (%s); using threads of this process", _reason(error))
            local = distributed.LocalCluster(n_workers=1, threads_per_worker=workers, processes=False, **common)
        yield stack.enter_context(distributed.Client(stack.enter_context(local)))


def check_workers(client: Any, address: str) -> None:
    """Raise FleetError unless a scheduler has workers with this version of the package."""

    def version() -> str:  # sent to the workers as code, as they may not have the package
        import inertid_ros

        return inertid_ros.__version__

    if not client.nthreads():
        raise FleetError(f"{address}: the scheduler has no workers; start some with 'dask worker {address}'")
    try:
        versions = set(client.run(version).values())
    except ImportError:
        raise FleetError(f"{address}: its workers have no inertid_ros; install it on them") from None
    if versions != {__version__}:
        others = ", ".join(sorted(versions))
        raise FleetError(f"{address}: its workers have inertid_ros {others}, this is {__version__}; use one version")


def _reason(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__} {error}".split())[:200]
