"""Bags give what their messages hold, to the bit."""

import struct
import tempfile
import zlib
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rosbags import rosbag2
from rosbags.typesys import Stores, get_typestore

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.core.errors import RecordingError
from inertid_ros.data import messages as messages_module
from inertid_ros.data.assembly import JointsError, RecordingAssembler
from inertid_ros.data.files import mcap_format
from inertid_ros.data.files.bag_opening import bag_topics
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.messages import IMU, JOINT_STATE, ODOMETRY, WRENCH_STAMPED

STORE = get_typestore(Stores.ROS2_JAZZY)
MCAP, SQLITE = rosbag2.StoragePlugin.MCAP, rosbag2.StoragePlugin.SQLITE3
COMPRESSORS = {"mcap lz4": lz4.frame.compress, "mcap chunks": bytes}
STORAGES = {"mcap": (MCAP, None), "mcap zstd": (MCAP, rosbag2.CompressionFormat.ZSTD), "sqlite3": (SQLITE, None),
    **dict.fromkeys(COMPRESSORS, (MCAP, None))}
PER_CHUNK = 50
MS = 1_000_000
START = 10**18


def make(message_type, **fields):
    return STORE.types[message_type](**fields)


def header(stamp, frame):
    moment = make("builtin_interfaces/msg/Time", sec=stamp // 10**9, nanosec=stamp % 10**9)
    return make("std_msgs/msg/Header", stamp=moment, frame_id=frame)


def vector(values):
    return make("geometry_msgs/msg/Vector3", x=float(values[0]), y=float(values[1]), z=float(values[2]))


def joint_state(rng, stamp, names, velocity=True, frame=""):
    values = rng.normal(size=(3, len(names)))
    velocities = values[1] if velocity else np.zeros(0)
    return make(JOINT_STATE, header=header(stamp, frame), name=list(names), position=values[0], velocity=velocities,
        effort=values[2])


def wrench(rng, stamp, frame):
    inner = make("geometry_msgs/msg/Wrench", force=vector(rng.normal(size=3)), torque=vector(rng.normal(size=3)))
    return make(WRENCH_STAMPED, header=header(stamp, frame), wrench=inner)


def imu(rng, stamp):
    rotation = make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0)
    nine = np.zeros(9)
    return make(IMU, header=header(stamp, "imu"), orientation=rotation, orientation_covariance=nine,
        angular_velocity=vector(rng.normal(size=3)), angular_velocity_covariance=nine,
        linear_acceleration=vector(rng.normal(size=3)), linear_acceleration_covariance=nine)


def odometry(rng, stamp):
    position = make("geometry_msgs/msg/Point", x=rng.normal(), y=rng.normal(), z=rng.normal())
    q = rng.normal(size=4)
    rotation = make("geometry_msgs/msg/Quaternion", **dict(zip("xyzw", map(float, q / np.linalg.norm(q)), strict=True)))
    pose = make("geometry_msgs/msg/Pose", position=position, orientation=rotation)
    twist = make("geometry_msgs/msg/Twist", linear=vector(rng.normal(size=3)), angular=vector(rng.normal(size=3)))
    covariance = np.zeros(36)
    return make(ODOMETRY, header=header(stamp, "odom"), child_frame_id="base",
        pose=make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=covariance),
        twist=make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=covariance))


def write(path, storage, messages):
    """Messages ``(topic, time, message)``, by the library's own writer; what it cannot write, in chunks."""
    if storage in COMPRESSORS:
        write_chunks(path, storage, messages)
        return
    plugin, compression = STORAGES[storage]
    writer = rosbag2.Writer(path, version=9, storage_plugin=plugin)
    if compression is not None:
        writer.set_compression(rosbag2.CompressionMode.STORAGE, compression)
    with writer:
        connections = {}
        for topic, time, message in messages:
            message_type = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, message_type, typestore=STORE)
            writer.write(connections[topic], time, bytes(STORE.serialize_cdr(message, message_type)))


