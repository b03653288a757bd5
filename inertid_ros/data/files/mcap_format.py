"""Records of the MCAP format (https://mcap.dev/spec): encoding those of a live bag, and recovery of damaged files.

A file is the magic, records of (opcode, length, content), and the magic again. A recorder that is killed leaves a file
without summary and footer, perhaps in the middle of a record: everything before the break is still readable.
"""

import contextlib
import mmap
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import Budget

from .bag_backends import BagMessage

MCAP_MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE = 0x01, 0x02, 0x03, 0x04, 0x05
CHUNK, STATISTICS, DATA_END = 0x06, 0x0B, 0x0F
_DECOMPRESSION_PACKAGES = {"lz4": "lz4", "zstd": "backports.zstd"}


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes
    ----------
    name : str
    type : str
        ``pkg/msg/Name``.
    definition : str
        Definition of the type in ``ros2msg`` form.
    """

    name: str
    type: str
    definition: str


def header() -> bytes:
    """Magic and header record."""
    return MCAP_MAGIC + _record(HEADER, _string("ros2") + _string("inertid_ros"))


def schemas_and_channels(topics: Sequence[Topic]) -> bytes:
    """Schema and channel record of every topic, both numbered from 1."""
    records = b""
    for index, topic in enumerate(topics, start=1):
        schema = struct.pack("<H", index) + _string(topic.type) + _string("ros2msg") + _string(topic.definition)
        qos = _string("offered_qos_profiles") + _string("")
        channel = struct.pack("<HH", index, index) + _string(topic.name) + _string("cdr")
        records += _record(SCHEMA, schema) + _record(CHANNEL, channel + struct.pack("<I", len(qos)) + qos)
    return records


def message(topic: int, sequence: int, stamp_ns: int, data: bytes) -> bytes:
    """Message record of a topic, by its index from 0."""
    return _record(MESSAGE, struct.pack("<HIQQ", topic + 1, sequence & 0xFFFFFFFF, stamp_ns, stamp_ns) + data)


def statistics(counts: Mapping[int, int], start_ns: int, end_ns: int) -> bytes:
    """Statistics record from the number of messages of each topic, by its index from 0."""
    topics, by_channel = len(counts), b"".join(struct.pack("<HQ", key + 1, count) for key, count in counts.items())
    head = struct.pack("<QHIIIIQQ", sum(counts.values()), topics, topics, 0, 0, 0, start_ns, end_ns)
    return _record(STATISTICS, head + struct.pack("<I", len(by_channel)) + by_channel)


def end(position: int, summary: bytes = b"") -> bytes:
    """End of a file whose data end at ``position``: data end, summary, footer and magic."""
    data_end = _record(DATA_END, struct.pack("<I", 0))
    summary_start = position + len(data_end) if summary else 0
    return data_end + summary + _record(FOOTER, struct.pack("<QQI", summary_start, 0, 0)) + MCAP_MAGIC


def _record(opcode: int, content: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(content)) + content


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


@dataclass
class BagContent:
    """Content of a bag, as far as it is readable.

    Attributes
    ----------
    types : dict of str to str
        Topic to type, ``pkg/msg/Name``.
    counts : dict of str to int
        Topic to number of messages.
    messages : list of BagMessage
        Messages of the wanted topics.
    notices : tuple of str
        One line about a bag that was not closed.
    """

    types: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    messages: list[BagMessage] = field(default_factory=list)
    notices: tuple[str, ...] = ()


class TruncatedError(Exception):
    """The file ends, or becomes invalid, within a record."""


def recover(path: Path, topics: Collection[str]) -> BagContent:
    """Read messages in the order of writing up to the first damage; damaged content never raises.

    Parameters
    ----------
    path : Path
        An MCAP file.
    topics : collection of str
        Topics whose messages are wanted; those of others are only counted.

    Raises
    ------
    OSError
        The file cannot be read at all.
    RecordingError
        Chunks are compressed, and the package that decompresses them is not installed.
    """
    recovered = BagContent()
    if path.stat().st_size <= len(MCAP_MAGIC):
        return recovered
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(MCAP_MAGIC)] != MCAP_MAGIC:
            return recovered
        with contextlib.suppress(TruncatedError, struct.error, UnicodeDecodeError, FormatError):
            reader = _Reader(path, Budget(len(content)))
            for message, message_type in reader.records(content, len(MCAP_MAGIC)):
                recovered.types[message.topic] = message_type
                recovered.counts[message.topic] = recovered.counts.get(message.topic, 0) + 1
                if message.topic in topics:
                    recovered.messages.append(message)
    return recovered


class _Reader:
    def __init__(self, path: Path, budget: Budget) -> None:
        self._path, self._budget = path, budget
        self._types: dict[int, str] = {}
        self._channels: dict[int, tuple[str, str]] = {}

    def records(
        self, content: bytes | mmap.mmap, position: int, in_chunk: bool = False
    ) -> Iterator[tuple[BagMessage, str]]:
        """Yield every message from ``position`` on, and its type; chunks do not contain chunks."""
        while position + 9 <= len(content):
            opcode, length = content[position], struct.unpack_from("<Q", content, position + 1)[0]
            start, position = position + 9, position + 9 + length
            record = content[start:position]
            if opcode == CHUNK and not in_chunk:
                yield from self._chunk(record)
            if len(record) < length or opcode in (DATA_END, FOOTER):
                return
            if opcode == SCHEMA:
                self._types[struct.unpack_from("<H", record)[0]] = _read_string(record, 2)[0]
            elif opcode == CHANNEL:
                key, schema = struct.unpack_from("<HH", record)
                self._channels[key] = (_read_string(record, 4)[0], self._types.get(schema, ""))
            elif opcode == MESSAGE:
                key = struct.unpack_from("<H", record)[0]
                if key not in self._channels:
                    raise TruncatedError
                topic, message_type = self._channels[key]
                yield BagMessage(topic, struct.unpack_from("<Q", record, 6)[0], record[22:]), message_type

    def _chunk(self, record: bytes) -> Iterator[tuple[BagMessage, str]]:
        """Yield the messages of one chunk, which may be cut short."""
        size, checksum = struct.unpack_from("<QI", record, 16)
        compression, position = _read_string(record, 28)
        (length,) = struct.unpack_from("<Q", record, position)
        try:
            content = decompressed(record[position + 8 : position + 8 + length], compression, self._budget.left + 1)
        except ImportError as error:
            package = _DECOMPRESSION_PACKAGES[compression]
            raise RecordingError(
                f"{self._path}: is damaged, and recovering its {compression} chunks needs the Python package {package};"
                f" install it with: pip install {package}"
            ) from error
        self._budget.take(len(content), "a chunk")
        if checksum and len(content) == size and zlib.crc32(content) != checksum:
            raise TruncatedError
        yield from self.records(content, 0, in_chunk=True)


def _read_string(record: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", record, position)
    end = position + 4 + length
    if end > len(record):
        raise TruncatedError
    return record[position + 4 : end].decode(), end


def decompressed(data: bytes, compression: str, most: int) -> bytes:
    """Decompress a chunk that may be cut short, up to ``most`` bytes.

    Both libraries come with rosbags.

    Raises
    ------
    ImportError
        The library is not installed.
    """
    if not compression:
        return data
    if compression == "lz4":
        from lz4.frame import LZ4FrameDecompressor

        try:
            return LZ4FrameDecompressor().decompress(data, max_length=most)
        except (RuntimeError, EOFError, OSError):
            raise TruncatedError from None
    if compression == "zstd":
        try:
            from compression import zstd
        except ImportError:
            from backports import zstd
        try:
            return zstd.ZstdDecompressor().decompress(data, max_length=most)
        except (zstd.ZstdError, RuntimeError, EOFError, OSError):
            raise TruncatedError from None
    raise TruncatedError
