"""A bag as columns in an assembler, where all messages that make the recording can be read so."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inertid_ros.config.recording_topics import RecordingTopics
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.bag_storage.bag_backends import BagBackend
from inertid_ros.data.messages import JOINT_STATE, WRENCH_STAMPED, channels_of, tare_topic

from .cdr_layout import UnsuitableError
from .mcap_columns import McapColumns
from .sqlite_columns import SqliteColumns
from .topic_columns import Columns, TopicColumns

BATCH = 20_000  # joint states: 20 s at 1 kHz


class TooLongError(Exception):
    """A bag holds more samples than its reader takes at once."""


def add_columns(
    assembler: RecordingAssembler,
    backend: BagBackend,
    files: Sequence[Path],
    wanted: Mapping[str, str],
    topics: RecordingTopics,
    arrival: bool = False,
    longest: int | None = None,
) -> bool:
    """Add the messages of a bag to an empty assembler, as they would be added one by one.

    Parameters
    ----------
    assembler : RecordingAssembler
        Of no further use where this returns False.
    backend, files, wanted, topics, arrival
        See :func:`column_batches`.
    longest : int, optional
        Most samples that are taken.

    Returns
    -------
    bool
        False where messages are to be read one by one: a topic is missing, stamps are not in order, a file is damaged,
        or a message does not fit.

    Raises
    ------
    TooLongError
        There are more samples than ``longest``.
    """
    try:
        for _ in column_batches(assembler, backend, files, wanted, topics, arrival, longest and BATCH):
            if longest is not None and assembler.samples > longest:
                raise TooLongError
    except UnsuitableError:
        return False
    return True


def column_batches(
    assembler: RecordingAssembler,
    backend: BagBackend,
    files: Sequence[Path],
    wanted: Mapping[str, str],
    topics: RecordingTopics,
    arrival: bool = False,
    at_once: int | None = None,
) -> Iterator[None]:
    """Add the messages of a bag to an assembler in batches, from which samples may be taken in between.

    Parameters
    ----------
    assembler : RecordingAssembler
    backend : BagBackend
    files : sequence of Path
        Files of the bag that were closed, in the order of their times.
    wanted : mapping of str to str
        Topic to type of the messages that make the recording.
    topics : RecordingTopics
        Frames of the wrenches.
    arrival : bool
        Whether stamps are times of recording.
    at_once : int, optional
        Joint states of a batch, at least; all of the bag, if not given.

    Raises
    ------
    UnsuitableError
        Messages are to be read one by one, which names what is wrong with them where anything is; or a tare was
        recorded, which counts for all of the bag, and these are batches.
    """
    tares = {tare_topic(topic): expected for topic, expected in wanted.items() if expected == WRENCH_STAMPED}
    types = {**wanted, **tares}
    read = {topic: TopicColumns(backend, expected, arrival) for topic, expected in types.items()}
    try:
        states = 0
        for file in files:
            reader = SqliteColumns(file, read) if file.suffix == ".db3" else McapColumns(file, read)
            for topic, messages in reader.parts():
                read[topic].add(messages)
                if at_once is None:
                    continue
                if topic in tares:
                    raise UnsuitableError
                states += len(messages) if types[topic] == JOINT_STATE else 0
                if states >= at_once:
                    states = 0
                    _add(assembler, read, wanted, topics)
                    yield
            if any(reader.types.get(topic, expected) != expected for topic, expected in types.items()):
                raise UnsuitableError
        if not all(read[topic].count for topic in wanted):
            raise UnsuitableError
        _add(assembler, read, wanted, topics)
        yield
    except (RecordingError, OSError, ValueError, IndexError, struct.error):
        raise UnsuitableError from None


def _add(
    assembler: RecordingAssembler,
    read: Mapping[str, TopicColumns],
    wanted: Mapping[str, str],
    topics: RecordingTopics,
) -> None:
    columns = {topic: own.columns() for topic, own in read.items()}
    joint_states = [own for topic in wanted if wanted[topic] == JOINT_STATE for own in columns[topic]]
    if len({own.first_ns for own in joint_states}) < len(joint_states):
        raise UnsuitableError  # which of them names the joints is for their order in the file to say
    for own in sorted(joint_states, key=lambda each: each.first_ns):
        assembler.add_joint_states(own.source, own.stamps_ns, **own.values)
    frames = {wrench.topic: wrench.frame for wrench in topics.wrenches.values()}
    for topic, message_type in wanted.items():
        for own in columns[topic]:
            if message_type == WRENCH_STAMPED:
                tare = _last_tare(columns[tare_topic(topic)])
                assembler.add_wrenches(frames[topic] or own.source[0], own.stamps_ns, own.values["wrench"] - tare)
            elif message_type != JOINT_STATE:
                for channel in channels_of(message_type):
                    assembler.add_bases(channel, own.stamps_ns, own.values[channel])


def _last_tare(columns: Sequence[Columns]) -> Array | float:
    if len(columns) > 1:
        raise UnsuitableError
    last: Array | float = columns[0].values["wrench"][-1] if columns else 0.0
    return last