def write_chunks(path, storage, messages):
    """A bare file without an index, its chunks compressed, with checksums."""
    types = {topic: message.__msgtype__ for topic, _, message in messages}
    topics = [mcap_format.Topic(topic, message_type, "") for topic, message_type in types.items()]
    records = [
        mcap_format.message(list(types).index(topic), k, time, bytes(STORE.serialize_cdr(message, types[topic])))
        for k, (topic, time, message) in enumerate(messages)
    ]
    content = mcap_format.header()
    for begin in range(0, len(records), PER_CHUNK):
        times = [time for _, time, _ in messages[begin : begin + PER_CHUNK]]
        inside = b"".join([mcap_format.schemas_and_channels(topics), *records[begin : begin + PER_CHUNK]])
        packed, name = COMPRESSORS[storage](inside), b"lz4" if "lz4" in storage else b""
        head = struct.pack("<QQQII", min(times), max(times), len(inside), zlib.crc32(inside), len(name)) + name
        chunk = head + struct.pack("<Q", len(packed)) + packed
        content += struct.pack("<BQ", mcap_format.CHUNK, len(chunk)) + chunk
    path.with_suffix(".mcap").write_bytes(content + mcap_format.end(len(content)))


def bag_at(path):
    """The directory, or the bare file, that was written at a path."""
    return path if path.exists() else path.with_suffix(".mcap")


def expected(messages, topics=None, joints=(), stamps="header"):
    """The recording of message objects, taken one by one in the order of their times."""
    topics = topics or RecordingTopics()
    channels = ["base_pose", "base_twist"] * bool(topics.odometry) + ["imu"] * bool(topics.imu)
    assembler = RecordingAssembler("bag", topics.joints, channels, topics.max_wrench_gap_s, joints)
    for _, time, message in messages:
        stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec if stamps == "header" else time
        match message.__msgtype__:
            case messages_module.JOINT_STATE:
                assembler.add_joint_states(message.name, stamp, message.position, message.velocity, message.effort)
            case messages_module.WRENCH_STAMPED:
                values = [*numbers(message.wrench.force), *numbers(message.wrench.torque)]
                assembler.add(f"wrench/{message.header.frame_id}", stamp, values)
            case messages_module.IMU:
                values = [*numbers(message.linear_acceleration), *numbers(message.angular_velocity)]
                assembler.add("imu", stamp, values)
            case messages_module.ODOMETRY:
                pose, twist = message.pose.pose, message.twist.twist
                assembler.add("base_pose", stamp, [*numbers(pose.position), *numbers(pose.orientation, "xyzw")])
                assembler.add("base_twist", stamp, [*numbers(twist.linear), *numbers(twist.angular)])
    return assembler.recording()


def numbers(vector, axes="xyz"):
    return [getattr(vector, axis) for axis in axes]


def check_equal(found, true):
    assert found.joint_names == true.joint_names and found.notices == true.notices
    for name in ("time", "position", "velocity", "effort", "base_pose", "base_twist", "imu"):
        np.testing.assert_array_equal(getattr(found, name), getattr(true, name))
    assert set(found.wrenches) == set(true.wrenches)
    for frame, values in true.wrenches.items():
        np.testing.assert_array_equal(found.wrenches[frame], values)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("stamps", ["header", "arrival"])
def test_states_wrenches_and_base_are_the_same_to_the_bit(storage, stamps, tmp_path):
    rng, messages = np.random.default_rng(1), []
    for k in range(300):
        time = START + 2 * MS * k
        messages.append(("/joint_states", time + 5000, joint_state(rng, time, "abc", frame="x" * (k > 150))))
        messages.append(("/ft", time + 7000, wrench(rng, time + 3000, "tool")))
        if k % 3 == 0:
            messages.append(("/imu", time + 8000, imu(rng, time + 4000)))
            messages.append(("/odom", time + 9000, odometry(rng, time + 5000)))
    write(tmp_path / "bag", storage, messages)
    topics = RecordingTopics(wrenches={"tool": WrenchTopic("/ft")}, imu="/imu", odometry="/odom")
    recording = read_bag(bag_at(tmp_path / "bag"), topics, stamps=stamps)
    check_equal(recording, expected(messages, topics, stamps=stamps))
    assert len(recording.time) > 250 and recording.base_pose is not None


publisher = st.tuples(
    st.sampled_from(["abc", "cab", "ab", "g", "abcd"]), st.booleans(), st.sampled_from(["", "base", "base_link"]))


