"""The crash-safe bag: valid after every commit, marked as not closed until it is, refusing what it cannot keep."""

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from inertid_ros.config.recordings import BagWritingOptions
from inertid_ros.core.errors import OutputError, RecordingError
from inertid_ros.data.files.bag_backends import bag_backend
from inertid_ros.data.files.bag_opening import FINALISED_KEY
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.live_bag import LiveBag
from inertid_ros.data.files.mcap_format import Topic
from inertid_ros.data.messages import JOINT_STATE, encode

NO_RESERVE = BagWritingOptions(min_free_mb=0)
TOPIC = Topic("/joint_states", JOINT_STATE, "string definition")


def joint_state(stamp_ns: int) -> bytes:
    values = dict.fromkeys(("position", "velocity", "effort"), np.array([1.0, stamp_ns * 1e-9]))
    return encode(JOINT_STATE, stamp_ns, values, "", ("a", "b"))


def stored_stamps(path: Path) -> list[int]:
    """Times of the messages that a reader of bags sees."""
    bag = bag_backend().open(path)
    stamps = [message.time_ns for message in bag.messages([TOPIC.name])]
    assert bag.counts == {TOPIC.name: len(stamps)}
    assert (bag.start_ns, bag.end_ns) == (stamps[0], stamps[-1] + 1)
    return stamps


def fill(bag: LiveBag, count: int, start: int = 1) -> None:
    for index in range(start, start + count):
        bag.write(0, index * 10**7, joint_state(index * 10**7))


def custom_data(path: Path) -> dict[str, str]:
    return yaml.safe_load((path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]["custom_data"]


@pytest.mark.usefixtures("backend")
def test_closed_bag_reads_back_and_is_finalised(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)
    fill(bag, 50)
    bag.close()
    recording = read_bag(tmp_path / "bag")
    np.testing.assert_allclose(recording.time, np.arange(50) * 0.01, atol=1e-12)
    assert recording.notices == ()
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "true"}
    for path in (tmp_path / "bag", bag.file):  # by metadata.yaml, and by summary and statistics of the bare file
        assert stored_stamps(path) == [index * 10**7 for index in range(1, 51)]


@pytest.mark.usefixtures("backend")
def test_file_is_complete_after_every_commit(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)
    for round_ in range(5):
        fill(bag, 7, start=1 + 7 * round_)
        bag.commit()
        assert len(list(bag_backend().open(bag.file).messages([TOPIC.name]))) == 7 * (round_ + 1)
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}
    bag.close()


WRITER = """
import sys, time
sys.path[:0] = [{test!r}]
from test_live_bag import LiveBag, NO_RESERVE, TOPIC, joint_state
bag = LiveBag({path!r}, [TOPIC], NO_RESERVE)
begin = time.monotonic_ns()
while True:
    stamp = time.monotonic_ns()
    bag.write(0, stamp, joint_state(stamp))
    bag.keep_up(time.monotonic(), 0.05)
    print(stamp, flush=True)
    time.sleep(0.002)
"""


@pytest.mark.parametrize("milliseconds", [530, 810])
def test_killed_writer_loses_at_most_a_tenth_of_a_second(tmp_path: Path, milliseconds: int) -> None:
    code = WRITER.format(test=str(Path(__file__).parent), path=str(tmp_path / "bag"))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    stamps = [int(process.stdout.readline())]
    while stamps[-1] < stamps[0] + milliseconds * 1_000_000:
        stamps.append(int(process.stdout.readline()))
    process.send_signal(signal.SIGKILL)
    stamps += [int(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    saved = [message.time_ns for message in bag_backend().open(tmp_path / "bag").messages([TOPIC.name])]
    assert saved == stamps[: len(saved)]
    lost = stamps[len(saved) :]  # a busy machine may hold the writer up for longer before it, but not within it
    assert not lost or (lost[-1] - lost[0]) * 1e-9 <= 0.1
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}
    assert "not closed" in read_bag(tmp_path / "bag").notices[0]


def test_full_disk_keeps_every_committed_message_readable(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: writes are cut short, then fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    bag = LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)
    committed = 0
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        with pytest.raises(RecordingError, match="cannot be written"):
            for round_ in range(100):
                fill(bag, 10, start=1 + 10 * round_)
                bag.commit()
                committed += 10
        assert len(list(bag_backend().open(bag.file).messages([TOPIC.name]))) == committed > 0
        with pytest.raises(RecordingError, match="cannot be written"):
            bag.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert len(list(bag_backend().open(bag.file).messages([TOPIC.name]))) == committed
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}


def test_a_disk_that_fails_to_synchronise_never_gives_a_finished_bag(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bag = LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)
    fill(bag, 10)

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(RecordingError, match="cannot be written"):
        bag.close()
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}


def test_existing_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with pytest.raises(RecordingError, match="exists already"):
        LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)


@pytest.mark.parametrize("target", ["nowhere", ".", "/dev/null"])
def test_a_link_is_refused(target: str, tmp_path: Path) -> None:
    (tmp_path / "bag").symlink_to(target)
    with pytest.raises(OutputError, match="bag: is a link, which is neither followed nor replaced"):
        LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)
    assert [path.name for path in tmp_path.iterdir()] == ["bag"]


def test_path_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        LiveBag("/proc/recordings/bag", [TOPIC], NO_RESERVE)


def test_little_free_space_is_refused(tmp_path: Path) -> None:
    status = os.statvfs(tmp_path)
    needed = status.f_bavail * status.f_frsize // 2**20 + 1024
    with pytest.raises(RecordingError, match="MiB free"):
        LiveBag(tmp_path / "bag", [TOPIC], BagWritingOptions(min_free_mb=needed))
    assert not (tmp_path / "bag").exists()


def test_large_message_is_refused(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [TOPIC], BagWritingOptions(0, max_message_mb=1))
    with pytest.raises(RecordingError, match="above 1 MiB"):
        bag.write(0, 1, bytes(2**20 + 1))
    bag.close()
    assert bag.messages == 0


def test_an_empty_bag_with_a_foreign_file_is_kept(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [TOPIC], NO_RESERVE)
    bag.close()
    (tmp_path / "bag" / "notes.txt").write_text("x")
    with pytest.raises(RecordingError, match="bag"):
        bag.remove()
    assert (tmp_path / "bag" / "notes.txt").read_text() == "x"
