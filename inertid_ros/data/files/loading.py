"""A recording from whatever file it is in, known by its content."""

from collections.abc import Sequence
from pathlib import Path

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.recording import Recording

from .bags import SQLITE_MAGIC, BagTopics, read_bag
from .mcap_recovery import MAGIC as MCAP_MAGIC
from .npz import read_npz

ACCEPTED = "an .npz recording, a rosbag2 directory, or a .mcap or .db3 file"
_NPZ = b"PK\x03\x04"


def load_recording(path: str | Path, topics: BagTopics | None = None, joints: Sequence[str] = ()) -> Recording:
    """Recording of an ``.npz`` file, a bag directory, or a bare ``.mcap`` or ``.db3`` file.

    Parameters
    ----------
    path: the content decides what it is, not the name.
    topics: which topics of a bag; ignored for npz.
    joints: of the robot, as a hint; see :func:`read_bag`.

    Raises
    ------
    RecordingError: it is none of these, or cannot be read; see :func:`read_npz` and :func:`read_bag`.
    """
    path = Path(path)
    if not path.is_dir() and file_kind(path) == "npz":
        return read_npz(path)
    return read_bag(path, topics, joints)


def file_kind(path: Path) -> str:
    """``npz``, ``mcap`` or ``sqlite3``, by the first bytes of the file.

    Raises
    ------
    RecordingError: no such file, empty, or something else.
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; give {ACCEPTED}") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror}); give {ACCEPTED}") from None
    if not head:
        raise RecordingError(f"{path}: is empty; give {ACCEPTED}")
    for kind, magic in (("npz", _NPZ), ("mcap", MCAP_MAGIC), ("sqlite3", SQLITE_MAGIC)):
        if head.startswith(magic):
            return kind
    raise RecordingError(f"{path}: is not a recording; give {ACCEPTED}")
