"""Messages of the SQLite files of a bag."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import numpy as np

from inertid_ros.core.errors import FormatError
from inertid_ros.data.messages import RawMessages, UnsuitableError

SQLITE_MAGIC = b"SQLite format 3\x00"
_ROWS_PER_FETCH = 16384
_TOPICS_QUERY = "select id, name, type, serialization_format from topics"
_MESSAGES_QUERY = "select topic_id, timestamp, data from messages where topic_id in ({}) order by id"
_COMPUTED_QUERY = "select name from sqlite_master where type in ('view', 'trigger') or sql like 'create virtual%'"
_UNNAMED_TOPICS_QUERY = "select id from topics where typeof(name) != 'text' or typeof(type) != 'text'"
_BAG_TABLES = ("messages", "topics", "schema", "metadata", "message_definitions")


class SqliteFile:
    """Messages of the wanted topics of one file; see :class:`.McapFile`."""

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        self.types: dict[str, str] = {}
        self._topics, self._path = topics, path

    def batches(self) -> Iterator[list[tuple[str, RawMessages]]]:
        """Yield topics and messages in the order of writing.

        Raises
        ------
        UnsuitableError
            The file is not a database of messages, or they are not CDR.
        """
        if self._path.with_name(f"{self._path.name}-wal").exists():  # messages that are not in the file yet
            raise UnsuitableError
        try:
            check_tables(self._path)
            with _opened(self._path) as database:
                wanted = self._wanted(database)
                cursor = database.execute(_MESSAGES_QUERY.format(",".join(map(str, wanted))))
                while rows := cursor.fetchmany(_ROWS_PER_FETCH):
                    keys, times, messages = zip(*rows, strict=True)
                    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
                    offsets, content = np.cumsum(lengths) - lengths, np.frombuffer(b"".join(messages), dtype=np.uint8)
                    times_ns = np.array(times, dtype=np.int64)
                    chosen = {topic: np.array(keys) == key for key, topic in wanted.items()}
                    yield [
                        (topic, RawMessages(content, offsets[flags], lengths[flags], times_ns[flags]))
                        for topic, flags in chosen.items()
                    ]
        except (FormatError, sqlite3.Error, TypeError, OverflowError):
            raise UnsuitableError from None

    def _wanted(self, database: sqlite3.Connection) -> dict[int, str]:
        """Key to name of the wanted topics."""
        wanted = {}
        for key, topic, message_type, encoding in database.execute(_TOPICS_QUERY).fetchall():
            if self.types.setdefault(topic, message_type) != message_type:
                raise UnsuitableError
            if topic in self._topics:
                if encoding != "cdr":
                    raise UnsuitableError
                wanted[int(key)] = topic
        return wanted


def check_tables(path: Path) -> None:
    """Check a database before a library reads it.

    Raises
    ------
    FormatError
        It cannot be read, a table is computed, or the name or type of a topic is not text.
    """
    try:
        with _opened(path) as database:
            computed = [name for (name,) in database.execute(_COMPUTED_QUERY).fetchall()]
            for table in _BAG_TABLES:
                columns = database.execute(f"pragma table_xinfo({table})")
                computed += [f"{table}.{column[1]}" for column in columns if column[6]]
            unnamed = not computed and database.execute(_UNNAMED_TOPICS_QUERY).fetchall()
    except sqlite3.Error as error:
        raise FormatError(f"is not a database that can be read ({error})") from None
    if computed:
        raise FormatError(f"computes {computed[0]} in place of holding it")
    if unnamed:
        raise FormatError("has a topic whose name or type is no text")


def _opened(path: Path) -> AbstractContextManager[sqlite3.Connection]:
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    return closing(sqlite3.connect(address, uri=True))
