"""Bags read by columns: messages of one layout are decoded at once, as long as all fit one of a few layouts.

The first message of each layout is compared with what a library makes of it. If anything does not fit,
``UnsuitableError`` says so, and the bag is read message by message.
"""

import struct
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.data import messages as msg
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.recording import WRENCH_PREFIX

from .bag_backends import BagBackend
from .mcap_format import McapFile
from .sqlite_format import SqliteFile

_MAX_LAYOUTS = 8  # of several publishers of a topic
BATCH_SAMPLES = 20_000  # joint states of a batch: 20 s at 1 kHz


@dataclass(frozen=True)
class Columns:
    """Messages of one source (joints, or a frame) in the order of recording.

    Attributes
    ----------
    first_ns : int
        Time of recording of the first [ns].
    stamps_ns : ndarray of int64, shape (N,)
        Header stamps, or times of recording if the caller wants these [ns].
    values : dict of str to ndarray, shape (N, k)
        Channel to values.
    """

    source: tuple[str, ...]
    first_ns: int
    stamps_ns: NDArray[np.int64]
    values: dict[str, Array]


@dataclass
class _Group:
    """Messages of one layout: indices, stamps and values of the pieces since they were last taken."""

    layout: msg.CdrLayout
    source: tuple[str, ...]
    first_ns: int
    pieces: list[tuple[NDArray[np.intp], NDArray[np.int64], dict[str, Array]]] = field(default_factory=list)


class TopicColumns:
    """Collect the messages of a topic; the first of each layout is compared with what the library ``backend`` decodes.

    ``count`` is the number of messages so far, ``arrival`` whether stamps are times of recording.
    """

    def __init__(self, backend: BagBackend, message_type: str, arrival: bool) -> None:
        self.count = 0
        self._backend, self._type, self._arrival = backend, message_type, arrival
        self._groups: list[_Group] = []
        self._last_ns = -(2**63)

    def add(self, messages: msg.RawMessages) -> None:
        """Take messages; UnsuitableError if they have too many layouts, or were recorded before earlier ones."""
        if not len(messages):
            return
        if messages.times[0] < self._last_ns or (np.diff(messages.times) < 0).any():
            raise msg.UnsuitableError
        self._last_ns = int(messages.times[-1])
        rest = np.arange(len(messages))
        for group in self._groups:
            rest = self._take(group, messages, rest)
        while len(rest):
            if len(self._groups) == _MAX_LAYOUTS:
                raise msg.UnsuitableError
            group = self._group(messages.one(int(rest[0])), int(messages.times[rest[0]]))
            self._groups.append(group)
            left = self._take(group, messages, rest)
            if len(left) == len(rest):
                raise msg.UnsuitableError
            rest = left
        self.count += len(messages)

    def columns(self) -> list[Columns]:
        """Return the messages of every source since the last call, joined.

        Raises UnsuitableError if messages of one source leave fields empty that others fill.
        """
        by_source: dict[Hashable, list[_Group]] = {}
        for group in self._groups:
            source = frozenset(group.source) if self._type == msg.JOINT_STATE else group.source
            by_source.setdefault(source, []).append(group)
        joined = [
            _joined(groups)
            for groups in by_source.values()
            if any(len(indices) for group in groups for indices, _, _ in group.pieces)
        ]
        for group in self._groups:
            group.pieces = []
        return joined

    def _take(self, group: _Group, messages: msg.RawMessages, rest: NDArray[np.intp]) -> NDArray[np.intp]:
        """Take the messages with the layout of a group, and return the others."""
        fits = messages.lengths[rest] == group.layout.length
        rows = messages.rows(rest[fits], group.layout.length)
        same = group.layout.matches(rows)
        if not same.all():
            rows = rows[same]
        fits[fits] = same
        chosen = rest[fits]
        stamps = messages.times[chosen] if self._arrival else group.layout.stamps(rows)
        group.pieces.append((chosen + self.count, stamps, group.layout.values(rows)))
        return rest[~fits]

    def _group(self, message: bytes, first_ns: int) -> _Group:
        """Group of a first message, once its layout gives what the library gives."""
        layout = msg.layout_of(message, self._type)
        try:
            content = self._backend.deserialize(message, self._type)
            source, stamp = msg.source_of(self._type, content), msg.stamp_ns(content)
            expected = msg.message_values(self._type, content)
        except Exception:  # a library raises whatever the bytes lead to
            raise msg.UnsuitableError from None
        row = np.frombuffer(message, dtype=np.uint8)[None]
        decoded = {channel: values[0] for channel, values in layout.values(row).items()}
        is_same = decoded.keys() == expected.keys() and int(layout.stamps(row)[0]) == stamp
        if not (is_same and all(np.array_equal(decoded[key], expected[key], equal_nan=True) for key in expected)):
            raise msg.UnsuitableError
        return _Group(layout, source, first_ns)


