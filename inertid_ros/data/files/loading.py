"""Load recordings from ``.npz`` files, tables and bags, distinguished by their content; write ``.npz`` files."""

import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import foreign_content, read_arrays, read_head
from inertid_ros.core.outputs import write_file
from inertid_ros.data import recording as recordings
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.robot.recorded_joints import RecordedJoints

from .bag_opening import SQLITE_MAGIC
from .bag_reading import OnlyWholeError, TooLongError, bag_parts, read_bag
from .foreign_files import LEROBOT_INFO, is_named, named_arrays, read_lerobot, read_mat, read_parquet
from .mcap_format import MCAP_MAGIC
from .motion_capture import read_c3d, read_opensim, segment_poses
from .table_reading import read_table

ACCEPTED = "an .npz, .csv, .parquet, .mat, .c3d, .trc or .sto recording, a rosbag2 directory, or a .mcap or .db3 file"
MAX_SAMPLES_AT_ONCE = 300_000  # limit for reading a recording as a whole: five minutes at 1 kHz
_MAGIC = {"npz": b"PK\x03\x04", "mcap": MCAP_MAGIC, "sqlite3": SQLITE_MAGIC, "parquet": b"PAR1", "mat": b"MATLAB "}
_TABLES = {"table": read_table, "parquet": read_parquet, "mat": read_mat, "lerobot": read_lerobot, "c3d": read_c3d,
    "opensim": read_opensim}
_PATTERNS = {  # a C3D file begins with the number of a block, which is small
    "opensim": re.compile(rb"^(PathFileType|endheader|nColumns=)", re.MULTILINE), "c3d": re.compile(rb"\A[\x01-\x08]P")}
_ROS1_MAGIC = b"#ROSBAG V"
_TABLE_LINE = re.compile(rb"[\x20-\x7e\x80-\xff\t]+[,;\t][\x20-\x7e\x80-\xff\t]*(\r?\n|$)")
_REQUIRED_KEYS = ("joint_names", "time", "position", "effort")
_MAX_JOINTS = 10_000
_WITHOUT_EFFORT_KEYS = ("base_pose", "base_twist", "imu", "command_position")


def load_recording(path: str | Path, topics: RecordingTopics | None = None, joints: RecordedJoints | None = None,
        stamps: str = "header", longest: int | None = None) -> recordings.Recording:
    """Load an ``.npz``, Parquet or MATLAB file, a table of text, a LeRobot data set, motion capture, or a bag, by the
    content.

    Raises RecordingError: the file has another format or is unreadable; see :func:`read_npz`,
    :func:`.table_reading.read_table`, :mod:`.foreign_files`, :mod:`.motion_capture` and :func:`.bag_reading.read_bag`.

    Parameters
    ----------
    topics : topics of a bag, and joints to take by their names in the bag; ignored for other files.
    joints : joints of the robot and their names in recordings: the result has the names of the URDF. Messages of a bag
        without these joints are skipped.
    stamps : time of the messages of a bag: "header", or "arrival" if headers are empty.
    longest : maximal number of joint states of a bag; TooLongError if there are more. Other files have no limit.
    """
    path, joints = Path(path), joints or RecordedJoints()
    if not is_bag(path):
        form = file_format(path)
        if form == "npz":
            return recordings.renamed(read_npz(path), joints)
        content = _TABLES[form](path)
        content = segment_poses(path, content, joints.markers) if joints.markers else content
        return recordings.renamed(_recording(path, content), joints)
    return recordings.renamed(read_bag(path, topics, _hint(joints), stamps, longest), joints)


def load_any_length(path: str | Path, topics: RecordingTopics | None = None, joints: RecordedJoints | None = None,
        stamps: str = "header") -> recordings.Recording | LongRecording:
    """Load a recording like :func:`load_recording`, but a bag of over :data:`MAX_SAMPLES_AT_ONCE` samples in parts.

    Bags whose messages must be put in order, ``.npz`` files and tables are read as a whole at any length.
    """
    path, joints = Path(path), joints or RecordedJoints()
    try:
        return load_recording(path, topics, joints, stamps, MAX_SAMPLES_AT_ONCE)
    except TooLongError:
        pass
    try:
        return LongRecording.from_parts(
            lambda: (recordings.renamed(part, joints) for part in bag_parts(path, topics, _hint(joints), stamps)))
    except OnlyWholeError:
        return load_recording(path, topics, joints, stamps)


def _hint(joints: RecordedJoints) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*joints.recorded(joints.joints), *joints.joints)))


def is_bag(path: Path) -> bool:
    """True if a path is a bag; raises like :func:`file_format`."""
    return file_format(path) in ("bag", "mcap", "sqlite3")


