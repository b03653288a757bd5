"""rosbag2 in and out, whole, unclosed and damaged."""

import os
import shutil
import sys

import numpy as np
import pytest
from support.recordings.message_bag import MessageBag as Bag

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.core.errors import OutputError, RecordingError
from inertid_ros.core.outputs import MANIFEST
from inertid_ros.data.files.bag_backends import STORAGE_SUFFIXES, write_bag
from inertid_ros.data.files.bag_opening import bag_topics
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.loading import load_recording, read_npz, write_npz
from inertid_ros.data.messages import JOINT_STATE
from inertid_ros.data.recording import Recording
from inertid_ros.robot.recorded_joints import RecordedJoints

STORAGES = ("mcap", "sqlite3")
SUFFIX = {"mcap": ".mcap", "sqlite3": ".db3"}


def _recording(count=200, joints=3, wrenches=("tool",), velocity=True):
    rng = np.random.default_rng(0)
    channels = {key: rng.normal(size=(count, joints)) for key in ("position", "effort", "velocity")}
    if not velocity:
        channels["velocity"] = None
    stamps = np.cumsum(rng.integers(3_000_000, 7_000_000, count))
    time = (stamps - stamps[0]) * 1e-9
    names = tuple(f"joint_{k}" for k in range(joints))
    return Recording(names, time, **channels, wrenches={frame: rng.normal(size=(count, 6)) for frame in wrenches})


def file_of(bag):
    """The file of messages in a bag directory."""
    (file,) = (file for file in bag.iterdir() if file.suffix in STORAGE_SUFFIXES)
    return file


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.usefixtures("backend")
def test_what_is_written_comes_back_bit_for_bit(storage, velocity, tmp_path):
    recording = _recording(velocity=velocity)
    bag = write_bag(recording, tmp_path / "bag", storage)
    assert file_of(bag).suffix == SUFFIX[storage]
    assert sorted(os.listdir(bag)) == sorted([file_of(bag).name, "metadata.yaml", MANIFEST])
    assert os.listdir(tmp_path) == ["bag"]
    topics = RecordingTopics(wrenches={"tool": WrenchTopic("/wrench/tool")})
    for path in (bag, file_of(bag)):
        back = read_bag(path, topics)
        assert back.joint_names == recording.joint_names and back.notices == ()
        assert np.array_equal(back.time, recording.time)
        assert np.array_equal(back.position, recording.position)
        assert np.array_equal(back.effort, recording.effort)
        assert np.array_equal(back.wrenches["tool"], recording.wrenches["tool"])
        assert (back.velocity is None) != velocity
    assert bag_topics(bag) == {
        "/joint_states": ("sensor_msgs/msg/JointState", 200), "/wrench/tool": ("geometry_msgs/msg/WrenchStamped", 200)}


@pytest.mark.parametrize("run", [1, 2, 3])
def test_recorded_bags_equal_their_npz(datasets, run):
    bag, npz = (load_recording(datasets / "kuka_lwr4" / name) for name in (f"run{run}_bag", f"run{run}.npz"))
    assert bag.joint_names == npz.joint_names
    assert np.array_equal(bag.position, npz.position) and np.array_equal(bag.effort, npz.effort)
    assert np.abs(bag.time - npz.time).max() < 1e-9


