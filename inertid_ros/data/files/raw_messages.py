"""Serialised messages of MCAP (https://mcap.dev/spec) and SQLite files, found without a step of Python for each.

Each MCAP record states its length, so that records are found one after another. A recorder writes topics in turn, so
that lengths repeat: predicted records are compared all at once, and only after a wrong prediction one by one.
"""

import mmap
import sqlite3
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inertid_ros.core.errors import FormatError
from inertid_ros.core.formats import Budget
from inertid_ros.data.long_recording import ahead
from inertid_ros.data.messages import LATEST_NS, Bytes, UnsuitableError

from .bag_opening import check_storage
from .mcap_format import (
    CHANNEL,
    CHUNK,
    DATA_END,
    FOOTER,
    HEADER,
    MCAP_MAGIC,
    MESSAGE,
    SCHEMA,
    TruncatedError,
    decompressed,
)

_RECORD_HEAD_BYTES = 9  # opcode and length
_RECORD_HEAD = struct.Struct("<BQ")
_MAX_PATTERN_RECORDS = 16  # longest sequence of lengths that is recognised as repeating
_MIN_SINGLE_RECORDS, _MAX_SINGLE_RECORDS = 32, 4096  # records read one by one, at a time
_MIN_PREDICTED_RECORDS, _MAX_PREDICTED_RECORDS = 256, 65536
_MAX_PREDICTED_BYTES = 2**26  # range of a prediction: the pages around every head come into memory
_MESSAGE_HEAD = np.dtype([("channel", "<u2"), ("sequence", "<u4"), ("time", "<u8"), ("published", "<u8")])
_CHUNKS_AHEAD = 2  # decompressed while another is decoded
_ROWS_PER_FETCH = 16384
_TOPICS_QUERY = "select id, name, type, serialization_format from topics"
_MESSAGES_QUERY = "select topic_id, timestamp, data from messages where topic_id in ({}) order by id"


@dataclass(frozen=True)
class RawMessages:
    """Serialised messages of one topic in one piece of memory, in the order of recording.

    Attributes
    ----------
    content : ndarray of uint8
        Memory that holds all of them.
    offsets, lengths : ndarray of int64, shape (N,)
        Start and length of each [bytes].
    times : ndarray of int64, shape (N,)
        Times of recording [ns].
    """

    content: Bytes
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def one(self, index: int) -> bytes:
        """Message at an index."""
        start = self.offsets[index]
        return bytes(self.content[start : start + self.lengths[index]])

    def rows(self, chosen: NDArray[np.intp], length: int) -> Bytes:
        """Messages of one length at indices ``(K,)``, ``(K, length)``."""
        return np.asarray(windows(self.content, length)[self.offsets[chosen]])


def windows(content: Bytes, length: int) -> Bytes:
    """View of all pieces of a length, ``(len(content) - length + 1, length)``."""
    return np.asarray(sliding_window_view(content, length))


class Records(NamedTuple):
    """Consecutive records: opcodes, offsets of their content, and its lengths [bytes], each ``(N,)``."""

    opcodes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]


def scan(content: Bytes, start: int, end: int) -> Iterator[Records]:
    """Yield all records from ``start`` to ``end``, or to the end of the data section.

    Raises
    ------
    UnsuitableError
        A record is longer than its file.
    """
    position, count, predicted = start, _MIN_SINGLE_RECORDS, _MIN_PREDICTED_RECORDS
    while position < end:
        heads, position, over = _one_by_one(content, position, end, count)
        yield _as_records(heads)
        if over:
            return
        pattern = _repeating([(opcode, length) for opcode, _, length in heads])
        predicted_count = 0
        while pattern:
            records, whole = _predicted(content, position, end, pattern, predicted)
            predicted_count += len(records.offsets)
            if len(records.offsets):
                yield records
                position = int(records.offsets[-1] + records.lengths[-1])
            if not whole:
                break
            predicted = min(4 * predicted, _MAX_PREDICTED_RECORDS)
        if predicted_count < count:
            predicted = _MIN_PREDICTED_RECORDS
        count = _MIN_SINGLE_RECORDS if predicted_count >= count else min(2 * count, _MAX_SINGLE_RECORDS)


def _one_by_one(
    content: Bytes, position: int, end: int, count: int
) -> tuple[list[tuple[int, int, int]], int, bool]:
    """Up to ``count`` records, the start of the next one, and whether the data section is over."""
    heads: list[tuple[int, int, int]] = []
    while position < end and len(heads) < count:
        if position + _RECORD_HEAD_BYTES > end:
            raise UnsuitableError
        opcode, length = _RECORD_HEAD.unpack_from(content.data, position)
        position += _RECORD_HEAD_BYTES + length
        if position > end:
            raise UnsuitableError
        if opcode in (DATA_END, FOOTER):
            return heads, position, True
        heads.append((opcode, position - length, length))
    return heads, position, position >= end


