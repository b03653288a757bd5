"""The MCAP format (https://mcap.dev/spec): records of a live bag, messages of whole and damaged files.

A file is the magic, records of (opcode, length, content), and the magic again. A killed recorder leaves a file without
summary and footer, perhaps cut within a record; everything before the cut is still readable.

Reading does not loop over messages in Python. A recorder writes topics in turn, so that opcodes and lengths of records
repeat. The next records are predicted from this pattern, and all predictions are checked at once; after a wrong
prediction, records are read one by one.
"""

import mmap
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inertid_ros.core.arrays import IntArray
from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import Budget, open_file
from inertid_ros.data.long_recording import ahead
from inertid_ros.data.messages import LATEST_NS, Bytes, RawMessages, StorageFile, pieces

MCAP_MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE = 0x01, 0x02, 0x03, 0x04, 0x05
CHUNK, STATISTICS, DATA_END = 0x06, 0x0B, 0x0F
_RECORD_HEAD = struct.Struct("<BQ")  # opcode and length
_MESSAGE_HEAD = np.dtype([("channel", "<u2"), ("sequence", "<u4"), ("time", "<u8"), ("published", "<u8")])
_MAX_CHANNEL_BYTES = 32 * 2**10  # a library takes a second to parse YAML of this size (quality of service)
_DECOMPRESSION_PACKAGES = {"lz4": "lz4", "zstd": "backports.zstd"}  # both come with rosbags
_MAX_PATTERN_RECORDS = 16  # longest sequence of lengths that is recognised as repeating
_MIN_SINGLE_RECORDS, _MAX_SINGLE_RECORDS = 32, 4096  # records read one by one, at a time
_MIN_PREDICTED_RECORDS, _MAX_PREDICTED_RECORDS = 2048, 65536
_MAX_PREDICTED_BYTES = 2**26  # range of a prediction: checking loads the pages around every record head
_CHUNKS_AHEAD = 2  # chunks decompressed while another chunk is decoded


class Topic(NamedTuple):
    """A topic of a bag: name, type ``pkg/msg/Name``, definition of the type in ``ros2msg`` form."""

    name: str
    type: str
    definition: str


# Encoding


def header() -> bytes:
    """Magic and header record."""
    return MCAP_MAGIC + _record(HEADER, _encoded("ros2") + _encoded("inertid_ros"))


def schemas_and_channels(topics: Sequence[Topic]) -> bytes:
    """Schema and channel record of every topic, both numbered from 1."""
    records = b""
    for index, topic in enumerate(topics, start=1):
        schema = struct.pack("<H", index) + _encoded(topic.type) + _encoded("ros2msg") + _encoded(topic.definition)
        qos = _encoded("offered_qos_profiles") + _encoded("")
        channel = struct.pack("<HH", index, index) + _encoded(topic.name) + _encoded("cdr")
        records += _record(SCHEMA, schema) + _record(CHANNEL, channel + struct.pack("<I", len(qos)) + qos)
    return records


def message(topic: int, sequence: int, stamp_ns: int, data: bytes) -> bytes:
    """Message record of a topic, by its index from 0."""
    return _record(MESSAGE, struct.pack("<HIQQ", topic + 1, sequence & 0xFFFFFFFF, stamp_ns, stamp_ns) + data)


def statistics(counts: Sequence[int], start_ns: int, end_ns: int) -> bytes:
    """Statistics record from the number of messages of each topic."""
    topics, by_channel = len(counts), b"".join(struct.pack("<HQ", key, count) for key, count in enumerate(counts, 1))
    head = struct.pack("<QHIIIIQQ", sum(counts), topics, topics, 0, 0, 0, start_ns, end_ns)
    return _record(STATISTICS, head + struct.pack("<I", len(by_channel)) + by_channel)


def end(position: int, summary: bytes = b"") -> bytes:
    """End of a file whose data end at ``position``: data end, summary, footer and magic."""
    data_end = _record(DATA_END, struct.pack("<I", 0))
    summary_start = position + len(data_end) if summary else 0
    return data_end + summary + _record(FOOTER, struct.pack("<QQI", summary_start, 0, 0)) + MCAP_MAGIC


