"""Libraries that read and write rosbag2 bags, behind one interface.

``rosbag2_py`` where ROS 2 provides it, the Python package ``rosbags`` elsewhere. Either is imported when it is first
needed, so that nothing of ROS is imported with this module.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from inertid_ros.core.errors import RecordingError

Storage = Literal["mcap", "sqlite3"]
STORAGE_SUFFIXES: dict[str, Storage] = {".mcap": "mcap", ".db3": "sqlite3"}
BACKENDS = ("rosbag2_py", "rosbags")  # the first that is installed is used


class BagMessage(NamedTuple):
    """One message: topic, time of recording [ns], serialised content."""

    topic: str
    time_ns: int
    data: bytes


@dataclass(frozen=True)
class OpenBag:
    """A bag that is open for reading.

    Attributes
    ----------
    types : dict of str to str
        Topic to type, ``pkg/msg/Name``.
    counts : dict of str to int
        Topic to number of messages.
    start_ns, end_ns : int
        First time of recording, and the end of the last nanosecond [ns]; of no meaning without messages.
    messages : callable
        Messages of the given topics, in the order of their times of recording.
    """

    types: dict[str, str]
    counts: dict[str, int]
    start_ns: int
    end_ns: int
    messages: Callable[[Collection[str]], Iterator[BagMessage]]


class BagBackend(Protocol):
    """What reading and writing need of a library. Its methods raise whatever the library raises."""

    def open(self, path: Path) -> AbstractContextManager[OpenBag]:
        """A bag directory, or a bare file whose suffix is one of ``STORAGE_SUFFIXES``, for reading."""

    def create(
        self, path: Path, storage: Storage, types: Mapping[str, str]
    ) -> AbstractContextManager[Callable[[BagMessage], None]]:
        """A new bag directory with these topics and types; gives the function that writes a message."""

    def message(self, message_type: str, **fields: Any) -> Any:
        """A message ``pkg/msg/Name`` with these fields."""

    def serialize(self, message: Any, message_type: str) -> bytes:
        """A message as CDR."""

    def deserialize(self, data: bytes, message_type: str) -> Any:
        """A message from CDR."""


def bag_backend() -> BagBackend:
    """The first of ``BACKENDS`` that is installed.

    Raises
    ------
    RecordingError
        None is.
    """
    for name in BACKENDS:
        try:
            if name == "rosbag2_py":
                from .rosbag2_backend import Rosbag2Backend

                return Rosbag2Backend()
            from .rosbags_backend import RosbagsBackend

            return RosbagsBackend()
        except ImportError:
            continue
    raise RecordingError(
        "bags need rosbag2_py, which comes with ROS 2, or the Python package rosbags; install it with: pip install"
        " rosbags"
    )