def file_format(path: Path) -> str:
    """Return ``bag`` or ``lerobot`` for a directory; a file's ``npz``, ``mcap``, ``sqlite3``, ``parquet``, ``mat``,
    ``c3d``, ``opensim`` or ``table``, by its first bytes.

    Raises RecordingError: no such file, empty, or another format.
    """
    if os.path.isdir(path):
        return "lerobot" if (path / LEROBOT_INFO).is_file() else "bag"
    try:
        head = read_head(path)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; give {ACCEPTED}") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read ({error.strerror}); give {ACCEPTED}") from None
    if foreign := foreign_content(head):
        raise RecordingError(f"{path}: {foreign}, and give {ACCEPTED}")
    for name, magic in _MAGIC.items():
        if head.startswith(magic):
            return name
    for name, pattern in _PATTERNS.items():
        if pattern.search(head):
            return name
    if head.startswith(_ROS1_MAGIC):
        raise RecordingError(
            f"{path}: is a bag of ROS 1; convert it with 'rosbags-convert --src {path} --dst {path.with_suffix('')}'")
    if _TABLE_LINE.match(head):
        return "table"
    raise RecordingError(f"{path}: is not a recording; give {ACCEPTED}")


def read_npz(path: str | Path) -> recordings.Recording:
    """Read an ``.npz`` file; keys outside the format are ignored. Other tools' names, as ``q``, are read as in tables.

    Raises RecordingError: no such file, not an npz archive, a key is missing or of a wrong type, or the content is not
    a valid :class:`~inertid_ros.data.recording.Recording`.
    """
    path = Path(path)
    try:
        content = read_arrays(path, lambda key: _known(key) or is_named(key))
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read as npz ({error.__class__.__name__}); export it again") from None
    except FormatError as error:
        raise RecordingError(f"{path}: {error}; export {', '.join(_REQUIRED_KEYS)} with numpy.savez") from None
    if "position" not in content and any(map(is_named, content.keys() - {"joint_names", "time", "effort"})):
        return _recording(path, named_arrays(path, content))
    content = {key: value for key, value in content.items() if _known(key)}
    for key, value in content.items():
        if key != "joint_names" and value.dtype.kind not in "fiu":
            raise RecordingError(f"{path}: {key} holds {value.dtype}, not numbers; export it as float64")
    # Equations of the base and of momentum do not need effort, and commands replace it.
    measured = any(key.startswith((recordings.WRENCH_PREFIX, *_WITHOUT_EFFORT_KEYS)) for key in content)
    alone = "time" in content and any(key.startswith(recordings.WRENCH_PREFIX) for key in content)
    if alone and not content.keys() & {"joint_names", "position"}:  # a sensor without joints
        content |= {"joint_names": np.zeros(0, dtype=str), "position": np.zeros((content["time"].size, 0))}
    if missing := [key for key in _REQUIRED_KEYS if key not in content and not (key == "effort" and measured)]:
        raise RecordingError(
            f"{path}: lacks {', '.join(missing)} (it has {', '.join(sorted(content)) or 'no known key'});"
            f" a recording holds {', '.join(_REQUIRED_KEYS)}")
    return _recording(path, content)


def _recording(path: Path, content: dict[str, np.ndarray]) -> recordings.Recording:
    """Recording of the arrays of a file, in the order of their stamps."""
    names = content.pop("joint_names")
    if names.ndim != 1 or names.dtype.kind not in "US":
        raise RecordingError(f"{path}: joint_names is not a list of names; save it as an array of strings")
    if len(names) > _MAX_JOINTS:
        raise RecordingError(f"{path}: joint_names holds {len(names)} names; save the joints of one robot")
    text = [name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name) for name in names.tolist()]
    content.setdefault("effort", np.full(content["position"].shape, np.nan))
    content, repairs = _in_order(content)
    return recordings.Recording(tuple(text), **recordings.split_wrenches(content), name=str(path), repairs=repairs)


def _in_order(content: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], recordings.StampRepairs]:
    """Sort channels by stamp; leave out repeated stamps and, if they are few, stamps of another clock."""
    time = content["time"]
    if time.ndim != 1 or len(time) < 2 or not np.isfinite(time).all():
        return content, recordings.StampRepairs()
    chosen, repairs = recordings.in_order(time.astype(float))
    if not repairs.count or repairs.too_many_elsewhere:
        return content, recordings.StampRepairs()
    ordered = {key: value[chosen] if value.shape[:1] == time.shape else value for key, value in content.items()}
    return ordered, repairs


def write_npz(recording: recordings.Recording, path: str | Path, overwrite: bool = True) -> Path:
    """Write a recording to ``path``, atomically; ``overwrite`` replaces a regular file.

    Raises OutputError: the file cannot be written.
    """
    buffer, content = io.BytesIO(), dict[str, Any](recording.channels)
    np.savez_compressed(buffer, joint_names=np.array(recording.joint_names), **content)
    write_file(path, buffer.getvalue(), overwrite or None)
    return Path(path)


def _known(key: str) -> bool:
    return key in (*_REQUIRED_KEYS, *recordings.OPTIONAL_CHANNELS) or key.startswith(recordings.WRENCH_PREFIX)
