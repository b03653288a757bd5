"""Messages of the SQLite files of a bag."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import open_file
from inertid_ros.data.messages import LATEST_NS, RawMessages, StorageFile

SQLITE_MAGIC = b"SQLite format 3\x00"
_ROWS_PER_FETCH = 16384
_TOPICS_QUERY = "select id, name, type, serialization_format from topics"
_COUNTS_QUERY = "select topic_id, count(*) from messages group by topic_id"
_MESSAGES_QUERY = "select topic_id, timestamp, data from messages where topic_id in ({}) order by id"
_COMPUTED_QUERY = "select name from sqlite_master where type in ('view', 'trigger') or sql like 'create virtual%'"
_UNNAMED_TOPICS_QUERY = "select id from topics where typeof(name) != 'text' or typeof(type) != 'text'"
_BAG_TABLES = ("messages", "topics", "schema", "metadata", "message_definitions")


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
