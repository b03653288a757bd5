"""Tasks on a Dask cluster of two processes: what fails, and what dies, fails alone."""

from types import SimpleNamespace

import pytest
from support.fleet import numbered_job

from inertid_ros.fleet import cluster as module
from inertid_ros.fleet.cluster import Failed, cluster
from inertid_ros.fleet.fetching import FleetError
from inertid_ros.fleet.jobs import errors


def test_what_fails_fails_alone_and_a_worker_that_dies_costs_its_own_task(monkeypatch):
    monkeypatch.setitem(module._DISTRIBUTED, "distributed.scheduler.allowed-failures", 0)
    with cluster(workers=2) as dask:
        assert dask.threads == 2
        found = dict(dask.results(numbered_job, {number: number for number in range(20)}))
    failed = {number: result.message for number, result in found.items() if isinstance(result, Failed)}
    assert failed.pop(3) == "three: is no recording"
    assert failed.pop(5) == "unexpected KeyError: 'five'; report it"
    assert failed.pop(17).startswith("its worker failed (KilledWorker")
    assert all("worker" in message for message in failed.values())  # what waited beside it at that worker
    assert len(failed) <= 4
    assert len(found) == 20
    assert all(result == 10 * number for number, result in found.items() if not isinstance(result, Failed))


def test_no_scheduler_is_one_line(monkeypatch):
    monkeypatch.setattr(module, "_TIMEOUT_S", 1)
    with (
        pytest.raises(FleetError, match="tcp://127.0.0.1:9: no Dask scheduler answers there"),
        cluster("tcp://127.0.0.1:9"),
    ):
        pass


def test_workers_without_this_package_are_one_line():
    client = SimpleNamespace(nthreads=lambda: {"a": 1}, run=_without_package)
    with pytest.raises(FleetError, match="tcp://a:1: its workers have no inertid_ros; install it there"):
        module.check_workers(client, "tcp://a:1")
    client.run = lambda function: {"a": "0.0.1"}
    with pytest.raises(FleetError, match="its workers have inertid_ros 0.0.1, and this is"):
        module.check_workers(client, "tcp://a:1")
    client.nthreads = dict
    with pytest.raises(FleetError, match="the scheduler has no workers"):
        module.check_workers(client, "tcp://a:1")


def _without_package(function):
    raise ModuleNotFoundError("inertid_ros")


def test_a_package_that_is_not_installed_is_one_line(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(errors.importlib, "import_module", missing)
    with pytest.raises(FleetError, match=r"needs the Python package pyarrow; pip install 'inertid_ros\[fleet\]'"):
        errors.optional("pyarrow.parquet")
