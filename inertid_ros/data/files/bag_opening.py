"""The files of a bag: checks of what they declare, and their messages, whether the bag was closed or not.

A library fills the memory with what a file declares: a Zstandard frame may expand ten-thousandfold, a column of an
SQLite table may be computed, and metadata may take a YAML library minutes, or name files anywhere.
"""

import re
import sqlite3
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import HEAD, Budget, foreign_content, read_yaml

from .bag_backends import STORAGE_SUFFIXES, BagBackend, BagMessage, bag_backend
from .mcap_format import CHANNEL, CHUNK, MCAP_MAGIC, BagContent, recover

METADATA = "metadata.yaml"
INFORMATION_KEY = "rosbag2_bagfile_information"  # the only key at the top of the metadata
FINALISED_KEY = "inertid_finalised"
SQLITE_MAGIC = b"SQLite format 3\x00"
_MAX_CHANNEL_BYTES = 32 * 2**10  # its quality of service is YAML, which takes a library a second
_UNNAMED_TOPICS_QUERY = "select id from topics where typeof(name) != 'text' or typeof(type) != 'text'"
_BAG_TABLES = ("messages", "topics", "schema", "metadata", "message_definitions")


def is_unfinalised(path: Path) -> bool:
    """Whether the metadata of a bag directory are those of a live bag that was not closed."""
    metadata = path / METADATA
    text = metadata.read_text(encoding="utf-8", errors="replace") if metadata.is_file() else ""
    return re.search(rf"\b{FINALISED_KEY}: '?false", text) is not None


