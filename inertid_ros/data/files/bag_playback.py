"""Messages of a bag in the order and at the times at which they were recorded, to be played again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inertid_ros.core.errors import RecordingError


@dataclass(frozen=True)
class TimedMessage:
    """One message: topic, time of recording [ns], serialised content."""

    topic: str
    time_ns: int
    data: bytes


@dataclass(frozen=True)
class Playback:
    """A bag to play.

    Attributes
    ----------
    types: topic to type, ``pkg/msg/Name``.
    start_ns, end_ns: span of the times of recording.
    """

    path: Path
    types: dict[str, str]
    start_ns: int
    end_ns: int

    def messages(self) -> Iterator[TimedMessage]:
        """Messages of the chosen topics, in the order of their times.

        Raises
        ------
        RecordingError: the bag is damaged.
        """
        from rosbags.rosbag2 import Reader

        try:
            with Reader(self.path) as reader:
                wanted = [connection for connection in reader.connections if connection.topic in self.types]
                for connection, time_ns, data in reader.messages(wanted):
                    yield TimedMessage(connection.topic, time_ns, bytes(data))
        except GeneratorExit:
            raise
        except Exception as error:  # rosbags meets damage with whatever its parser stumbles over
            raise _unreadable(self.path, error) from None


def open_playback(path: str | Path, topics: tuple[str, ...] = ()) -> Playback:
    """A bag directory or file; ``topics`` chooses, empty takes all.

    Raises
    ------
    RecordingError: no such bag, rosbags is not installed, unreadable, or a topic is not in it.
    """
    path = Path(path).expanduser()
    try:
        from rosbags.rosbag2 import Reader
    except ImportError:
        raise RecordingError("bags need the Python package rosbags; install it with: pip install rosbags") from None
    if not path.exists():
        raise RecordingError(f"{path}: no such bag; check the path")
    try:
        with Reader(path) as reader:
            types = {connection.topic: connection.msgtype for connection in reader.connections}
            start, end, count = reader.start_time, reader.end_time, reader.message_count
    except Exception as error:
        raise _unreadable(path, error) from None
    if count == 0:
        raise RecordingError(f"{path}: holds no messages; record again")
    missing = [topic for topic in topics if topic not in types]
    if missing:
        raise RecordingError(f"{path}: has no topic {missing[0]}; it has {', '.join(sorted(types))}")
    return Playback(path, {topic: kind for topic, kind in types.items() if not topics or topic in topics}, start, end)


def _unreadable(path: Path, error: Exception) -> RecordingError:
    reason = (str(error) or error.__class__.__name__).splitlines()[0]
    return RecordingError(f"{path}: cannot be read as a bag ({reason}); record again, or try 'ros2 bag reindex'")
