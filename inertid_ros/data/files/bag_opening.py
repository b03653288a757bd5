"""Files of a bag and their messages, also of a bag that was not closed; messages of SQLite files.

A bag library (see ``bag_backends``) reads bags that are compressed as a whole, and replays any bag. Such a library
trusts the declarations of a file: a Zstandard frame may expand ten-thousandfold, a column of an SQLite table may be
computed, and metadata may keep a YAML library busy for minutes, or name files anywhere. So this module checks a bag
before the library opens it.
"""

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import foreign_content, open_file, read_head, read_text, read_yaml
from inertid_ros.data.files.bag_backends import STORAGE_SUFFIXES, BagMessage, OpenBag, bag_backend
from inertid_ros.data.files.mcap_format import MCAP_MAGIC, McapFile, MissingPackageError, check_chunks
from inertid_ros.data.messages import LATEST_NS, RawMessages, StorageFile

METADATA = "metadata.yaml"
INFORMATION_KEY = "rosbag2_bagfile_information"  # the only key at the top of the metadata
FINALISED_KEY = "inertid_finalised"
_LIBRARY_BATCH_MESSAGES = 4096
SQLITE_MAGIC = b"SQLite format 3\x00"
_ROWS_PER_FETCH = 16384
_TOPICS_QUERY = "select id, name, type, serialization_format from topics"
_COUNTS_QUERY = "select topic_id, count(*) from messages group by topic_id"
_MESSAGES_QUERY = "select topic_id, timestamp, data from messages where topic_id in ({}) order by id"
_COMPUTED_QUERY = "select name from sqlite_master where type in ('view', 'trigger') or sql like 'create virtual%'"
_UNNAMED_TOPICS_QUERY = "select id from topics where typeof(name) != 'text' or typeof(type) != 'text'"
_BAG_TABLES = ("messages", "topics", "schema", "metadata", "message_definitions")


def bag_topics(path: str | Path) -> dict[str, tuple[str, int]]:
    """Map from the topics of a bag to ``(type, number of messages)``.

    Raises RecordingError: not a bag, or unreadable.
    """
    bag = StoredBag(Path(path))
    for _ in bag.messages({}):
        pass
    return {topic: (message_type, bag.counts.get(topic, 0)) for topic, message_type in bag.types.items()}


def open_playback(path: str | Path, topics: tuple[str, ...] = ()) -> OpenBag:
    """Open a bag to play ``topics``, or all topics; a damaged bag raises RecordingError while messages are read.

    Raises RecordingError: the bag does not exist, is unreadable or lacks a topic, or a library for bags is missing.
    """
    path, backend = Path(os.path.expanduser(path)), bag_backend()
    if not os.path.exists(path):
        raise RecordingError(f"{path}: no such bag; check the path")
    try:
        _check_storage(path)
        bag = backend.open(path)
    except Exception as error:
        raise _unreadable(path, error) from None
    if not any(bag.counts.values()):
        raise RecordingError(f"{path}: holds no messages; record again")
    if missing := [topic for topic in topics if topic not in bag.types]:
        raise RecordingError(f"{path}: has no topic {missing[0]}; it has {', '.join(sorted(bag.types))}")

    def messages(wanted: Collection[str]) -> Iterator[BagMessage]:
        try:
            yield from bag.messages(wanted)
        except Exception as error:  # parsers of libraries raise various exceptions on damage
            raise _unreadable(path, error) from None

    types = {topic: message_type for topic, message_type in bag.types.items() if not topics or topic in topics}
    return replace(bag, types=types, messages=messages)


