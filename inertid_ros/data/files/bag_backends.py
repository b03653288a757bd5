"""Libraries that read and write rosbag2 bags, behind one interface.

``rosbag2_py`` if ROS 2 provides it, else the Python package ``rosbags``. Both are imported on first use, so that this
module does not import ROS.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from inertid_ros.core.errors import RecordingError

Storage = Literal["mcap", "sqlite3"]
STORAGE_SUFFIXES: dict[str, Storage] = {".mcap": "mcap", ".db3": "sqlite3"}
BACKENDS = ("rosbag2_py", "rosbags")  # the first installed backend is used
if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore


class BagMessage(NamedTuple):
    """One message: topic, time of recording [ns], serialised content."""

    topic: str
    time_ns: int
    data: bytes


@dataclass(frozen=True)
class OpenBag:
    """An open bag; its messages are read when they are requested.

    Attributes
    ----------
    types : topic to type, ``pkg/msg/Name``.
    counts : topic to number of messages.
    start_ns, end_ns : first time of recording, and last time plus 1 ns [ns]; undefined for a bag without messages.
    messages : function that yields the messages of given topics, in the order of their times of recording.
    """

    types: dict[str, str]
    counts: dict[str, int]
    start_ns: int
    end_ns: int
    messages: Callable[[Collection[str]], Iterator[BagMessage]]


def bag_backend() -> "Rosbag2Backend | RosbagsBackend":
    """Return the first installed backend of ``BACKENDS``.

    Raises RecordingError: both backends are missing.
    """
    for name in BACKENDS:
        try:
            return Rosbag2Backend() if name == "rosbag2_py" else RosbagsBackend()
        except ImportError:
            continue
    raise RecordingError(
        "bags need rosbag2_py, which comes with ROS 2, or the Python package rosbags; install it with: pip install"
        " rosbags")


class Rosbag2Backend:
    """Read and write bags with ``rosbag2_py`` (rosbag2 0.26, Jazzy). Raises ImportError if ROS 2 does not provide it.

    Methods pass on all exceptions of ``rosbag2_py``.
    """

    def __init__(self) -> None:
        import rosbag2_py

        self._rosbag2 = rosbag2_py

    def open(self, path: Path) -> OpenBag:
        """Open a bag directory, or a bare file with one of ``STORAGE_SUFFIXES``, for reading."""
        metadata = self._reader(path).get_metadata()
        topics = [(entry.topic_metadata, entry.message_count) for entry in metadata.topics_with_message_count]
        counts: dict[str, int] = {}
        for topic, count in topics:
            counts[topic.name] = counts.get(topic.name, 0) + count
        start = metadata.starting_time.nanoseconds
        end = start + metadata.duration.nanoseconds + 1

        def messages(wanted: Collection[str]) -> Iterator[BagMessage]:
            present = sorted(counts.keys() & set(wanted))
            if not present:  # an empty filter would select all topics
                return
            reader = self._reader(path)
            reader.set_filter(self._rosbag2.StorageFilter(topics=present))
            while reader.has_next():
                topic, data, time_ns = reader.read_next()
                yield BagMessage(topic, time_ns, data)

        return OpenBag({topic.name: topic.type for topic, _ in topics}, counts, start, end, messages)

    @contextmanager
    def create(self, path: Path, storage: Storage, types: Mapping[str, str]) -> Iterator[Callable[[BagMessage], None]]:
        """Create a bag directory with topics and their types; the context gives the function that writes a message."""
        writer = self._rosbag2.SequentialWriter()
        writer.open(self._rosbag2.StorageOptions(uri=str(path), storage_id=storage), self._unconverted())
        try:
            for number, (topic, message_type) in enumerate(types.items()):
                described = {"id": number, "name": topic, "type": message_type, "serialization_format": "cdr"}
                writer.create_topic(self._rosbag2.TopicMetadata(**described))
            yield lambda message: writer.write(message.topic, message.data, message.time_ns)
        finally:
            writer.close()

    def _reader(self, path: Path) -> Any:
        """Reader of all messages; it decompresses if the metadata of a directory require it."""
        files = self._rosbag2.MetadataIo()
        described = files.metadata_file_exists(str(path))
        compressed = described and files.read_metadata(str(path)).compression_mode.upper() not in ("", "NONE")
        reader = self._rosbag2.SequentialCompressionReader() if compressed else self._rosbag2.SequentialReader()
        storage = STORAGE_SUFFIXES.get(path.suffix, "") if path.is_file() else ""  # else named by the metadata
        reader.open(self._rosbag2.StorageOptions(uri=str(path), storage_id=storage), self._unconverted())
        return reader

    def _unconverted(self) -> Any:
        return self._rosbag2.ConverterOptions(input_serialization_format="cdr", output_serialization_format="cdr")


class RosbagsBackend:
    """Read and write bags with the Python package ``rosbags``, without ROS. Raises ImportError if it is missing."""

    def __init__(self) -> None:
        from rosbags import rosbag2

        self._rosbag2 = rosbag2

    def open(self, path: Path) -> OpenBag:
        def messages(topics: Collection[str]) -> Iterator[BagMessage]:
            with self._rosbag2.Reader(path) as reader:
                wanted = [connection for connection in reader.connections if connection.topic in topics]
                if wanted:  # an empty list would select all topics
                    for connection, time_ns, data in reader.messages(wanted):
                        yield BagMessage(connection.topic, time_ns, bytes(data))

        counts: dict[str, int] = {}
        with self._rosbag2.Reader(path) as reader:
            for connection in reader.connections:
                counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
            types = {connection.topic: str(connection.msgtype) for connection in reader.connections}
            return OpenBag(types, counts, reader.start_time, reader.end_time, messages)

    @contextmanager
    def create(self, path: Path, storage: Storage, types: Mapping[str, str]) -> Iterator[Callable[[BagMessage], None]]:
        plugin = self._rosbag2.StoragePlugin[storage.upper()]
        with self._rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
            connections = {
                topic: writer.add_connection(topic, message_type, typestore=typestore())
                for topic, message_type in types.items()
            }
            yield lambda message: writer.write(connections[message.topic], message.time_ns, message.data)


@cache
def typestore() -> "Typestore":
    """Message types of ROS 2, from ``rosbags``."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)
