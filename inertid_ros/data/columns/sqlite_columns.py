"""Serialised messages of an SQLite file by topic, piece by piece."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.errors import FormatError
from inertid_ros.data.bag_storage.storage_checks import check_storage

from .cdr_layout import UnsuitableError
from .raw_messages import RawMessages

_AT_ONCE = 16384  # messages
_TOPICS = "select id, name, type, serialization_format from topics"
_MESSAGES = "select topic_id, timestamp, data from messages where topic_id in ({}) order by id"


class SqliteColumns:
    """Messages of the wanted topics of one file; see :class:`.McapColumns`."""

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        self.types: dict[str, str] = {}
        self._topics, self._path = topics, path

    def parts(self) -> Iterator[tuple[str, RawMessages]]:
        """Topic and messages, of every topic in the order in which they were written.

        Raises
        ------
        UnsuitableError
            The file is no database of messages, or they are not CDR.
        """
        if self._path.with_name(f"{self._path.name}-wal").exists():  # messages that are not in the file yet
            raise UnsuitableError
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            check_storage(self._path)
            with closing(sqlite3.connect(address, uri=True)) as database:
                wanted = self._topics_of(database)
                cursor = database.execute(_MESSAGES.format(",".join(map(str, wanted))))
                while rows := cursor.fetchmany(_AT_ONCE):
                    keys, times, messages = zip(*rows, strict=True)
                    yield from _by_topic(wanted, np.array(keys), np.array(times, dtype=np.int64), messages)
        except (FormatError, sqlite3.Error, TypeError, OverflowError):
            raise UnsuitableError from None

    def _topics_of(self, database: sqlite3.Connection) -> dict[int, str]:
        """Key to name of the wanted topics."""
        wanted = {}
        for key, topic, message_type, encoding in database.execute(_TOPICS).fetchall():
            if self.types.setdefault(topic, message_type) != message_type:
                raise UnsuitableError
            if topic in self._topics:
                if encoding != "cdr":
                    raise UnsuitableError
                wanted[int(key)] = topic
        return wanted


def _by_topic(
    wanted: Mapping[int, str], keys: NDArray[np.int64], times: NDArray[np.int64], messages: Sequence[bytes]
) -> Iterator[tuple[str, RawMessages]]:
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    offsets, content = np.cumsum(lengths) - lengths, np.frombuffer(b"".join(messages), dtype=np.uint8)
    for key, topic in wanted.items():
        own = slice(None) if (keys == key).all() else keys == key
        yield topic, RawMessages(content, offsets[own], lengths[own], times[own])
