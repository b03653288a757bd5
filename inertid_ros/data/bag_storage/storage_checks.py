"""Checks of a bag's files before a library opens them, which would fill the memory with what they declare.

A Zstandard frame may expand ten-thousandfold; a column of an SQLite table may be computed; metadata may take a YAML
library minutes, or name files anywhere.
"""

import sqlite3
import struct
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from inertid_ros.core.errors import FormatError
from inertid_ros.core.formats.budget import Budget
from inertid_ros.core.formats.yaml_text import read_yaml

from .bag_backends import STORAGE_SUFFIXES
from .bag_metadata import INFORMATION, METADATA
from .mcap_format import CHANNEL, CHUNK, MAGIC

SQLITE_MAGIC = b"SQLite format 3\x00"
_LONGEST_CHANNEL = 32 * 2**10  # bytes; its quality of service is YAML, which takes a library a second
_UNNAMED = "select id from topics where typeof(name) != 'text' or typeof(type) != 'text'"
_TABLES = ("messages", "topics", "schema", "metadata", "message_definitions")


def check_storage(path: Path) -> None:
    """Check a bag directory, or a file of a bag.

    Raises
    ------
    FormatError
        Metadata are not those of a bag or name files elsewhere, chunks expand to more than a :class:`.Budget` allows
        or than they declare, or tables are computed.
    OSError
        A file cannot be read.
    """
    files = [path]
    if path.is_dir():
        files = [file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES]
        if (path / METADATA).is_file():
            _check_metadata((path / METADATA).read_bytes())
    for file in files:
        with file.open("rb") as content:
            head = content.read(len(SQLITE_MAGIC))
            if head.startswith(MAGIC):
                _check_chunks(content)
        if head == SQLITE_MAGIC:
            _check_tables(file)


def _check_metadata(text: bytes) -> None:
    try:
        content = read_yaml(text.decode())
    except (FormatError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, FormatError) else "is not text"
        raise FormatError(f"{METADATA} {reason}") from None
    information = content.get(INFORMATION) if isinstance(content, dict) else None
    paths = information.get("relative_file_paths") if isinstance(information, dict) else None
    if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
        raise FormatError(f"{METADATA} does not name the files of a bag")
    outside = [each for each in paths if PurePosixPath(each).is_absolute() or ".." in PurePosixPath(each).parts]
    if outside:
        raise FormatError(f"{METADATA} names {outside[0]}, which is not in the bag")


def _check_chunks(file: BinaryIO) -> None:
    size = file.seek(0, 2)
    budget, position = Budget(size), len(MAGIC)
    while position + 9 <= size:
        file.seek(position)
        opcode, length = struct.unpack("<BQ", file.read(9))
        position += 9 + length
        if opcode == CHANNEL and length > _LONGEST_CHANNEL:
            raise FormatError(f"describes a topic in {length} bytes")
        if opcode == CHUNK and position <= size:
            _check_chunk(file.read(length), budget)


def _check_chunk(record: bytes, budget: Budget) -> None:
    try:
        (declared,) = struct.unpack_from("<Q", record, 16)
        (length,) = struct.unpack_from("<I", record, 28)
        name = record[32 : 32 + length]
    except struct.error:
        raise FormatError("holds a chunk that is cut short") from None
    budget.take(declared, "a chunk")
    if name == b"zstd" and not _is_one_frame(record[40 + length :], declared):
        raise FormatError("holds a chunk of another size than it declares")


def _is_one_frame(data: bytes, size: int) -> bool:
    """Whether compressed data are a single frame that expands to ``size`` bytes; True without a library to tell."""
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            return True
    try:
        declared = zstd.get_frame_info(data).decompressed_size
        if zstd.get_frame_size(data) != len(data):
            return False
        return declared == size if declared is not None else _expands_to(zstd.ZstdDecompressor(), data, size)
    except zstd.ZstdError:
        return False


def _expands_to(decompressor: Any, data: bytes, size: int) -> bool:
    return len(decompressor.decompress(data, max_length=size + 1)) == size and bool(decompressor.eof)


def _check_tables(file: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            made = database.execute("select name from sqlite_master where type in ('view', 'trigger')").fetchall()
            made += database.execute("select name from sqlite_master where sql like 'create virtual%'").fetchall()
            for table in _TABLES:
                hidden = [row[1] for row in database.execute(f"pragma table_xinfo({table})") if row[6]]
                made += [(f"{table}.{column}",) for column in hidden]
            unnamed = made or database.execute(_UNNAMED).fetchall()
    except sqlite3.Error as error:
        raise FormatError(f"is not a database that can be read ({error})") from None
    if unnamed and not made:
        raise FormatError("has a topic whose name or type is no text")
    if made:
        raise FormatError(f"computes {made[0][0]} in place of holding it")
