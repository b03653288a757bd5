"""The recorder: a start is confirmed by samples, wrong data is counted, and a killed recorder loses next to nothing."""

import resource
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from support.nodes.ros_client import RosClient, ros_client_in

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.data.files.bag_backends import bag_backend
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import RecorderStatus, SampleBatch
from inertid_ros.ros.conversions import from_batch
from inertid_ros.ros.topics import BATCH

RATE_S = 0.005


class Source:
    """Publishes joint states at 200 Hz from a timer of the test; every ``damage`` is sent once in place of one."""

    def __init__(self, ros: RosClient, topic: str = "joint_states", qos: QoSProfile | int = 10) -> None:
        self._bench = ros
        self.publisher = ros.node.create_publisher(JointState, topic, qos)
        self.sent: list[int] = []
        self.damage: list[JointState] = []
        self._timer = ros.node.create_timer(RATE_S, self._tick)

    def stop(self) -> None:
        self._timer.cancel()

    def message(self) -> JointState:
        count = float(len(self.sent))
        message = JointState(name=["a", "b"], position=[count, 1.0], velocity=[0.0, 0.0], effort=[1.0, 2.0])
        message.header.stamp = self._bench.node.get_clock().now().to_msg()
        return message

    def _tick(self) -> None:
        if self.damage:
            self.publisher.publish(self.damage.pop())
            return
        message = self.message()
        self.sent.append(message.header.stamp.sec * 10**9 + message.header.stamp.nanosec)
        self.publisher.publish(message)


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as ros:
        yield ros


def start_recorder(ros: RosClient, parameters: Mapping[str, object] | None = None, **keywords):
    own = {"directory": str(ros.folder / "recordings"), "min_free_mb": 1}
    return ros.start("recorder", own | dict(parameters or {}), **keywords)


def test_start_is_refused_until_samples_arrive(ros: RosClient) -> None:
    start_recorder(ros)
    answer = ros.trigger("recorder/start")
    assert not answer.success and "has no publisher" in answer.message
    silent = ros.node.create_publisher(JointState, "joint_states", 10)
    ros.until(lambda: silent.get_subscription_count() > 0, "discovery")
    answer = ros.trigger("recorder/start")
    assert not answer.success and "no samples" in answer.message
    assert not list((ros.folder / "recordings").glob("*")), "an empty bag was left behind"


def test_wrong_type_and_quality_of_service_are_named(ros: RosClient) -> None:
    start_recorder(ros)
    wrong = ros.node.create_publisher(String, "joint_states", 10)
    ros.until(lambda: ros.trigger("recorder/start").message.count("std_msgs/msg/String"), "reason", 5.0)
    ros.node.destroy_publisher(wrong)
    Source(ros, qos=QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT))
    ros.until(lambda: "best_effort" in ros.trigger("recorder/start").message, "reason", 10.0)


def test_recording_counts_what_it_refuses_and_bag_and_batches_agree(ros: RosClient) -> None:
    status = ros.listen(RecorderStatus, "recorder/status")
    batches = ros.listen(SampleBatch, "recorder/batch", BATCH)
    start_recorder(ros)
    source = Source(ros)
    ros.until(lambda: source.publisher.get_subscription_count() > 0, "discovery")
    answer = ros.trigger("recorder/start")
    assert answer.success and answer.message == "recording_001"
    ros.until(lambda: status[-1].recording and status[-1].samples > 50, "recording")
    nan, short, old, other = source.message(), source.message(), source.message(), source.message()
    nan.position[0] = float("nan")
    short.effort = [1.0]
    old.header.stamp.sec -= 1
    other.name = ["a", "c"]
    source.damage += [nan, short, old, other]
    ros.until(lambda: status[-1].rejected == 3 and status[-1].out_of_order == 1, "counts")
    assert ros.trigger("recorder/stop").success
    ros.until(lambda: batches and batches[-1].last, "last batch")
    assert [batch.sequence for batch in batches] == list(range(len(batches)))
    position = np.concatenate([from_batch(batch).channels["position"] for batch in batches])
    recording = load_recording(ros.folder / "recordings" / "recording_001")
    assert recording.notices == ()
    np.testing.assert_array_equal(recording.position, position)
    assert len(np.unique(position[:, 0])) == len(position)


class Unstamped(Source):
    """Publishes joints of its own with empty headers."""

    def __init__(self, ros: RosClient, topic: str, names: list[str]) -> None:
        self.names = names
        super().__init__(ros, topic)

    def message(self) -> JointState:
        message = super().message()
        message.name = self.names
        message.header.stamp = Time()
        return message


def test_two_publishers_without_stamps_become_one_recording(ros: RosClient) -> None:
    """Times are those of arrival, in batches and when the bag is read."""
    status = ros.listen(RecorderStatus, "recorder/status")
    topics = {"further_joint_states": ["right/joint_states"], "joints": ["a", "b", "c", "d"], "stamps": "arrival"}
    start_recorder(ros, topics)
    sources = [Unstamped(ros, "joint_states", ["a", "b"]), Unstamped(ros, "right/joint_states", ["c", "d"])]
    ros.until(lambda: all(source.publisher.get_subscription_count() for source in sources), "discovery")
    assert ros.trigger("recorder/start").success
    begun = np.array([len(source.sent) for source in sources])
    ros.until(lambda: status[-1].samples > 100, "samples")
    sent = [len(source.sent) for source in sources] - begun  # a busy processor may keep one timer waiting longer
    assert ros.trigger("recorder/stop").success
    assert status[-1].rejected == 0
    wanted = RecordingTopics(further_joint_states=("/right/joint_states",))
    recording = load_recording(ros.folder / "recordings" / "recording_001", wanted, stamps="arrival")
    assert sorted(recording.joint_names) == ["a", "b", "c", "d"] and len(recording) > 90
    # Both count; of the two, one is taken at the times of the other.
    left, right = (recording.position[5:-5, recording.joint_names.index(name)] for name in "ac")
    assert (np.diff(left) >= 0).all() and (np.diff(right) >= 0).all()
    assert np.ptp(right) / np.ptp(left) == pytest.approx(sent[1] / sent[0], abs=0.1)
    assert np.isfinite(recording.repairs.arrival_jitter)


