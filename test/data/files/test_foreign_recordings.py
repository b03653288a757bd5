"""Recordings that somebody else made: stamps that crossed, repeat or are empty, joints of several publishers."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.message_bag import MessageBag

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.loading import load_recording, read_npz, write_npz
from inertid_ros.data.recording import StampRepairs, in_order
from inertid_ros.data.screening.stamp_checks import check_repairs
from inertid_ros.robot.model import load_model

START, MS = 10**18, 10**6
COUNT = 500


def _value(stamp):
    return np.sin(1e-9 * (stamp - START))


def _states(bag, stamps, names=("a", "b"), topic="/joint_states", arrivals=None):
    for k, stamp in enumerate(stamps):
        arrival = START + 10 * MS * k if arrivals is None else arrivals[k]
        value = _value(stamp if arrivals is None else arrival)
        rows = [[value * (1 + index) for index in range(len(names))]] * 3
        bag.joint_state(int(stamp), names, *rows, topic=topic, received=int(arrival))


def _regular():
    return START + 10 * MS * np.arange(COUNT)


def _crossed():
    """One stamp 0.3 ms before the one that came before it, and two messages whose arrival crossed."""
    stamps = _regular()
    stamps[100] = stamps[99] - 3 * MS // 10
    stamps[[300, 301]] = stamps[[301, 300]]
    return stamps, StampRepairs(2, 0, 0, COUNT)


def _repeated():
    stamps = _regular()
    stamps[200] = stamps[199]
    return stamps, StampRepairs(0, 1, 0, COUNT)


def _all_at_once():
    stamps, _ = _crossed()
    stamps[200] = stamps[199]
    stamps[[50, 400]] = 5, 2 * 10**18
    return stamps, StampRepairs(2, 1, 2, COUNT)


CASES = pytest.mark.parametrize("case", [_crossed, _repeated, _all_at_once])


@CASES
def test_stamps_out_of_order_are_put_in_order_and_counted(tmp_path, case):
    stamps, repairs = case()
    with MessageBag(tmp_path / "bag") as bag:
        _states(bag, stamps)
    recording = read_bag(tmp_path / "bag")
    assert replace(recording.repairs, arrival_jitter=0.0) == replace(repairs, arrival_jitter=0.0)
    assert len(recording) == COUNT - repairs.repeated - repairs.elsewhere
    np.testing.assert_allclose(recording.position[:, 0], np.sin(recording.time), atol=1e-9)
    causes = {finding.cause: finding.severity for finding in check_repairs(recording)}
    wanted = {"stamp_order"} | ({"mixed_clocks"} if repairs.elsewhere else set())
    assert causes == dict.fromkeys(wanted, Severity.NOTICE)


@CASES
def test_the_same_of_a_file_of_arrays(tmp_path, case):
    stamps, repairs = case()
    with MessageBag(tmp_path / "bag") as bag:
        _states(bag, _regular())
    path = write_npz(read_bag(tmp_path / "bag"), tmp_path / "own.npz")
    with np.load(path) as archive:
        content = {key: archive[key] for key in archive.files}
    time = (stamps - START) * 1e-9
    values = np.column_stack([np.sin(time), 2 * np.sin(time)])
    np.savez(path, **{**content, "time": time, "position": values, "effort": values})
    recording = read_npz(path)
    assert recording.repairs.count == repairs.count
    np.testing.assert_allclose(recording.position[:, 0], np.sin(recording.time), atol=1e-9)


def test_many_repeats_are_to_be_taken_with_care(tmp_path):
    """Joint states at 1 kHz, stamped by a simulated clock of 100 Hz."""
    stamps = START + 10 * MS * (np.arange(COUNT) // 10)
    with MessageBag(tmp_path / "bag") as bag:
        _states(bag, stamps)
    recording = read_bag(tmp_path / "bag")
    assert len(recording) == COUNT // 10 and recording.repairs.repeated == COUNT * 9 // 10
    assert [finding.severity for finding in check_repairs(recording)] == [Severity.CARE]


def test_wrenches_that_crossed_are_put_in_order_too(tmp_path):
    stamps, _ = _crossed()
    with MessageBag(tmp_path / "bag") as bag:
        for stamp, crossed in zip(_regular(), stamps, strict=True):
            bag.joint_state(int(stamp), ("a",), [0], [0], [0])
            bag.wrench(int(crossed), "tool", (_value(crossed), 0, 0), "/wrench", int(stamp))
    recording = read_bag(tmp_path / "bag", RecordingTopics(wrenches={"tool": WrenchTopic("/wrench", "tool")}))
    assert (recording.repairs.late, recording.repairs.total) == (2, 2 * COUNT)
    np.testing.assert_allclose(recording.wrenches["tool"][:, 0], np.sin(recording.time), atol=1e-4)


@pytest.mark.parametrize(("stamps", "text"),
    [(np.zeros(COUNT, int), "are zero"), (START + np.arange(COUNT) // (COUNT // 5), "hardly change")],
    ids=["zero", "frozen"])
def test_empty_stamps_are_told_and_times_of_arrival_taken(tmp_path, stamps, text):
    arrivals = _regular() + np.random.default_rng(0).integers(0, MS, COUNT)
    with MessageBag(tmp_path / "bag") as bag:
        _states(bag, stamps, arrivals=arrivals)
    with pytest.raises(RecordingError, match=f"stamps of joint states {text}.*prepare.stamps: arrival"):
        read_bag(tmp_path / "bag")
    recording = read_bag(tmp_path / "bag", stamps="arrival")
    np.testing.assert_array_equal(recording.time, (arrivals - arrivals[0]) * 1e-9)
    assert 0.02 < recording.repairs.arrival_jitter < 0.06  # uniform over a tenth of the period, twice
    (finding,) = check_repairs(recording)
    assert finding.cause == "arrival_times" and finding.severity is Severity.NOTICE


@pytest.mark.parametrize("topic", ["/joint_states", "/right/joint_states"])
def test_joints_of_two_publishers_are_merged(tmp_path, topic):
    """Three joints each, 4 ms apart, on one topic or two, whether or not the robot's joints are known."""
    left, right = (tuple(f"{side}{index}" for index in range(3)) for side in ("left", "right"))
    with MessageBag(tmp_path / "bag") as bag:
        for stamp in _regular():
            _states(bag, [stamp], left)
            _states(bag, [stamp + 4 * MS], right, topic)
    further = () if topic == "/joint_states" else (topic,)
    topics = RecordingTopics(further_joint_states=further)
    for joints in ((*right, *left), ()):
        recording = read_bag(tmp_path / "bag", topics, joints)
        assert recording.joint_names == (joints or (*left, *right)) and len(recording) == COUNT - 1
        start = 0.004 if joints else 0.01  # the first sample with one of the others before it
        expected = np.outer(np.sin(recording.time + start), [1, 2, 3, 1, 2, 3])
        np.testing.assert_allclose(recording.position, expected, atol=1e-4)
        np.testing.assert_allclose(recording.effort, expected, atol=1e-4)