def _record(opcode: int, content: bytes) -> bytes:
    return _RECORD_HEAD.pack(opcode, len(content)) + content


def _encoded(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


# Messages of a file


class MissingPackageError(RecordingError):
    """The Python package that decompresses the chunks of a file is not installed."""


class McapFile(StorageFile):
    """Messages of one file, read from its start up to the first damage; its index is not used."""

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        super().__init__(path, topics)
        self._schemas: dict[int, str] = {}
        self._channels: dict[int, str] = {}  # to topic

    def batches(self) -> Iterator[tuple[str, RawMessages]]:
        """Yield topics and messages of consecutive pieces of the file; damaged content never raises.

        Raises OSError: the file cannot be read at all.
        Raises RecordingError: a topic is not CDR, or a package for decompression is missing (MissingPackageError).
        """
        try:
            yield from self._batches()
        except (ValueError, IndexError, struct.error):
            self.is_damaged = True

    def _batches(self) -> Iterator[tuple[str, RawMessages]]:
        with open_file(self._path) as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        content = np.frombuffer(pages, dtype=np.uint8)
        start, stop = len(MCAP_MAGIC), len(content)
        if bytes(content[stop - start :]) == MCAP_MAGIC:
            stop -= start
        else:
            self.is_damaged = True
        if bytes(content[:start]) != MCAP_MAGIC or content[start] != HEADER:
            raise ValueError("is not an MCAP file")
        budget = Budget(len(content))
        for records in scan(content, start, stop):
            yield from self._messages(content, records)
            _release(pages)
            chunks = [
                content[records.offsets[index] : records.offsets[index] + records.lengths[index]]
                for index in np.flatnonzero(records.opcodes == CHUNK)]
            for inside in ahead(lambda chunk: self._decompressed(chunk, budget), chunks, _CHUNKS_AHEAD):
                for inner in scan(inside, 0, len(inside)):
                    if (inner.opcodes == CHUNK).any():
                        raise ValueError("holds a chunk within a chunk")
                    yield from self._messages(inside, inner)
                _release(pages)

    def _messages(self, content: Bytes, records: "Records") -> Iterator[tuple[str, RawMessages]]:
        """Yield the messages among ``records``, in one piece per channel."""
        self._describe(content, records)
        chosen = np.flatnonzero(records.opcodes == MESSAGE)
        if not len(chosen):
            return
        offsets, lengths = records.offsets[chosen], records.lengths[chosen]
        if lengths.min() < _MESSAGE_HEAD.itemsize:
            raise ValueError("holds a message that is shorter than its header")
        heads = pieces(content, offsets, _MESSAGE_HEAD.itemsize).view(_MESSAGE_HEAD)[:, 0]
        if heads["time"].max() >= LATEST_NS:
            raise ValueError("holds a message without a time")
        for channel in np.unique(heads["channel"]).tolist():
            topic = self._channels.get(channel)
            if topic is None:
                continue
            rows = heads["channel"] == channel
            self.counts[topic] = self.counts.get(topic, 0) + int(rows.sum())
            if topic in self._topics:
                begins, counts = offsets[rows] + _MESSAGE_HEAD.itemsize, lengths[rows] - _MESSAGE_HEAD.itemsize
                yield topic, RawMessages(content, begins, counts, heads["time"][rows].astype(np.int64))

    def _describe(self, content: Bytes, records: "Records") -> None:
        """Store the schemas and channels among ``records``; every chunk may repeat them."""
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
                raise ValueError("holds a topic of two types")
            if topic in self._topics and encoding != "cdr":
                raise RecordingError(
                    f"{self._path}: topic {topic} is encoded as {encoding}, and not as CDR by ROS 2; open the file with"
                    f" 'plotjuggler -d {self._path}' and export its joint states as CSV")
            self._channels[key] = topic

    def _decompressed(self, chunk: Bytes, budget: Budget) -> Bytes:
        """Records of a chunk; only the first records if it is cut short."""
        size, checksum, compression, data = _chunk_fields(chunk)
        budget.take(size, "a chunk")
        try:
            inside = np.frombuffer(_expanded(data, compression, size + 1), np.uint8) if compression else data
        except ImportError as error:
            package = _DECOMPRESSION_PACKAGES[compression]
            raise MissingPackageError(
                f"{self._path}: is damaged, and recovering its {compression} chunks needs the Python package {package};"
                f" install it with: pip install {package}") from error
        if len(inside) > size:
            raise ValueError("holds a chunk whose size differs from its header")
        if len(inside) < size:
            self.is_damaged = True
        elif checksum and zlib.crc32(inside.data) != checksum:
            raise ValueError("holds a chunk with a wrong checksum")
        return np.asarray(inside)


def check_chunks(path: Path) -> None:
    """Check an MCAP file before a library reads it.

    Raises FormatError: chunks expand to more than a :class:`.Budget` allows or than they declare, or a channel is too
    large.
    """
    size, position = path.stat().st_size, len(MCAP_MAGIC)
    budget = Budget(size)
    with open_file(path) as file:
        while position + _RECORD_HEAD.size <= size:
            file.seek(position)
            opcode, length = _RECORD_HEAD.unpack(file.read(_RECORD_HEAD.size))
            position += _RECORD_HEAD.size + length
            if opcode == CHANNEL and length > _MAX_CHANNEL_BYTES:
                raise FormatError(f"describes a topic in {length} bytes")
            if opcode == CHUNK and position <= size:
                try:
                    declared, _, compression, data = _chunk_fields(np.frombuffer(file.read(length), np.uint8))
                except (struct.error, ValueError):
                    raise FormatError("holds a chunk that is cut short") from None
                budget.take(declared, "a chunk")
                if compression == "zstd" and not _is_one_frame(bytes(data), declared):
                    raise FormatError("holds a chunk whose size differs from its header")


def _chunk_fields(chunk: Bytes) -> tuple[int, int, str, Bytes]:
    """Expanded size [bytes], checksum (0 if missing), compression, and data of the content of a chunk record."""
    size, checksum = struct.unpack_from("<QI", chunk.data, 16)
    compression, behind = _string(chunk, 28)
    (length,) = struct.unpack_from("<Q", chunk.data, behind)
    return size, checksum, compression, chunk[behind + 8 : behind + 8 + length]


def _expanded(data: Bytes, compression: str, most: int) -> bytes:
    """Decompress data that may be cut short, up to ``most`` bytes; ImportError if the package is not installed."""
    if compression == "lz4":
        from lz4.frame import LZ4FrameDecompressor

        decompressor, damage = LZ4FrameDecompressor(), RuntimeError
    elif compression == "zstd":
        zstd = _zstd()
        decompressor, damage = zstd.ZstdDecompressor(), zstd.ZstdError
    else:
        raise ValueError("holds a chunk of unknown compression")
    try:
        return bytes(decompressor.decompress(bytes(data), max_length=most))
    except (damage, RuntimeError, EOFError, OSError):
        raise ValueError("holds a chunk that cannot be decompressed") from None


def _zstd() -> Any:
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    return zstd


def _is_one_frame(data: bytes, size: int) -> bool:
    """True if compressed data are a single frame that expands to ``size`` bytes; True without a Zstandard library."""
    try:
        zstd = _zstd()
    except ImportError:
        return True
    try:
        declared = zstd.get_frame_info(data).decompressed_size
        if zstd.get_frame_size(data) != len(data):
            return False
        if declared is not None:
            return bool(declared == size)
        decompressor = zstd.ZstdDecompressor()
        return len(decompressor.decompress(data, max_length=size + 1)) == size and bool(decompressor.eof)
    except zstd.ZstdError:
        return False


def _string(content: Bytes, at: int) -> tuple[str, int]:
    """A string, and the position behind it."""
    (length,) = struct.unpack_from("<I", content.data, at)
    behind = at + 4 + length
    if behind > len(content):
        raise ValueError("holds a text that is cut short")
    return bytes(content[at + 4 : behind]).decode(), behind


def _release(pages: mmap.mmap) -> None:
    """Release the pages of a file that were read; otherwise they stay with the process until its end."""
    if hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


# Records


class Records(NamedTuple):
    """Consecutive records: opcodes, offsets of their content, and its lengths [bytes], each ``(N,)``."""

    opcodes: Bytes
    offsets: IntArray
    lengths: IntArray


def scan(content: Bytes, start: int, stop: int) -> Iterator[Records]:
    """Yield all records from ``start`` to ``stop``, or to the end of the data section.

    Raises ValueError: the last record is cut short; if it is a chunk, its existing part is yielded before.
    """
    position, singles = start, _MIN_SINGLE_RECORDS
    while position < stop:
        heads, position = _one_by_one(content, position, stop, singles)
        columns = np.array(heads, dtype=np.int64).reshape(-1, 3)
        yield Records(columns[:, 0].astype(np.uint8), columns[:, 1], columns[:, 2])
        if position > stop:
            raise ValueError("holds a record that is cut short")
        pattern = _repeating([(opcode, length) for opcode, _, length in heads]) if position < stop else []
        count, predicted, is_right = _MIN_PREDICTED_RECORDS, 0, bool(pattern)
        while is_right:
            records, is_right = _predicted(content, position, stop, pattern, count)
            if len(records.offsets):
                yield records
                position = int(records.offsets[-1] + records.lengths[-1])
            predicted += len(records.offsets)
            count = min(4 * count, _MAX_PREDICTED_RECORDS)
        singles = _MIN_SINGLE_RECORDS if predicted >= singles else min(2 * singles, _MAX_SINGLE_RECORDS)


def _one_by_one(content: Bytes, position: int, stop: int, count: int) -> tuple[list[tuple[int, int, int]], int]:
    """Up to ``count`` records (opcode, offset, length), and the start of the next record.

    This start is ``stop`` at the end of the data section, and beyond ``stop`` if a record is cut short.
    """
    heads: list[tuple[int, int, int]] = []
    while position < stop and len(heads) < count:
        begin = position + _RECORD_HEAD.size
        if begin > stop:
            return heads, begin
        opcode, length = _RECORD_HEAD.unpack_from(content.data, position)
        position = begin + length
        if position > stop:
            if opcode == CHUNK:
                heads.append((CHUNK, begin, stop - begin))
            return heads, position
        if opcode in (DATA_END, FOOTER):
            return heads, stop
        heads.append((opcode, begin, length))
    return heads, position


def _repeating(heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Shortest sequence (opcode, length) that ends the records twice in a row; empty if there is none."""
    for period in range(1, min(_MAX_PATTERN_RECORDS, len(heads) // 2) + 1):
        if heads[-period:] == heads[-2 * period : -period]:
            return heads[-period:]
    return []


def _predicted(
        content: Bytes, position: int, stop: int, pattern: list[tuple[int, int]], most: int) -> tuple[Records, bool]:
    """Next records that repeat a pattern, and whether the whole prediction was right."""
    lengths = np.array([length for _, length in pattern], dtype=np.int64)
    within = np.concatenate([[0], np.cumsum(_RECORD_HEAD.size + lengths)])
    farthest = min(stop - position, max(_MAX_PREDICTED_BYTES, int(within[-1])))
    rounds = min(farthest // int(within[-1]), max(most // len(pattern), 1))
    begins = (position + within[-1] * np.arange(rounds, dtype=np.int64)[:, None] + within[:-1]).ravel()
    expected = np.frombuffer(b"".join(_RECORD_HEAD.pack(*head) for head in pattern), dtype=np.uint8)
    heads = pieces(content, begins, _RECORD_HEAD.size).reshape(rounds, len(pattern), _RECORD_HEAD.size)
    same = (heads == expected.reshape(len(pattern), _RECORD_HEAD.size)).all(axis=2).ravel()
    count = len(same) if same.all() else int(np.argmin(same))
    opcodes = np.tile(np.array([opcode for opcode, _ in pattern], dtype=np.uint8), rounds)
    records = Records(opcodes[:count], begins[:count] + _RECORD_HEAD.size, np.tile(lengths, rounds)[:count])
    return records, 0 < count == len(same)
