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

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats.budget import Budget

from .bag_backends import BagMessage
from .mcap_format import CHANNEL, CHUNK, DATA_END, FOOTER, MAGIC, MESSAGE, SCHEMA

_PACKAGES = {"lz4": "lz4", "zstd": "backports.zstd"}


@dataclass
class BagContent:
    """What could be read of a bag.

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
    """The file ends, or stops making sense, within a record."""


def recover(path: Path, topics: Collection[str]) -> BagContent:
    """Messages in the order in which they were written, up to the first damage; never raises for damaged content.

    Parameters
    ----------
    path : Path
        An MCAP file.
    topics : collection of str
        Topics whose messages are wanted; of others only their number is kept.

    Raises
    ------
    OSError
        The file cannot be read at all.
    RecordingError
        Chunks are compressed, and the package that decompresses them is not installed.
    """
    recovered = BagContent()
    if path.stat().st_size <= len(MAGIC):
        return recovered
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(MAGIC)] != MAGIC:
            return recovered
        with contextlib.suppress(TruncatedError, struct.error, UnicodeDecodeError, FormatError):
            for message, message_type in _Reader(path, Budget(len(content))).records(content, len(MAGIC)):
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
        """Every message from ``position`` on, and its type; there are no chunks in chunks."""
        while position + 9 <= len(content):
            opcode, length = content[position], struct.unpack_from("<Q", content, position + 1)[0]
            start, position = position + 9, position + 9 + length
            record = content[start:position]
            if opcode == CHUNK and not in_chunk:
                yield from self._chunk(record)
            if len(record) < length or opcode in (DATA_END, FOOTER):
                return
            if opcode == SCHEMA:
                self._types[struct.unpack_from("<H", record)[0]] = _string(record, 2)[0]
            elif opcode == CHANNEL:
                key, schema = struct.unpack_from("<HH", record)
                self._channels[key] = (_string(record, 4)[0], self._types.get(schema, ""))
            elif opcode == MESSAGE:
                key = struct.unpack_from("<H", record)[0]
                if key not in self._channels:
                    raise TruncatedError
                topic, message_type = self._channels[key]
                yield BagMessage(topic, struct.unpack_from("<Q", record, 6)[0], record[22:]), message_type

    def _chunk(self, record: bytes) -> Iterator[tuple[BagMessage, str]]:
        """Messages of one chunk, which may be cut short."""
        size, checksum = struct.unpack_from("<QI", record, 16)
        compression, position = _string(record, 28)
        (length,) = struct.unpack_from("<Q", record, position)
        try:
            content = decompressed(record[position + 8 : position + 8 + length], compression, self._budget.left + 1)
        except ImportError as error:
            raise RecordingError(
                f"{self._path}: is damaged, and recovering its {compression} chunks needs the Python package"
                f" {_PACKAGES[compression]}; install it with: pip install {_PACKAGES[compression]}"
            ) from error
        self._budget.take(len(content), "a chunk")
        if checksum and len(content) == size and zlib.crc32(content) != checksum:
            raise TruncatedError
        yield from self.records(content, 0, in_chunk=True)


def _string(record: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", record, position)
    end = position + 4 + length
    if end > len(record):
        raise TruncatedError
    return record[position + 4 : end].decode(), end


def decompressed(data: bytes, compression: str, most: int) -> bytes:
    """As much as can be had, and ``most`` bytes, of a compressed chunk that may be cut short.

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
