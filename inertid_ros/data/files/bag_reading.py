"""Recordings from rosbag2 bags: a bag directory or a bare file, MCAP or SQLite."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from inertid_ros.config.recording_topics import RecordingTopics
from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.foreign_content import HEAD, foreign_content
from inertid_ros.core.formats.yaml_text import read_yaml
from inertid_ros.data.assembly import JointsError
from inertid_ros.data.bag_storage.bag_backends import STORAGE_SUFFIXES, BagBackend, bag_backend
from inertid_ros.data.bag_storage.bag_metadata import INFORMATION, METADATA, is_unfinalised
from inertid_ros.data.bag_storage.mcap_format import MAGIC as MCAP_MAGIC
from inertid_ros.data.bag_storage.mcap_recovery import BagContent, recover
from inertid_ros.data.bag_storage.storage_checks import SQLITE_MAGIC, check_storage
from inertid_ros.data.channel_stream import StampOrderError
from inertid_ros.data.columns.column_reading import add_columns
from inertid_ros.data.messages import (
    IMU,
    JOINT_STATE,
    ODOMETRY,
    POSE_STAMPED,
    TWIST_STAMPED,
    WRENCH_STAMPED,
    base_topics,
    tare_topic,
)
from inertid_ros.data.recording import Recording
from inertid_ros.data.stamp_order import on_one_clock

from .bag_messages import BagMessages, assembler_for, with_arrival_jitter

_KEYS = {
    JOINT_STATE: "joint_states", ODOMETRY: "odometry", POSE_STAMPED: "pose", TWIST_STAMPED: "twist", IMU: "imu",
}


def read_bag(
    path: str | Path,
    topics: RecordingTopics | None = None,
    joints: Sequence[str] = (),
    stamps: str = "header",
    longest: int | None = None,
) -> Recording:
    """Recording of a rosbag2 directory or of a bare ``.mcap`` or ``.db3`` file.

    Time is the header stamp relative to the first. Stamps that crossed are put in order, repeats and a few of another
    clock left out, and counted in :attr:`Recording.repairs`; joints of several publishers are merged. Of a bag that was
    not closed, or an MCAP file that is cut short, whatever can be read is taken, with a line in
    :attr:`Recording.notices`.

    Parameters
    ----------
    path : str or Path
        The bag.
    topics : RecordingTopics, optional
        Which topics make the recording.
    joints : sequence of str
        Joints of the robot, as a hint: where several publishers share the topic, messages with none of these joints (a
        gripper's) are skipped. ``topics.joints`` goes before it.
    stamps : str
        "header", or "arrival" for the times at which the messages were recorded.
    longest : int, optional
        Most samples that are read at once, where the bag can be read in parts.

    Returns
    -------
    Recording
        Named by its path.

    Raises
    ------
    TooLongError
        There are more than ``longest``; see :func:`.bag_parts.bag_parts`.
    RecordingError
        No bag, unreadable, a topic is missing or of another type, or the messages make no recording.
    """
    path, topics = Path(path), topics or RecordingTopics()
    wanted = wanted_topics(topics)
    backend = bag_backend()
    expected, arrival = () if topics.joints else tuple(joints), stamps == "arrival"
    complete = with_arrival_jitter if arrival else _unchanged
    files = closed_files(path)
    assembler = assembler_for(str(path), topics, topics.joints, expected)
    if files and add_columns(assembler, backend, files, wanted, topics, arrival, longest) and assembler.joint_names:
        recording = assembler.recording()
        if on_one_clock(recording.time).all():
            return complete(recording)
    bag = _read_bag(backend, path, {*wanted, *(tare_topic(wrench.topic) for wrench in topics.wrenches.values())})
    _check_topics(str(path), bag.types, wanted)
    messages = BagMessages(backend, bag, str(path), topics, stamps)
    reason = RecordingError(f"{path}: joint states have stamps of two clocks; check the publisher")
    try:
        assembler = messages.assembled(topics.joints, expected)
        if expected and not assembler.joint_names:  # another robot's bag; the caller's check names its joints
            assembler = messages.assembled(topics.joints)
        recording = assembler.recording(bag.notices)
        if on_one_clock(recording.time).all():
            return complete(recording)
    except (JointsError, StampOrderError) as error:
        reason = error
    repairs = messages.put_in_order()
    if repairs.too_many_elsewhere:
        raise reason
    chosen = topics.joints or tuple(joint for joint in joints if joint in messages.joints)
    try:
        recording = messages.assembled(chosen or messages.joints).recording(bag.notices)
    except JointsError:
        raise reason from None
    except RecordingError:
        if chosen:
            raise
        raise reason from None  # which joints are meant is for the user to say
    return complete(replace(recording, repairs=repairs))


def wanted_topics(topics: RecordingTopics) -> dict[str, str]:
    """Topic to type of the messages that make a recording."""
    joint_states = dict.fromkeys((topics.joint_states, *topics.further_joint_states), JOINT_STATE)
    wrenches = dict.fromkeys((wrench.topic for wrench in topics.wrenches.values()), WRENCH_STAMPED)
    return {**joint_states, **wrenches, **base_topics(topics)}


def _unchanged(recording: Recording) -> Recording:
    return recording


def closed_files(path: Path) -> list[Path]:
    """Files of a bag that was closed and is not compressed as a whole, in their order; empty for any other."""
    files = [path]
    try:
        if not path.is_file():
            information = read_yaml((path / METADATA).read_text(encoding="utf-8"))[INFORMATION]
            files = [path / name for name in information["relative_file_paths"]]
            if information.get("compression_format") or is_unfinalised(path) or set(files) != set(_storage_files(path)):
                return []
        return files if all(_checked_suffix(file) == file.suffix for file in files) else []
    except (OSError, FormatError, ValueError, TypeError, KeyError, RecordingError):
        return []


def bag_topics(path: str | Path) -> dict[str, tuple[str, int]]:
    """Topic to ``(type, number of messages)`` of a bag.

    Raises
    ------
    RecordingError
        No bag, or unreadable.
    """
    bag = _read_bag(bag_backend(), Path(path), set())
    return {topic: (message_type, bag.counts.get(topic, 0)) for topic, message_type in bag.types.items()}


def _read_bag(backend: BagBackend, path: Path, topics: set[str]) -> BagContent:
    """Topics of a bag, its messages on the given ones, and how it was read where it was not closed."""
    files = _storage_files(path)
    _check_content(path, files)
    closed = path.is_file() or (path / METADATA).exists()
    try:
        contents = [_read(backend, part, topics) for part in ([path] if closed else files)]
        notice = "" if closed else "bag was not closed: metadata.yaml is missing"
        notice = notice or ("bag was not closed: its recorder was killed" if is_unfinalised(path) else "")
    except RecordingError:
        if any(file.suffix == ".db3" for file in files):
            raise
        contents = [recover(file, topics) for file in files]
        total = sum(sum(content.counts.values()) for content in contents)
        if total == 0:
            raise
        notice = f"bag was not closed or is damaged: recovered {total} messages"
    bag = BagContent(notices=(notice,) if notice else ())
    for content in contents:
        bag.messages.extend(content.messages)
        bag.types.update(content.types)
        for topic, count in content.counts.items():
            bag.counts[topic] = bag.counts.get(topic, 0) + count
    return bag


def _check_content(path: Path, files: Sequence[Path]) -> None:
    """Raise RecordingError where something else stands in a file of a bag."""
    heads = {}
    for file in (*files, path / METADATA):
        if file.exists():
            with file.open("rb") as content:
                heads[file] = content.read(HEAD)
    lost = not any(heads[file] for file in files)  # what a recorder left empty at its end does not matter
    for file, head in heads.items():
        if (head or lost) and (foreign := foreign_content(head)):
            which = "" if file == path else f"{file.name} "
            raise RecordingError(f"{path}: {which}{foreign}")


def _storage_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise RecordingError(f"{path}: no such bag; check the path")
    files = sorted((file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES), key=_split_number)
    if not files and not (path / METADATA).exists():
        raise RecordingError(f"{path}: is a directory without metadata.yaml, .mcap or .db3; give a rosbag2 directory")
    return files


def _split_number(file: Path) -> tuple[int, str]:
    """Split bags are numbered ``name_0.mcap``, ``name_1.mcap``, ..., ``name_10.mcap``."""
    number = file.stem.rpartition("_")[2]
    return (int(number) if number.isdigit() else 0, file.name)


def _read(backend: BagBackend, path: Path, topics: set[str]) -> BagContent:
    try:
        check_storage(path)
        with ExitStack() as stack:
            bag = stack.enter_context(backend.open(stack.enter_context(_readable(path))))
            return BagContent(bag.types, bag.counts, list(bag.messages(topics)))
    except Exception as error:  # a library meets damage with whatever its parser raises
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> RecordingError:
    """One line about a bag that a library could not read."""
    reason = (str(error) or error.__class__.__name__).splitlines()[0]
    return RecordingError(f"{path}: cannot be read as a bag ({reason}); record again, or try 'ros2 bag reindex'")


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """The path under a name with the suffix of its content, by which libraries choose the format."""
    suffixes = [_checked_suffix(file) for file in _storage_files(path)]
    if path.is_dir() or suffixes == [path.suffix]:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / f"bag{suffixes[0]}"
        link.symlink_to(path.absolute())
        yield link


def _checked_suffix(file: Path) -> str:
    """Suffix for the content of a file that is complete; of one cut short libraries may silently read the rest."""
    with file.open("rb") as content:
        head = content.read(32)
        content.seek(max(content.seek(0, 2) - len(MCAP_MAGIC), 0))
        tail = content.read()
    if not head.startswith(SQLITE_MAGIC):
        if head.startswith(MCAP_MAGIC) and tail != MCAP_MAGIC:
            raise ValueError("the file is cut short")
        return ".mcap"
    size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if file.stat().st_size < (65536 if size == 1 else size) * pages:
        raise ValueError("the file is cut short")
    return ".db3"


def _check_topics(name: str, types: dict[str, str], wanted: dict[str, str]) -> None:
    for topic, message_type in wanted.items():
        if topic not in types:
            there = ", ".join(f"{other} ({types[other].rpartition('/')[2]})" for other in sorted(types)) or "no topics"
            key = f"topics.{_KEYS.get(message_type, 'wrenches')}"
            raise RecordingError(f"{name}: has no topic {topic}; it has {there}; set {key}")
        if types[topic] != message_type:
            raise RecordingError(
                f"{name}: topic {topic} is {types[topic]}, expected {message_type}; choose another topic"
            )
