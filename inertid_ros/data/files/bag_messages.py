"""Messages of a bag that make a recording: deserialised, stamped, put in order and assembled."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inertid_ros.config.recording_topics import RecordingTopics
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.bag_storage.bag_backends import BagBackend, BagMessage
from inertid_ros.data.bag_storage.mcap_recovery import BagContent
from inertid_ros.data.messages import (
    WRENCH_STAMPED,
    base_topics,
    base_values,
    channels_of,
    stamp_ns,
    tare_topic,
    wrench_values,
)
from inertid_ros.data.recording import Recording
from inertid_ros.data.stamp_order import StampRepairs, in_order

_FROZEN = 0.05  # share of different stamps below which a clock stands still
_LATEST_NS = 2**62  # in the year 2116; differences still fit 64 bits
_PAUSE = 4.0  # periods; longer steps are gaps


def assembler_for(
    name: str, topics: RecordingTopics, joints: Sequence[str] = (), expected: Sequence[str] = ()
) -> RecordingAssembler:
    """An empty assembler of what the topics say a recording has."""
    frames = tuple(wrench.frame for wrench in topics.wrenches.values() if wrench.frame)
    channels = [channel for message_type in base_topics(topics).values() for channel in channels_of(message_type)]
    return RecordingAssembler(name, joints, frames, topics.max_wrench_gap_s, expected, channels)


def with_arrival_jitter(recording: Recording) -> Recording:
    """A recording whose times are those of arrival, with their jitter."""
    steps = np.diff(recording.time)
    period = float(np.median(steps))
    jitter = float(np.std(steps[steps < _PAUSE * period])) / period
    return replace(recording, repairs=replace(recording.repairs, arrival_jitter=jitter))


class BagMessages:
    """Messages of a bag on the topics that make a recording.

    Parameters
    ----------
    backend : BagBackend
        Library by which they are deserialised.
    bag : BagContent
        Its messages may be put in another order.
    name : str
        Of the bag in messages.
    topics : RecordingTopics
        Topics and their channels.
    stamps : str
        "header", or "arrival" for the times at which messages were recorded.

    Attributes
    ----------
    joints : tuple of str
        Joints of all messages, in the order of their appearance; known once they have been put in order.
    """

    def __init__(self, backend: BagBackend, bag: BagContent, name: str, topics: RecordingTopics, stamps: str) -> None:
        self._backend, self._bag, self._name, self._topics = backend, bag, name, topics
        self._arrival = stamps == "arrival"
        self._frames = {wrench.topic: wrench.frame for wrench in topics.wrenches.values()}
        self._tare_topics = {tare_topic(topic): topic for topic in self._frames}
        self._joint_states = {topics.joint_states, *topics.further_joint_states}
        self.joints: tuple[str, ...] = ()

    def assembled(self, joints: Sequence[str] = (), expected: Sequence[str] = ()) -> RecordingAssembler:
        """All messages in an assembler for ``joints``, or those of the first message with some ``expected`` ones.

        Raises
        ------
        RecordingError
            See :class:`RecordingAssembler`.
        """
        base, tares = base_topics(self._topics), self._tares()
        assembler = assembler_for(self._name, self._topics, joints, expected)
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
        """Put the messages of every channel in the order of their stamps, without those that :func:`in_order` drops.

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
            chosen, own = in_order(stamps)
            repairs += own
            places = sorted(group[index][2] for index in chosen)
            ordered += [(place, group[index][0]) for place, index in zip(places, chosen, strict=True)]
        self._bag.messages = [message for _, message in sorted(ordered, key=lambda entry: entry[0])]
        joints = (group for group in groups if group[0] in self._joint_states)
        self.joints = tuple(dict.fromkeys(name for _, *names in joints for name in names))
        return repairs

    def _stamped(self) -> Iterator[tuple[BagMessage, Any, int]]:
        """Message, content and stamp [ns] of all but tares."""
        for index, message in enumerate(self._bag.messages):
            if message.topic not in self._tare_topics:
                where = f"{self._name}: message {index + 1}"
                content = _deserialized(self._backend, message, self._bag.types[message.topic], where)
                stamp = message.time_ns if self._arrival else stamp_ns(content)
                if not (isinstance(stamp, int) and abs(stamp) < _LATEST_NS):
                    raise RecordingError(f"{where} on {message.topic}: time {stamp} ns is no time; record again")
                yield message, content, stamp

    def _check_stamps(self, stamps: np.ndarray) -> None:
        what = ""
        if np.mean(stamps <= 0) > 0.5:
            what = "are zero"
        elif len(np.unique(stamps)) < _FROZEN * len(stamps):
            what = f"hardly change (header.stamp {stamps[0]} ns)"
        if what:
            raise RecordingError(
                f"{self._name}: stamps of joint states {what}; the publisher must stamp them, or take the times at"
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


def _deserialized(backend: BagBackend, message: BagMessage, message_type: str, where: str) -> Any:
    try:
        return backend.deserialize(message.data, message_type)
    except Exception as error:  # a library raises whatever the bytes lead to
        reason = error.__class__.__name__
        text = f"{where} on {message.topic}: is not a valid {message_type} ({reason}); record again"
        raise RecordingError(text) from None