def _as_records(heads: list[tuple[int, int, int]]) -> Records:
    columns = np.array(heads, dtype=np.int64).reshape(-1, 3)
    return Records(columns[:, 0].astype(np.uint8), columns[:, 1], columns[:, 2])


def _repeating(heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Shortest sequence that the last records repeat twice; empty if there is none."""
    for period in range(1, min(_MAX_PATTERN_RECORDS, len(heads) // 2) + 1):
        if heads[-period:] == heads[-2 * period : -period]:
            return heads[-period:]
    return []


def _predicted(
    content: Bytes, position: int, end: int, pattern: list[tuple[int, int]], most: int
) -> tuple[Records, bool]:
    """Next records as far as they repeat a pattern, and whether the whole prediction was right."""
    lengths = np.array([length for _, length in pattern], dtype=np.int64)
    within = np.concatenate([[0], np.cumsum(_RECORD_HEAD_BYTES + lengths)])
    farthest = min(end - position, max(_MAX_PREDICTED_BYTES, int(within[-1])))
    rounds = min(farthest // int(within[-1]), max(most // len(pattern), 1))
    begins = (position + within[-1] * np.arange(rounds, dtype=np.int64)[:, None] + within[:-1]).ravel()
    expected = np.frombuffer(b"".join(_RECORD_HEAD.pack(*head) for head in pattern), dtype=np.uint8)
    heads = windows(content, _RECORD_HEAD_BYTES)[begins].reshape(rounds, len(pattern), _RECORD_HEAD_BYTES)
    same = (heads == expected.reshape(len(pattern), _RECORD_HEAD_BYTES)).all(axis=2).ravel()
    count = len(same) if same.all() else int(np.argmin(same))
    opcodes = np.tile(np.array([opcode for opcode, _ in pattern], dtype=np.uint8), rounds)
    records = Records(opcodes[:count], begins[:count] + _RECORD_HEAD_BYTES, np.tile(lengths, rounds)[:count])
    return records, 0 < count == len(same)


class McapColumns:
    """Messages of the wanted topics of one complete file.

    Attributes
    ----------
    types : dict of str to str
        Topic to type of all topics so far.
    """

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        self.types: dict[str, str] = {}
        self._topics, self._path = topics, path
        self._schemas: dict[int, str] = {}
        self._wanted: dict[int, str] = {}  # channel to topic

    def parts(self) -> Iterator[tuple[str, RawMessages]]:
        """Yield topic and messages, for every topic in the order of the file.

        Raises
        ------
        UnsuitableError
            The file is not one of ROS 2, is damaged, or its messages are not CDR.
        """
        with self._path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        content = np.frombuffer(pages, dtype=np.uint8)
        if bytes(content[: len(MCAP_MAGIC)]) != MCAP_MAGIC or bytes(content[-len(MCAP_MAGIC) :]) != MCAP_MAGIC:
            raise UnsuitableError
        start, end = len(MCAP_MAGIC), len(content) - len(MCAP_MAGIC)
        if content[start] != HEADER or _string(content, start + _RECORD_HEAD_BYTES)[0] != "ros2":
            raise UnsuitableError
        budget = Budget(len(content))
        for records in scan(content, start, end):
            chunks = np.flatnonzero(records.opcodes == CHUNK)
            self._describe(content, records)
            yield from self._messages(content, records)
            _release(pages)
            spans = ((int(records.offsets[k]), int(records.lengths[k])) for k in chunks)
            for chunk in ahead(lambda span: _chunk(content, *span, budget), spans, _CHUNKS_AHEAD):
                for inner in scan(chunk, 0, len(chunk)):
                    if (inner.opcodes == CHUNK).any():
                        raise UnsuitableError
                    self._describe(chunk, inner)
                    yield from self._messages(chunk, inner)
                _release(pages)

    def _describe(self, content: Bytes, records: Records) -> None:
        """Take up schemas and channels; a file has a few, and every chunk may repeat them."""
        for index in np.flatnonzero((records.opcodes == SCHEMA) | (records.opcodes == CHANNEL)):
            at = int(records.offsets[index])
            if records.opcodes[index] == SCHEMA:
                (key,) = struct.unpack_from("<H", content.data, at)
                self._schemas[key] = _string(content, at + 2)[0]
                continue
            key, schema = struct.unpack_from("<HH", content.data, at)
            topic, behind = _string(content, at + 4)
            encoding, _ = _string(content, behind)
            message_type = self._schemas.get(schema, "")
            if self.types.setdefault(topic, message_type) != message_type:
                raise UnsuitableError
            if topic in self._topics:
                if encoding != "cdr":
                    raise UnsuitableError
                self._wanted[key] = topic

    def _messages(self, content: Bytes, records: Records) -> Iterator[tuple[str, RawMessages]]:
        """Yield the messages among records, by channel."""
        chosen = np.flatnonzero(records.opcodes == MESSAGE)
        if not len(chosen):
            return
        offsets, lengths = records.offsets[chosen], records.lengths[chosen]
        if lengths.min() < _MESSAGE_HEAD.itemsize:
            raise UnsuitableError
        heads = windows(content, _MESSAGE_HEAD.itemsize)[offsets].view(_MESSAGE_HEAD)[:, 0]
        if heads["time"].max() >= LATEST_NS:
            raise UnsuitableError
        for channel in np.unique(heads["channel"]).tolist():
            if channel in self._wanted:
                rows = heads["channel"] == channel
                yield self._wanted[channel], RawMessages(
                    content,
                    offsets[rows] + _MESSAGE_HEAD.itemsize,
                    lengths[rows] - _MESSAGE_HEAD.itemsize,
                    heads["time"][rows].astype(np.int64),
                )


def _release(pages: mmap.mmap) -> None:
    """Release the pages of a file that were read; otherwise they stay with the process until its end."""
    if hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def _chunk(content: Bytes, at: int, length: int, budget: Budget) -> Bytes:
    """Records of a chunk."""
    record = content[at : at + length]
    size, checksum = struct.unpack_from("<QI", record.data, 16)
    compression, behind = _string(record, 28)
    (compressed,) = struct.unpack_from("<Q", record.data, behind)
    data = record[behind + 8 : behind + 8 + compressed]
    try:
        budget.take(size, "a chunk")
        inside = np.frombuffer(decompressed(bytes(data), compression, size + 1), np.uint8) if compression else data
    except (FormatError, ImportError, TruncatedError):
        raise UnsuitableError from None
    if len(inside) != size or (checksum and zlib.crc32(inside.data) != checksum):
        raise UnsuitableError
    return np.asarray(inside)


def _string(content: Bytes, at: int) -> tuple[str, int]:
    """A string, and the position behind it."""
    (length,) = struct.unpack_from("<I", content.data, at)
    end = at + 4 + length
    if end > len(content):
        raise UnsuitableError
    return bytes(content[at + 4 : end]).decode(), end


class SqliteColumns:
    """Messages of the wanted topics of one file; see :class:`.McapColumns`."""

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        self.types: dict[str, str] = {}
        self._topics, self._path = topics, path

    def parts(self) -> Iterator[tuple[str, RawMessages]]:
        """Yield topic and messages, for every topic in the order of writing.

        Raises
        ------
        UnsuitableError
            The file is not a database of messages, or they are not CDR.
        """
        if self._path.with_name(f"{self._path.name}-wal").exists():  # messages that are not in the file yet
            raise UnsuitableError
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            check_storage(self._path)
            with closing(sqlite3.connect(address, uri=True)) as database:
                wanted = self._topics_of(database)
                cursor = database.execute(_MESSAGES_QUERY.format(",".join(map(str, wanted))))
                while rows := cursor.fetchmany(_ROWS_PER_FETCH):
                    keys, times, messages = zip(*rows, strict=True)
                    yield from _by_topic(wanted, np.array(keys), np.array(times, dtype=np.int64), messages)
        except (FormatError, sqlite3.Error, TypeError, OverflowError):
            raise UnsuitableError from None

    def _topics_of(self, database: sqlite3.Connection) -> dict[int, str]:
        """Key to name of the wanted topics."""
        wanted = {}
        for key, topic, message_type, encoding in database.execute(_TOPICS_QUERY).fetchall():
            if self.types.setdefault(topic, message_type) != message_type:
                raise UnsuitableError
            if topic in self._topics:
                if encoding != "cdr":
                    raise UnsuitableError
                wanted[int(key)] = topic
        return wanted


def _by_topic(
    wanted: Mapping[int, str], keys: NDArray[np.int64], times: NDArray[np.int64], messages: Sequence[bytes]
) -> Iterator[tuple[str, RawMessages]]:
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    offsets, content = np.cumsum(lengths) - lengths, np.frombuffer(b"".join(messages), dtype=np.uint8)
    for key, topic in wanted.items():
        rows = slice(None) if (keys == key).all() else keys == key
        yield topic, RawMessages(content, offsets[rows], lengths[rows], times[rows])
