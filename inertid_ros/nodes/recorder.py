"""Recorder node: writes joint states and sensor topics to a crash-safe bag, and publishes synchronised batches."""

import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import compress, groupby
from typing import NamedTuple

import numpy as np
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.task import Future
from std_srvs.srv import Trigger

from inertid_ros.config.nodes import RecorderOptions
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.data.files.live_bag import free_space_mb
from inertid_ros.data.files.mcap_format import Topic
from inertid_ros.data.long_recording import Batch
from inertid_ros.data.messages import JOINT_CHANNELS, NUMBERS, WRENCH_STAMPED, CdrLayout, layout_of, tare_topic
from inertid_ros.data.recording import WRENCH_PREFIX
from inertid_ros.data.screening.live_watch import StreamReport, StreamWatch, WrenchWatch
from inertid_ros.msg import RecorderStatus, SampleBatch
from inertid_ros.ros import diagnostics, topics
from inertid_ros.ros.conversions import stamp_of_serialized, to_batch, to_wrench
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, DiagnosticsPublisher, Status, judged
from inertid_ros.ros.node_parameters import declare

from .recording_session import MAX_SAMPLE_AGE_NS, RecordingSession, SessionState, Source, sources
from .spin import raise_priority, run_node

_WRENCH_CHANNELS = ("force x", "force y", "force z", "torque x", "torque y", "torque z")
_SCARCE_SPACE_FACTOR = 2.0  # warning below this multiple of the minimum space for a recording
_TAKING_PERIOD_S, _CALLBACK_LOOK_PERIOD_S = 0.02, 0.05  # one check for callbacks takes a few milliseconds
_FAILURE_LOG_PERIOD_S = 30.0  # repeated failures to start for one reason are logged at this interval


class TopicState(NamedTuple):
    """Number of publishers of a topic, and a problem with them in one line; empty if all is well."""

    publishers: int
    problem: str


class _Arrived(NamedTuple):
    """Message of a topic, by its index: its receipt on the steady clock [s], and its arrival by the system clock."""

    received: float
    topic: int
    data: bytes
    arrival_ns: int


