"""rosbag2 in and out, through ``rosbags``: a bag directory or a bare file, MCAP or SQLite."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.options import ConfigurationError, option
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.base_messages import IMU, ODOMETRY, POSE_STAMPED, TWIST_STAMPED, base_values, channels_of
from inertid_ros.data.recording import Recording

from .bag_messages import JOINT_STATE, WRENCH_STAMPED, write_messages
from .live_bag import FINALISED_KEY
from .mcap_recovery import Message, Recovered, recover

if TYPE_CHECKING:
    from rosbags.typesys.store import Typestore

Storage = Literal["mcap", "sqlite3"]
_KEYS = {
    JOINT_STATE: "joint_states", ODOMETRY: "odometry", POSE_STAMPED: "pose", TWIST_STAMPED: "twist", IMU: "imu",
}
SQLITE_MAGIC = b"SQLite format 3\x00"
SUFFIXES = {".mcap": "mcap", ".db3": "sqlite3"}


@dataclass(frozen=True)
class BagTopics:
    """Which topics make a recording."""

    joint_states: str = option("/joint_states", "topic of sensor_msgs/JointState")
    joints: tuple[str, ...] = option(
        (), "joints to take; messages with none of them are skipped. Empty: those of the first message"
    )
    wrenches: tuple[str, ...] = option(
        (),
        "topics of geometry_msgs/WrenchStamped, each TOPIC or TOPIC=FRAME; without FRAME the messages' frame_id counts",
    )
    odometry: str = option("", "topic of nav_msgs/Odometry: pose and twist of a free base; empty takes none")
    pose: str = option("", "topic of geometry_msgs/PoseStamped in place of odometry: the pose alone")
    twist: str = option("", "topic of geometry_msgs/TwistStamped in place of odometry: twist in the base's axes")
    imu: str = option("", "topic of sensor_msgs/Imu on a free base; empty takes none")
    max_wrench_gap_s: float = option(
        0.05, "a joint state farther than this from a wrench or a sample of the base on either side is left out [s]",
        minimum=0.0, maximum=10.0,
    )

    def __post_init__(self) -> None:
        if self.odometry and self.pose:
            raise ConfigurationError("topics.odometry and topics.pose both give the pose of the base; set one")
        if self.odometry and self.twist:
            raise ConfigurationError("topics.odometry and topics.twist both give the twist of the base; set one")

    @property
    def base(self) -> dict[str, str]:
        """Topic to type of what tells how a free base moves."""
        given = (
            (self.odometry, ODOMETRY), (self.pose, POSE_STAMPED), (self.twist, TWIST_STAMPED), (self.imu, IMU),
        )
        return {topic: kind for topic, kind in given if topic}


def read_bag(path: str | Path, topics: BagTopics | None = None, joints: Sequence[str] = ()) -> Recording:
    """Recording of a rosbag2 directory or of a bare ``.mcap`` or ``.db3`` file.

    Time is the header stamp relative to the first. A bag that was not closed, or an MCAP file that is cut short, gives
    what can be read of it and says so in :attr:`Recording.notices`.

    Parameters
    ----------
    joints: of the robot, as a hint: where several publishers share the topic, messages with none of these joints (a
        gripper's) are skipped. ``topics.joints`` goes before it.

    Raises
    ------
    RecordingError: no bag, unreadable, topic missing or of another type, or messages that make no recording.
    """
    path, topics = Path(path), topics or BagTopics()
    frames = dict(_topic_and_frame(entry) for entry in topics.wrenches)
    wanted = {topics.joint_states: JOINT_STATE, **dict.fromkeys(frames, WRENCH_STAMPED), **topics.base}
    bag = _open(path, {*wanted, *map(tare_topic, frames)})
    _check_topics(str(path), bag.types, wanted)
    expected = () if topics.joints else tuple(joints)
    assembler = _assembled(bag, str(path), topics, frames, expected)
    if expected and not assembler.joint_names:  # another robot's bag; whoever asked says so better
        assembler = _assembled(bag, str(path), topics, frames, ())
    return assembler.recording(bag.notices)


def _assembled(
    bag: "_Bag", name: str, topics: BagTopics, frames: dict[str, str], expected: tuple[str, ...]
) -> RecordingAssembler:
    known = tuple(filter(None, frames.values()))
    channels = [channel for kind in topics.base.values() for channel in channels_of(kind)]
    assembler = RecordingAssembler(name, topics.joints, known, topics.max_wrench_gap_s, expected, channels)
    store, tares = typestore(), _tares(bag, frames)
    for index, message in enumerate(bag.messages):
        if message.topic in map(tare_topic, frames):
            continue
        content = _deserialize(store, message, bag.types[message.topic], f"{name}: message {index + 1}")
        stamp = content.header.stamp.sec * 1_000_000_000 + content.header.stamp.nanosec
        if message.topic == topics.joint_states:
            assembler.add_joint_state(content.name, stamp, content.position, content.velocity, content.effort)
        elif message.topic in topics.base:
            for channel, values in base_values(topics.base[message.topic], content).items():
                assembler.add_base(channel, stamp, values)
        else:
            wrench = _wrench(content) - tares.get(message.topic, 0.0)
            assembler.add_wrench(frames[message.topic] or content.header.frame_id, stamp, wrench[:3], wrench[3:])
    return assembler


def tare_topic(topic: str) -> str:
    """Topic of a bag that holds what was subtracted from a wrench topic while it was recorded."""
    return f"{topic}/tare"


def _tares(bag: "_Bag", frames: dict[str, str]) -> dict[str, NDArray[np.float64]]:
    """Wrench topic to the zero ``(6,)`` that its recorder subtracted."""
    found, topics = {}, {tare_topic(topic): topic for topic in frames}
    for message in bag.messages:
        if message.topic in topics:
            content = _deserialize(typestore(), message, WRENCH_STAMPED, "tare")
            found[topics[message.topic]] = _wrench(content)
    return found


def _wrench(content: Any) -> NDArray[np.float64]:
    force, torque = content.wrench.force, content.wrench.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])


def bag_topics(path: str | Path) -> dict[str, tuple[str, int]]:
    """Topic to ``(type, number of messages)`` of a bag.

    Raises
    ------
    RecordingError: no bag, or unreadable.
    """
    bag = _open(Path(path), set())
    return {topic: (kind, bag.counts.get(topic, 0)) for topic, kind in bag.types.items()}


def write_bag(
    recording: Recording, path: str | Path, storage: Storage = "mcap", start_ns: int = 10**18
) -> Path:
    """Write a recording as a new rosbag2 directory: ``/joint_states``, ``/wrench/<frame>`` for every wrench, and where
    the base is free ``/odometry`` (or ``/pose`` without a twist, ``/twist`` without a pose) and ``/imu``.

    Header stamps are ``start_ns`` plus the recording's time from its first sample. The directory appears at once when
    it is complete. A measured acceleration has no place in these messages and is not written.

    Raises
    ------
    RecordingError: ``path`` exists, cannot be written, or rosbags is not installed.
    """
    path, store = Path(path), typestore()
    from rosbags.rosbag2 import StoragePlugin, Writer

    if path.exists():
        raise RecordingError(f"{path}: exists already; choose another path or remove it")
    plugin = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}[storage]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as scratch:
            # The file inside is named after its directory, so the scratch directory only holds it.
            with Writer(Path(scratch) / path.name, version=9, storage_plugin=plugin) as writer:
                write_messages(writer, store, recording, start_ns)
            os.rename(Path(scratch) / path.name, path)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written ({error.strerror}); choose another path") from None
    return path


@cache
def typestore() -> "Typestore":
    """Message types of ROS 2, without ROS.

    Raises
    ------
    RecordingError: rosbags is not installed.
    """
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise RecordingError("bags need the Python package rosbags; install it with: pip install rosbags") from None
    return get_typestore(Stores.ROS2_JAZZY)


@dataclass
class _Bag:
    types: dict[str, str]
    counts: dict[str, int]
    messages: list[Message]
    notices: tuple[str, ...] = ()


def _open(path: Path, topics: set[str]) -> _Bag:
    """Topics of a bag, and its messages on the wanted ones."""
    typestore()  # says at once if rosbags is missing
    files = _storage_files(path)
    closed = path.is_file() or (path / "metadata.yaml").exists()
    try:
        found = [_read(part, topics) for part in ([path] if closed else files)]
        notice = "" if closed else "bag was not closed: metadata.yaml is missing"
        notice = notice or ("bag was not closed: its recorder was killed" if _unfinalised(path) else "")
    except RecordingError:
        if any(file.suffix == ".db3" for file in files):
            raise
        found = [recover(file, topics) for file in files]
        total = sum(sum(part.counts.values()) for part in found)
        if total == 0:
            raise
        notice = f"bag was not closed or is damaged: recovered {total} messages"
    bag = _Bag({}, {}, [message for part in found for message in part.messages], (notice,) if notice else ())
    for part in found:
        bag.types.update(part.types)
        for topic, count in part.counts.items():
            bag.counts[topic] = bag.counts.get(topic, 0) + count
    return bag


def _unfinalised(path: Path) -> bool:
    """Whether metadata.yaml says that our own recorder did not close the bag."""
    metadata = path / "metadata.yaml"
    text = metadata.read_text(encoding="utf-8", errors="replace") if metadata.is_file() else ""
    return re.search(rf"\b{FINALISED_KEY}: '?false", text) is not None


def _storage_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise RecordingError(f"{path}: no such bag; check the path")
    files = sorted((file for file in path.iterdir() if file.suffix in SUFFIXES), key=_split_number)
    if not files and not (path / "metadata.yaml").exists():
        raise RecordingError(f"{path}: is a directory without metadata.yaml, .mcap or .db3; give a rosbag2 directory")
    return files


def _split_number(file: Path) -> tuple[int, str]:
    """Split bags are numbered ``name_0.mcap``, ``name_1.mcap``, ..., ``name_10.mcap``."""
    number = file.stem.rpartition("_")[2]
    return (int(number) if number.isdigit() else 0, file.name)


def _read(path: Path, topics: set[str]) -> Recovered:
    from rosbags.rosbag2 import Reader

    found = Recovered()
    try:
        with ExitStack() as stack:
            reader = stack.enter_context(Reader(stack.enter_context(_readable(path))))
            for connection in reader.connections:
                found.types[connection.topic] = connection.msgtype
                found.counts[connection.topic] = found.counts.get(connection.topic, 0) + connection.msgcount
            wanted = [connection for connection in reader.connections if connection.topic in topics]
            if wanted:
                found.messages = [Message(c.topic, bytes(data)) for c, _, data in reader.messages(wanted)]
    except Exception as error:  # rosbags meets damage with whatever the parser stumbles over, not only ReaderError
        reason = (str(error) or error.__class__.__name__).splitlines()[0]
        remedy = "record again, or try 'ros2 bag reindex'"
        raise RecordingError(f"{path}: cannot be read as a bag ({reason}); {remedy}") from None
    return found


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """The path under a name that rosbags knows what to do with: it goes by the suffix, we by the content."""
    kinds = [_checked_kind(file) for file in _storage_files(path)]
    if path.is_dir() or kinds == [path.suffix]:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / f"bag{kinds[0]}"
        link.symlink_to(path.absolute())
        yield link


def _checked_kind(file: Path) -> str:
    """Suffix that the content deserves; SQLite may answer without a word from what is left of a file cut short."""
    with file.open("rb") as content:
        head = content.read(32)
    if not head.startswith(SQLITE_MAGIC):
        return ".mcap"
    size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if file.stat().st_size < (65536 if size == 1 else size) * pages:
        raise ValueError("the file is cut short")
    return ".db3"


def _check_topics(name: str, types: dict[str, str], wanted: dict[str, str]) -> None:
    for topic, kind in wanted.items():
        if topic not in types:
            there = ", ".join(f"{other} ({types[other].rpartition('/')[2]})" for other in sorted(types)) or "no topics"
            key = f"topics.{_KEYS.get(kind, 'wrenches')}"
            raise RecordingError(f"{name}: has no topic {topic}; it has {there}; set {key}")
        if types[topic] != kind:
            raise RecordingError(f"{name}: topic {topic} is {types[topic]}, expected {kind}; choose another topic")


def _topic_and_frame(entry: str) -> tuple[str, str]:
    topic, _, frame = entry.partition("=")
    return topic, frame


def _deserialize(store: "Typestore", message: Message, kind: str, where: str) -> Any:
    try:
        return store.deserialize_cdr(message.data, kind)
    except Exception as error:  # rosbags' generated code raises whatever the bytes lead to
        reason = error.__class__.__name__
        raise RecordingError(f"{where} on {message.topic}: is not a valid {kind} ({reason}); record again") from None