def check_storage(path: Path) -> None:
    """Check a bag directory, or a file of a bag, before a library opens it.

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
            if head.startswith(MCAP_MAGIC):
                _check_chunks(content)
        if head == SQLITE_MAGIC:
            _check_tables(file)


def _check_metadata(text: bytes) -> None:
    try:
        content = read_yaml(text.decode())
    except (FormatError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, FormatError) else "is not text"
        raise FormatError(f"{METADATA} {reason}") from None
    information = content.get(INFORMATION_KEY) if isinstance(content, dict) else None
    paths = information.get("relative_file_paths") if isinstance(information, dict) else None
    if not isinstance(paths, list) or not all(isinstance(name, str) for name in paths):
        raise FormatError(f"{METADATA} does not name the files of a bag")
    outside = [name for name in paths if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    if outside:
        raise FormatError(f"{METADATA} names {outside[0]}, which is not in the bag")


def _check_chunks(file: BinaryIO) -> None:
    size = file.seek(0, 2)
    budget, position = Budget(size), len(MCAP_MAGIC)
    while position + 9 <= size:
        file.seek(position)
        opcode, length = struct.unpack("<BQ", file.read(9))
        position += 9 + length
        if opcode == CHANNEL and length > _MAX_CHANNEL_BYTES:
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
    """Whether compressed data are a single frame that expands to ``size`` bytes; True without a library."""
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
            computed = database.execute("select name from sqlite_master where type in ('view', 'trigger')").fetchall()
            computed += database.execute("select name from sqlite_master where sql like 'create virtual%'").fetchall()
            for table in _BAG_TABLES:
                hidden = [row[1] for row in database.execute(f"pragma table_xinfo({table})") if row[6]]
                computed += [(f"{table}.{column}",) for column in hidden]
            unnamed = computed or database.execute(_UNNAMED_TOPICS_QUERY).fetchall()
    except sqlite3.Error as error:
        raise FormatError(f"is not a database that can be read ({error})") from None
    if unnamed and not computed:
        raise FormatError("has a topic whose name or type is no text")
    if computed:
        raise FormatError(f"computes {computed[0][0]} in place of holding it")


def closed_files(path: Path) -> list[Path]:
    """Files of a closed bag in their order; empty if it was not closed or is compressed as a whole."""
    files = [path]
    try:
        if not path.is_file():
            information = read_yaml((path / METADATA).read_text(encoding="utf-8"))[INFORMATION_KEY]
            files = [path / name for name in information["relative_file_paths"]]
            if information.get("compression_format") or is_unfinalised(path) or set(files) != set(_storage_files(path)):
                return []
        return files if all(_checked_suffix(file) == file.suffix for file in files) else []
    except (OSError, FormatError, ValueError, TypeError, KeyError, RecordingError):
        return []


def bag_topics(path: str | Path) -> dict[str, tuple[str, int]]:
    """Topic to ``(type, number of messages)`` of a bag.

    Raises
    ------
    RecordingError
        No bag, or unreadable.
    """
    bag = bag_content(bag_backend(), Path(path), set())
    return {topic: (message_type, bag.counts.get(topic, 0)) for topic, message_type in bag.types.items()}


def bag_content(backend: BagBackend, path: Path, topics: set[str]) -> BagContent:
    """Read the topics of a bag and its messages on the given ones, with a notice if it was not closed."""
    files = _storage_files(path)
    _check_content(path, files)
    closed = path.is_file() or (path / METADATA).exists()
    try:
        contents = [_read_file(backend, part, topics) for part in ([path] if closed else files)]
        notice = "" if closed else "bag was not closed: metadata.yaml is missing"
        notice = notice or ("bag was not closed: its recorder was killed" if is_unfinalised(path) else "")
    except RecordingError:
        if any(file.suffix == ".db3" for file in files):
            raise
        contents = [recover(file, topics) for file in files]
        total = sum(sum(content.counts.values()) for content in contents)
        if total == 0:
            raise
        notice = f"bag was not closed or is damaged: recovered {total} messages"
    bag = BagContent(notices=(notice,) if notice else ())
    for content in contents:
        bag.messages.extend(content.messages)
        bag.types.update(content.types)
        for topic, count in content.counts.items():
            bag.counts[topic] = bag.counts.get(topic, 0) + count
    return bag


def _check_content(path: Path, files: Sequence[Path]) -> None:
    """Raise RecordingError if a file of a bag holds something else (a git-lfs pointer, an HTML page)."""
    heads = {}
    for file in (*files, path / METADATA):
        if file.exists():
            with file.open("rb") as content:
                heads[file] = content.read(HEAD)
    all_empty = not any(heads[file] for file in files)  # a recorder may leave its last file empty
    for file, head in heads.items():
        if (head or all_empty) and (foreign := foreign_content(head)):
            which = "" if file == path else f"{file.name} "
            raise RecordingError(f"{path}: {which}{foreign}")


def _storage_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise RecordingError(f"{path}: no such bag; check the path")
    files = sorted((file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES), key=_split_number)
    if not files and not (path / METADATA).exists():
        raise RecordingError(f"{path}: is a directory without metadata.yaml, .mcap or .db3; give a rosbag2 directory")
    return files


def _split_number(file: Path) -> tuple[int, str]:
    """Sort key of split bags, numbered ``name_0.mcap``, ``name_1.mcap``, ..., ``name_10.mcap``."""
    number = file.stem.rpartition("_")[2]
    return (int(number) if number.isdigit() else 0, file.name)


def _read_file(backend: BagBackend, path: Path, topics: set[str]) -> BagContent:
    try:
        check_storage(path)
        with ExitStack() as stack:
            bag = stack.enter_context(backend.open(stack.enter_context(_readable(path))))
            return BagContent(bag.types, bag.counts, list(bag.messages(topics)))
    except Exception as error:  # a library meets damage with whatever its parser raises
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> RecordingError:
    """Error in one line about a bag that a library could not read."""
    reason = (str(error) or error.__class__.__name__).splitlines()[0]
    return RecordingError(f"{path}: cannot be read as a bag ({reason}); record again, or try 'ros2 bag reindex'")


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """Path, or a link to it, with the suffix of its content, by which libraries choose the format."""
    suffixes = [_checked_suffix(file) for file in _storage_files(path)]
    if path.is_dir() or suffixes == [path.suffix]:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / f"bag{suffixes[0]}"
        link.symlink_to(path.absolute())
        yield link


def _checked_suffix(file: Path) -> str:
    """Suffix for the content of a complete file; ValueError if it is cut short, which libraries may not notice."""
    with file.open("rb") as content:
        head = content.read(32)
        content.seek(max(content.seek(0, 2) - len(MCAP_MAGIC), 0))
        tail = content.read()
    if not head.startswith(SQLITE_MAGIC):
        if head.startswith(MCAP_MAGIC) and tail != MCAP_MAGIC:
            raise ValueError("the file is cut short")
        return ".mcap"
    size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if file.stat().st_size < (65536 if size == 1 else size) * pages:
        raise ValueError("the file is cut short")
    return ".db3"


@dataclass(frozen=True)
class Playback:
    """A bag to play.

    Attributes
    ----------
    path : Path
    types : dict of str to str
        Chosen topic to type, ``pkg/msg/Name``.
    start_ns, end_ns : int
        First time of recording, and the end of the last nanosecond [ns].
    """

    path: Path
    types: dict[str, str]
    start_ns: int
    end_ns: int

    def messages(self) -> Iterator[BagMessage]:
        """Yield the messages of the chosen topics, in the order of their times.

        Raises
        ------
        RecordingError
            The bag is damaged.
        """
        try:
            with bag_backend().open(self.path) as bag:
                yield from bag.messages(self.types)
        except Exception as error:  # a library meets damage with whatever its parser raises
            raise unreadable(self.path, error) from None


def open_playback(path: str | Path, topics: tuple[str, ...] = ()) -> Playback:
    """Open a bag to play ``topics``, or all topics.

    Raises
    ------
    RecordingError
        No such bag, no library for bags is installed, unreadable, or a topic is not in it.
    """
    path, backend = Path(path).expanduser(), bag_backend()
    if not path.exists():
        raise RecordingError(f"{path}: no such bag; check the path")
    try:
        check_storage(path)
        with backend.open(path) as bag:
            types, count = bag.types, sum(bag.counts.values())
    except Exception as error:
        raise unreadable(path, error) from None
    if count == 0:
        raise RecordingError(f"{path}: holds no messages; record again")
    missing = [topic for topic in topics if topic not in types]
    if missing:
        raise RecordingError(f"{path}: has no topic {missing[0]}; it has {', '.join(sorted(types))}")
    chosen = {topic: message_type for topic, message_type in types.items() if not topics or topic in topics}
    return Playback(path, chosen, bag.start_ns, bag.end_ns)
