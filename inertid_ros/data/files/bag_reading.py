"""Recordings from rosbag2 bags, as a whole or in parts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.assembly import JointsError, RecordingAssembler, StampOrderError
from inertid_ros.data.blocks import Block, recording_from_blocks
from inertid_ros.data.messages import (
    IMU,
    JOINT_STATE,
    LATEST_NS,
    ODOMETRY,
    POSE_STAMPED,
    TWIST_STAMPED,
    WRENCH_STAMPED,
    UnsuitableError,
    base_topics,
    base_values,
    channels_of,
    stamp_ns,
    tare_topic,
    wanted_topics,
    wrench_values,
)
from inertid_ros.data.recording import Recording, StampRepairs, in_order, on_one_clock

from .bag_backends import BagBackend, BagMessage, bag_backend
from .bag_opening import (
    bag_content,
    closed_files,
)
from .column_reading import BATCH_SAMPLES, add_columns, column_batches
from .mcap_format import MCAP_MAGIC as MCAP_MAGIC
from .mcap_format import BagContent

_TOPIC_OPTIONS = {
    JOINT_STATE: "joint_states", ODOMETRY: "odometry", POSE_STAMPED: "pose", TWIST_STAMPED: "twist", IMU: "imu",
}
_FROZEN_CLOCK_SHARE = 0.05  # of stamps that differ; with fewer the clock stands still
_PAUSE_PERIODS = 4.0  # longer steps are gaps, no jitter


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
        The bag.
    topics : RecordingTopics, optional
        Topics that make the recording.
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
    path, topics = Path(path), topics or RecordingTopics()
    wanted, backend = wanted_topics(topics), bag_backend()
    expected, arrival = () if topics.joints else tuple(joints), stamps == "arrival"
    files = closed_files(path)
    assembler = assembler_for(str(path), topics, topics.joints, expected)
    recording = None
    if files and add_columns(assembler, backend, files, topics, arrival, longest) and assembler.joint_names:
        recording = assembler.recording()
    if recording is None or not on_one_clock(recording.time).all():
        bag = bag_content(backend, path, {*wanted, *(tare_topic(wrench.topic) for wrench in topics.wrenches.values())})
        _check_topics(str(path), bag.types, wanted)
        messages = BagMessages(backend, bag, str(path), topics, stamps)
        recording = _recording_of(messages, topics, joints, expected)
    return with_arrival_jitter(recording) if arrival else recording


class BagMessages:
    """Messages of a bag on the topics that make a recording.

    Parameters
    ----------
    backend : BagBackend
        Library that decodes them.
    bag : BagContent
        Its messages may be put in another order.
    name : str
        Name of the bag in messages.
    topics : RecordingTopics
        Topics and their channels.
    stamps : str
        "header", or "arrival" for the times at which messages were recorded.

    Attributes
    ----------
    joints : tuple of str
        Joints of all messages, in the order of their appearance; empty before :meth:`put_in_order`.
    """

    def __init__(self, backend: BagBackend, bag: BagContent, name: str, topics: RecordingTopics, stamps: str) -> None:
        self._backend, self._bag, self.name, self._topics = backend, bag, name, topics
        self.notices = bag.notices
        self._arrival = stamps == "arrival"
        self._frames = {wrench.topic: wrench.frame for wrench in topics.wrenches.values()}
        self._tare_topics = {tare_topic(topic): topic for topic in self._frames}
        self._joint_states = {topics.joint_states, *topics.further_joint_states}
        self.joints: tuple[str, ...] = ()

    def assembled(self, joints: Sequence[str] = (), expected: Sequence[str] = ()) -> RecordingAssembler:
        """Assemble all messages for ``joints``, or for those of the first message with some ``expected`` ones.

        Raises
        ------
        RecordingError
            See :class:`RecordingAssembler`.
        """
        base, tares = base_topics(self._topics), self._tares()
        assembler = assembler_for(self.name, self._topics, joints, expected)
        for message, content, stamp in self._stamped():
            if message.topic in self._joint_states:
                assembler.add_joint_state(content.name, stamp, content.position, content.velocity, content.effort)
            elif message.topic in base:
                for channel, values in base_values(base[message.topic], content).items():
                    assembler.add_base(channel, stamp, values)
            else:
                wrench = wrench_values(content) - tares.get(message.topic, 0.0)
                assembler.add_wrench(self._frame(message.topic, content), stamp, wrench[:3], wrench[3:])
        return assembler

    def put_in_order(self) -> StampRepairs:
        """Sort the messages of every channel by their stamps, and drop those that :func:`in_order` drops.

        Raises
        ------
        RecordingError
            The publisher of the joint states does not stamp them.
        """
        groups: dict[tuple[str, ...], list[tuple[BagMessage, int, int]]] = {}
        for index, (message, content, stamp) in enumerate(self._stamped()):
            names = tuple(content.name) if message.topic in self._joint_states else (content.header.frame_id,)
            groups.setdefault((message.topic, *names), []).append((message, stamp, index))
        tares = [(-1, message) for message in self._bag.messages if message.topic in self._tare_topics]
        repairs, ordered = StampRepairs(), tares
        for (topic, *_), group in groups.items():
            stamps = np.array([stamp for _, stamp, _ in group], dtype=np.int64)
            if topic in self._joint_states and not self._arrival:
                self._check_stamps(stamps)
            chosen, group_repairs = in_order(stamps)
            repairs += group_repairs
            places = sorted(group[index][2] for index in chosen)
            ordered += [(place, group[index][0]) for place, index in zip(places, chosen, strict=True)]
        self._bag.messages = [message for _, message in sorted(ordered, key=lambda entry: entry[0])]
        joints = (group for group in groups if group[0] in self._joint_states)
        self.joints = tuple(dict.fromkeys(name for _, *names in joints for name in names))
        return repairs

    def _stamped(self) -> Iterator[tuple[BagMessage, Any, int]]:
        """Yield message, content and stamp [ns] of all but tares."""
        for index, message in enumerate(self._bag.messages):
            if message.topic not in self._tare_topics:
                where = f"{self.name}: message {index + 1}"
                content = _deserialized(self._backend, message, self._bag.types[message.topic], where)
                stamp = message.time_ns if self._arrival else stamp_ns(content)
                if not (isinstance(stamp, int) and abs(stamp) < LATEST_NS):
                    raise RecordingError(f"{where} on {message.topic}: time {stamp} ns is no time; record again")
                yield message, content, stamp

    def _check_stamps(self, stamps: np.ndarray) -> None:
        what = ""
        if np.mean(stamps <= 0) > 0.5:
            what = "are zero"
        elif len(np.unique(stamps)) < _FROZEN_CLOCK_SHARE * len(stamps):
            what = f"hardly change (header.stamp {stamps[0]} ns)"
        if what:
            raise RecordingError(
                f"{self.name}: stamps of joint states {what}; the publisher must stamp them, or take the times at"
                " which they were recorded by prepare.stamps: arrival"
            )

    def _tares(self) -> dict[str, Array]:
        """Wrench topic to the zero ``(6,)`` that its recorder subtracted."""
        tares = {}
        for message in self._bag.messages:
            if message.topic in self._tare_topics:
                content = _deserialized(self._backend, message, WRENCH_STAMPED, "tare")
                tares[self._tare_topics[message.topic]] = wrench_values(content)
        return tares

    def _frame(self, topic: str, content: Any) -> str:
        return self._frames[topic] or str(content.header.frame_id)


def _recording_of(
    messages: BagMessages, topics: RecordingTopics, joints: Sequence[str], expected: Sequence[str]
) -> Recording:
    """Recording of messages as they are, or, if it has stamps of several clocks or joints, with them put in order."""
    reason = RecordingError(f"{messages.name}: joint states have stamps of two clocks; check the publisher")
    try:
        assembler = messages.assembled(topics.joints, expected)
        if expected and not assembler.joint_names:  # another robot's bag; the caller's check names its joints
            assembler = messages.assembled(topics.joints)
        recording = assembler.recording(messages.notices)
        if on_one_clock(recording.time).all():
            return recording
    except (JointsError, StampOrderError) as error:
        reason = error
    repairs = messages.put_in_order()
    if repairs.too_many_elsewhere:
        raise reason
    chosen = topics.joints or tuple(joint for joint in joints if joint in messages.joints)
    try:
        recording = messages.assembled(chosen or messages.joints).recording(messages.notices)
    except JointsError:
        raise reason from None
    except RecordingError:
        if chosen:
            raise
        raise reason from None  # the user must say which joints are meant
    return replace(recording, repairs=repairs)


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
    files = closed_files(path)
    if not files:
        raise UnsuitableError
    assembler = assembler_for(str(path), topics, topics.joints, () if topics.joints else tuple(joints))
    ready: list[Block] = []
    following: list[Block] = []
    first_ns: int | None = None
    for _ in column_batches(assembler, bag_backend(), files, topics, arrival, size):
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
        raise UnsuitableError
    first_ns = int(blocks[0].stamps_ns[0]) if first_ns is None else first_ns
    part = _part(str(path), blocks, first_ns, arrival, last=True)
    yield replace(part, notices=(*part.notices, *assembler.notices))


def _part(name: str, blocks: Sequence[Block], first_ns: int, arrival: bool, last: bool) -> Recording:
    stamps = np.concatenate([block.stamps_ns for block in blocks])
    if not on_one_clock(stamps).all():
        raise UnsuitableError
    recording = recording_from_blocks(name, blocks)
    continued = (int(stamps[0]) > first_ns, not last)
    recording = replace(recording, time=(stamps - first_ns) * 1e-9, continued=continued)
    return with_arrival_jitter(recording) if arrival else recording


def assembler_for(
    name: str, topics: RecordingTopics, joints: Sequence[str] = (), expected: Sequence[str] = ()
) -> RecordingAssembler:
    """Make an empty assembler for the channels of the topics."""
    frames = tuple(wrench.frame for wrench in topics.wrenches.values() if wrench.frame)
    channels = [channel for message_type in base_topics(topics).values() for channel in channels_of(message_type)]
    return RecordingAssembler(name, joints, frames, topics.max_wrench_gap_s, expected, channels)


def with_arrival_jitter(recording: Recording) -> Recording:
    """Note the jitter of the times in a recording whose times are those of arrival."""
    steps = np.diff(recording.time)
    period = float(np.median(steps))
    jitter = float(np.std(steps[steps < _PAUSE_PERIODS * period])) / period
    return replace(recording, repairs=replace(recording.repairs, arrival_jitter=jitter))


def _deserialized(backend: BagBackend, message: BagMessage, message_type: str, where: str) -> Any:
    try:
        return backend.deserialize(message.data, message_type)
    except Exception as error:  # a library raises anything on damaged bytes
        reason = error.__class__.__name__
        raise RecordingError(
            f"{where} on {message.topic}: is not a valid {message_type} ({reason}); record again"
        ) from None