class Recorder(Node):
    """Subscriptions, services and publishers around a :class:`~.recording_session.RecordingSession`."""

    tick_s, callbacks_s = _TAKING_PERIOD_S, _CALLBACK_LOOK_PERIOD_S

    def __init__(self) -> None:
        super().__init__("recorder")
        self.options = declare(self, RecorderOptions)
        self.profile = topics.recording_profile(self.options.reliability)
        self.sources = sources(self.options, lambda name: topics.resolved(self, name))
        self.wrench_topics = [
            source.name for source in self.sources if source.type == WRENCH_STAMPED and not source.of_base]
        thresholds = (self.options.contact_on_n, self.options.contact_off_n)
        self.watch = WrenchWatch(self.options.tare_s, self.options.tare_limit_n, *thresholds)
        self.session = RecordingSession(self.options, self.sources, self)
        self.changed = Future()  # completed with the next state of the session; services await it
        self.failure, self.failure_logged_at = "", -np.inf
        self.batch_publisher = self.create_publisher(SampleBatch, "~/batch", topics.BATCH)
        self.status_publisher = self.create_publisher(RecorderStatus, "~/status", topics.LATCHED)
        self.streams = [StreamWatch() for _ in self.sources]
        self.joints: dict[str, Sequence[str]] = {}  # topic to the joints of its last accepted message
        self.layouts: dict[str, CdrLayout] = {}  # topic to the layout of its last message
        for name, serve in (("start", self._start), ("stop", self._stop), ("clear", self._clear), ("tare", self._tare)):
            # Reentrant: while a start awaits its confirmation, timers and subscriptions must continue.
            self.create_service(Trigger, f"~/{name}", _answering(serve), callback_group=ReentrantCallbackGroup())
        # Messages are taken in batches: waking an executor for each message costs more than processing the message.
        self.topics = [self._subscribe(source) for source in self.sources]
        self.create_timer(self.options.batch_period_s, self.session.publish_batch, clock=topics.STEADY)
        self.create_timer(0.2, self._publish_status, clock=topics.STEADY)
        self.diagnostics = DiagnosticsPublisher(self, self._statuses)
        self._publish_status()
        raise_priority(self, 0)  # states that it loses are lost for the calibration

    # Services

    async def _start(self) -> str:
        """Begin a recording and return its name once samples have arrived and are committed."""
        self.session.start(self._now_ns(), time.time_ns())
        name, state = self.session.name, await self._state_after(SessionState.STARTING)
        if state is SessionState.RECORDING:
            return name
        ended = f"{name}: stopped before its start was confirmed"
        raise RecordingError(self.session.message if state is SessionState.FAILED else ended)

    async def _stop(self) -> str:
        """End the recording and return its name once all messages received until now are on the disk."""
        self.session.stop(self._now_ns(), time.time_ns())
        name, state = self.session.name, await self._state_after(SessionState.STOPPING)
        if state is SessionState.FAILED:
            raise RecordingError(self.session.message)
        return name

    async def _clear(self) -> str:
        """Let all receivers of batches forget their recordings; bags stay."""
        self.session.clear()
        self.batch_publisher.publish(SampleBatch(last=True))
        return self.session.message

    async def _tare(self) -> str:
        """Take the present values of the wrench topics as their zero; the plates must be unloaded."""
        self.session.check_idle("stop it before taring")
        return self.watch.tare(self.wrench_topics)

    async def _state_after(self, state: SessionState) -> SessionState:
        """Wait for the state that follows ``state``; return the present state if ``state`` has already ended."""
        if self.session.state is not state:
            return self.session.state
        following: SessionState = await self.changed
        return following

    # For the session

    def topic_problem(self, absent: bool = True) -> str:
        """Return the first problem with the publishers of a recorded topic; empty without a problem.

        With ``absent``, a missing publisher is a problem, too.
        """
        return next((state.problem for state in self._inspect() if state.problem and (absent or state.publishers)), "")

    def bag_topics(self) -> tuple[list[Topic], list[tuple[int, bytes]]]:
        """Return the topics of a new bag, and its first messages (topic index, content), which hold tared zeros."""
        recorded = [Topic(source.name, source.type, topics.message_definition(source.type)) for source in self.sources]
        prelude, stamp = [], self.get_clock().now().to_msg()
        for name, zero in self.watch.zeros.items():
            prelude.append((len(recorded), serialize_message(to_wrench(zero, "", stamp))))
            recorded.append(Topic(tare_topic(name), WRENCH_STAMPED, topics.message_definition(WRENCH_STAMPED)))
        return recorded, prelude

    def publish_batch(self, batch: Batch) -> None:
        """Publish samples of the recording."""
        self.batch_publisher.publish(to_batch(batch))

    def session_changed(self) -> None:
        """Answer the services that await the end of a state, and publish the status."""
        session, changed, self.changed = self.session, self.changed, Future()
        changed.set_result(session.state)
        if session.state is SessionState.FAILED:
            self._log_failure(session.message)
        elif session.state is SessionState.IDLE:
            self.get_logger().info(session.message)
        self._publish_status()

    def _log_failure(self, message: str) -> None:
        now = time.monotonic()
        if message != self.failure or now > self.failure_logged_at + _FAILURE_LOG_PERIOD_S:
            self.failure, self.failure_logged_at = message, now
            self.get_logger().error(message)

    # Messages

    def _subscribe(self, source: Source) -> topics.PolledSubscription:
        def on_lost(event: object) -> None:
            self.session.lost += getattr(event, "total_count_change", 1)

        events, message_type = SubscriptionEventCallbacks(message_lost=on_lost), topics.message_class(source.type)
        return topics.PolledSubscription(self, message_type, source.name, self.profile, raw=True, events=events)

    def tick(self) -> None:
        arrived = [
            _Arrived(received, index, data, arrival_ns)
            for index, topic in enumerate(self.topics)
            for data, received, arrival_ns in topic.take_with_arrival()]
        now_ns = self._now_ns()
        ahead_s = (self.get_clock().now().nanoseconds - now_ns) * 1e-9
        for received, topic, data, _ in arrived:
            stamped = self.sources[topic].is_sampled and self.sources[topic].type != NUMBERS
            header_ns = stamp_of_serialized(data) if stamped else 0
            self.streams[topic].add(received, received + ahead_s - header_ns * 1e-9 if header_ns else np.nan)
        arrived.sort(key=lambda message: message.received)
        for topic, messages in groupby(arrived, key=lambda message: message.topic):
            receive = self._receive_states if self.sources[topic].is_of_states else self._receive
            receive(topic, list(messages), now_ns)
        self.session.poll(self._now_ns())

    def _receive_states(self, topic: int, messages: Sequence[_Arrived], now_ns: int) -> None:
        """Process consecutive joint states of a topic; states of one layout are decoded and checked together."""
        source, stream = self.sources[topic], self.streams[topic]
        waiting = [
            message for message in messages
            if self.session.recording_of(source, len(message.data), message.arrival_ns, now_ns) is not None]
        recording = self.session.recording
        while recording is not None and waiting:
            try:
                layout = self._layout(source, waiting[0].data)
            except ValueError as error:
                recording.reject(f"{source.name}: a message {error}; check its publisher")
                del waiting[0]
                continue
            count = next((k for k, message in enumerate(waiting) if not layout.fits(message.data)), len(waiting))
            alike, waiting = waiting[:count], waiting[count:]
            contents = [message.data for message in alike]
            rows = np.frombuffer(b"".join(contents), dtype=np.uint8).reshape(len(alike), -1)
            stamps = np.array([self._stamp(source, message.data, message.arrival_ns) for message in alike])
            values = layout.values(rows)
            channels = [values[channel] for channel in JOINT_CHANNELS]
            accepted = recording.add_joint_states(topic, contents, layout.source, stamps, channels)
            for message, effort in compress(zip(alike, values["effort"], strict=True), accepted):
                stream.add_values(message.received, effort)
            if any(accepted):
                self.session.note_joint_state(now_ns)
                self.joints[source.name] = layout.source

    def _receive(self, topic: int, messages: Sequence[_Arrived], now_ns: int) -> None:
        """Process messages of a topic without joint states, one by one."""
        source, stream = self.sources[topic], self.streams[topic]
        for received, _, data, arrival_ns in messages:
            recording = self.session.recording_of(source, len(data), arrival_ns, now_ns)
            is_wrench = source.name in self.wrench_topics
            if recording is None and not is_wrench:
                continue
            if recording is not None and not source.is_sampled:
                recording.add(topic, data, self.get_clock().now().nanoseconds, {})
                continue
            try:
                layout = self._layout(source, data)
            except ValueError as error:
                if recording is not None:
                    recording.reject(f"{source.name}: a message {error}; check its publisher")
                continue
            stamp_ns = self._stamp(source, data, arrival_ns)
            values = layout.values(np.frombuffer(data, dtype=np.uint8)[None])
            if source.of_commands and recording is not None:
                recording.add_commands(topic, data, layout.source or self.options.command_joints, stamp_ns, values)
                continue
            channels = {channel: rows[0] for channel, rows in values.items()}
            if is_wrench:
                wrench = self.watch.add(source.name, stamp_ns, channels["wrench"])
                stream.add_values(received, wrench)
                channels = {f"{WRENCH_PREFIX}{source.frame or layout.source[0]}": wrench}
            if recording is not None:
                recording.add(topic, data, stamp_ns, channels)

    def _layout(self, source: Source, data: bytes) -> CdrLayout:
        """Return a message's layout, mostly the layout of the topic's last message; ValueError as :func:`layout_of`."""
        layout = self.layouts.get(source.name)
        if layout is None or not layout.fits(data):
            layout = self.layouts[source.name] = layout_of(data, source.type)
        return layout

    def _stamp(self, source: Source, data: bytes, arrival_ns: int) -> int:
        """Return the time of a message [ns]: its stamp, or its arrival by ``stamps`` or if it has no stamp."""
        if self.options.stamps == "header" and source.type != NUMBERS:
            return stamp_of_serialized(data)
        # The middleware's arrival stamp, if there is one, is on the system clock.
        by_system = arrival_ns and not self.get_parameter("use_sim_time").value
        return arrival_ns if by_system else int(self.get_clock().now().nanoseconds)

    # Status

    def _publish_status(self) -> None:
        session, recording = self.session, self.session.recording
        message = RecorderStatus(message=session.message, lost=session.lost, loaded=self.watch.loaded)
        message.header.stamp = self.get_clock().now().to_msg()
        if recording is not None:
            silent_s = session.silent_s(self._now_ns())
            message.recording = silent_s < MAX_SAMPLE_AGE_NS * 1e-9
            if session.state is not SessionState.STARTING and not message.recording:
                message.message = f"{recording.name}: no samples for {silent_s:.1f} s"
            counts = recording.counts
            message.name, message.path = recording.name, str(recording.bag.path) if recording.bag else ""
            message.samples, message.rejected = counts.accepted, counts.rejected
            message.out_of_order, message.gaps = counts.out_of_order, counts.gaps
            message.seconds, message.rate_hz = recording.seconds, recording.rate_hz
            message.incomplete = recording.assembler.dropped
        self.status_publisher.publish(message)

    def _statuses(self) -> list[Status]:
        now = self._now_ns() * 1e-9
        recorded = zip(self.sources, self._inspect(), self.streams, strict=True)
        of_topics = (topic_status(source, state, stream.report(now), self.joints.get(source.name, ()))
            for source, state, stream in recorded)
        return [recording_status(self.session), disk_status(self.options), *of_topics]

    def _inspect(self) -> list[TopicState]:
        return [inspect_topic(self, source.name, source.type, self.profile) for source in self.sources]

    def _now_ns(self) -> int:
        return int(topics.STEADY.now().nanoseconds)

    # Ending

    def begin_shutdown(self) -> None:
        """Complete the bag after a signal, or after an exception in a callback."""
        self.session.close()


