"""The crash-safe bag: valid after every commit, honest about its end, refusing what it cannot keep."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from inertid_ros.config.recording_topics import BagWritingOptions
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.bag_metadata import FINALISED_KEY
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.live_bag import LiveBag
from inertid_ros.data.files.mcap_format import Topic
from inertid_ros.data.files.rosbags_backend import typestore

rosbag2 = pytest.importorskip("rosbags.rosbag2")
KIND = "sensor_msgs/msg/JointState"
NO_RESERVE = BagWritingOptions(min_free_mb=0)


def joint_states_topic() -> Topic:
    definition, _ = typestore().generate_msgdef(KIND, ros_version=2)
    return Topic("/joint_states", KIND, definition)


def joint_state(stamp_ns: int) -> bytes:
    types = typestore().types
    time_ = types["builtin_interfaces/msg/Time"](sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    header = types["std_msgs/msg/Header"](stamp=time_, frame_id="")
    values = np.array([1.0, stamp_ns * 1e-9])
    message = types[KIND](header=header, name=["a", "b"], position=values, velocity=values, effort=values)
    return bytes(typestore().serialize_cdr(message, KIND))


def fill(bag: LiveBag, count: int, start: int = 1) -> None:
    for index in range(start, start + count):
        bag.write(0, index * 10**7, joint_state(index * 10**7))


def custom_data(path: Path) -> dict[str, str]:
    return yaml.safe_load((path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]["custom_data"]


def test_closed_bag_reads_back_and_is_finalised(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [joint_states_topic()], NO_RESERVE)
    fill(bag, 50)
    bag.close()
    recording = read_bag(tmp_path / "bag")
    np.testing.assert_allclose(recording.time, np.arange(50) * 0.01, atol=1e-12)
    assert recording.notices == ()
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "true"}
    with rosbag2.Reader(tmp_path / "bag") as reader:
        assert reader.message_count == 50 and reader.duration == 49 * 10**7 + 1
    with rosbag2.Reader(bag.file) as reader:  # summary and statistics of the bare file
        assert reader.message_count == 50


def test_file_is_complete_after_every_commit(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [joint_states_topic()], NO_RESERVE)
    for round_ in range(5):
        fill(bag, 7, start=1 + 7 * round_)
        bag.commit()
        with rosbag2.Reader(bag.file) as reader:
            assert len(list(reader.messages())) == 7 * (round_ + 1)
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}
    bag.close()


WRITER = """
import sys, time
sys.path[:0] = [{test!r}]
from test_live_bag import LiveBag, NO_RESERVE, joint_state, joint_states_topic
from inertid_ros.data.files.live_bag import Committer
bag = LiveBag({path!r}, [joint_states_topic()], NO_RESERVE)
committer = Committer(bag, 0.05, time.monotonic())
begin = time.monotonic_ns()
while True:
    stamp = time.monotonic_ns()
    bag.write(0, stamp, joint_state(stamp))
    committer.poll(time.monotonic())
    print(stamp, flush=True)
    time.sleep(0.002)
"""


@pytest.mark.parametrize("seconds", [0.53, 0.81])
def test_killed_writer_loses_at_most_a_tenth_of_a_second(tmp_path: Path, seconds: float) -> None:
    code = WRITER.format(test=str(Path(__file__).parent), path=str(tmp_path / "bag"))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    stamps = [int(process.stdout.readline())]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stamps.append(int(process.stdout.readline()))
    process.send_signal(signal.SIGKILL)
    stamps += [int(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    with rosbag2.Reader(tmp_path / "bag") as reader:
        saved = [stamp for _, stamp, _ in reader.messages()]
    assert saved == stamps[: len(saved)]
    assert (stamps[-1] - saved[-1]) * 1e-9 <= 0.1
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}
    assert "not closed" in read_bag(tmp_path / "bag").notices[0]


def test_full_disk_keeps_every_committed_message_readable(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: writes are cut short, then fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    bag = LiveBag(tmp_path / "bag", [joint_states_topic()], NO_RESERVE)
    committed = 0
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
        with pytest.raises(RecordingError, match="cannot be written"):
            for round_ in range(100):
                fill(bag, 10, start=1 + 10 * round_)
                bag.commit()
                committed += 10
        with rosbag2.Reader(bag.file) as reader:
            assert len(list(reader.messages())) == committed > 0
        with pytest.raises(RecordingError, match="cannot be written"):
            bag.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    with rosbag2.Reader(bag.file) as reader:
        assert len(list(reader.messages())) == committed
    assert custom_data(tmp_path / "bag") == {FINALISED_KEY: "false"}


def test_existing_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with pytest.raises(RecordingError, match="exists already"):
        LiveBag(tmp_path / "bag", [joint_states_topic()], NO_RESERVE)


def test_path_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(RecordingError, match="cannot be written"):
        LiveBag("/proc/recordings/bag", [joint_states_topic()], NO_RESERVE)


def test_little_free_space_is_refused(tmp_path: Path) -> None:
    status = os.statvfs(tmp_path)
    needed = status.f_bavail * status.f_frsize // 2**20 + 1024
    with pytest.raises(RecordingError, match="MiB free"):
        LiveBag(tmp_path / "bag", [joint_states_topic()], BagWritingOptions(min_free_mb=needed))
    assert not (tmp_path / "bag").exists()


def test_large_message_is_refused(tmp_path: Path) -> None:
    bag = LiveBag(tmp_path / "bag", [joint_states_topic()], BagWritingOptions(0, max_message_mb=1))
    with pytest.raises(RecordingError, match="above 1 MiB"):
        bag.write(0, 1, bytes(2**20 + 1))
    bag.close()
    assert bag.messages == 0
