"""Bags and URDFs from paths and from a store that fsspec opens (one in memory)."""

import fsspec
import pytest

from inertid_ros.core.errors import RecordingError
from inertid_ros.fleet.fetching import content_hash, fetched, file_state, read_text, resolved


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
    assert read_text("memory://bags/robot.urdf") == "<robot/>"
    store.pipe("/bags/robot.urdf", b"\xff\xfe\x00")
    with pytest.raises(RecordingError, match="is not text"):
        read_text("memory://bags/robot.urdf")