@given(st.sampled_from(list(STORAGES)), st.lists(publisher, min_size=1, max_size=4), st.integers(0, 2**32 - 1),
    st.sampled_from([(), ("a", "b", "c"), ("b",)]), st.booleans())
@settings(max_examples=30, deadline=None)
def test_random_publishers_give_the_recording_of_their_messages(storage, publishers, seed, joints, one_by_turn):
    rng, messages = np.random.default_rng(seed), []
    count = int(rng.integers(3, 60))
    turn = np.arange(count) * len(publishers) // count if one_by_turn else rng.integers(0, len(publishers), count)
    stamps = START + np.cumsum(rng.integers(MS, 3 * MS, count))
    for k in range(count):
        names, velocity, frame = publishers[turn[k]]
        state = joint_state(rng, int(stamps[k]), names, velocity, frame)
        messages.append(("/joint_states", START + 2 * MS * k, state))
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "bag", storage, messages)
        try:
            found = read_bag(bag_at(Path(folder) / "bag"), joints=joints)
        except RecordingError:
            found = None
    try:
        true = expected(messages, joints=joints)
    except JointsError:  # of several publishers, which a bag merges
        assert found is None or len(found) >= 2
    except RecordingError:
        assert found is None or not set(found.joint_names) & set(joints)
    else:
        check_equal(found, true)


@given(st.sampled_from(list(STORAGES)), st.floats(0.0, 1.0), st.integers(0, 255), st.booleans())
@settings(max_examples=40, deadline=None)
def test_damaged_bags_are_read_or_refused_in_one_line(storage, place, byte, cut):
    rng = np.random.default_rng(0)
    states = [("/joint_states", START + MS * k, joint_state(rng, START + MS * k, "ab")) for k in range(60)]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "bag", storage, states)
        bag = bag_at(Path(folder) / "bag")
        (file,) = (file for file in [bag, *bag.glob("*")] if file.suffix in (".mcap", ".db3"))
        content = bytearray(file.read_bytes())
        at = int(place * (len(content) - 1))
        content[at] = byte
        file.write_bytes(content[: at + 1] if cut else content)
        try:
            assert len(read_bag(bag)) <= 60
        except RecordingError as error:
            assert "\n" not in str(error)


def test_messages_of_another_length_in_the_middle_are_taken_too(tmp_path):
    rng, states = np.random.default_rng(0), []
    for k in range(400):
        names = ("left", "right") if k % 2 else ("gripper_finger",)
        states.append(("/joint_states", START + MS * k, joint_state(rng, START + MS * k, names)))
    write(tmp_path / "bag", "mcap", states)
    recording = read_bag(tmp_path / "bag", joints=("left", "right"))
    check_equal(recording, expected(states, joints=("left", "right")))
    assert recording.joint_names == ("left", "right") and len(recording.time) == 200


def test_big_endian_messages_whose_order_in_the_file_is_not_that_of_their_times(tmp_path):
    rng = np.random.default_rng(0)
    stamps = [START + MS * k for k in range(50)]
    states = [("/joint_states", stamp, joint_state(rng, stamp, "ab")) for stamp in stamps]
    with rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=SQLITE) as writer:
        connection = writer.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        for k in [*range(20), 21, 20, *range(22, 50)]:
            _, stamp, state = states[k]
            writer.write(connection, stamp, bytes(STORE.serialize_cdr(state, JOINT_STATE, little_endian=False)))
    recording = read_bag(tmp_path / "bag")
    check_equal(recording, expected(states))
    assert recording.repairs.count == 0


@pytest.mark.usefixtures("backend")
def test_a_bag_that_is_compressed_as_a_whole_is_read_by_a_library(tmp_path):
    rng = np.random.default_rng(0)
    states = [("/joint_states", START + MS * k, joint_state(rng, START + MS * k, "ab")) for k in range(50)]
    writer = rosbag2.Writer(tmp_path / "bag", version=9, storage_plugin=MCAP)
    writer.set_compression(rosbag2.CompressionMode.MESSAGE, rosbag2.CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        for _, stamp, state in states:
            writer.write(connection, stamp, bytes(STORE.serialize_cdr(state, JOINT_STATE)))
    check_equal(read_bag(tmp_path / "bag"), expected(states))
    assert bag_topics(tmp_path / "bag") == {"/joint_states": (JOINT_STATE, 50)}
