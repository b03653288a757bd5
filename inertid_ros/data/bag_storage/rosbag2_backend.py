"""Bags by ``rosbag2_py``, with messages by ``rclpy``: what ROS 2 itself reads and writes bags with.

Written against rosbag2 0.26 (Jazzy). Message classes are those of the installed packages.
"""

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .bag_backends import STORAGE_SUFFIXES, BagMessage, OpenBag, Storage


class Rosbag2Backend:
    """See :class:`~.bag_backends.BagBackend`. Raises ImportError where ROS 2 does not provide both packages."""

    def __init__(self) -> None:
        import rclpy.serialization
        import rosbag2_py

        self._rosbag2, self._serialization = rosbag2_py, rclpy.serialization

    @contextmanager
    def open(self, path: Path) -> Iterator[OpenBag]:
        """A bag for reading; it is closed when the last reference to its reader goes."""
        metadata = self._reader(path).get_metadata()
        topics = [(entry.topic_metadata, entry.message_count) for entry in metadata.topics_with_message_count]
        counts: dict[str, int] = {}
        for topic, count in topics:
            counts[topic.name] = counts.get(topic.name, 0) + count
        start = metadata.starting_time.nanoseconds
        end = start + metadata.duration.nanoseconds + 1

        def messages(wanted: Collection[str]) -> Iterator[BagMessage]:
            present = sorted(counts.keys() & set(wanted))
            if not present:  # an empty filter would be all
                return
            reader = self._reader(path)
            reader.set_filter(self._rosbag2.StorageFilter(topics=present))
            while reader.has_next():
                topic, data, time_ns = reader.read_next()
                yield BagMessage(topic, time_ns, data)

        yield OpenBag({topic.name: topic.type for topic, _ in topics}, counts, start, end, messages)

    @contextmanager
    def create(
        self, path: Path, storage: Storage, types: Mapping[str, str]
    ) -> Iterator[Callable[[BagMessage], None]]:
        """A new bag for writing."""
        writer = self._rosbag2.SequentialWriter()
        writer.open(self._rosbag2.StorageOptions(uri=str(path), storage_id=storage), self._unconverted())
        try:
            for number, (topic, message_type) in enumerate(types.items()):
                writer.create_topic(
                    self._rosbag2.TopicMetadata(
                        id=number, name=topic, type=message_type, serialization_format="cdr"
                    )
                )
            yield lambda message: writer.write(message.topic, message.data, message.time_ns)
        finally:
            writer.close()

    def message(self, message_type: str, **fields: Any) -> Any:
        """A message with these fields."""
        lists = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in fields.items()}
        return _message_class(message_type)(**lists)

    def serialize(self, message: Any, message_type: str) -> bytes:
        """A message as CDR."""
        return bytes(self._serialization.serialize_message(message))

    def deserialize(self, data: bytes, message_type: str) -> Any:
        """A message from CDR."""
        return self._serialization.deserialize_message(data, _message_class(message_type))

    def _reader(self, path: Path) -> Any:
        """A reader of all messages; one that decompresses where the metadata of a directory asks for that."""
        files = self._rosbag2.MetadataIo()
        described = files.metadata_file_exists(str(path))
        compressed = described and files.read_metadata(str(path)).compression_mode.upper() not in ("", "NONE")
        reader = self._rosbag2.SequentialCompressionReader() if compressed else self._rosbag2.SequentialReader()
        storage = STORAGE_SUFFIXES.get(path.suffix, "") if path.is_file() else ""  # a directory names its own
        reader.open(self._rosbag2.StorageOptions(uri=str(path), storage_id=storage), self._unconverted())
        return reader

    def _unconverted(self) -> Any:
        return self._rosbag2.ConverterOptions(input_serialization_format="cdr", output_serialization_format="cdr")


@cache
def _message_class(message_type: str) -> Any:
    """Class of ``pkg/msg/Name``."""
    package, _, name = message_type.split("/")
    return getattr(importlib.import_module(f"{package}.msg"), name)
