"""Stand-in for rosbag2_py: the part of its interface (rosbag2 0.26, Jazzy) that the package uses, on top of rosbags.

It has the signatures of the bindings and nothing else, so that a call which they do not know fails here too. What it
cannot show is how rosbag2 itself writes, orders, and meets damage.
"""

from dataclasses import dataclass, field
from pathlib import Path

from rclpy.duration import Duration
from rclpy.time import Time
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from inertid_ros.data.files.bag_backends import typestore


@dataclass
class StorageOptions:
    uri: str
    storage_id: str = ""


@dataclass
class ConverterOptions:
    input_serialization_format: str = ""
    output_serialization_format: str = ""


@dataclass
class StorageFilter:
    topics: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class TopicMetadata:
    id: int
    name: str
    type: str
    serialization_format: str


@dataclass
class TopicInformation:
    topic_metadata: TopicMetadata
    message_count: int


@dataclass
class BagMetadata:
    starting_time: Time
    duration: Duration
    compression_mode: str
    topics_with_message_count: list[TopicInformation]


def _metadata(reader: Reader) -> BagMetadata:
    topics = [
        TopicInformation(
            TopicMetadata(id=connection.id, name=connection.topic, type=connection.msgtype, serialization_format="cdr"),
            connection.msgcount,
        )
        for connection in reader.connections
    ]
    start, end = (reader.start_time, reader.end_time) if reader.message_count else (0, 1)
    return BagMetadata(
        Time(nanoseconds=start), Duration(nanoseconds=end - 1 - start), reader.compression_mode or "", topics
    )


class MetadataIo:
    def metadata_file_exists(self, uri: str) -> bool:
        return (Path(uri) / "metadata.yaml").exists()

    def read_metadata(self, uri: str) -> BagMetadata:
        with Reader(uri) as reader:
            return _metadata(reader)


class SequentialReader:
    compressed = False

    def open(self, storage_options: StorageOptions, converter_options: ConverterOptions) -> None:
        path = Path(storage_options.uri)
        if path.is_file() and storage_options.storage_id != {".mcap": "mcap", ".db3": "sqlite3"}[path.suffix]:
            raise RuntimeError("No storage could be initialized from the inputs.")
        self._reader = Reader(path)
        self._reader.open()
        if (self.get_metadata().compression_mode.upper() not in ("", "NONE")) != self.compressed:
            raise RuntimeError("wrong reader for the compression of this bag")
        self.set_filter(StorageFilter())

    def get_metadata(self) -> BagMetadata:
        return _metadata(self._reader)

    def set_filter(self, storage_filter: StorageFilter) -> None:
        names = storage_filter.topics
        chosen = [connection for connection in self._reader.connections if not names or connection.topic in names]
        self._messages = iter(self._reader.messages(chosen))
        self._next = next(self._messages, None)

    def has_next(self) -> bool:
        return self._next is not None

    def read_next(self) -> tuple[str, bytes, int]:
        connection, time_ns, data = self._next
        self._next = next(self._messages, None)
        return connection.topic, bytes(data), time_ns


class SequentialCompressionReader(SequentialReader):
    compressed = True


class SequentialWriter:
    def open(self, storage_options: StorageOptions, converter_options: ConverterOptions) -> None:
        plugin = StoragePlugin[storage_options.storage_id.upper()]
        self._writer = Writer(Path(storage_options.uri), version=9, storage_plugin=plugin)
        self._writer.open()
        self._connections = {}

    def create_topic(self, topic_with_type: TopicMetadata) -> None:
        self._connections[topic_with_type.name] = self._writer.add_connection(
            topic_with_type.name, topic_with_type.type, typestore=typestore()
        )

    def write(self, topic_name: str, message: bytes, time_stamp: int) -> None:
        self._writer.write(self._connections[topic_name], time_stamp, message)

    def close(self) -> None:
        self._writer.close()
