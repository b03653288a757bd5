"""Which library reads and writes bags, and that it makes no difference."""

import sys

import numpy as np
import pytest

from inertid_ros.core.errors import OutputError, RecordingError
from inertid_ros.data.files.bag_backends import bag_backend, recorded_messages, recorded_topics, typestore, write_bag
from inertid_ros.data.files.bag_opening import open_playback
from inertid_ros.data.messages import layout_of
from inertid_ros.data.recording import Recording


@pytest.fixture(scope="module")
def recording():
    rng, count = np.random.default_rng(0), 30
    joints = {key: rng.normal(size=(count, 2)) for key in ("position", "effort", "velocity")}
    base = {"base_pose": rng.normal(size=(count, 7)), "base_twist": rng.normal(size=(count, 6))}
    wrenches = {"tool": rng.normal(size=(count, 6))}
    return Recording(("a", "b"), np.arange(count) * 0.01, **joints, **base, imu=base["base_twist"], wrenches=wrenches)


def test_rosbag2_py_comes_first_where_ros_provides_it():
    reason = (
        "rosbag2_py is not installed: it comes with ROS 2 and not from PyPI; bag tests run with rosbags and with a"
        " stand-in for its interface only")
    pytest.importorskip("rosbag2_py", reason=reason)
    from inertid_ros.data.files.bag_backends import Rosbag2Backend

    assert isinstance(bag_backend(), Rosbag2Backend)


def test_what_a_library_cannot_write_is_one_line_and_leaves_nothing(backend, recording, tmp_path, monkeypatch):
    def fails(*_):
        raise RuntimeError("No storage could be initialized\nfrom the inputs.")

    monkeypatch.setattr(type(backend), "create", fails)
    with pytest.raises(OutputError, match=r"bag: cannot be written \(No storage could be initialized\)"):
        write_bag(recording, tmp_path / "bag")
    assert not list(tmp_path.iterdir())


def test_rosbags_is_used_where_there_is_no_rosbag2_py(monkeypatch):
    pytest.importorskip("rosbags", reason="rosbags is not installed: pip install rosbags")
    from inertid_ros.data.files.bag_backends import RosbagsBackend

    monkeypatch.setitem(sys.modules, "rosbag2_py", None)
    assert isinstance(bag_backend(), RosbagsBackend)


def test_without_a_library_the_error_says_what_to_install(monkeypatch, recording, tmp_path):
    for name in ("rosbag2_py", "rosbags"):
        monkeypatch.setitem(sys.modules, name, None)
    for use in (lambda: write_bag(recording, tmp_path / "bag"), lambda: open_playback(tmp_path)):
        with pytest.raises(RecordingError, match="^bags need rosbag2_py, .* or the Python package rosbags; install"):
            use()


def numbers(content):
    """All numbers of a message that a library decoded, in the order of its fields."""
    if isinstance(content, str):
        return []
    if hasattr(content, "__dataclass_fields__"):
        return [number for name in content.__dataclass_fields__ for number in numbers(getattr(content, name))]
    return np.ravel(content).tolist() if np.asarray(content).dtype.kind in "fiu" else []


def test_a_library_decodes_what_is_written(recording):
    """Also what is decoded here, from both byte orders."""
    pytest.importorskip("rosbags", reason="rosbags is not installed: pip install rosbags")
    types, store = recorded_topics(recording), typestore()
    for topic, time_ns, data in recorded_messages(recording, 10**18 + 7):
        message = store.deserialize_cdr(data, types[topic])
        assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == time_ns
        assert bytes(store.serialize_cdr(message, types[topic])) == data
        for written in (data, bytes(store.serialize_cdr(message, types[topic], little_endian=False))):
            layout, row = layout_of(written, types[topic]), np.frombuffer(written, dtype=np.uint8)[None]
            assert layout.stamps(row)[0] == time_ns
            assert layout.source == (tuple(message.name) if topic == "/joint_states" else (message.header.frame_id,))
            decoded = np.hstack([*layout.values(row).values()])[0]
            assert set(decoded.tolist()) <= set(numbers(message))


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_playback_gives_the_chosen_messages_in_the_order_of_their_times(backend, recording, storage, tmp_path):
    bag = write_bag(recording, tmp_path / "bag", storage)
    playback = open_playback(bag, ("/imu", "/joint_states"))
    assert playback.types == {"/joint_states": "sensor_msgs/msg/JointState", "/imu": "sensor_msgs/msg/Imu"}
    assert (playback.start_ns, playback.end_ns) == (10**18, 10**18 + 290_000_001)
    played = list(playback.messages(playback.types))
    written = (message for message in recorded_messages(recording, 10**18) if message.topic in playback.types)
    assert sorted(played) == sorted(written)
    assert [time_ns for _, time_ns, *_ in played] == sorted(time_ns for _, time_ns, *_ in played)
    with pytest.raises(RecordingError, match="has no topic /other; it has /imu"):
        open_playback(bag, ("/other",))
