"""Read and write rosbag2 bags by a library, and write recordings with the messages that a robot would have published.

The library is ``rosbag2_py`` if ROS 2 provides it, else the Python package ``rosbags``. Both are imported on first use,
so that this module does not import ROS.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import OutputError, RecordingError
from inertid_ros.core.outputs import check_directory, move_directory, scratch_beside
from inertid_ros.data import messages as msg
from inertid_ros.data.recording import Recording

Storage = Literal["mcap", "sqlite3"]
STORAGE_SUFFIXES: dict[str, Storage] = {".mcap": "mcap", ".db3": "sqlite3"}
BACKENDS = ("rosbag2_py", "rosbags")  # the first installed backend is used
if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore
_OUTPUT_KIND = "recording"
_WORLD_FRAME, _BASE_FRAME, _IMU_FRAME = "world", "base", "imu"  # frame names in the messages


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
    types : map from topics to types, ``pkg/msg/Name``.
    counts : map from topics to numbers of messages.
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
                for topic, message_type in types.items()}
            yield lambda message: writer.write(connections[message.topic], message.time_ns, message.data)


@cache
def typestore() -> "Typestore":
    """Message types of ROS 2, from ``rosbags``."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


def write_bag(recording: Recording, path: str | Path, storage: Storage = "mcap", start_ns: int = 10**18,
        overwrite: bool = False) -> Path:
    """Write a recording as a rosbag2 directory ``path``; the directory appears when it is complete.

    Topics are ``/joint_states``, ``/wrench/<frame>`` for every wrench, and for a free base ``/odometry`` (or ``/pose``
    without a twist, ``/twist`` without a pose) and ``/imu``. Measured accelerations are not written, because these
    messages have no field for them. Header stamps are ``start_ns`` plus the time from the first sample; ``overwrite``
    replaces a bag that this function wrote.

    Raises OutputError: ``path`` cannot be written, or has other content.
    Raises RecordingError: a library for bags is missing.
    """
    path, backend = Path(path), bag_backend()
    check_bag(path, overwrite or None)
    with scratch_beside(path) as scratch:
        # The file inside is named after its directory.
        try:
            with backend.create(scratch / path.name, storage, recorded_topics(recording)) as write:
                for message in recorded_messages(recording, start_ns):
                    write(message)
        except (OSError, RuntimeError) as error:  # rosbag2 only raises RuntimeError
            reason = (getattr(error, "strerror", None) or str(error) or error.__class__.__name__).splitlines()[0]
            raise OutputError(f"{path}: cannot be written ({reason}); choose another path") from None
        move_directory(scratch / path.name, path, _OUTPUT_KIND, overwrite or None)
    return path


def check_bag(path: str | Path, force: bool | None = None, inputs: Iterable[str | Path] = ()) -> None:
    """Check in advance that a bag can be written; see :func:`.outputs.check_directory`."""
    check_directory(path, _OUTPUT_KIND, force, inputs, file=f"{Path(path).name}_0.mcap")


class _Stream(NamedTuple):
    """One topic of a recording: values ``(N, k)`` by channel, frame of the header, names of joints or child frame."""

    topic: str
    type: str
    channels: dict[str, Array]
    frame: str = ""
    names: tuple[str, ...] = ()


def recorded_topics(recording: Recording) -> dict[str, str]:
    """Message type by topic, for a recording that is written as a bag."""
    return {stream.topic: stream.type for stream in _streams(recording)}


def recorded_messages(recording: Recording, start_ns: int) -> Iterator[BagMessage]:
    """Yield all samples as messages; the stamp of the first sample is ``start_ns``."""
    streams = _streams(recording)
    for row, nanoseconds in enumerate(np.rint((recording.time - recording.time[0]) * 1e9).astype(np.int64)):
        stamp = start_ns + int(nanoseconds)
        for stream in streams:
            values = {channel: rows[row] for channel, rows in stream.channels.items()}
            yield BagMessage(stream.topic, stamp, msg.encode(stream.type, stamp, values, stream.frame, stream.names))


def _streams(recording: Recording) -> list[_Stream]:
    velocity = np.zeros((len(recording), 0)) if recording.velocity is None else recording.velocity
    joints = {"position": recording.position, "velocity": velocity, "effort": recording.effort}
    streams = [_Stream("/joint_states", msg.JOINT_STATE, joints, "", recording.joint_names)]
    for frame, wrench in recording.wrenches.items():
        streams.append(_Stream(f"/wrench/{frame}", msg.WRENCH_STAMPED, {"wrench": wrench}, frame))
    pose, twist = recording.base_pose, recording.base_twist
    if pose is not None and twist is not None:
        base = {"base_pose": pose, "base_twist": twist}
        streams.append(_Stream("/odometry", msg.ODOMETRY, base, _WORLD_FRAME, (_BASE_FRAME,)))
    elif pose is not None:
        streams.append(_Stream("/pose", msg.POSE_STAMPED, {"base_pose": pose}, _WORLD_FRAME))
    elif twist is not None:
        streams.append(_Stream("/twist", msg.TWIST_STAMPED, {"base_twist": twist}, _BASE_FRAME))
    if recording.imu is not None:
        streams.append(_Stream("/imu", msg.IMU, {"imu": recording.imu}, _IMU_FRAME))
    return streams
