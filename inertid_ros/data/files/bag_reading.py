"""Recordings from rosbag2 bags, as a whole or in parts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.errors import RecordingError
from inertid_ros.data import messages as msg
from inertid_ros.data.assembly import JointsError, RecordingAssembler, StampOrderError
from inertid_ros.data.long_recording import Block, recording_from_blocks
from inertid_ros.data.recording import COMMAND_CHANNELS, WRENCH_PREFIX, Recording, StampRepairs, in_order, on_one_clock

from .bag_opening import StoredBag
from .column_reading import Columns, TopicColumns

PART_SAMPLES = 20_000  # joint states of a part: 20 s at 1 kHz
_TOPIC_OPTIONS = {msg.JOINT_STATE: "joint_states", msg.ODOMETRY: "odometry", msg.POSE_STAMPED: "pose",
    msg.TWIST_STAMPED: "twist", msg.IMU: "imu", msg.CONTROLLER_STATE: "controller_state"}
_FROZEN_CLOCK_SHARE = 0.05  # share of distinct stamps; with a smaller share the clock stands still
_MAX_ZERO_STAMPS_SHARE = 0.5
_PAUSE_PERIODS = 4.0  # longer steps are gaps, not jitter


class TooLongError(Exception):
    """A bag holds more samples than the caller wants to read at once."""


class OnlyWholeError(Exception):
    """A bag can only be read as a whole, for example because its messages are not in order or have a tare."""


def read_bag(path: str | Path, topics: RecordingTopics | None = None, joints: Sequence[str] = (),
        stamps: str = "header", longest: int | None = None) -> Recording:
    """Read a recording, named by its path, from a rosbag2 directory or a bare ``.mcap`` or ``.db3`` file.

    Time is the header stamp relative to the first stamp. Messages that overtook one another are put in order, and
    repeated stamps and a few stamps of another clock are left out; :attr:`Recording.repairs` counts these repairs.
    Joints of several publishers are merged. If a bag was not closed or an MCAP file is cut short, all readable
    messages are taken, and :attr:`Recording.notices` gets a line.

    Raises RecordingError: not a bag, unreadable, a topic is missing or has another type, or messages are not usable.

    Parameters
    ----------
    joints : joints of the robot, as a hint: if several publishers share the topic, messages without these joints
        (a gripper's) are skipped. ``topics.joints`` overrides it.
    stamps : "header", or "arrival" for the times at which the messages were recorded.
    longest : maximal number of joint states of one publisher; TooLongError if there are more.
    """
    source = _Source(path, topics, stamps)
    for columns, _ in source.read():
        if longest is not None and columns.type == msg.JOINT_STATE and columns.samples > longest:
            raise TooLongError
    recording = _recording(source, joints)
    return _with_arrival_jitter(recording) if source.arrival else recording


def bag_parts(path: str | Path, topics: RecordingTopics | None = None, joints: Sequence[str] = (),
        stamps: str = "header", size: int = PART_SAMPLES) -> Iterator[Recording]:
    """Yield consecutive parts of the recording of a bag; together the parts equal the result of :func:`read_bag`.

    The time of all parts counts from the first stamp of the bag. All parts are named by the path of the bag.

    Raises OnlyWholeError: the bag cannot be read in parts; :func:`read_bag` reads it or raises RecordingError.

    Parameters
    ----------
    path, topics, joints, stamps
        As for :func:`read_bag`.
    size : approximate number of samples of a part; the last part has up to twice as many.
    """
    ready: list[Block] = []
    following: list[Block] = []
    first_ns: int | None = None
    try:
        source = _Source(path, topics, stamps)
        assembler = source.assembler(source.topics.joints, () if source.topics.joints else joints)
        for block in _blocks(source, assembler, size):
            first_ns = int(block.stamps_ns[0]) if first_ns is None else first_ns
            following.append(block)
            if sum(map(len, following)) >= size:
                if ready:
                    yield _part(source, ready, first_ns, last=False)
                ready, following = following, []
        if first_ns is None:
            raise OnlyWholeError
        part = _part(source, [*ready, *following], first_ns, last=True)
    except RecordingError:
        raise OnlyWholeError from None
    yield replace(part, notices=(*part.notices, *source.bag.notices, *assembler.notices))


class _Source:
    """A bag; collects its messages on the topics of a recording, and the tares of wrenches, in columns."""

    def __init__(self, path: str | Path, topics: RecordingTopics | None, stamps: str) -> None:
        self.name, self.topics, self.arrival = str(path), topics or RecordingTopics(), stamps == "arrival"
        self.bag, self.wanted = StoredBag(Path(path)), msg.wanted_topics(self.topics)
        frames = {wrench.topic: wrench.frame for wrench in self.topics.wrenches.values()}
        types = self.wanted | {msg.tare_topic(topic): msg.WRENCH_STAMPED for topic in frames}
        self._columns = {
            topic: TopicColumns(self.name, topic, kind, self.arrival or kind == msg.NUMBERS, frames.get(topic, ""))
            for topic, kind in types.items()}

    def read(self) -> Iterator[tuple[TopicColumns, int]]:
        """Yield columns with new messages, and the number of new messages; RecordingError if a topic is missing."""
        for topic, messages in self.bag.messages({topic: columns.type for topic, columns in self._columns.items()}):
            self._columns[topic].add(messages)
            yield self._columns[topic], len(messages)
        _check_topics(self.name, self.bag.types, self.wanted, {self.topics.commands: "commands"})

    def take(self) -> list[Columns]:
        """Columns of the messages since the last call, one entry per source of messages."""
        parts = [part for columns in self._columns.values() for part in columns.columns()]
        commands, joints = msg.command_topics(self.topics), self.topics.command_joints
        return [
            replace(part, type=msg.CONTROLLER_STATE, source=joints or part.source) if part.topic in commands else part
            for part in parts]

    def assembler(self, joints: Sequence[str], expected: Sequence[str] = ()) -> RecordingAssembler:
        channels = [f"{WRENCH_PREFIX}{wrench.frame}" for wrench in self.topics.wrenches.values() if wrench.frame]
        for message_type in msg.base_topics(self.topics).values():
            channels += msg.CHANNELS[message_type]
        if msg.command_topics(self.topics):
            channels.append(COMMAND_CHANNELS[0])
        return RecordingAssembler(self.name, joints, channels, self.topics.max_wrench_gap_s, expected)


def _blocks(source: _Source, assembler: RecordingAssembler, size: int) -> Iterator[Block]:
    """Yield blocks of about ``size`` samples of a bag; may raise RecordingError or OnlyWholeError."""

    def taken(final: bool) -> Iterator[Block]:
        _add(assembler, source.take())
        block = assembler.take(final, patient=True)
        if block is not None and len(block):
            yield block

    states = 0
    for columns, count in source.read():
        if columns.topic not in source.wanted or not columns.is_in_order:
            raise OnlyWholeError
        states += count if columns.type == msg.JOINT_STATE else 0
        if states >= size:
            states = 0
            yield from taken(final=False)
    yield from taken(final=True)


def _recording(source: _Source, joints: Sequence[str]) -> Recording:
    """Recording of all messages in the order received, or sorted by stamp if clocks or lists of joints conflict."""

    def assembled(parts: Sequence[Columns], joints: Sequence[str], expected: Sequence[str] = ()) -> RecordingAssembler:
        assembler = source.assembler(joints, expected)
        _add(assembler, parts)
        return assembler

    name, notices, named = source.name, source.bag.notices, source.topics.joints
    parts, expected = source.take(), () if named else tuple(joints)
    reason = RecordingError(f"{name}: joint states have stamps of two clocks; check the publisher")
    try:
        assembler = assembled(parts, named, expected)
        if expected and not assembler.joint_names:  # bag of another robot; the caller reports its joints
            assembler = assembled(parts, named)
        recording = assembler.recording(notices)
        if on_one_clock(recording.time).all():
            return recording
    except (JointsError, StampOrderError) as error:
        reason = error
    parts, repairs = _by_stamps(name, parts, source.arrival)
    if repairs.too_many_elsewhere:
        raise reason
    recorded = dict.fromkeys(joint for part in _joint_states(parts) for joint in part.source)
    chosen = named or tuple(joint for joint in joints if joint in recorded)
    try:
        recording = assembled(parts, chosen or tuple(recorded)).recording(notices)
    except JointsError:
        raise reason from None
    except RecordingError:
        if chosen:
            raise
        raise reason from None  # the user must name the joints
    return replace(recording, repairs=repairs)


def _by_stamps(name: str, parts: Sequence[Columns], arrival: bool) -> tuple[list[Columns], StampRepairs]:
    """Sort the messages of every source by stamp, except messages that :func:`.in_order` leaves out.

    Raises RecordingError: stamps of joint states are zero or hardly change.
    """
    ordered, repairs = [], StampRepairs()
    for part in parts:
        if part.type == msg.JOINT_STATE and not arrival:
            _check_stamps(name, part.stamps_ns)
        chosen, part_repairs = in_order(part.stamps_ns)
        ordered.append(part.rows(chosen))
        repairs += part_repairs
    return ordered, repairs


def _joint_states(parts: Sequence[Columns]) -> list[Columns]:
    """Joint states, sorted by the first message of each source; the first source defines the order of the joints."""
    return sorted((part for part in parts if part.type == msg.JOINT_STATE), key=lambda part: part.place)


def _add(assembler: RecordingAssembler, parts: Sequence[Columns]) -> None:
    """Add messages to an assembler, and subtract the last tare of each topic."""
    for part in _joint_states(parts):
        assembler.messages = int(part.indices.min())  # errors count all messages of the topic
        assembler.add_joint_states(part.source, part.stamps_ns, **part.values)
    others = sorted((part for part in parts if part.type != msg.JOINT_STATE), key=lambda part: part.place)
    tare_topics = {msg.tare_topic(part.topic) for part in others}
    tares = {part.topic: part.values["wrench"][-1] for part in others if part.topic in tare_topics}
    for part in others:
        if part.topic in tares:
            continue
        if part.type == msg.CONTROLLER_STATE:
            assembler.add_commands(part.source, part.stamps_ns, part.values)
            continue
        for channel, values in part.values.items():
            if channel == "wrench":
                tare = tares.get(msg.tare_topic(part.topic), 0.0)
                assembler.add(f"{WRENCH_PREFIX}{part.source[0]}", part.stamps_ns, values - tare)
            else:
                assembler.add(channel, part.stamps_ns, values)


def _check_stamps(name: str, stamps: np.ndarray) -> None:
    what = ""
    if np.mean(stamps <= 0) > _MAX_ZERO_STAMPS_SHARE:
        what = "are zero"
    elif len(np.unique(stamps)) < _FROZEN_CLOCK_SHARE * len(stamps):
        what = f"hardly change (header.stamp {stamps[0]} ns)"
    if what:
        raise RecordingError(
            f"{name}: stamps of joint states {what}; let the publisher stamp them, or use the times of"
            " recording with prepare.stamps: arrival")


def _check_topics(name: str, types: dict[str, str], wanted: dict[str, str], option_of: dict[str, str]) -> None:
    for topic, message_type in wanted.items():
        if topic not in types:
            there = ", ".join(f"{other} ({types[other].rpartition('/')[2]})" for other in sorted(types)) or "no topics"
            key = f"topics.{option_of.get(topic) or _TOPIC_OPTIONS.get(message_type, 'wrenches')}"
            raise RecordingError(f"{name}: has no topic {topic}; it has {there}; set {key}")
        if types[topic] != message_type:
            named = types[topic] == msg.NUMBERS and topic in option_of
            remedy = "name the joints of its controller by topics.command_joints" if named else "choose another topic"
            raise RecordingError(f"{name}: topic {topic} is {types[topic]}, expected {message_type}; {remedy}")


def _part(source: _Source, blocks: Sequence[Block], first_ns: int, last: bool) -> Recording:
    stamps = np.concatenate([block.stamps_ns for block in blocks])
    if not on_one_clock(stamps).all():
        raise OnlyWholeError
    continued = (int(stamps[0]) > first_ns, not last)
    recording = recording_from_blocks(source.name, blocks)
    recording = replace(recording, time=(stamps - first_ns) * 1e-9, continued=continued)
    return _with_arrival_jitter(recording) if source.arrival else recording


def _with_arrival_jitter(recording: Recording) -> Recording:
    steps = np.diff(recording.time)
    period = float(np.median(steps))
    jitter = float(np.std(steps[steps < _PAUSE_PERIODS * period])) / period
    return replace(recording, repairs=replace(recording.repairs, arrival_jitter=jitter))
