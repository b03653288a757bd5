"""The recorder's state machine under a fake clock, without ROS: confirmation, queues, ends and their reasons."""

from pathlib import Path

import numpy as np
import pytest

from inertid_ros.config.nodes import RecorderOptions
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.mcap_format import Topic
from inertid_ros.data.long_recording import Batch
from inertid_ros.data.messages import JOINT_STATE
from inertid_ros.nodes.recording_session import RecordingSession, SessionState, Source

STEP_NS = 5_000_000
EPOCH_NS = 1_800_000_000_000_000_000  # system clock minus steady clock
STATES = Source("/joint_states", JOINT_STATE)

ABSENT = "/joint_states has no publisher"


class Recorder:
    """A session and its environment on a clock that the test moves."""

    def __init__(self, folder: Path | None = None, problem: str = "") -> None:
        options = RecorderOptions(directory=str(folder), write_bag=folder is not None, min_free_mb=0)
        self.problem, self.now_ns = problem, 10**9
        self.batches: list[Batch] = []
        self.states: list[SessionState] = []
        self.count = 0
        self.session = RecordingSession(options, [STATES], self)

    def topic_problem(self, absent: bool = True) -> str:
        return "" if self.problem == ABSENT and not absent else self.problem

    def bag_topics(self) -> tuple[list[Topic], list[tuple[int, bytes]]]:
        return [Topic(STATES.name, JOINT_STATE, "")], []

    def publish_batch(self, batch: Batch) -> None:
        self.batches.append(batch)

    def session_changed(self) -> None:
        self.states.append(self.session.state)

    @property
    def arrival_ns(self) -> int:
        return EPOCH_NS + self.now_ns

    def start(self) -> None:
        self.session.start(self.now_ns, self.arrival_ns)

    def stop(self) -> None:
        self.session.stop(self.now_ns, self.arrival_ns)

    def receive(self, arrival_ns: int | None = None, size: int = 8, position: float | None = None) -> None:
        """Take one joint state, whose position counts the joint states, from the queue."""
        arrived = self.arrival_ns if arrival_ns is None else arrival_ns
        recording = self.session.recording_of(STATES, size, arrived, self.now_ns)
        self.count += 1
        if recording is not None:
            value = np.array([float(self.count) if position is None else position])
            stamp = (arrived or self.arrival_ns) - 1000
            if recording.add_joint_state(0, b"content", ["joint"], stamp, (value, value, value)):
                self.session.note_joint_state(self.now_ns)

    def run(self, samples: int, receiving: bool = True) -> None:
        """Let time pass, a joint state every five milliseconds."""
        for _ in range(samples):
            self.now_ns += STEP_NS
            if receiving:
                self.receive()
            self.session.poll(self.now_ns)

    def recorded(self) -> list[float]:
        return [float(value) for batch in self.batches for value in batch.block.channels["position"][:, 0]]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_start_is_confirmed_by_samples(recorder: Recorder) -> None:
    recorder.start()
    assert recorder.session.state is SessionState.STARTING
    recorder.run(4)
    assert recorder.session.state is SessionState.STARTING
    recorder.run(1)
    assert recorder.states == [SessionState.STARTING, SessionState.RECORDING]
    assert recorder.session.message == "recording recording_001"