def test_time_is_the_header_stamp_and_not_the_arrival(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for k in range(10):
            bag.joint_state(10**18 + k * 10**7, "ab", [k, 0], [0, 0], [0, 0], received=2 * 10**18 + k * k * 10**6)
    assert np.array_equal(read_bag(tmp_path / "bag").time, np.arange(10) * 10**7 * 1e-9)


def test_frames_come_from_the_messages_or_from_the_option(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for k in range(20):
            bag.joint_state(k * 10**7 + 1, "ab", [k, 0], [0, 0], [0, 0])
            bag.wrench(k * 10**7 + 1, "left_sole", (k, 0, 0), "/left")
            bag.wrench(k * 10**7 + 1, "", (0, k, 0), "/right")
    wrenches = {"left": WrenchTopic("/left"), "right": WrenchTopic("/right", "right_sole")}
    recording = read_bag(tmp_path / "bag", RecordingTopics(wrenches=wrenches))
    assert set(recording.wrenches) == {"left_sole", "right_sole"}
    assert np.array_equal(recording.wrenches["right_sole"][:, 1], np.arange(20))


def test_an_arm_and_its_gripper_may_share_a_topic(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for k in range(20):
            bag.joint_state(k * 10**7 + 1, ("finger",), [0], [], [])
            bag.joint_state(k * 10**7 + 2, ("a", "b", "brake"), [k, 0, 0], [], [1, 1, 0])
    with pytest.raises(RecordingError, match="joint state 1: effort is empty"):
        load_recording(tmp_path / "bag")
    chosen = load_recording(tmp_path / "bag", RecordingTopics(joints=("a", "b")))
    hinted = load_recording(tmp_path / "bag", joints=RecordedJoints(("b", "a", "c")))
    assert chosen.joint_names == ("a", "b") and hinted.joint_names == ("a", "b", "brake")
    assert np.array_equal(chosen.position, hinted.position[:, :2])


def test_two_arms_that_share_a_topic_are_merged(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for k in range(50):
            bag.joint_state(k * 10**7 + 1, ("left1", "left2"), [k, -k], [0, 0], [1, 2])
            bag.joint_state(k * 10**7 + 4 * 10**6, ("right1",), [k + 0.4], [0], [3])
            bag.joint_state(k * 10**7 + 5 * 10**6, ("finger",), [0], [0], [0])
    recording = load_recording(tmp_path / "bag", joints=RecordedJoints(("left1", "left2", "right1")))
    assert recording.joint_names == ("left1", "left2", "right1")
    np.testing.assert_allclose(recording.position[:, 2], recording.position[:, 0], atol=1e-6)
    alone = load_recording(tmp_path / "bag", joints=RecordedJoints(("right1",)))
    assert alone.joint_names == ("right1",) and len(alone) == 50


@pytest.mark.parametrize("other", [0, 5, 2 * 10**18])
def test_a_few_stamps_of_another_clock_are_left_out_and_counted(tmp_path, other):
    with Bag(tmp_path / "bag") as bag:
        for k in range(200):
            stamp = other + k if k in (70, 140) else 10**18 + k * 10**7
            bag.joint_state(stamp, "ab", [k, 0], [0, 0], [1, 1], received=10**18 + k * 10**7)
    recording = load_recording(tmp_path / "bag", joints=RecordedJoints(("a", "b")))
    assert len(recording) == 198 and recording.duration == pytest.approx(1.99)
    assert (recording.repairs.elsewhere, recording.repairs.total) == (2, 200)


def test_many_stamps_of_another_clock_are_refused(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for k in range(200):
            stamp = 10**18 + (k % 20) * 10**7
            bag.joint_state(stamp, "ab", [k, 0], [0, 0], [1, 1], received=10**18 + k * 10**7)
    with pytest.raises(RecordingError, match="time goes back or repeats"):
        load_recording(tmp_path / "bag", joints=RecordedJoints(("a", "b")))


def test_a_bag_of_another_robot_still_says_what_joints_it_has(tmp_path):
    recording = _recording(wrenches=())
    bag = write_bag(recording, tmp_path / "bag")
    assert load_recording(bag, joints=RecordedJoints(("x", "y"))).joint_names == recording.joint_names


def test_other_topics_are_not_even_read(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        for k in range(10):
            bag.joint_state(k * 10**7 + 1, "ab", [k, 0], [0, 0], [0, 0], topic="/arm/joint_states")
            bag.raw("/camera", "std_msgs/msg/String", k * 10**7 + 1, b"not a string at all")
    assert len(read_bag(tmp_path / "bag", RecordingTopics(joint_states="/arm/joint_states"))) == 10
    with pytest.raises(RecordingError) as caught:
        read_bag(tmp_path / "bag")
    text = str(caught.value)
    assert "has no topic /joint_states; it has /arm/joint_states (JointState), /camera (String)" in text
    assert "set topics.joint_states" in text and "\n" not in text


def test_a_topic_of_another_type_is_refused(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        bag.text(1, "/joint_states")
    with pytest.raises(RecordingError, match="topic /joint_states is std_msgs/msg/String, expected sensor_msgs"):
        read_bag(tmp_path / "bag")


@pytest.mark.parametrize(
    "messages, text",
    [([], "has no topic /joint_states; it has /log"), ([(1, "ab", [1, 2], [], [])], "joint state 1: effort is empty"),
        ([(1, "ab", [1, 2], [], [1, 2]), (2, "ab", [1], [], [1, 2])], "joint state 2: position has 1 values for 2"),
        ([(2, "ab", [1, 2], [], [1, 2]), (1, "ab", [1, 2], [], [1, 2])], "joint state 2: time goes back or repeats"),
        ([(1, "ab", [1, 2], [], [1, 2])], "holds 1 samples; record at least")],
)
@pytest.mark.parametrize("storage", STORAGES)
def test_bad_messages_are_one_line_that_names_the_bag(messages, text, storage, tmp_path):
    path = tmp_path / "bag"
    with Bag(path, storage) as bag:
        bag.text(1)
        for k, message in enumerate(messages):
            bag.joint_state(*message, received=k + 1)
    with pytest.raises(RecordingError, match=text) as caught:
        read_bag(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("storage", STORAGES)
def test_an_empty_bag_is_refused(storage, tmp_path):
    with Bag(tmp_path / "bag", storage):
        pass
    with pytest.raises(RecordingError, match="has no topic /joint_states; it has no topics"):
        read_bag(tmp_path / "bag")


def test_a_message_that_is_not_cdr_is_named(tmp_path):
    with Bag(tmp_path / "bag") as bag:
        bag.joint_state(1, "ab", [1, 2], [], [1, 2])
        for data in (b"", b"\x00\x01\x00\x00", b"\x00\x01\x00\x00" + b"\xff" * 40):
            bag.raw("/joint_states", "sensor_msgs/msg/JointState", 2, data)
    with pytest.raises(RecordingError, match="message 2 on /joint_states: is not a valid sensor_msgs/msg/JointState"):
        read_bag(tmp_path / "bag")


def test_what_is_no_bag_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "only_metadata").mkdir()
    (tmp_path / "only_metadata" / "metadata.yaml").write_text("rosbag2_bagfile_information: {}")
    for name in ("absent", "empty", "only_metadata"):
        with pytest.raises(RecordingError, match=name) as caught:
            read_bag(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_an_existing_path_is_not_overwritten(tmp_path):
    write_bag(_recording(), tmp_path / "bag")
    with pytest.raises(OutputError, match="bag: exists and is not empty; choose another path"):
        write_bag(_recording(), tmp_path / "bag")


def test_a_bag_without_metadata_is_read_and_marked(tmp_path):
    recording = _recording(wrenches=())
    for storage in STORAGES:
        bag = write_bag(recording, tmp_path / storage, storage)
        (bag / "metadata.yaml").unlink()
        back = read_bag(bag)
        assert np.array_equal(back.time, recording.time)
        assert back.notices == ("bag was not closed: metadata.yaml is missing",)


def test_split_bags_are_joined_in_the_order_of_their_numbers(tmp_path):
    whole = _recording(120, wrenches=())
    folder = tmp_path / "split"
    folder.mkdir()
    for part in range(12):
        rows = slice(10 * part, 10 * part + 10)
        piece = Recording(whole.joint_names, whole.time[rows], whole.position[rows], whole.effort[rows])
        start = 10**18 + round(whole.time[rows][0] * 1e9)
        bag = write_bag(piece, tmp_path / f"part_{part}", start_ns=start)
        shutil.move(file_of(bag), folder / f"split_{part}.mcap")
    back = read_bag(folder)
    assert np.array_equal(back.time, whole.time) and np.array_equal(back.position, whole.position)


def test_an_mcap_cut_at_any_byte_gives_what_was_written_or_a_clean_error(tmp_path):
    recording = _recording(40, 2, ())
    bag = write_bag(recording, tmp_path / "bag")
    file = file_of(bag)
    whole = file.read_bytes()
    recovered = []
    for length in [*range(0, 60), *range(60, len(whole), 97), len(whole) - 1]:
        file.write_bytes(whole[:length])
        for path in (bag, file):
            try:
                back = read_bag(path)
            except RecordingError as error:
                assert str(error).startswith(str(bag)) and "\n" not in str(error)
                continue
            assert "recovered" in back.notices[0]
            assert np.array_equal(back.position, recording.position[: len(back)])
            recovered.append(len(back))
    assert max(recovered) == 40 and min(recovered) >= 2


@pytest.mark.parametrize("storage", STORAGES)
def test_damaged_bytes_never_break_the_reader(storage, tmp_path):
    bag = write_bag(_recording(40, 2, ()), tmp_path / "bag", storage)
    file = file_of(bag)
    whole = file.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(80):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=3):
            damaged[place] = rng.integers(256)
        file.write_bytes(damaged)
        try:
            read_bag(bag)
        except RecordingError as error:
            assert "\n" not in str(error)


def test_a_database_that_is_cut_is_a_clean_error(tmp_path):
    bag = write_bag(_recording(400, 2, ()), tmp_path / "bag", "sqlite3")
    file = file_of(bag)
    whole = file.read_bytes()
    for length in range(0, len(whole) - 1, len(whole) // 40):
        file.write_bytes(whole[:length])
        with pytest.raises(RecordingError, match="bag") as caught:
            read_bag(bag)
        assert "\n" not in str(caught.value)


@pytest.fixture
def compressed_bag(tmp_path):
    """Bag whose chunks are compressed, of 8000 messages; rosbags writes it, whatever reads it."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="compressed bags are made with rosbags")
    from inertid_ros.data.files.bag_backends import typestore

    def make(compression):
        writer = rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=rosbag2.StoragePlugin.MCAP)
        writer.set_compression(rosbag2.CompressionMode.STORAGE, rosbag2.CompressionFormat.ZSTD)
        bag = Bag(tmp_path / "bag")
        rng = np.random.default_rng(2)
        for k in range(8000):
            bag.joint_state(k * 10**6 + 1, "abcdefg", *rng.normal(size=(3, 7)))
        with writer:
            if compression == "lz4":
                from lz4.frame import compress

                writer.storage.compression, writer.storage.compressor = "lz4", compress
            connection = writer.add_connection("/joint_states", JOINT_STATE, typestore=typestore())
            for message in bag.messages:
                writer.write(connection, message.time_ns, message.data)
        return file_of(tmp_path / "bag")

    return make


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_chunks_that_are_cut_are_recovered(compression, compressed_bag):
    file = compressed_bag(compression)
    assert len(read_bag(file)) == 8000
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    back = read_bag(file)
    assert 2000 < len(back) < 6000 and "recovered" in back.notices[0]


@pytest.mark.parametrize(("compression", "package"), [("lz4", "lz4"), ("zstd", "backports.zstd")])
def test_without_the_package_that_decompresses_recovery_names_it(compression, package, compressed_bag, monkeypatch):
    file = compressed_bag(compression)
    file.write_bytes(file.read_bytes()[:-100])
    for module in ("lz4.frame", "compression.zstd", "backports.zstd", "backports", "compression"):
        monkeypatch.setitem(sys.modules, module, None)
    text = f"{compression} chunks needs the Python package {package}; install"
    with pytest.raises(RecordingError, match=text) as caught:
        read_bag(file)
    assert str(caught.value).startswith(str(file)) and "\n" not in str(caught.value)


def test_formats_are_recognised_by_content(tmp_path):
    recording = _recording(wrenches=())
    bag = write_bag(recording, tmp_path / "bag")
    shutil.copy(file_of(bag), tmp_path / "renamed.dat")
    assert np.array_equal(load_recording(tmp_path / "renamed.dat").time, recording.time)
    write_npz(recording, tmp_path / "also.mcap")
    assert np.array_equal(load_recording(tmp_path / "also.mcap").time, read_npz(tmp_path / "also.mcap").time)


@pytest.mark.parametrize(
    "content, text",
    [(b"", "is empty; copy or download it again, and give an .npz, .csv, .parquet"),
        (b"hello", "is not a recording; give an .npz, .csv, .parquet"), (b"<robot/>", "is not a recording"),
        (b"\x89MCAP0\r\n", "cannot be read as a bag"), (b"SQLite format 3\x00", "cannot be read as a bag"),
        (b"PK\x03\x04", "cannot be read as npz"), (None, "no such file; give an .npz, .csv, .parquet")],
)
def test_wrong_files_are_one_line_that_says_what_is_accepted(content, text, tmp_path):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecordingError, match=text) as caught:
        load_recording(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
