"""Recorder node: joint states and sensor topics to a crash-safe bag and to synchronised batches."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.base_messages import base_values, channels_of
from inertid_ros.data.files.bags import tare_topic
from inertid_ros.data.files.live_bag import Committer, LiveBag, LiveBagOptions, Topic
from inertid_ros.data.live.live_recording import LiveRecording
from inertid_ros.data.live.wrench_watch import WrenchWatch
from inertid_ros.msg import RecorderStatus, SampleBatch
from inertid_ros.nodes.spin import run_node
from inertid_ros.ros.conversions import BatchInfo, from_wrench, to_batch, to_nanoseconds, to_wrench
from inertid_ros.ros.definitions import message_class, message_definition
from inertid_ros.ros.diagnostics import ERROR, OK, WARN, diagnostics
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.qos import BATCH, LATCHED, recording_profile

from .parameters import RecorderOptions
from .sources import JOINT_STATE, WRENCH, Source, sources
from .topic_graph import TopicState, inspect_topic

_SILENCE_NS = 100_000_000  # without any message for so long there is none left in the queues
_CONFIRMATION = 5  # samples that must have come, and be committed, before a start is confirmed


class Recorder(Node):
    """See the module."""

    def __init__(self) -> None:
        super().__init__("recorder")
        self.options = declare(self, RecorderOptions)
        self.profile = recording_profile(self.options.reliability)
        self.sources = sources(self, self.options)
        self.wrench_topics = [source.name for source in self.sources if source.type == WRENCH and not source.of_base]
        thresholds = (self.options.contact_on_n, self.options.contact_off_n)
        self.watch = WrenchWatch(self.options.tare_s, self.options.tare_limit_n, *thresholds)
        self.recording: LiveRecording | None = None
        self.committer: Committer | None = None
        self.confirmation: Future | None = None
        self.drained: Future | None = None  # of a stop, once what arrived before it has been taken
        self.window_ns = (0, 0)  # arrivals that belong to the recording [ns, system clock]; an end of 0 is open
        self.fresh: set[str] = set()  # topics whose queue holds nothing from before the start any more
        self.message = "ready"
        self.failed = False
        self.number = self.batches = self.lost = 0
        self.started_ns = self.received_ns = self.taken_ns = 0
        self.steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.batch_publisher = self.create_publisher(SampleBatch, "~/batch", BATCH)
        self.status_publisher = self.create_publisher(RecorderStatus, "~/status", LATCHED)
        self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        for name, callback in (("start", self.start), ("stop", self.stop), ("clear", self.clear), ("tare", self.tare)):
            # Reentrant: while a start awaits its confirmation, timers and subscriptions must go on.
            self.create_service(Trigger, f"~/{name}", callback, callback_group=ReentrantCallbackGroup())
        for index, source in enumerate(self.sources):
            self._subscribe(index, source)
        self.create_timer(0.02, self._commit, clock=self.steady)
        self.create_timer(self.options.batch_period_s, self._publish_batch, clock=self.steady)
        self.create_timer(0.2, self._publish_status, clock=self.steady)
        self.create_timer(1.0, self._publish_diagnostics, clock=self.steady)
        self._publish_status()

    # Services

    async def start(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Begin a recording; succeeds only when samples have arrived and are committed."""
        if self.recording is not None:
            return _answer(response, False, f"{self.recording.name} is being recorded already; stop it first")
        problems = [state.problem for state in self._inspect() if state.problem]
        if not problems:
            try:
                self._begin()
                self.confirmation = Future()
                if await self.confirmation:
                    return _answer(response, True, self.recording.name if self.recording else "")
                problems = [state.problem for state in self._inspect() if state.problem]
                problems = problems or [self.recording.last_problem if self.recording else self.message]
            except InertidError as error:
                problems = [str(error)]
        self._end(f"not recording: {problems[0] or 'no samples arrive'}", failed=True)
        return _answer(response, False, self.message)

    async def stop(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """End the recording; succeeds only when everything that arrived until now is safe on the disk."""
        if self.recording is None:
            return _answer(response, False, f"nothing is being recorded ({self.message})")
        name = self.recording.name
        if self.drained is not None:
            return _answer(response, False, f"{name} is being stopped already")
        self.window_ns, self.taken_ns = (self.window_ns[0], time.time_ns()), self.steady.now().nanoseconds
        self.drained = Future()
        await self.drained
        if self.recording is None:
            return _answer(response, False, self.message)
        self._end(f"{name}: {self.recording.counts.accepted} samples")
        return _answer(response, not self.failed, name if not self.failed else self.message)

    def clear(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Make every receiver of the batches forget what it has; bags stay."""
        if self.recording is not None:
            return _answer(response, False, f"{self.recording.name} is being recorded; stop it first")
        self.batch_publisher.publish(SampleBatch(last=True))
        self.message, self.failed = "cleared", False
        return _answer(response, True, self.message)

    def tare(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Take what the wrench topics measure now as their zero; nothing may stand on the plates."""
        if self.recording is not None:
            return _answer(response, False, f"{self.recording.name} is being recorded; stop it before taring")
        try:
            return _answer(response, True, self.watch.tare(self.wrench_topics))
        except InertidError as error:
            return _answer(response, False, str(error))

    # Recording

    def _begin(self) -> None:
        options, directory = self.options, Path(self.options.directory).expanduser()
        self.number += 1
        while options.write_bag and (directory / self._name()).exists():
            self.number += 1
        frames = [source.frame for source in self.sources if source.frame]
        channels = [channel for source in self.sources if source.of_base for channel in channels_of(source.type)]
        assembler = RecordingAssembler(
            self._name(), options.joints, frames, options.max_wrench_gap_s, base=channels
        )
        bag, prelude = None, []
        if options.write_bag:
            limits = LiveBagOptions(options.min_free_mb * 2**20, options.max_message_mb * 2**20)
            topics = [Topic(source.name, source.type, message_definition(source.type)) for source in self.sources]
            zeros = list(self.watch.zeros.items())
            topics += [Topic(tare_topic(topic), WRENCH, message_definition(WRENCH)) for topic, _ in zeros]
            bag = LiveBag(directory.absolute() / self._name(), topics, limits)
            stamp = self.get_clock().now().to_msg()
            for index, (_, zero) in enumerate(zeros, start=len(self.sources)):
                prelude.append((index, serialize_message(to_wrench(zero, "", stamp))))
            self.committer = Committer(bag, options.commit_period_s)
        self.recording = LiveRecording(assembler, bag, options.max_gap_periods, prelude)
        self.batches = self.lost = 0
        self.started_ns, self.window_ns = self.steady.now().nanoseconds, (time.time_ns(), 0)
        self.fresh.clear()
        self.message, self.failed = f"waiting for samples of {self._name()}", False

    def _end(self, message: str, failed: bool = False) -> None:
        """Close whatever is open; the batch marked last tells receivers that the recording is complete."""
        recording, self.recording, self.committer = self.recording, None, None
        self.message, self.failed = message, failed
        if recording is not None:
            if not failed:
                self._publish_batch_of(recording, final=True)
            try:
                if recording.bag is not None:
                    recording.bag.close()
                    if not recording.counts.accepted:
                        recording.bag.remove()
            except RecordingError as error:
                self.message, self.failed = str(error), True
        for waiting in (self.confirmation, self.drained):
            if waiting is not None and not waiting.done():
                waiting.set_result(False)
        self.confirmation = self.drained = None
        if self.failed:
            self.get_logger().error(self.message)
        else:
            self.get_logger().info(self.message)
        self._publish_status()

    def _commit(self) -> None:
        recording = self.recording
        if recording is None:
            return
        try:
            if self.committer is not None:
                self.committer.poll()
        except RecordingError as error:
            self._end(f"recording stopped: {error}", failed=True)
            return
        if self.drained is not None and self.steady.now().nanoseconds - self.taken_ns > _SILENCE_NS:
            self._drain()  # nothing comes any more
        confirmation = self.confirmation
        if confirmation is None or confirmation.done():
            return
        committed = recording.counts.accepted if recording.bag is None else recording.bag.messages
        if recording.counts.accepted >= _CONFIRMATION and committed >= _CONFIRMATION:
            self.message, self.confirmation = f"recording {recording.name}", None
            confirmation.set_result(True)
            self._publish_status()
        elif self.steady.now().nanoseconds - self.started_ns > self.options.start_timeout_s * 1e9:
            confirmation.set_result(False)

    def _drain(self) -> None:
        if self.drained is not None and not self.drained.done():
            self.drained.set_result(True)

    def _belongs(self, source: Source, arrival_ns: int) -> bool:
        """Whether a message arrived while the recording ran: behind a busy processor the queue holds earlier ones."""
        first, last = self.window_ns
        if source.type == JOINT_STATE:
            self.taken_ns = self.steady.now().nanoseconds
            if last and (arrival_ns > last or not arrival_ns):
                self._drain()
        if source.name not in self.fresh:  # only until the first: the system's clock may step back later
            if arrival_ns and arrival_ns < first:
                return False
            self.fresh.add(source.name)
        return not (last and arrival_ns > last)

    def _receive(self, index: int, source: Source, data: bytes, arrival_ns: int) -> None:
        recording, wrench = self.recording, None
        if source.type == WRENCH and source.name in self.wrench_topics:
            message = deserialize_message(data, WrenchStamped)
            wrench = self.watch.add(source.name, to_nanoseconds(message.header.stamp), from_wrench(message))
        if recording is None or not self._belongs(source, arrival_ns):
            return
        if len(data) > self.options.max_message_mb * 2**20:
            recording.refuse(f"{source.name}: a message of {len(data)} bytes is too large; see max_message_mb")
            return
        if source.type == JOINT_STATE:
            message = deserialize_message(data, JointState)
            stamp = to_nanoseconds(message.header.stamp)
            channels = (message.position, message.velocity, message.effort)
            if recording.add_joint_state(index, data, message.name, stamp, channels):
                self.received_ns = self.steady.now().nanoseconds
        elif wrench is not None:
            frame = source.frame or message.header.frame_id
            recording.add_wrench(index, data, frame, to_nanoseconds(message.header.stamp), wrench)
        elif source.of_base:
            message = deserialize_message(data, message_class(source.type))
            stamp = to_nanoseconds(message.header.stamp)
            recording.add_base(index, data, stamp, base_values(source.type, message))
        else:
            recording.add_other(index, data, self.get_clock().now().nanoseconds)

    # Publishing

    def _publish_batch(self) -> None:
        if self.recording is not None and self.confirmation is None:
            self._publish_batch_of(self.recording, final=False)

    def _publish_batch_of(self, recording: LiveRecording, final: bool) -> None:
        taken = recording.take(final)
        if taken is None or (len(taken[0]) == 0 and not final):
            return
        self.batch_publisher.publish(to_batch(taken[0], BatchInfo(recording.name, self.batches, final), taken[1]))
        self.batches += 1

    def _publish_status(self) -> None:
        message, recording = RecorderStatus(message=self.message, lost=self.lost), self.recording
        message.header.stamp = self.get_clock().now().to_msg()
        message.loaded = self.watch.loaded
        if recording is not None:
            age = self.steady.now().nanoseconds - self.received_ns
            message.recording = self.confirmation is None and age < 500_000_000
            if self.confirmation is None and not message.recording:
                message.message = f"{recording.name}: no samples for {age * 1e-9:.1f} s"
            counts = recording.counts
            message.name, message.path = recording.name, str(recording.bag.path) if recording.bag else ""
            message.samples, message.rejected = counts.accepted, counts.rejected
            message.out_of_order, message.gaps = counts.out_of_order, counts.gaps
            message.seconds, message.rate_hz = recording.seconds, recording.rate_hz
            message.incomplete = recording.incomplete
        self.status_publisher.publish(message)

    def _publish_diagnostics(self) -> None:
        level, text, values = OK, self.message, {}
        problems = [state.problem or state.crowd for state in self._inspect()]
        if self.recording is not None:
            counts = self.recording.counts
            values = {**vars(counts), "lost": self.lost, "incomplete": self.recording.incomplete}
            if missing := ", ".join(self.recording.missing):
                level, text = WARN, f"samples are left out, as they lack {missing}; check its topic and clock"
            if counts.rejected or counts.out_of_order or counts.gaps or self.lost:
                level, text = WARN, self.recording.last_problem or "samples were lost"
        if any(problems):
            level, text = WARN, next(filter(None, problems))
        if self.failed:
            level, text = ERROR, self.message
        self.diagnostics.publish(diagnostics(self, "recording", level, text, values))

    def _subscribe(self, index: int, source: Source) -> None:
        def on_lost(event: object) -> None:
            self.lost += getattr(event, "total_count_change", 1)

        def on_message(data: bytes, info: Mapping[str, int]) -> None:
            self._receive(index, source, data, info["received_timestamp"])  # 0 where the middleware does not tell

        events = SubscriptionEventCallbacks(message_lost=on_lost)
        self.create_subscription(
            message_class(source.type), source.name, on_message, self.profile, event_callbacks=events, raw=True
        )

    def _inspect(self) -> list[TopicState]:
        return [inspect_topic(self, source.name, source.type, self.profile) for source in self.sources]

    def _name(self) -> str:
        return f"recording_{self.number:03d}"

    # Ending

    def begin_shutdown(self) -> None:
        """A signal came: what was recorded becomes a complete bag."""
        if self.recording is not None:
            self._end(f"{self.recording.name}: closed by shutdown")

    def on_fault(self, error: Exception) -> None:
        """A callback raised: keep what was accepted."""
        self.begin_shutdown()


def _answer(response: Trigger.Response, success: bool, message: str) -> Trigger.Response:
    response.success, response.message = success, message
    return response


def main() -> int:
    """Entry point of the executable."""
    return run_node(Recorder)


if __name__ == "__main__":
    sys.exit(main())
