"""Targets that are bags: MCAP and SQLite files, their recovery, and ``metadata.yaml``."""

import random
import sqlite3
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from support.recordings.message_bag import MessageBag

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.data.files.bag_opening import METADATA
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.files.mcap_format import CHANNEL, CHUNK, MCAP_MAGIC, MESSAGE, SCHEMA, McapFile

from .target import Target, from_file
from .texts import YAML_WORDS, other_yaml
from .values import changed_bytes

_TOPICS = RecordingTopics(wrenches={"foot": WrenchTopic("/foot", "foot")})
_WORDS = (MCAP_MAGIC, b"cdr", b"ros2msg", b"zstd", b"lz4", b"sensor_msgs/msg/JointState", b"/joint_states", b"\xff" * 8)
_SQL = (
    "update messages set timestamp = -1", "update messages set timestamp = 9223372036854775807",
    "update messages set timestamp = 'x'", "update messages set timestamp = 1e300", "update messages set data = 'text'",
    "update messages set data = null", "update messages set data = zeroblob(40000)", "delete from messages",
    "update messages set topic_id = 99", "alter table messages rename column data to date",
    "delete from topics", "update topics set name = 5",
    "update topics set type = 'a/b'", "update topics set type = null", "update topics set name = char(10)",
    "update topics set offered_qos_profiles = '[[[[[[[['", "update topics set serialization_format = 'x'",
    "delete from schema", "drop table schema", "update schema set schema_version = 99",
    "update schema set schema_version = 'x'", "update message_definitions set encoding = 'x'",
    "insert into topics select id + 9, name, type, serialization_format, offered_qos_profiles, type_description_hash"
    " from topics",
    "drop table messages; create view messages as with recursive r(i) as (select 1 union all select i + 1 from r)"
    " select i as id, 1 as topic_id, i as timestamp, x'00' as data from r",
    "alter table messages rename to m; create table messages(id, topic_id, timestamp, data as (zeroblob(900000000)));"
    " insert into messages(id, topic_id, timestamp) values (1, 1, 1)",
)  # fmt: skip


@cache
def _bag(storage: str) -> dict[str, bytes]:
    """Files of a bag with joint states of two joints and a wrench, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bag"
        with MessageBag(path, storage) as bag:
            for index in range(5):
                stamp = 10**18 + index * 10**7
                bag.joint_state(stamp, ["a", "b"], np.full(2, 0.1 * index), np.ones(2), np.full(2, -0.5))
                bag.wrench(stamp, "foot", (0.0, 0.0, 9.0), "/foot")
            bag.text(10**18)
        return {file.name: file.read_bytes() for file in path.iterdir()}


def _storage(storage: str, suffix: str) -> bytes:
    return next(content for name, content in _bag(storage).items() if name.endswith(suffix))


def _read(path: Path) -> object:
    for topics, stamps in ((RecordingTopics(), "arrival"), (_TOPICS, "header")):
        recording = load_recording(path, topics, stamps=stamps)
    return recording


def records(content: bytes) -> list[tuple[int, bytes]]:
    """Opcodes and contents of an MCAP file or chunk."""
    found, position = [], len(MCAP_MAGIC) if content.startswith(MCAP_MAGIC) else 0
    while position + 9 <= len(content):
        opcode, length = content[position], struct.unpack_from("<Q", content, position + 1)[0]
        found.append((opcode, content[position + 9 : position + 9 + length]))
        position += 9 + length
        if opcode == 2:
            break
    return found


def from_records(parts: list[tuple[int, bytes]]) -> bytes:
    """An MCAP file."""
    return MCAP_MAGIC + _joined(parts) + MCAP_MAGIC


def _joined(parts: list[tuple[int, bytes]]) -> bytes:
    return b"".join(struct.pack("<BQ", opcode, len(part)) + part for opcode, part in parts)


def _other_mcap(content: bytes, rng: random.Random) -> bytes:
    parts = records(content)
    index = rng.randrange(len(parts))
    opcode, part = parts[index]
    match rng.randrange(9):
        case 0:
            del parts[index]
        case 1:
            parts.insert(rng.randrange(len(parts)), parts[index])
        case 2:
            parts[index] = (rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 255)), part)
        case 3 | 4:
            parts[index] = (opcode, changed_bytes(part, rng, [part], _WORDS))
        case 5:
            parts = [*parts[:-1], (CHUNK, chunk(_joined(parts[1:-1]), rng)), parts[-1]]
        case 6:
            first, second = rng.randrange(len(parts)), rng.randrange(len(parts))
            parts[first], parts[second] = parts[second], parts[first]
        case 7 if opcode == MESSAGE:
            times = struct.pack("<QQ", *rng.choices((0, 1, 2**63 - 1, 2**63, 2**64 - 1, 10**18), k=2))
            parts[index] = (opcode, part[:6] + times + part[22:])
        case _:
            kept = [each for each in parts if each[0] in (1, SCHEMA, CHANNEL, MESSAGE)]
            return MCAP_MAGIC + _joined(kept)  # a file that was not closed
    return from_records(parts)


def chunk(data: bytes, rng: random.Random) -> bytes:
    """A chunk record of records, which may lie about its size."""
    from backports import zstd
    from lz4.frame import compress

    name = rng.choice(("", "lz4", "zstd", "gzip"))
    packed = {"lz4": compress, "zstd": zstd.compress}.get(name, bytes)(data)
    size = rng.choice((len(data), len(data), 0, 2**62))
    head = struct.pack("<QQQI", 0, 2**63, size, 0) + struct.pack("<I", len(name)) + name.encode()
    return head + struct.pack("<Q", rng.choice((len(packed), len(packed), 0, 2**40))) + packed


def _other_database(content: bytes, rng: random.Random) -> bytes:
    database = sqlite3.connect(":memory:")
    database.deserialize(content)
    database.executescript(rng.choice(_SQL))
    database.commit()
    return database.serialize()


def _read_directory(storage: str, suffix: str):
    folder: list[tempfile.TemporaryDirectory[str]] = []

    def read(content: bytes) -> object:
        if not folder:
            folder.append(tempfile.TemporaryDirectory())
            for name, data in _bag(storage).items():
                (Path(folder[0].name) / name).write_bytes(data)
        (Path(folder[0].name) / METADATA).write_bytes(content)
        return load_recording(folder[0].name)

    return read


def bag_targets() -> list[Target]:
    """Readers of bags."""
    databases, files = [_storage("sqlite3", ".db3")], [_storage("mcap", ".mcap")]
    metadata = [_bag("mcap")[METADATA], _bag("sqlite3")[METADATA]]
    recovery = from_file(".mcap", lambda path: list(McapFile(path, {"/joint_states", "/foot"}).batches()))
    return [
        Target("mcap", from_file(".mcap", _read), lambda: files, _other_mcap, _WORDS),
        Target("mcap_recovery", recovery, lambda: files, _other_mcap, _WORDS),
        Target("sqlite", from_file(".db3", _read), lambda: databases, _other_database, _WORDS),
        Target("bag_metadata", _read_directory("mcap", ".mcap"), lambda: metadata, other_yaml, YAML_WORDS),
    ]


