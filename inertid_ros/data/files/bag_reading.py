"""Recordings from rosbag2 bags, as a whole or in parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data import messages as msg
from inertid_ros.data.assembly import JointsError, RecordingAssembler, StampOrderError
from inertid_ros.data.blocks import Block, recording_from_blocks
from inertid_ros.data.recording import WRENCH_PREFIX, Recording, StampRepairs, in_order, on_one_clock

from .bag_backends import BagBackend, BagMessage, bag_backend
from .bag_opening import bag_content, closed_files
from .column_reading import BATCH_SAMPLES, column_batches, named_channels

_TOPIC_OPTIONS = {
    msg.JOINT_STATE: "joint_states", msg.ODOMETRY: "odometry", msg.POSE_STAMPED: "pose", msg.TWIST_STAMPED: "twist",
    msg.IMU: "imu",
}  # fmt: skip
_FROZEN_CLOCK_SHARE = 0.05  # of stamps that differ; with fewer the clock stands still
_MAX_ZERO_STAMPS_SHARE = 0.5
_PAUSE_PERIODS = 4.0  # longer steps are gaps, no jitter


class TooLongError(Exception):
    """A bag holds more samples than its reader takes at once."""


def read_bag(
    path: str | Path,
    topics: RecordingTopics | None = None,
    joints: Sequence[str] = (),
    stamps: str = "header",
    longest: int | None = None,
) -> Recording:
    """Recording of a rosbag2 directory or of a bare ``.mcap`` or ``.db3`` file, named by its path.

    Time is the header stamp relative to the first. Stamps that crossed are put in order, repeats and a few of another
    clock are left out, and counted in :attr:`Recording.repairs`; joints of several publishers are merged. Of a bag that
    was not closed, or an MCAP file that is cut short, everything readable is taken, with a line in
    :attr:`Recording.notices`.

    Parameters
    ----------
    path : str or Path
    topics : RecordingTopics, optional
    joints : sequence of str
        Joints of the robot, as a hint: if several publishers share the topic, messages with none of these joints (a
        gripper's) are skipped. ``topics.joints`` overrides it.
    stamps : str
        "header", or "arrival" for the times at which the messages were recorded.
    longest : int, optional
        Maximal number of samples read at once, if the bag can be read in parts.

    Raises
    ------
    TooLongError
        There are more than ``longest``; see :func:`bag_parts`.
    RecordingError
        No bag, unreadable, a topic is missing or of another type, or the messages make no recording.
    """
    path, topics, backend, arrival = Path(path), topics or RecordingTopics(), bag_backend(), stamps == "arrival"
    assembler = _assembler(str(path), topics, topics.joints, () if topics.joints else tuple(joints))
    try:
        for _ in column_batches(assembler, backend, closed_files(path), topics, arrival, longest and BATCH_SAMPLES):
            if longest is not None and assembler.samples > longest:
                raise TooLongError
        recording = assembler.recording() if assembler.joint_names else None
    except msg.UnsuitableError:
        recording = None
    if recording is None or not on_one_clock(recording.time).all():
        recording = _read_one_by_one(backend, path, topics, joints, arrival)
    return _with_arrival_jitter(recording) if arrival else recording


def _read_one_by_one(
    backend: BagBackend, path: Path, topics: RecordingTopics, joints: Sequence[str], arrival: bool
) -> Recording:
    """Recording of messages as they are, or, if it has stamps of several clocks or joints, with them put in order."""
    types = msg.wanted_topics(topics)
    bag = bag_content(backend, path, {*types, *(msg.tare_topic(wrench.topic) for wrench in topics.wrenches.values())})
    _check_topics(str(path), bag.types, types)
    messages = _Messages(backend, str(path), topics, bag.messages, arrival)
    expected = () if topics.joints else tuple(joints)
    reason = RecordingError(f"{path}: joint states have stamps of two clocks; check the publisher")
    try:
        assembler = messages.assembled(topics.joints, expected)
        if expected and not assembler.joint_names:  # another robot's bag; the caller's check names its joints
            assembler = messages.assembled(topics.joints)
        recording = assembler.recording(bag.notices)
        if on_one_clock(recording.time).all():
            return recording
    except (JointsError, StampOrderError) as error:
        reason = error
    messages, repairs, recorded = messages.by_stamps()
    if repairs.too_many_elsewhere:
        raise reason
    chosen = topics.joints or tuple(joint for joint in joints if joint in recorded)
    try:
        recording = messages.assembled(chosen or recorded).recording(bag.notices)
    except JointsError:
        raise reason from None
    except RecordingError:
        if chosen:
            raise
        raise reason from None  # the user must say which joints are meant
    return replace(recording, repairs=repairs)


class _Decoded(NamedTuple):
    source: tuple[str, ...]  # joints, or the frame
    stamp_ns: int
    values: Mapping[str, Array]


@dataclass(frozen=True)
class _Messages:
    """Messages of a bag on the topics that make a recording, and tares."""

    backend: BagBackend
    name: str
    topics: RecordingTopics
    messages: Sequence[BagMessage]
    arrival: bool

    def assembled(self, joints: Sequence[str] = (), expected: Sequence[str] = ()) -> RecordingAssembler:
        """Assemble all messages for ``joints``, or for those of the first message with some ``expected`` ones."""
        frames = {wrench.topic: wrench.frame for wrench in self.topics.wrenches.values()}
        tared_topics = {msg.tare_topic(topic): topic for topic in frames}
        tares = {
            tared_topics[message.topic]: self._decoded(message, msg.WRENCH_STAMPED, "tare").values["wrench"]
            for message in self.messages
            if message.topic in tared_topics
        }
        assembler = _assembler(self.name, self.topics, joints, expected)
        for message, (source, stamp, values) in self._measurements():
            if "position" in values:
                assembler.add_joint_states(source, stamp, **values)
                continue
            frame = frames.get(message.topic) or source[0]
            for channel, row in named_channels(values, frame, tares.get(message.topic, 0.0)).items():
                assembler.add(channel, stamp, row)
        return assembler

    def by_stamps(self) -> tuple["_Messages", StampRepairs, tuple[str, ...]]:
        """Sort every channel by its stamps, without the messages that :func:`.in_order` drops.

        Returns
        -------
        messages : _Messages
        repairs : StampRepairs
        joints : tuple of str
            Joints of all messages.

        Raises
        ------
        RecordingError
            The publisher of the joint states does not stamp them.
        """
        types = msg.wanted_topics(self.topics)
        groups: dict[tuple[str, ...], list[tuple[int, BagMessage, int]]] = {}  # by topic and source
        for place, (message, decoded) in enumerate(self._measurements()):
            groups.setdefault((message.topic, *decoded.source), []).append((place, message, decoded.stamp_ns))
        repairs = StampRepairs()
        ordered = [(-1, message) for message in self.messages if message.topic not in types]
        for (topic, *_), group in groups.items():
            stamps = np.array([stamp for _, _, stamp in group], dtype=np.int64)
            if types[topic] == msg.JOINT_STATE and not self.arrival:
                _check_stamps(self.name, stamps)
            chosen, group_repairs = in_order(stamps)
            repairs += group_repairs
            places = sorted(group[index][0] for index in chosen)
            ordered += [(place, group[index][1]) for place, index in zip(places, chosen, strict=True)]
        messages = [message for _, message in sorted(ordered, key=lambda entry: entry[0])]
        joints = (name for topic, *names in groups if types[topic] == msg.JOINT_STATE for name in names)
        return replace(self, messages=messages), repairs, tuple(dict.fromkeys(joints))

    def _measurements(self) -> Iterator[tuple[BagMessage, _Decoded]]:
        """Yield all messages but tares, and their content."""
        types = msg.wanted_topics(self.topics)
        for index, message in enumerate(self.messages):
            if message.topic in types:
                where = f"{self.name}: message {index + 1}"
                decoded = self._decoded(message, types[message.topic], where)
                stamp = decoded.stamp_ns
                if not (isinstance(stamp, int) and abs(stamp) < msg.LATEST_NS):
                    raise RecordingError(f"{where} on {message.topic}: time {stamp} ns is no time; record again")
                yield message, decoded

    def _decoded(self, message: BagMessage, message_type: str, where: str) -> _Decoded:
        try:
            content = self.backend.deserialize(message.data, message_type)
        except Exception as error:  # a library raises anything on damaged bytes
            reason = error.__class__.__name__
            raise RecordingError(
                f"{where} on {message.topic}: is not a valid {message_type} ({reason}); record again"
            ) from None
        stamp = message.time_ns if self.arrival else msg.stamp_ns(content)
        return _Decoded(msg.source_of(message_type, content), stamp, msg.message_values(message_type, content))


def _check_stamps(name: str, stamps: np.ndarray) -> None:
    what = ""
    if np.mean(stamps <= 0) > _MAX_ZERO_STAMPS_SHARE:
        what = "are zero"
    elif len(np.unique(stamps)) < _FROZEN_CLOCK_SHARE * len(stamps):
        what = f"hardly change (header.stamp {stamps[0]} ns)"
    if what:
        raise RecordingError(
            f"{name}: stamps of joint states {what}; the publisher must stamp them, or take the times at"
            " which they were recorded by prepare.stamps: arrival"
        )


def _check_topics(name: str, types: dict[str, str], wanted: dict[str, str]) -> None:
    for topic, message_type in wanted.items():
        if topic not in types:
            there = ", ".join(f"{other} ({types[other].rpartition('/')[2]})" for other in sorted(types)) or "no topics"
            key = f"topics.{_TOPIC_OPTIONS.get(message_type, 'wrenches')}"
            raise RecordingError(f"{name}: has no topic {topic}; it has {there}; set {key}")
        if types[topic] != message_type:
            raise RecordingError(
                f"{name}: topic {topic} is {types[topic]}, expected {message_type}; choose another topic"
            )


def bag_parts(
    path: str | Path,
    topics: RecordingTopics | None = None,
    joints: Sequence[str] = (),
    stamps: str = "header",
    size: int = BATCH_SAMPLES,
) -> Iterator[Recording]:
    """Yield consecutive parts of the recording of a bag; together they hold what :func:`read_bag` reads.

    Time of all parts counts from the first stamp of the bag. All are named by its path.

    Parameters
    ----------
    path, topics, joints, stamps
        As for :func:`read_bag`.
    size : int
        Approximate samples of a part; the last one has up to twice as many.

    Raises
    ------
    UnsuitableError
        The bag can only be read as a whole: messages are not in order, or a tare applies to all of them.
    RecordingError
        A part holds no measurements.
    """
    path, topics, arrival = Path(path), topics or RecordingTopics(), stamps == "arrival"
    assembler = _assembler(str(path), topics, topics.joints, () if topics.joints else tuple(joints))
    ready: list[Block] = []
    following: list[Block] = []
    first_ns: int | None = None
    for _ in column_batches(assembler, bag_backend(), closed_files(path), topics, arrival, size):
        block = assembler.take(patient=True)
        if block is None or not len(block):
            continue
        first_ns = int(block.stamps_ns[0]) if first_ns is None else first_ns
        following.append(block)
        if sum(map(len, following)) >= size:
            if ready:
                yield _part(str(path), ready, first_ns, arrival, last=False)
            ready, following = following, []
    block = assembler.take(final=True)
    blocks = [*ready, *following, *([block] if block is not None and len(block) else [])]
    if not blocks:
        raise msg.UnsuitableError
    first_ns = int(blocks[0].stamps_ns[0]) if first_ns is None else first_ns
    part = _part(str(path), blocks, first_ns, arrival, last=True)
    yield replace(part, notices=(*part.notices, *assembler.notices))


def _part(name: str, blocks: Sequence[Block], first_ns: int, arrival: bool, last: bool) -> Recording:
    stamps = np.concatenate([block.stamps_ns for block in blocks])
    if not on_one_clock(stamps).all():
        raise msg.UnsuitableError
    recording = recording_from_blocks(name, blocks)
    continued = (int(stamps[0]) > first_ns, not last)
    recording = replace(recording, time=(stamps - first_ns) * 1e-9, continued=continued)
    return _with_arrival_jitter(recording) if arrival else recording


def _assembler(
    name: str, topics: RecordingTopics, joints: Sequence[str], expected: Sequence[str]
) -> RecordingAssembler:
    channels = [f"{WRENCH_PREFIX}{wrench.frame}" for wrench in topics.wrenches.values() if wrench.frame]
    for message_type in msg.base_topics(topics).values():
        channels += msg.channels_of(message_type)
    return RecordingAssembler(name, joints, channels, topics.max_wrench_gap_s, expected)


def _with_arrival_jitter(recording: Recording) -> Recording:
    steps = np.diff(recording.time)
    period = float(np.median(steps))
    jitter = float(np.std(steps[steps < _PAUSE_PERIODS * period])) / period
    return replace(recording, repairs=replace(recording.repairs, arrival_jitter=jitter))