def test_stamps_that_stay_in_order_are_left_alone():
    stamps = np.cumsum(np.random.default_rng(0).integers(1, 50, 1000))
    chosen, repairs = in_order(stamps)
    assert np.array_equal(chosen, np.arange(1000)) and repairs.count == 0


@pytest.mark.parametrize("seed", range(5))
def test_random_delays_below_a_few_periods_keep_every_sample(seed):
    """Three threads with a delay of their own publish in turn."""
    rng = np.random.default_rng(seed)
    stamps = 1000 * np.arange(2000) + rng.integers(0, 300, 2000)
    order = np.argsort(stamps + rng.integers(0, 1800, 2000), kind="stable")
    chosen, repairs = in_order(stamps[order])
    assert len(chosen) == 2000 and repairs.elsewhere == repairs.repeated == 0 and repairs.late > 100
    assert np.array_equal(stamps[order][chosen], stamps)


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb\nsize 12345\n"
PAGE = b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>"


@pytest.mark.parametrize(("content", "text"),
    [(POINTER, "is a pointer of git-lfs.*git lfs pull"), (PAGE, "is a web page"), (b"", "is empty; copy or download")],
    ids=["git-lfs", "html", "empty"])
@pytest.mark.parametrize("name", ["run.npz", "run.mcap", "run.db3", "bag/bag_0.mcap", "bag/bag_0.db3", "robot.urdf"])
def test_what_is_no_recording_is_named_for_what_it_is(tmp_path, content, text, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    if name == "robot.urdf":
        with pytest.raises(ModelError, match=f"robot.urdf: {text}"):
            load_model(path)
        return
    given = path if path.parent == tmp_path else path.parent
    with pytest.raises(RecordingError, match=f"{path.name}:? {text}"):
        load_recording(given)


def test_metadata_that_is_a_pointer_is_named(tmp_path):
    with MessageBag(tmp_path / "bag") as bag:
        _states(bag, _regular())
    (tmp_path / "bag" / "metadata.yaml").write_bytes(POINTER)
    with pytest.raises(RecordingError, match="bag: metadata.yaml is a pointer of git-lfs"):
        load_recording(tmp_path / "bag")
