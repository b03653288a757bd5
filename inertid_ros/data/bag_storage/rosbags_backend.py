"""Bags by the Python package ``rosbags``, without ROS."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .bag_backends import BagMessage, OpenBag, Storage

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore


class RosbagsBackend:
    """See :class:`~.bag_backends.BagBackend`. Raises ImportError where rosbags is not installed."""

    def __init__(self) -> None:
        from rosbags import rosbag2

        self._rosbag2, self._types = rosbag2, typestore()

    @contextmanager
    def open(self, path: Path) -> Iterator[OpenBag]:
        """A bag for reading."""
        with self._rosbag2.Reader(path) as reader:

            def messages(topics: Collection[str]) -> Iterator[BagMessage]:
                wanted = [connection for connection in reader.connections if connection.topic in topics]
                if wanted:  # an empty list would be all
                    for connection, time_ns, data in reader.messages(wanted):
                        yield BagMessage(connection.topic, time_ns, bytes(data))

            counts: dict[str, int] = {}
            for connection in reader.connections:
                counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
            types = {connection.topic: str(connection.msgtype) for connection in reader.connections}
            yield OpenBag(types, counts, reader.start_time, reader.end_time, messages)

    @contextmanager
    def create(
        self, path: Path, storage: Storage, types: Mapping[str, str]
    ) -> Iterator[Callable[[BagMessage], None]]:
        """A new bag for writing."""
        plugin = self._rosbag2.StoragePlugin[storage.upper()]
        with self._rosbag2.Writer(path, version=9, storage_plugin=plugin) as writer:
            connections = {
                topic: writer.add_connection(topic, message_type, typestore=self._types)
                for topic, message_type in types.items()
            }
            yield lambda message: writer.write(connections[message.topic], message.time_ns, message.data)

    def message(self, message_type: str, **fields: Any) -> Any:
        """A message with these fields."""
        return self._types.types[message_type](**fields)

    def serialize(self, message: Any, message_type: str) -> bytes:
        """A message as CDR."""
        return bytes(self._types.serialize_cdr(message, message_type))

    def deserialize(self, data: bytes, message_type: str) -> Any:
        """A message from CDR."""
        return self._types.deserialize_cdr(data, message_type)


@cache
def typestore() -> "Typestore":
    """Message types of ROS 2, without ROS."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)
