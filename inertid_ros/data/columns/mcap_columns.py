"""Serialised messages of an MCAP file by topic, piece by piece (https://mcap.dev/spec)."""

import mmap
import struct
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from inertid_ros.core.errors import FormatError
from inertid_ros.core.formats.budget import Budget
from inertid_ros.data.ahead import ahead
from inertid_ros.data.bag_storage.mcap_format import CHANNEL, CHUNK, HEADER, MAGIC, MESSAGE, SCHEMA
from inertid_ros.data.bag_storage.mcap_recovery import TruncatedError, decompressed

from .cdr_layout import Bytes, UnsuitableError
from .raw_messages import RawMessages, windows
from .record_scan import HEAD, Records, scan

_MESSAGE_HEAD = np.dtype([("channel", "<u2"), ("sequence", "<u4"), ("time", "<u8"), ("published", "<u8")])
_LATEST_NS = 2**62
_AHEAD = 2  # chunks that are decompressed while another is decoded


class McapColumns:
    """Messages of the wanted topics of one file.

    Parameters
    ----------
    path : Path
        A file that is complete.
    topics : collection of str
        Wanted topics.

    Attributes
    ----------
    types : dict of str to str
        Topic to type of all topics that were met so far.
    """

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        self.types: dict[str, str] = {}
        self._topics, self._path = topics, path
        self._schemas: dict[int, str] = {}
        self._wanted: dict[int, str] = {}  # channel to topic

    def parts(self) -> Iterator[tuple[str, RawMessages]]:
        """Topic and messages, of every topic in the order of the file.

        Raises
        ------
        UnsuitableError
            The file is not one of ROS 2, is damaged, or its messages are not CDR.
        """
        with self._path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        content = np.frombuffer(pages, dtype=np.uint8)
        if bytes(content[: len(MAGIC)]) != MAGIC or bytes(content[-len(MAGIC) :]) != MAGIC:
            raise UnsuitableError
        start, end = len(MAGIC), len(content) - len(MAGIC)
        if content[start] != HEADER or _string(content, start + HEAD)[0] != "ros2":
            raise UnsuitableError
        budget = Budget(len(content))
        for records in scan(content, start, end):
            chunks = np.flatnonzero(records.opcodes == CHUNK)
            self._describe(content, records)
            yield from self._messages(content, records)
            _release(pages)
            spans = ((int(records.offsets[k]), int(records.lengths[k])) for k in chunks)
            for chunk in ahead(lambda span: _chunk(content, *span, budget), spans, _AHEAD):
                for inner in scan(chunk, 0, len(chunk)):
                    if (inner.opcodes == CHUNK).any():
                        raise UnsuitableError
                    self._describe(chunk, inner)
                    yield from self._messages(chunk, inner)
                _release(pages)

    def _describe(self, content: Bytes, records: Records) -> None:
        """Take up schemas and channels, of which every file has a few, and every chunk may repeat them."""
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
        """Messages among records, by channel."""
        chosen = np.flatnonzero(records.opcodes == MESSAGE)
        if not len(chosen):
            return
        offsets, lengths = records.offsets[chosen], records.lengths[chosen]
        if lengths.min() < _MESSAGE_HEAD.itemsize:
            raise UnsuitableError
        heads = windows(content, _MESSAGE_HEAD.itemsize)[offsets].view(_MESSAGE_HEAD)[:, 0]
        if heads["time"].max() >= _LATEST_NS:
            raise UnsuitableError
        for channel in np.unique(heads["channel"]).tolist():
            if channel in self._wanted:
                own = heads["channel"] == channel
                yield self._wanted[channel], RawMessages(
                    content,
                    offsets[own] + _MESSAGE_HEAD.itemsize,
                    lengths[own] - _MESSAGE_HEAD.itemsize,
                    heads["time"][own].astype(np.int64),
                )


def _release(pages: mmap.mmap) -> None:
    """Let go of what was read of a file, which else stays with this process until its end."""
    if hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def _chunk(content: Bytes, at: int, length: int, budget: Budget) -> Bytes:
    """The records of a chunk."""
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
    """A string, and where what is behind it begins."""
    (length,) = struct.unpack_from("<I", content.data, at)
    end = at + 4 + length
    if end > len(content):
        raise UnsuitableError
    return bytes(content[at + 4 : end]).decode(), end