class StoredBag:
    """Messages of a bag, closed or not, whole or damaged.

    Raises RecordingError if the path is not a bag, or a file has other content.

    Attributes
    ----------
    types, counts : type and number of messages by topic; complete once all messages were read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.types: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self._files = _storage_files(path)
        self._is_compressed = False
        self._notice = self._damage = ""
        if not os.path.isdir(path):
            return
        if not (path / METADATA).exists():
            self._notice = "bag was not closed: metadata.yaml is missing"
            return
        try:
            information = _information(path)
        except FormatError as error:
            self._damage = str(error)
            return
        custom = information.get("custom_data")
        if isinstance(custom, dict) and str(custom.get(FINALISED_KEY)).lower() == "false":
            self._notice = "bag was not closed: its recorder was killed"
        self._is_compressed = bool(information.get("compression_format"))
        files = [path / name for name in information["relative_file_paths"]]
        if set(files) == set(self._files):
            self._files = files
        elif not self._is_compressed:
            self._damage = f"{METADATA} names other files"

    @property
    def notices(self) -> tuple[str, ...]:
        """Notice if the bag was not closed or is damaged; final once all messages were read."""
        if self._damage:
            return (f"bag was not closed or is damaged: recovered {sum(self.counts.values())} messages",)
        return (self._notice,) if self._notice else ()

    def messages(self, types: Mapping[str, str]) -> Iterator[tuple[str, RawMessages]]:
        """Yield the messages of topics in pieces and in the order of writing; ``types`` maps topics to their types.

        Each MCAP file is read up to its first damage. A topic is skipped if it has another type than in ``types``.

        Raises RecordingError: the bag is unreadable, or a package that decompresses it is not installed.
        """
        if self._is_compressed:
            yield from self._by_library(types)
            return
        for path in self._files:
            head = read_head(path)
            foreign = foreign_content(head)
            if head and foreign:
                raise RecordingError(f"{self.path}: {path.name} {foreign}")
            file = SqliteFile(path, types) if head.startswith(SQLITE_MAGIC) else McapFile(path, types)
            try:
                yield from (batch for batch in file.batches() if file.types[batch[0]] == types[batch[0]])
            except MissingPackageError:
                if file.is_damaged or file.counts or self.counts:
                    raise
                yield from self._by_library(types)
                return
            except (FormatError, OSError) as error:
                raise _unreadable(self.path, error) from None
            self.types.update(file.types)
            for topic, count in file.counts.items():
                self.counts[topic] = self.counts.get(topic, 0) + count
            if file.is_damaged:  # a recorder may leave its last file empty
                self._damage = self._damage or f"{path.name} {foreign or 'is damaged'}"
        if self._damage and not any(self.counts.values()):
            raise _unreadable(self.path, ValueError(self._damage))

    def _by_library(self, types: Mapping[str, str]) -> Iterator[tuple[str, RawMessages]]:
        backend = bag_backend()
        try:
            _check_storage(self.path)
            bag = backend.open(self.path)
            self.types, self.counts = bag.types, bag.counts
            messages = bag.messages([topic for topic in types if bag.types.get(topic) == types[topic]])
            while batch := list(islice(messages, _LIBRARY_BATCH_MESSAGES)):
                yield from RawMessages.by_topic(*zip(*batch, strict=True))
        except Exception as error:  # parsers of libraries raise various exceptions on damage
            raise _unreadable(self.path, error) from None


def _storage_files(path: Path) -> list[Path]:
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise RecordingError(f"{path}: no such bag; check the path")
    files = sorted((file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES), key=_split_number)
    if not files and not (path / METADATA).exists():
        raise RecordingError(f"{path}: is a directory without metadata.yaml, .mcap or .db3; give a rosbag2 directory")
    return files


def _split_number(file: Path) -> tuple[int, str]:
    """Sort key of split bags, numbered ``name_0.mcap``, ``name_1.mcap``, ..., ``name_10.mcap``."""
    number = file.stem.rpartition("_")[2]
    return (int(number) if number.isdigit() else 0, file.name)


def _unreadable(path: Path, error: Exception) -> RecordingError:
    reason = (str(error) or error.__class__.__name__).splitlines()[0]
    return RecordingError(f"{path}: cannot be read as a bag ({reason}); record again, or try 'ros2 bag reindex'")


def _check_storage(path: Path) -> None:
    """Check a bag directory, or a file of a bag, before a library opens it.

    Raises FormatError: metadata are invalid or name files outside the bag; see also :func:`check_chunks`,
    :func:`check_tables`.
    Raises OSError: a file cannot be read.
    """
    files = [path]
    if os.path.isdir(path):
        files = [file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES]
        if (path / METADATA).is_file():
            _information(path)
    for file in files:
        head = read_head(file)
        if head.startswith(MCAP_MAGIC):
            check_chunks(file)
        if head.startswith(SQLITE_MAGIC):
            check_tables(file)


def _information(path: Path) -> dict[str, Any]:
    """Metadata of a bag directory.

    Raises FormatError: the metadata are invalid, or name a file twice or files outside the bag.
    Raises RecordingError: the file has other content (a git-lfs pointer, an HTML page).
    """
    if foreign := foreign_content(read_head(path / METADATA)):
        raise RecordingError(f"{path}: {METADATA} {foreign}")
    try:
        content = read_yaml(read_text(path / METADATA))
    except FormatError as error:
        raise FormatError(f"{METADATA} {error}") from None
    information: Any = content.get(INFORMATION_KEY) if isinstance(content, dict) else None
    if not isinstance(information, dict):
        information = {}
    paths = information.get("relative_file_paths")
    if not isinstance(paths, list) or not all(isinstance(name, str) for name in paths):
        raise FormatError(f"{METADATA} does not name the files of a bag")
    if len(set(paths)) < len(paths):
        raise FormatError(f"{METADATA} names a file twice")
    if outside := [name for name in paths if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]:
        raise FormatError(f"{METADATA} names {outside[0]}, which is not in the bag")
    return information


class SqliteFile(StorageFile):
    """Messages of one file. If ``topics`` is empty, the messages of all topics are counted."""

    def batches(self) -> Iterator[tuple[str, RawMessages]]:
        """Yield topics and messages in the order of writing.

        Raises FormatError: the file is cut short, or not a database of messages.
        Raises RecordingError: a topic is not CDR.
        """
        check_tables(self._path)
        try:
            with _opened(self._path) as database:
                wanted = self._wanted(database)
                cursor = database.execute(_MESSAGES_QUERY.format(",".join(map(str, wanted))))
                while rows := cursor.fetchmany(_ROWS_PER_FETCH):
                    keys, times, messages = zip(*rows, strict=True)
                    if max(map(abs, times)) >= LATEST_NS:
                        raise ValueError("time out of range")
                    for topic, batch in RawMessages.by_topic([wanted[key] for key in keys], times, messages):
                        self.counts[topic] += len(batch)
                        yield topic, batch
        except (sqlite3.Error, ValueError, TypeError, OverflowError, KeyError) as error:
            raise FormatError(f"holds an invalid message: {error}") from None

    def _wanted(self, database: sqlite3.Connection) -> dict[int, str]:
        """Name of each wanted topic, by its key in the database."""
        counts = {} if self._topics else dict(database.execute(_COUNTS_QUERY).fetchall())  # reads the whole table
        wanted = {}
        for key, topic, message_type, encoding in database.execute(_TOPICS_QUERY).fetchall():
            self.counts[topic] = self.counts.get(topic, 0) + counts.get(key, 0)
            if self.types.setdefault(topic, message_type) != message_type:
                raise FormatError("holds a topic of two types")
            if topic in self._topics:
                if encoding != "cdr":
                    raise RecordingError(f"{self._path}: topic {topic} is encoded as {encoding}, not cdr")
                wanted[int(key)] = topic
        return wanted


def check_tables(path: Path) -> None:
    """Check a database before it is read.

    Raises FormatError: the database cannot be read or is cut short, a table or column is computed, or the name or type
    of a topic is not text.
    """
    with open_file(path) as content:
        head = content.read(32)
    page_bytes, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if path.stat().st_size < (65536 if page_bytes == 1 else page_bytes) * pages:
        raise FormatError("is cut short")
    try:
        with _opened(path) as database:
            computed = [name for (name,) in database.execute(_COMPUTED_QUERY).fetchall()]
            for table in _BAG_TABLES:
                columns = database.execute(f"pragma table_xinfo({table})")
                computed += [f"{table}.{column[1]}" for column in columns if column[6]]
            unnamed = not computed and database.execute(_UNNAMED_TOPICS_QUERY).fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise FormatError(f"is not a database that can be read ({error})") from None
    if computed:
        raise FormatError(f"computes {computed[0]} instead of storing it")
    if unnamed:
        raise FormatError("has a topic whose name or type is not text")


def _opened(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    has_log = path.with_name(f"{path.name}-wal").exists()  # holds messages that are not in the file yet
    address = f"{path.absolute().as_uri()}?mode=ro{'' if has_log else '&immutable=1'}"
    return closing(sqlite3.connect(address, uri=True))
