"""Messages of a bag in the order and at the times at which they were recorded, to be played again."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.bag_storage.bag_backends import BagMessage, bag_backend
from inertid_ros.data.bag_storage.storage_checks import check_storage

from .bag_reading import unreadable


@dataclass(frozen=True)
class Playback:
    """A bag to play.

    Attributes
    ----------
    path : Path
        The bag.
    types : dict of str to str
        Chosen topic to type, ``pkg/msg/Name``.
    start_ns, end_ns : int
        First time of recording, and the end of the last nanosecond [ns].
    """

    path: Path
    types: dict[str, str]
    start_ns: int
    end_ns: int

    def messages(self) -> Iterator[BagMessage]:
        """Messages of the chosen topics, in the order of their times.

        Raises
        ------
        RecordingError
            The bag is damaged.
        """
        try:
            with bag_backend().open(self.path) as bag:
                yield from bag.messages(self.types)
        except Exception as error:  # a library meets damage with whatever its parser raises
            raise unreadable(self.path, error) from None


def open_playback(path: str | Path, topics: tuple[str, ...] = ()) -> Playback:
    """A bag to play.

    Parameters
    ----------
    path : str or Path
        Bag directory or file.
    topics : tuple of str
        Topics to play; empty takes all.

    Raises
    ------
    RecordingError
        No such bag, no library for bags is installed, unreadable, or a topic is not in it.
    """
    path, backend = Path(path).expanduser(), bag_backend()
    if not path.exists():
        raise RecordingError(f"{path}: no such bag; check the path")
    try:
        check_storage(path)
        with backend.open(path) as bag:
            types, count = bag.types, sum(bag.counts.values())
    except Exception as error:
        raise unreadable(path, error) from None
    if count == 0:
        raise RecordingError(f"{path}: holds no messages; record again")
    missing = [topic for topic in topics if topic not in types]
    if missing:
        raise RecordingError(f"{path}: has no topic {missing[0]}; it has {', '.join(sorted(types))}")
    chosen = {topic: message_type for topic, message_type in types.items() if not topics or topic in topics}
    return Playback(path, chosen, bag.start_ns, bag.end_ns)