def _answering(serve: Callable[[], Awaitable[str]]) -> Callable[..., Awaitable[Trigger.Response]]:
    """Return a service callback that answers with the text that ``serve`` returns, or the InertidError it raises."""

    async def answer(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            response.message, response.success = await serve(), True
        except InertidError as error:
            response.message, response.success = str(error), False
        return response

    return answer


def inspect_topic(node: Node, topic: str, type_name: str, profile: QoSProfile) -> TopicState:
    """Check whether a subscription with a type and profile receives from the publishers of a topic (resolved name)."""
    offers, wants_reliable = node.get_publishers_info_by_topic(topic), profile.reliability == ReliabilityPolicy.RELIABLE
    for offer in offers:
        who = f"{offer.node_namespace.rstrip('/')}/{offer.node_name} publishes {topic}"
        if offer.topic_type != type_name:
            return TopicState(len(offers), f"{who} as {offer.topic_type}, expected {type_name}")
        if wants_reliable and offer.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT:
            return TopicState(len(offers), f"{who} best effort; set the parameter reliability to best_effort")
    absent = f"{topic} has no publisher; start the robot's driver, or remap the topic"
    return TopicState(len(offers), "" if offers else absent)


def recording_status(session: RecordingSession) -> Status:
    """Status of the recording and of the skipped samples."""
    live = session.recording
    counts = vars(live.counts) if live is not None else {}
    values: dict[str, object] = {
        "State": session.state.value,
        "Recording": live.name if live is not None else None,
        "Samples": counts.get("accepted"),
        "Rejected": counts.get("rejected"),
        "Out of order": counts.get("out_of_order"),
        "Gaps": counts.get("gaps"),
        "Lost by the middleware": session.lost if live is not None else None,
        "Incomplete": live.assembler.dropped if live is not None else None,
        "Duration (s)": live.seconds if live is not None else None,
        "Last fault": session.last_fault}
    failed = session.message if session.state is SessionState.FAILED else ""
    return judged("recording", values, (ERROR, failed), (WARN, session.warning), otherwise=session.message)


def disk_status(options: RecorderOptions) -> Status:
    """Status of the space for recordings."""
    required, free = options.min_free_mb, free_space_mb(options.directory)
    space = f"{free:.0f} MiB are free in {options.directory}"
    values = {"Directory": options.directory, "Free space (MiB)": free, "Minimum free space (MiB)": required}
    return judged(
        "disk", values,
        (OK, "" if options.write_bag else "no bags are written"),
        (WARN, f"free space of {options.directory} cannot be read" if np.isnan(free) else ""),
        (ERROR, f"{space}, below min_free_mb {required}; recordings are refused" if free < required else ""),
        (WARN, space if free < _SCARCE_SPACE_FACTOR * required else ""),
        otherwise=space)


def topic_status(source: Source, state: TopicState, report: StreamReport, joints: Sequence[str]) -> Status:
    """Status of the messages of a topic; ``joints`` are the joints of its recorded joint states."""
    channels = joints if source.is_of_states else _WRENCH_CHANNELS
    values = {"Type": source.type, "Publishers": state.publishers, **diagnostics.stream_values(report, channels)}
    saturated = values["Saturated"]
    mixed = f"{state.publishers} publishers mix their data on {source.name}; stop all but one"
    return judged(
        f"topic {source.name}", values,
        (ERROR if state.publishers else STALE, state.problem),
        (STALE, f"{source.name} is published but no message arrives" if report.silent else ""),
        (WARN, mixed if state.publishers > 1 else ""),
        (WARN, diagnostics.wrong_clock(report)),
        (WARN, diagnostics.gaps_between("messages", report)),
        (WARN, f"{saturated} at the largest value; check the sensor's range" if saturated else ""),
        otherwise=f"{report.rate_hz:.0f} Hz")


def main() -> int:
    return run_node(Recorder)
