"""A recording from whatever file it is in, by its content."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from inertid_ros.config.recording_topics import RecordingTopics
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.foreign_content import HEAD, foreign_content
from inertid_ros.data.bag_storage.mcap_format import MAGIC as MCAP_MAGIC
from inertid_ros.data.bag_storage.storage_checks import SQLITE_MAGIC
from inertid_ros.data.columns.cdr_layout import UnsuitableError
from inertid_ros.data.columns.column_reading import TooLongError
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording, renamed
from inertid_ros.robot.recorded_joints import RecordedJoints

from .bag_parts import bag_parts
from .bag_reading import read_bag
from .npz import read_npz

ACCEPTED = "an .npz recording, a rosbag2 directory, or a .mcap or .db3 file"
LONGEST = 300_000  # samples of a recording that is read as a whole: five minutes at 1 kHz
_NPZ = b"PK\x03\x04"
_ROS1 = b"#ROSBAG V"
_TABLE = re.compile(rb"[\x20-\x7e\t]+[,;\t][\x20-\x7e\t]*(\r?\n|$)")


def load_recording(
    path: str | Path,
    topics: RecordingTopics | None = None,
    joints: RecordedJoints | None = None,
    stamps: str = "header",
) -> Recording:
    """Recording of an ``.npz`` file, a bag directory, or a bare ``.mcap`` or ``.db3`` file.

    Parameters
    ----------
    path : str or Path
        Its content decides the format, not its name.
    topics : RecordingTopics, optional
        Which topics of a bag, and which joints by their names there; ignored for npz.
    joints : RecordedJoints, optional
        Joints of the robot and their names in recordings; messages of a bag with none of them are skipped.
    stamps : str
        Time of the messages of a bag: "header", or "arrival" where headers are empty.

    Returns
    -------
    Recording
        Its joints have the names of the URDF.

    Raises
    ------
    RecordingError
        It is none of these, or cannot be read; see :func:`.npz.read_npz` and :func:`.bag_reading.read_bag`.
    """
    return _load(Path(path), topics, joints or RecordedJoints(), stamps)


def load_any_length(
    path: str | Path,
    topics: RecordingTopics | None = None,
    joints: RecordedJoints | None = None,
    stamps: str = "header",
) -> Recording | LongRecording:
    """The same of a bag that memory need not hold: what is longer than :data:`LONGEST` samples is read in parts.

    An ``.npz`` file, and a bag whose messages have to be put in order, is read as a whole however long it is.
    """
    path, joints = Path(path), joints or RecordedJoints()
    try:
        return _load(path, topics, joints, stamps, LONGEST)
    except TooLongError:
        read = partial(_parts, path, topics, joints, stamps)
    try:
        return LongRecording.of(read)
    except UnsuitableError:
        return _load(path, topics, joints, stamps)


def _load(
    path: Path, topics: RecordingTopics | None, joints: RecordedJoints, stamps: str, longest: int | None = None
) -> Recording:
    if not path.is_dir() and file_format(path) == "npz":
        return renamed(read_npz(path), joints)
    return renamed(read_bag(path, topics, _hint(joints), stamps, longest), joints)


def _parts(path: Path, topics: RecordingTopics | None, joints: RecordedJoints, stamps: str) -> Iterator[Recording]:
    return (renamed(part, joints) for part in bag_parts(path, topics, _hint(joints), stamps))


def _hint(joints: RecordedJoints) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*joints.recorded(joints.joints), *joints.joints)))


def file_format(path: Path) -> str:
    """``npz``, ``mcap`` or ``sqlite3``, by the first bytes of the file.

    Raises
    ------
    RecordingError
        No such file, empty, or none of these.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; give {ACCEPTED}") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror}); give {ACCEPTED}") from None
    if foreign := foreign_content(head):
        raise RecordingError(f"{path}: {foreign}, and give {ACCEPTED}")
    for name, magic in (("npz", _NPZ), ("mcap", MCAP_MAGIC), ("sqlite3", SQLITE_MAGIC)):
        if head.startswith(magic):
            return name
    if head.startswith(_ROS1):
        raise RecordingError(
            f"{path}: is a bag of ROS 1; convert it with 'rosbags-convert --src {path} --dst {path.with_suffix('')}'"
        )
    if _TABLE.match(head):
        raise RecordingError(
            f"{path}: is a table; read it in Python and write its columns with"
            " numpy.savez('run.npz', joint_names=, time=, position=, effort=), whose units and shapes are in"
            " docs/conventions.md"
        )
    raise RecordingError(f"{path}: is not a recording; give {ACCEPTED}")
