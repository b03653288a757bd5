"""Messages of an MCAP file that was not closed or is damaged, read from the front without its index.

A recorder that is killed leaves a file without summary and footer, perhaps in the middle of a record. The format is a
sequence of (opcode, length, content) records, so that everything before the break is still there.
"""

import contextlib
import mmap
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAGIC = b"\x89MCAP0\r\n"
_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END, _FOOTER = 0x03, 0x04, 0x05, 0x06, 0x0F, 0x02


@dataclass(frozen=True)
class Message:
    """One message: topic and serialised bytes."""

    topic: str
    data: bytes


@dataclass
class Recovered:
    """What could be read: topic to type, number of messages per topic, and the messages of the wanted topics."""

    types: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)


class _TruncatedError(Exception):
    """The file ends, or stops making sense, within a record."""


def recover(path: Path, topics: Collection[str]) -> Recovered:
    """Messages in the order in which they were written, up to the first damage; never raises for damaged content.

    Raises
    ------
    OSError: the file cannot be read at all.
    """
    found = Recovered()
    if path.stat().st_size <= len(MAGIC):
        return found
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(MAGIC)] != MAGIC:
            return found
        with contextlib.suppress(_TruncatedError, struct.error, UnicodeDecodeError):
            for topic, kind, data in _Reader().records(content, len(MAGIC)):
                found.types[topic] = kind
                found.counts[topic] = found.counts.get(topic, 0) + 1
                if topic in topics:
                    found.messages.append(Message(topic, data))
    return found


class _Reader:
    def __init__(self) -> None:
        self._types: dict[int, str] = {}
        self._channels: dict[int, tuple[str, str]] = {}

    def records(self, content: bytes | mmap.mmap, position: int) -> Iterator[tuple[str, str, bytes]]:
        """Topic, type and data of every message from ``position`` on."""
        while position + 9 <= len(content):
            opcode, length = content[position], struct.unpack_from("<Q", content, position + 1)[0]
            start, position = position + 9, position + 9 + length
            record = content[start:position]
            if opcode == _CHUNK:
                yield from self._chunk(record)
            if len(record) < length or opcode in (_DATA_END, _FOOTER):
                return
            if opcode == _SCHEMA:
                self._types[struct.unpack_from("<H", record)[0]] = _string(record, 2)[0]
            elif opcode == _CHANNEL:
                key, schema = struct.unpack_from("<HH", record)
                self._channels[key] = (_string(record, 4)[0], self._types.get(schema, ""))
            elif opcode == _MESSAGE:
                key = struct.unpack_from("<H", record)[0]
                if key not in self._channels:
                    raise _TruncatedError
                yield (*self._channels[key], record[22:])

    def _chunk(self, record: bytes) -> Iterator[tuple[str, str, bytes]]:
        """Messages of one chunk, which may be cut short."""
        size, checksum = struct.unpack_from("<QI", record, 16)
        compression, position = _string(record, 28)
        (length,) = struct.unpack_from("<Q", record, position)
        content = _decompress(record[position + 8 : position + 8 + length], compression)
        if checksum and len(content) == size and zlib.crc32(content) != checksum:
            raise _TruncatedError
        yield from self.records(content, 0)


def _string(record: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", record, position)
    end = position + 4 + length
    if end > len(record):
        raise _TruncatedError
    return record[position + 4 : end].decode(), end


def _decompress(data: bytes, compression: str) -> bytes:
    """As much as can be had of a compressed chunk, which may be cut short; both libraries come with rosbags."""
    if not compression:
        return data
    try:
        if compression == "lz4":
            from lz4.frame import LZ4FrameDecompressor

            return LZ4FrameDecompressor().decompress(data)
        if compression == "zstd":
            return _zstd(data)
    except (RuntimeError, EOFError, OSError):
        raise _TruncatedError from None
    raise _TruncatedError


def _zstd(data: bytes) -> bytes:
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    try:
        return zstd.ZstdDecompressor().decompress(data)
    except zstd.ZstdError:
        raise _TruncatedError from None