def test_commands_reach_bag_and_batches(ros: RosClient) -> None:
    """Numbers without a stamp count at their arrival, and go to the joints that the parameter names."""
    batches = ros.listen(SampleBatch, "recorder/batch", BATCH)
    start_recorder(ros, {"commands": "controller/commands", "command_joints": ["b", "a"]})
    source = Source(ros)
    numbers = ros.node.create_publisher(Float64MultiArray, "controller/commands", 10)
    ros.node.create_timer(0.005, lambda: numbers.publish(Float64MultiArray(data=[2.0, 1.0])))
    ros.until(lambda: source.publisher.get_subscription_count() and numbers.get_subscription_count(), "discovery")
    assert ros.trigger("recorder/start").success
    ros.until(lambda: sum(len(batch.stamps) for batch in batches) > 50, "samples")
    assert ros.trigger("recorder/stop").success
    ros.until(lambda: batches[-1].last, "last batch")
    sent = np.concatenate([from_batch(batch).channels["command_position"] for batch in batches if batch.stamps])
    wanted = RecordingTopics(commands="/controller/commands", command_joints=("b", "a"))
    recording = load_recording(ros.folder / "recordings" / "recording_001", wanted)
    for commands in (sent, recording.command_position):
        assert len(commands) > 50 and (commands == [1.0, 2.0]).all()


def test_recorder_behind_its_queue_records_from_start_to_stop(ros: RosClient) -> None:
    """A busy processor keeps the recorder waiting: what it takes late counts by when it arrived."""
    process = start_recorder(ros)
    source = Source(ros)
    ros.until(lambda: source.publisher.get_subscription_count() > 0, "discovery")
    ros.spin(0.3)
    start, stop = (ros.client(Trigger, f"recorder/{name}") for name in ("start", "stop"))
    process.signal(signal.SIGSTOP)
    ros.spin(1.0)
    begun, started = len(source.sent), start.call_async(Trigger.Request())
    ros.spin(0.1)  # the request is on its way before the recorder goes on
    process.signal(signal.SIGCONT)
    ros.until(started.done, "start")
    assert started.result().success
    ros.spin(0.3)
    process.signal(signal.SIGSTOP)
    ros.spin(1.0)
    ended, stopped = len(source.sent), stop.call_async(Trigger.Request())
    ros.spin(0.1)
    process.signal(signal.SIGCONT)
    ros.until(stopped.done, "stop")
    assert stopped.result().success, stopped.result().message
    recorded = load_recording(ros.folder / "recordings" / "recording_001").position[:, 0]
    assert recorded[0] >= begun and recorded[-1] >= ended - 1
    np.testing.assert_array_equal(np.diff(recorded), 1.0)


def test_killed_recorder_keeps_all_that_came_a_moment_before(ros: RosClient) -> None:
    """It writes without further messages; within which time, the tests of the session and of its bag state."""
    process = start_recorder(ros)
    source = Source(ros)
    ros.until(lambda: source.publisher.get_subscription_count() > 0, "discovery")
    assert ros.trigger("recorder/start").success
    ros.spin(0.7)
    source.stop()
    folder = ros.folder / "recordings" / "recording_001"

    def stored() -> int:
        return len(list(bag_backend().open(next(folder.glob("*.mcap"))).messages(["/joint_states"])))

    before = 0
    while (count := stored()) > before:  # until nothing is on its way any more
        before = count
        ros.spin(0.3)
    process.signal(signal.SIGKILL)
    process.process.wait()
    recording = load_recording(folder)
    assert "killed" in recording.notices[0]
    assert recording.position[-1, 0] == len(source.sent) - 1 and len(recording) > 50


def test_signal_closes_the_bag(ros: RosClient) -> None:
    process = start_recorder(ros)
    source = Source(ros)
    ros.until(lambda: source.publisher.get_subscription_count() > 0, "discovery")
    assert ros.trigger("recorder/start").success
    ros.spin(0.3)
    assert process.stop() == 0
    assert load_recording(ros.folder / "recordings" / "recording_001").notices == ()


def test_full_disk_ends_a_recording_and_what_was_accepted_is_readable(ros: RosClient) -> None:
    recorder = start_recorder(ros)
    source = Source(ros)
    status = ros.listen(RecorderStatus, "recorder/status")
    ros.until(lambda: source.publisher.get_subscription_count() > 0, "discovery")
    assert ros.trigger("recorder/start").success
    ros.until(lambda: status[-1].recording and status[-1].samples > 60, "samples")
    folder = ros.folder / "recordings" / "recording_001"
    size = next(folder.glob("*.mcap")).stat().st_size + 2_000
    # From now on the recorder's files cannot grow beyond this, as on a disk that is full.
    resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (size, size))
    ros.until(lambda: "cannot be written" in status[-1].message, "stop of the recording")
    assert not status[-1].recording
    assert not ros.trigger("recorder/stop").success
    assert recorder.process.poll() is None, "the recorder itself goes on"
    recording = load_recording(folder)
    assert len(recording.time) > 50 and np.isfinite(recording.position).all()
