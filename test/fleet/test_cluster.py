"""Tasks on a Dask cluster, where what fails fails alone; bags and URDFs from paths and from a store in memory."""

import sys
from types import SimpleNamespace

import fsspec
import pytest
from support.fleet import numbered_job

from inertid_ros.core.errors import RecordingError
from inertid_ros.fleet import catalogue, cluster as module
from inertid_ros.fleet.catalogue import FleetError, content_hash, fetched, fetched_text, file_state, resolved
from inertid_ros.fleet.cluster import Failed, cluster


def test_what_fails_fails_alone_and_a_worker_that_dies_costs_its_own_task(monkeypatch):
    monkeypatch.setitem(module._DISTRIBUTED, "distributed.scheduler.allowed-failures", 0)
    with cluster(workers=2) as dask:
        found = dict(dask.results(numbered_job, {number: (number,) for number in range(20)}))
    failed = {number: result.message for number, result in found.items() if isinstance(result, Failed)}
    assert failed.pop(3) == "three: is no recording"
    assert failed.pop(5) == "unexpected KeyError: 'five'; report it"
    assert failed.pop(17).startswith("its worker failed (KilledWorker")
    assert all("worker" in message for message in failed.values())  # what waited beside it at that worker
    assert len(failed) <= 4
    assert len(found) == 20
    assert all(result == 10 * number for number, result in found.items() if not isinstance(result, Failed))


def test_without_processes_the_workers_are_threads(monkeypatch, caplog):
    """As in a sandbox that lets no further process start."""

    def refused(*_args: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", refused)
    with cluster(workers=2) as dask:
        found = dict(dask.results(numbered_job, {number: (number,) for number in (1, 2)}))
    assert found == {1: 10, 2: 20}
    assert "using threads of this process" in caplog.text


def test_no_scheduler_is_one_line(monkeypatch):
    monkeypatch.setattr(module, "_TIMEOUT_S", 1)
    with (pytest.raises(FleetError, match="tcp://127.0.0.1:9: the Dask scheduler does not answer"),
            cluster("tcp://127.0.0.1:9")):
        pass


def test_workers_without_this_package_are_one_line():
    client = SimpleNamespace(nthreads=lambda: {"a": 1}, run=_without_package)
    with pytest.raises(FleetError, match="tcp://a:1: its workers have no inertid_ros; install it on them"):
        module.check_workers(client, "tcp://a:1")
    client.run = lambda function: {"a": "0.0.1"}
    with pytest.raises(FleetError, match="its workers have inertid_ros 0.0.1, this is"):
        module.check_workers(client, "tcp://a:1")
    client.nthreads = dict
    with pytest.raises(FleetError, match="the scheduler has no workers"):
        module.check_workers(client, "tcp://a:1")


def _without_package(function):
    raise ModuleNotFoundError("inertid_ros")


def test_a_package_that_is_not_installed_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(FleetError, match=r"needs the Python package pyarrow; pip install 'inertid_ros\[fleet\]'"):
        catalogue.optional("pyarrow.parquet")


@pytest.fixture
def store():
    store = fsspec.filesystem("memory")
    store.pipe({"/bags/one.npz": b"first", "/bags/two/a.mcap": b"aa", "/bags/two/metadata.yaml": b"meta"})
    yield store
    store.rm("/bags", recursive=True)


def test_a_file_of_a_store_is_copied_and_removed(store):
    with fetched("memory://bags/one.npz") as path:
        assert path.name == "one.npz"
        assert path.read_bytes() == b"first"
    assert not path.exists()


def test_a_bag_folder_of_a_store_is_the_same_content_as_on_disk(store, tmp_path):
    for name, content in (("a.mcap", b"aa"), ("metadata.yaml", b"meta")):
        (tmp_path / name).write_bytes(content)
    with fetched("memory://bags/two") as path:
        assert content_hash(path) == content_hash(tmp_path)
        assert content_hash(path)[1] == 6


def test_state_changes_with_the_content(store, tmp_path):
    for url, write in (
        ("memory://bags/one.npz", lambda data: store.pipe("/bags/one.npz", data)),
        (str(tmp_path / "x"), lambda data: (tmp_path / "x").write_bytes(data)),
    ):
        write(b"first")
        before = file_state(url)
        assert file_state(url) == before
        write(b"second one")
        assert file_state(url) != before


def test_paths_count_from_the_catalogue_and_urls_do_not(tmp_path):
    assert resolved("bag", tmp_path) == str(tmp_path / "bag")
    assert resolved("file:///bag", tmp_path) == "/bag"
    assert resolved("s3://store/bag", tmp_path) == "s3://store/bag"


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("memory://bags/none.npz", "no such file; check the catalogue"),
        ("/nowhere/bag", "no such file; check the catalogue"),
        ("nothing://store/bag", "check the URL"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(url, line):
    with pytest.raises(RecordingError, match=line) as refused:
        file_state(url)
    assert str(refused.value).startswith(url)


def test_text(store):
    store.pipe("/bags/robot.urdf", b"<robot/>")
    assert fetched_text("memory://bags/robot.urdf") == "<robot/>"
    store.pipe("/bags/robot.urdf", b"\xff\xfe\x00")
    with pytest.raises(RecordingError, match="is not text"):
        fetched_text("memory://bags/robot.urdf")