def _joined(groups: list[_Group]) -> Columns:
    """Messages of one source in groups that may list its joints in different orders."""
    source = groups[0].source
    pieces = [(group, *piece) for group in groups for piece in group.pieces]
    channels: dict[str, list[Array]] = {}
    for group, _, _, values in pieces:
        order = [group.source.index(name) for name in source]
        for channel, rows in values.items():
            is_ordered = group.source == source or not rows.shape[1]
            channels.setdefault(channel, []).append(rows if is_ordered else rows[:, order])
    if any(len({rows.shape[1] for rows in parts}) > 1 for parts in channels.values()):
        raise msg.UnsuitableError
    stamps = np.concatenate([part for _, _, part, _ in pieces])
    joined = {channel: np.concatenate(parts) for channel, parts in channels.items()}
    if len(groups) > 1:
        place = np.argsort(np.concatenate([indices for _, indices, _, _ in pieces]))
        stamps, joined = stamps[place], {channel: values[place] for channel, values in joined.items()}
    return Columns(source, groups[0].first_ns, stamps, joined)


def column_batches(
    assembler: RecordingAssembler,
    backend: BagBackend,
    files: Sequence[Path],
    topics: RecordingTopics,
    arrival: bool = False,
    at_once: int | None = None,
) -> Iterator[None]:
    """Add the messages of a bag to an assembler in batches; samples may be taken after each.

    Parameters
    ----------
    files : sequence of Path
        Files of a closed bag, in the order of their times.
    arrival : bool
        Whether stamps are times of recording.
    at_once : int, optional
        Least number of joint states of a batch; default the whole bag.

    Raises
    ------
    UnsuitableError
        Messages must be read one by one: a topic is missing, stamps are not in order, a file is damaged, or a message
        does not fit; or a tare was recorded, which applies to the whole bag, and ``at_once`` is given.
    """
    wanted = msg.wanted_topics(topics)
    tares = {msg.tare_topic(topic): expected for topic, expected in wanted.items() if expected == msg.WRENCH_STAMPED}
    types = {**wanted, **tares}
    read = {topic: TopicColumns(backend, expected, arrival) for topic, expected in types.items()}
    try:
        states = 0
        for file in files:
            reader = SqliteFile(file, read) if file.suffix == ".db3" else McapFile(file, read)
            for topic, messages in chain.from_iterable(reader.batches()):
                read[topic].add(messages)
                if at_once is None:
                    continue
                if topic in tares:
                    raise msg.UnsuitableError
                states += len(messages) if types[topic] == msg.JOINT_STATE else 0
                if states >= at_once:
                    states = 0
                    _add_to(assembler, read, wanted, topics)
                    yield
            if any(reader.types.get(topic, expected) != expected for topic, expected in types.items()):
                raise msg.UnsuitableError
        if not all(read[topic].count for topic in wanted):
            raise msg.UnsuitableError
        _add_to(assembler, read, wanted, topics)
        yield
    except (RecordingError, OSError, ValueError, IndexError, struct.error):
        raise msg.UnsuitableError from None


def _add_to(
    assembler: RecordingAssembler,
    read: Mapping[str, TopicColumns],
    wanted: Mapping[str, str],
    topics: RecordingTopics,
) -> None:
    columns = {topic: collected.columns() for topic, collected in read.items()}
    joint_states = [part for topic in wanted if wanted[topic] == msg.JOINT_STATE for part in columns.pop(topic)]
    if len({part.first_ns for part in joint_states}) < len(joint_states):
        raise msg.UnsuitableError  # their order in the file decides which of them names the joints
    for part in sorted(joint_states, key=lambda part: part.first_ns):
        assembler.add_joint_states(part.source, part.stamps_ns, **part.values)
    frames = {wrench.topic: wrench.frame for wrench in topics.wrenches.values()}
    for topic in (topic for topic in wanted if topic in columns):
        tares = columns.get(msg.tare_topic(topic), [])
        if len(tares) > 1:
            raise msg.UnsuitableError
        tare = tares[0].values["wrench"][-1] if tares else 0.0
        for part in columns[topic]:
            for channel, values in named_channels(part.values, frames.get(topic) or part.source[0], tare).items():
                assembler.add(channel, part.stamps_ns, values)


def named_channels(values: Mapping[str, Array], frame: str, tare: Array | float) -> Mapping[str, Array]:
    """Channels of a recording from those of messages: a wrench by its frame, less the tare."""
    return {f"{WRENCH_PREFIX}{frame}": values["wrench"] - tare} if "wrench" in values else values
