"""Free base in bags: odometry, pose, imu and plates, at rates of their own, and tares."""

from dataclasses import replace

import numpy as np
import pytest

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.core.errors import ConfigurationError, RecordingError
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.files.bag_backends import BagMessage, recorded_messages, recorded_topics, write_bag
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.loading import read_npz, write_npz
from inertid_ros.data.messages import WRENCH_STAMPED, encode, tare_topic
from inertid_ros.data.recording import Recording

N = 60
WRENCHES = {side: WrenchTopic(f"/wrench/{side}") for side in ("left", "right")}
TOPICS = RecordingTopics(odometry="/odometry", imu="/imu", wrenches=WRENCHES)


def synthetic(**changes) -> Recording:
    rng = np.random.default_rng(0)
    quaternions = rng.normal(size=(N, 4)) * 0.05 + [0.1, 0.2, 0.3, 0.9]
    pose = np.hstack([rng.normal(size=(N, 3)), quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)])
    fields = {"joint_names": ("a", "b"), "time": np.arange(N) * 0.01, "position": rng.normal(size=(N, 2)),
        "effort": rng.normal(size=(N, 2)), "velocity": rng.normal(size=(N, 2)), "base_pose": pose,
        "base_twist": rng.normal(size=(N, 6)), "imu": rng.normal(size=(N, 6)),
        "wrenches": {"left": rng.normal(size=(N, 6)), "right": rng.normal(size=(N, 6))}}
    return Recording(**{**fields, **changes})


def assert_same(one: Recording, other: Recording) -> None:
    for channel in ("time", "position", "effort", "velocity", "base_pose", "base_twist", "imu"):
        np.testing.assert_allclose(getattr(one, channel), getattr(other, channel), atol=1e-9, err_msg=channel)
    for frame in one.wrenches:
        np.testing.assert_allclose(one.wrenches[frame], other.wrenches[frame], atol=1e-12)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_every_channel_comes_back(tmp_path, storage):
    recording = synthetic()
    assert_same(read_bag(write_bag(recording, tmp_path / "bag", storage), TOPICS), recording)
    assert_same(read_npz(write_npz(recording, tmp_path / "run.npz")), recording)


def test_pose_alone_comes_back_and_joint_torques_may_be_missing(tmp_path):
    recording = synthetic(base_twist=None, effort=np.full((N, 2), np.nan))
    bag = write_bag(recording, tmp_path / "bag")
    topics = RecordingTopics(pose="/pose", imu="/imu", wrenches=WRENCHES)
    again = read_bag(bag, topics)
    np.testing.assert_allclose(again.base_pose, recording.base_pose, atol=1e-12)
    assert again.base_twist is None and np.isnan(again.effort).all()
    assert np.isnan(read_npz(write_npz(recording, tmp_path / "run.npz")).effort).all()
    with pytest.raises(RecordingError, match="has no topic /odometry.*set topics.odometry"):
        read_bag(bag, TOPICS)
    with pytest.raises(ConfigurationError, match="odometry and pose both give"):
        RecordingTopics(odometry="/odometry", pose="/pose")


def test_a_tare_in_the_bag_is_subtracted(tmp_path, backend):
    zero, recording, topic = np.arange(1.0, 7.0), synthetic(), tare_topic("/wrench/left")
    tare = encode(WRENCH_STAMPED, 10**9, {"wrench": zero}, "left")
    with backend.create(tmp_path / "bag", "mcap", {topic: WRENCH_STAMPED, **recorded_topics(recording)}) as write:
        write(BagMessage(topic, 10**18, tare))
        for message in recorded_messages(recording, 10**18):
            write(message)
    again = read_bag(tmp_path / "bag", TOPICS)
    np.testing.assert_allclose(again.wrenches["left"], recording.wrenches["left"] - zero)
    np.testing.assert_allclose(again.wrenches["right"], recording.wrenches["right"])


def assembled(plate_ns, pose_ns):
    """Joint states every 10 ms; the plate's force and the base's height are both their time in ms."""
    assembler = RecordingAssembler("run", channels=("wrench/plate", "base_pose"), max_gap_s=0.03)
    for stamp in range(0, 1_000_000_000, 10_000_000):
        assembler.add_joint_states(("a",), stamp + 1, [1.0], [0.0], [2.0])
    for stamp in plate_ns:
        assembler.add("wrench/plate", stamp, [0, 0, stamp * 1e-6, 0, 0, 0])
    for index, stamp in enumerate(pose_ns):
        sign = -1.0 if index % 3 == 0 else 1.0
        assembler.add("base_pose", stamp, [0, 0, stamp * 1e-6, 0, 0, 0, sign])
    return assembler


def test_rates_of_their_own_are_aligned_by_stamps_and_signs_do_not_matter():
    plate, pose = range(0, 1_010_000_000, 1_700_000), range(0, 1_030_000_000, 23_000_000)
    recording = assembled(plate, pose).recording()
    expected = (np.arange(100) * 10_000_000 + 1) * 1e-6
    np.testing.assert_allclose(recording.wrenches["plate"][:, 2], expected, rtol=1e-9)
    np.testing.assert_allclose(recording.base_pose[:, 2], expected, rtol=1e-9)
    np.testing.assert_allclose(np.abs(recording.base_pose[:, 6]), 1.0)


def test_a_plate_that_is_silent_for_a_while_is_never_guessed():
    plate = [stamp for stamp in range(0, 1_010_000_000, 5_000_000) if not 300_000_000 < stamp < 600_000_000]
    assembler = assembled(plate, range(0, 1_030_000_000, 20_000_000))
    recording = assembler.recording()
    assert len(recording) < 76 and not ((recording.time > 0.34) & (recording.time < 0.56)).any()
    assert any("without wrench/plate" in notice for notice in recording.notices)
    with pytest.raises(RecordingError, match="no sample of wrench/plate within 0.03 s"):
        assembled(range(10**12, 10**12 + 10**9, 5_000_000), range(0, 1_030_000_000, 20_000_000)).recording()


def test_a_late_clock_of_the_base_is_named():
    with pytest.raises(RecordingError, match="base_pose: time goes back"):
        assembled(range(0, 10**9, 10**7), [5, 4])
    assert replace(synthetic(), imu=None).imu is None
