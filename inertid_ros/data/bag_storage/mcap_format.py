"""Records of the MCAP format (https://mcap.dev/spec): opcodes, and how the records of a live bag are encoded.

A file is the magic, records of (opcode, length, content), and the magic again.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE = 0x01, 0x02, 0x03, 0x04, 0x05
CHUNK, STATISTICS, DATA_END = 0x06, 0x0B, 0x0F


@dataclass(frozen=True)
class Topic:
    """A topic of a bag.

    Attributes
    ----------
    name : str
        Of the topic.
    type : str
        Type of its messages, ``pkg/msg/Name``.
    definition : str
        Definition of the type in ``ros2msg`` form.
    """

    name: str
    type: str
    definition: str


def header() -> bytes:
    """Magic and header record."""
    return MAGIC + _record(HEADER, _string("ros2") + _string("inertid_ros"))


def schemas_and_channels(topics: Sequence[Topic]) -> bytes:
    """Schema and channel record of every topic; both are numbered from 1."""
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
    return data_end + summary + _record(FOOTER, struct.pack("<QQI", summary_start, 0, 0)) + MAGIC


def _record(opcode: int, content: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(content)) + content


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data
