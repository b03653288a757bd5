"""RecordingSession: the state machine of the recorder, without ROS and without its own clock."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from inertid_ros.config.nodes import RecorderOptions
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.files.live_bag import LiveBag
from inertid_ros.data.files.live_recording import LiveRecording
from inertid_ros.data.long_recording import Batch
from inertid_ros.data.messages import CHANNELS, JOINT_STATE, WRENCH_STAMPED, base_topics, command_topics
from inertid_ros.data.recording import COMMAND_CHANNELS, LATE_MESSAGES, WRENCH_PREFIX


@dataclass(frozen=True)
class Source:
    """A recorded topic."""

    name: str  # resolved
    type: str  # PACKAGE/msg/NAME
    frame: str = ""  # frame of the wrench; if empty, each message gives its frame
    of_base: bool = False  # True for the motion of a free base
    of_commands: bool = False  # True for the commands to the joints

    @property
    def is_sampled(self) -> bool:
        """True if samples contain values of this topic; otherwise its messages are only written to the bag."""
        return self.of_base or self.of_commands or self.type in (JOINT_STATE, WRENCH_STAMPED)

    @property
    def is_of_states(self) -> bool:
        """True for joint states."""
        return self.type == JOINT_STATE and not self.of_commands


def sources(options: RecorderOptions, resolve: Callable[[str], str]) -> list[Source]:
    """Return the topics to record: joint states, wrenches, motion of a free base, commands, topics only written.

    ``resolve`` returns the full name of a topic, after namespace and remapping.
    """
    return [
        *(Source(resolve(topic), JOINT_STATE) for topic in ("joint_states", *options.further_joint_states)),
        *(Source(resolve(wrench.topic), WRENCH_STAMPED, wrench.frame) for wrench in options.wrenches.values()),
        *(Source(resolve(topic), type_name, of_base=True) for topic, type_name in base_topics(options).items()),
        *(Source(resolve(topic), kind, of_commands=True) for topic, kind in command_topics(options).items()),
        *(Source(resolve(other.topic), other.type) for other in options.other_topics.values())]


CONFIRMATION_SAMPLES = 5  # received and committed before a start is confirmed
MAX_SILENCE_NS = 100_000_000  # after this time without a joint state, the queues count as empty
MAX_SAMPLE_AGE_NS = 500_000_000  # a recording whose last sample is older is reported as not recording


class SessionState(Enum):
    """State of the recorder."""

    IDLE = "idle"
    FAILED = "failed"  # idle; the last recording could not be started or was cut short
    STARTING = "starting"  # a bag is open; the arrival of samples is not confirmed yet
    RECORDING = "recording"
    STOPPING = "stopping"  # messages that arrived before the stop are still being taken from the queues


@dataclass
class _OpenRecording:
    """A recording in progress. Arrival times are on the system clock [ns], other times on the steady clock."""

    live: LiveRecording
    started_ns: int
    first_arrival_ns: int
    last_arrival_ns: int = 0  # time of the stop; 0 before
    caught_up: set[str] = field(default_factory=set)  # topics whose queue holds no message from before the start
    joint_state_ns: int = 0  # time of the last joint state from the queue, used or not
    accepted_ns: int = 0  # time of the last accepted joint state
    drained: bool = False
    batches: int = 0


class RecordingSession:
    """State of the recorder, which makes one recording at a time.

    Call all methods from one thread. ``now_ns`` is always on the steady clock, ``arrival_ns`` on the system clock, like
    the middleware's arrival stamps. ``sources`` are in the order of the bag's topics. ``recorder`` is the node; the
    session calls its methods ``topic_problem``, ``bag_topics``, ``publish_batch`` and ``session_changed``, see
    :class:`~.recorder.Recorder`.

    Attributes
    ----------
    message : one line about the state.
    lost : messages of the present recording that the middleware reports as lost.
    last_fault : reason of the last failed recording; empty before the first failure.
    """

    def __init__(self, options: RecorderOptions, sources: Sequence[Source], recorder: Any) -> None:
        self.state, self.message, self.lost, self.last_fault = SessionState.IDLE, "ready", 0, ""
        self._options, self._sources, self._recorder, self._number = options, tuple(sources), recorder, 0
        self._open: _OpenRecording | None = None

    @property
    def recording(self) -> LiveRecording | None:
        """The present recording; None while idle."""
        return self._open.live if self._open is not None else None

    @property
    def name(self) -> str:
        """Name of the present recording, or of the last recording."""
        return f"recording_{self._number:03d}"

    # Requests

    def start(self, now_ns: int, arrival_ns: int) -> None:
        """Begin a recording; :meth:`poll` confirms the start, or ends the recording if no samples arrive.

        Raises RecordingError if a recording is already in progress.
        """
        self.check_idle()
        try:
            if problem := self._recorder.topic_problem(absent=False):  # a publisher may not be discovered yet
                raise RecordingError(problem)
            self._begin(now_ns, arrival_ns)
        except InertidError as error:
            self._end(f"not recording: {error}", SessionState.FAILED)

    def stop(self, now_ns: int, arrival_ns: int) -> None:
        """Stop with the messages received until now; :meth:`poll` closes the recording once all are taken from queues.

        Raises RecordingError if there is no recording, or if the recording is already being stopped.
        """
        if self._open is None:
            raise RecordingError(f"there is no recording to stop ({self.message})")
        if self.state is SessionState.STOPPING:
            raise RecordingError(f"{self.name} is being stopped already")
        self._open.last_arrival_ns, self._open.joint_state_ns = arrival_ns, now_ns
        self._change(SessionState.STOPPING, f"stopping {self.name}")

    def clear(self) -> None:
        """Forget the last failure; raise RecordingError during a recording."""
        self.check_idle()
        self._change(SessionState.IDLE, "cleared")

    def close(self) -> None:
        """End the recording at once, as the process ends."""
        if self._open is not None:
            self._end(f"{self.name}: closed by shutdown", SessionState.IDLE)

    def check_idle(self, remedy: str = "stop it first") -> None:
        """Raise RecordingError, with a remedy, during a recording."""
        if self._open is not None:
            raise RecordingError(f"{self.name} is being recorded; {remedy}")

    # Messages

    def recording_of(self, source: Source, size: int, arrival_ns: int, now_ns: int) -> LiveRecording | None:
        """Return the present recording if a message of a source belongs to it, else None.

        A message belongs to the recording if the message arrived between start and stop. The queues may hold messages
        from before the start, and, long after the stop, messages from before the stop. A message whose ``size`` [bytes]
        is too large is counted as rejected. ``arrival_ns`` is 0 if the middleware does not stamp arrivals.
        """
        current = self._open
        if current is None:
            return None
        if source.is_of_states:
            current.joint_state_ns = now_ns
            if self.state is SessionState.STOPPING and (arrival_ns > current.last_arrival_ns or not arrival_ns):
                current.drained = True
        if source.name not in current.caught_up:  # only until the first message: the system clock may be set back later
            if arrival_ns and arrival_ns < current.first_arrival_ns:
                return None
            current.caught_up.add(source.name)
        if current.last_arrival_ns and arrival_ns > current.last_arrival_ns:
            return None
        if size > self._options.max_message_mb * 2**20:
            current.live.reject(f"{source.name}: a message of {size} bytes is too large; see max_message_mb")
            return None
        return current.live

    def note_joint_state(self, now_ns: int) -> None:
        """Store the time of an accepted joint state."""
        if self._open is not None:
            self._open.accepted_ns = now_ns

    # Time

    def poll(self, now_ns: int) -> None:
        """Commit samples, confirm or abort a start, finish a stop; to be called every few hundredths of a second."""
        current = self._open
        if current is None:
            return
        try:
            if current.live.bag is not None:
                current.live.bag.keep_up(now_ns * 1e-9, self._options.commit_period_s)
        except RecordingError as error:
            self._end(f"recording stopped: {error}", SessionState.FAILED)
            return
        if self.state is SessionState.STOPPING:
            if current.drained or now_ns - current.joint_state_ns > MAX_SILENCE_NS:
                self._end(f"{self.name}: {current.live.counts.accepted} samples", SessionState.IDLE)
        elif self.state is SessionState.STARTING:
            accepted = current.live.counts.accepted
            committed = accepted if current.live.bag is None else current.live.bag.messages
            if min(accepted, committed) >= CONFIRMATION_SAMPLES:
                self._change(SessionState.RECORDING, f"recording {self.name}")
            elif now_ns - current.started_ns > self._options.start_timeout_s * 1e9:
                problem = self._recorder.topic_problem() or current.live.last_error
                self._end(f"not recording: {problem or 'no samples arrive; check the driver'}", SessionState.FAILED)

    def publish_batch(self) -> None:
        """Publish complete samples, once the start is confirmed."""
        if self._open is not None and self.state is not SessionState.STARTING:
            self._publish(self._open, last=False)

    # Reports

    def silent_s(self, now_ns: int) -> float:
        """Time since the last accepted joint state [s]; infinite without a confirmed recording."""
        if self._open is None or self.state is SessionState.STARTING:
            return float("inf")
        return (now_ns - self._open.accepted_ns) * 1e-9

    @property
    def warning(self) -> str:
        """Problem with the samples so far, in one line; empty if all is well."""
        recording = self.recording
        if recording is None:
            return ""
        counts = recording.counts
        if counts.rejected or counts.out_of_order or counts.gaps or self.lost:
            return recording.last_error or "samples were lost"
        if missing := ", ".join(recording.assembler.missing):
            return f"samples are left out, as they lack {missing}; check its topic and clock"
        return ""

    # Transitions

    def _begin(self, now_ns: int, arrival_ns: int) -> None:
        options, directory = self._options, Path(os.path.expanduser(self._options.directory))
        self._number += 1
        while options.write_bag and os.path.lexists(directory / self.name):
            self._number += 1
        channels = [f"{WRENCH_PREFIX}{source.frame}" for source in self._sources if source.frame]
        channels += [channel for source in self._sources if source.of_base for channel in CHANNELS[source.type]]
        channels += [COMMAND_CHANNELS[0] for source in self._sources if source.of_commands]
        gap = options.max_wrench_gap_s
        assembler = RecordingAssembler(self.name, options.joints, channels, gap, late=LATE_MESSAGES)
        bag, prelude = None, list[tuple[int, bytes]]()
        if options.write_bag:
            topics, prelude = self._recorder.bag_topics()
            bag = LiveBag(directory.absolute() / self.name, topics, options)
        live = LiveRecording(assembler, bag, options.max_gap_periods, prelude)
        self._open, self.lost = _OpenRecording(live, now_ns, arrival_ns), 0
        self._change(SessionState.STARTING, f"waiting for samples of {self.name}")

    def _end(self, message: str, state: SessionState) -> None:
        """Close the recording; unless it failed, publish a last batch that marks it as complete."""
        ended, self._open = self._open, None
        if ended is not None:
            if state is not SessionState.FAILED:
                self._publish(ended, last=True)
            try:
                if ended.live.bag is not None:
                    ended.live.bag.close()
                    if not ended.live.counts.accepted:
                        ended.live.bag.remove()
            except RecordingError as error:
                message, state = str(error), SessionState.FAILED
        self._change(state, message)

    def _change(self, state: SessionState, message: str) -> None:
        self.state, self.message = state, message
        if state is SessionState.FAILED:
            self.last_fault = message
        self._recorder.session_changed()

    def _publish(self, current: _OpenRecording, last: bool) -> None:
        taken = current.live.take(last)
        if taken is not None and (len(taken[0]) or last):
            self._recorder.publish_batch(Batch(current.live.name, current.batches, last, *taken))
            current.batches += 1