def test_start_is_confirmed_only_by_committed_samples(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.start()
    for _ in range(9):
        recorder.receive(recorder.arrival_ns + recorder.count)
    recorder.session.poll(recorder.now_ns)
    assert recorder.session.state is SessionState.STARTING
    recorder.run(10)  # the commit period is 50 ms
    assert recorder.session.state is SessionState.RECORDING
    recorder.session.close()
    assert (tmp_path / "recording_001" / "metadata.yaml").exists()


def test_start_without_samples_fails_after_its_timeout_and_leaves_no_bag(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.start()
    recorder.run(400, receiving=False)
    assert recorder.session.state is SessionState.STARTING
    recorder.run(1, receiving=False)
    assert recorder.session.state is SessionState.FAILED
    assert recorder.session.message == "not recording: no samples arrive; check the driver"
    assert list(tmp_path.iterdir()) == []
    recorder.start()
    recorder.run(20)
    assert recorder.session.state is SessionState.RECORDING


def test_start_with_unusable_samples_names_the_last_problem(recorder: Recorder) -> None:
    recorder.start()
    for _ in range(401):
        recorder.now_ns += STEP_NS
        recorder.receive(position=float("nan"))
        recorder.session.poll(recorder.now_ns)
    assert "position is not finite" in recorder.session.message


def test_start_is_refused_where_topics_bring_no_data() -> None:
    recorder = Recorder(problem="driver publishes /joint_states as std_msgs/msg/String")
    recorder.start()
    assert recorder.states == [SessionState.FAILED]
    assert recorder.session.message == "not recording: driver publishes /joint_states as std_msgs/msg/String"


def test_a_driver_that_is_not_discovered_yet_is_waited_for() -> None:
    recorder = Recorder(problem=ABSENT)
    recorder.start()
    assert recorder.session.state is SessionState.STARTING
    recorder.now_ns += 3 * 10**9
    recorder.session.poll(recorder.now_ns)
    assert recorder.session.state is SessionState.FAILED
    assert recorder.session.message == f"not recording: {ABSENT}"


def test_directory_that_cannot_be_written_fails_the_start() -> None:
    recorder = Recorder(Path("/proc/none"))
    recorder.start()
    assert recorder.session.state is SessionState.FAILED
    assert "cannot be written" in recorder.session.message


def test_requests_that_do_not_fit_the_state_are_refused(recorder: Recorder) -> None:
    with pytest.raises(RecordingError, match="there is no recording to stop"):
        recorder.stop()
    recorder.start()
    for request in (recorder.start, recorder.session.clear, recorder.session.check_idle):
        with pytest.raises(RecordingError, match="recording_001 is being recorded; stop it first"):
            request()
    recorder.run(5)
    recorder.stop()
    with pytest.raises(RecordingError, match="is being stopped already"):
        recorder.stop()
    recorder.run(50, receiving=False)
    recorder.session.clear()
    assert (recorder.session.state, recorder.session.message) == (SessionState.IDLE, "cleared")


def test_messages_count_by_their_arrival_between_start_and_stop(recorder: Recorder) -> None:
    """The queue is a second behind: it holds messages from before the start, and later those from before the stop."""
    arrivals = [recorder.arrival_ns + index * STEP_NS for index in range(600)]
    recorder.now_ns += 200 * STEP_NS  # the start comes when 200 have arrived and none was taken
    recorder.start()
    first = recorder.arrival_ns
    for arrival in arrivals[:300]:
        recorder.receive(arrival)
        recorder.session.poll(recorder.now_ns)
    recorder.now_ns += 200 * STEP_NS
    recorder.stop()  # 400 have arrived, 300 were taken
    last = recorder.arrival_ns
    for arrival in arrivals[300:]:
        if recorder.session.state is SessionState.STOPPING:
            recorder.receive(arrival)
            recorder.session.poll(recorder.now_ns)
    assert recorder.session.state is SessionState.IDLE
    wanted = [index + 1.0 for index, arrival in enumerate(arrivals) if first <= arrival <= last]
    assert recorder.recorded() == wanted
    assert recorder.batches[-1].last


def test_stop_of_a_silent_robot_ends_soon(recorder: Recorder) -> None:
    recorder.start()
    recorder.run(100)
    recorder.run(60, receiving=False)
    recorder.stop()
    recorder.run(20, receiving=False)
    assert recorder.session.state is SessionState.STOPPING
    recorder.run(1, receiving=False)
    assert recorder.session.state is SessionState.IDLE
    assert recorder.session.message == "recording_001: 100 samples"


def test_stop_before_the_confirmation_ends_the_start(recorder: Recorder) -> None:
    recorder.start()
    recorder.stop()
    recorder.run(30, receiving=False)
    assert recorder.states == [SessionState.STARTING, SessionState.STOPPING, SessionState.IDLE]


def test_batches_are_numbered_and_begin_with_the_confirmation(recorder: Recorder) -> None:
    recorder.start()
    recorder.run(3)
    recorder.session.publish_batch()
    assert not recorder.batches
    for _ in range(3):
        recorder.run(20)
        recorder.session.publish_batch()
    recorder.session.close()
    assert [batch.sequence for batch in recorder.batches] == list(range(len(recorder.batches)))
    assert [batch.last for batch in recorder.batches] == [False] * (len(recorder.batches) - 1) + [True]
    assert recorder.recorded() == [float(index) for index in range(1, 64)]
    assert recorder.session.message == "recording_001: closed by shutdown"


def test_bag_that_fails_ends_the_recording_without_a_last_batch(tmp_path: Path, monkeypatch) -> None:
    recorder = Recorder(tmp_path)
    recorder.start()
    recorder.run(30)

    def fail(*_arguments: object) -> None:
        raise RecordingError("the disk is full")

    monkeypatch.setattr(recorder.session.recording.bag, "commit", fail)
    recorder.run(12)
    assert recorder.session.state is SessionState.FAILED
    assert not any(batch.last for batch in recorder.batches)


def test_large_messages_are_refused_and_warned_of(recorder: Recorder) -> None:
    recorder.start()
    recorder.run(10)
    assert recorder.session.warning == ""
    recorder.receive(size=5 * 2**20)
    assert recorder.session.recording.counts.rejected == 1
    assert "too large" in recorder.session.warning


def test_silence_is_measured_from_the_last_accepted_sample(recorder: Recorder) -> None:
    assert recorder.session.silent_s(recorder.now_ns) == np.inf
    recorder.start()
    recorder.run(10)
    assert recorder.session.silent_s(recorder.now_ns) == 0.0
    recorder.run(100, receiving=False)
    assert recorder.session.silent_s(recorder.now_ns) == pytest.approx(0.5)


def test_names_that_exist_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "recording_001").mkdir()
    recorder = Recorder(tmp_path)
    recorder.start()
    assert recorder.session.name == "recording_002"
