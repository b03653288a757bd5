"""Messages of a recording: topics and types, decoding to arrays, and encoding.

CDR aligns a number to its size, counted from the end of the encapsulation header of four bytes (XTypes 1.3, 7.4.1).
Messages with equal strings and sequence lengths have equal layouts, so that many are decoded at once.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from inertid_ros.config.recordings import RecordingTopics, SampleTopics
from inertid_ros.core.arrays import Array, Bytes, Indices, IntArray, Mask

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH_STAMPED = "geometry_msgs/msg/WrenchStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
TWIST_STAMPED = "geometry_msgs/msg/TwistStamped"
IMU = "sensor_msgs/msg/Imu"
CONTROLLER_STATE = "control_msgs/msg/JointTrajectoryControllerState"
NUMBERS = "std_msgs/msg/Float64MultiArray"
LATEST_NS = 2**62  # stamps in the year 2116; differences still fit 64 bits
WIDTHS = {"base_pose": 7, "base_twist": 6, "imu": 6}
JOINT_CHANNELS = ("position", "velocity", "effort")
_REFERENCE_CHANNELS = ("position", "velocity", "", "effort")  # at the start of a controller's state
_CDR_HEADER_BYTES, _STAMP_START, _STAMP_END = 4, 4, 12
_LITTLE_ENDIAN, _BIG_ENDIAN = b"\x00\x01", b"\x00\x00"  # plain CDR
_MAX_PADDING_BYTES = 3  # bytes after the last field
_SECOND_NS = 1_000_000_000
_IMU_CHANNEL = ("linear_acceleration", "angular_velocity")  # the specific force points upwards at rest
_NO_ORIENTATION = np.array([0.0, 0.0, 0.0, 1.0, -1.0, *np.zeros(8)])  # covariance -1 in sensor_msgs/Imu: no orientation
# Names and counts of the float64 numbers after the header; numbers without a name are not used. Poses are of the child
# frame, and twists are in the axes of the child frame, so the header of a TwistStamped must name the base frame.
_FIXED_FIELDS = {WRENCH_STAMPED: [("wrench", 6)], POSE_STAMPED: [("base_pose", 7)], TWIST_STAMPED: [("base_twist", 6)],
    ODOMETRY: [("base_pose", 7), ("", 36), ("base_twist", 6), ("", 36)],
    IMU: [("orientation", 4 + 9), ("angular_velocity", 3), ("", 9), ("linear_acceleration", 3), ("", 9)]}
CHANNELS = {JOINT_STATE: JOINT_CHANNELS, WRENCH_STAMPED: ("wrench",), ODOMETRY: ("base_pose", "base_twist"),
    POSE_STAMPED: ("base_pose",), TWIST_STAMPED: ("base_twist",), IMU: ("imu",)}


def wanted_topics(topics: RecordingTopics) -> dict[str, str]:
    """Message type by topic, for all topics of a recording."""
    joint_states = dict.fromkeys((topics.joint_states, *topics.further_joint_states), JOINT_STATE)
    wrenches = dict.fromkeys((wrench.topic for wrench in topics.wrenches.values()), WRENCH_STAMPED)
    types = {**joint_states, **wrenches, **base_topics(topics), **command_topics(topics)}
    return {topic: message_type for topic, message_type in types.items() if topic}


def base_topics(topics: SampleTopics) -> dict[str, str]:
    """Message type by topic, for the motion of a free base."""
    types = {topics.odometry: ODOMETRY, topics.pose: POSE_STAMPED, topics.twist: TWIST_STAMPED, topics.imu: IMU}
    return {topic: message_type for topic, message_type in types.items() if topic}


def command_topics(topics: SampleTopics) -> dict[str, str]:
    """Message type by topic, for the commands to the joints."""
    types = {
        topics.commands: NUMBERS if topics.command_joints else JOINT_STATE, topics.controller_state: CONTROLLER_STATE}
    return {topic: message_type for topic, message_type in types.items() if topic}


def tare_topic(topic: str) -> str:
    """Topic in a bag for the tare of a wrench topic; the bag holds wrenches before the tare is subtracted."""
    return f"{topic}/tare"


@dataclass(frozen=True)
class RawMessages:
    """Serialised messages of one topic in one piece of memory, in the order of recording.

    Attributes
    ----------
    content : memory that holds all messages.
    offsets, lengths : int64 (N,), start and length of each message [bytes].
    times : int64 (N,), times of recording [ns].
    """

    content: Bytes
    offsets: IntArray
    lengths: IntArray
    times: IntArray

    @classmethod
    def by_topic(cls, topics: Sequence[str], times: Sequence[int],
            messages: Sequence[bytes]) -> list[tuple[str, "RawMessages"]]:
        """Group ``N`` messages by topic; ValueError, TypeError or OverflowError if they are invalid."""
        lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        offsets, content = np.cumsum(lengths) - lengths, np.frombuffer(b"".join(messages), dtype=np.uint8)
        stamps, numbers = np.array(times, dtype=np.int64), {topic: index for index, topic in enumerate(set(topics))}
        keys = np.array([numbers[topic] for topic in topics])
        rows = {topic: keys == number for topic, number in numbers.items()}
        return [(topic, cls(content, offsets[own], lengths[own], stamps[own])) for topic, own in rows.items()]

    def __len__(self) -> int:
        return len(self.offsets)

    def one(self, index: int) -> bytes:
        """Message at an index."""
        start = self.offsets[index]
        return bytes(self.content[start : start + self.lengths[index]])

    def rows(self, chosen: Indices, length: int) -> Bytes:
        """Bytes ``(K, length)`` of the messages at indices ``(K,)``, which all have this length."""
        return pieces(self.content, self.offsets[chosen], length)


class StorageFile:
    """File of a bag.

    Parameters
    ----------
    topics : topics to read, which must be CDR; messages of other topics are only counted.

    Attributes
    ----------
    types : topic to type of all topics so far.
    counts : topic to number of messages so far.
    is_damaged : whether the file lacks its end, or other damage was found so far.
    """

    def __init__(self, path: Path, topics: Collection[str]) -> None:
        self.types: dict[str, str] = {}
        self.counts: dict[str, int] = {}
        self.is_damaged = False
        self._path, self._topics = path, topics


def pieces(content: Bytes, offsets: IntArray, length: int) -> Bytes:
    """Pieces ``(N, length)`` of memory, one from each of the ``offsets (N,)`` on."""
    return np.asarray(sliding_window_view(content, length)[offsets])


# Decoding


@dataclass(frozen=True)
class CdrLayout:
    """Layout of messages with equal strings and sequence lengths.

    Attributes
    ----------
    length : length of the message [bytes].
    source : joint names of a joint state or of a controller; for other types, the frame of the header.
    fixed : offset and bytes of the content that all messages of this layout share.
    fields : field to offset [bytes] and count of its float64 numbers.
    order : ``<`` if little-endian, ``>`` if big-endian.
    """

    length: int
    source: tuple[str, ...]
    fixed: tuple[tuple[int, Bytes], ...]
    fields: Mapping[str, tuple[int, int]]
    order: str

    @cached_property
    def _fixed_bytes(self) -> tuple[tuple[slice, bytes], ...]:
        return tuple((slice(offset, offset + len(content)), content.tobytes()) for offset, content in self.fixed)

    def fits(self, message: bytes) -> bool:
        """True if one message has this layout; faster than :meth:`matches` for single messages."""
        return len(message) == self.length and all(message[place] == content for place, content in self._fixed_bytes)

    def matches(self, messages: Bytes) -> Mask:
        """Flag ``(N,)`` the messages ``(N, length)`` that have this layout."""
        flags = np.ones(len(messages), dtype=bool)
        for offset, content in self.fixed:
            equal = messages[:, offset : offset + len(content)] == content
            if not equal.all():
                flags &= equal.all(axis=1)
        return flags

    def stamps(self, messages: Bytes) -> IntArray:
        """Header stamps ``(N,)`` of messages ``(N, length)`` [ns]."""
        words = np.ascontiguousarray(messages[:, _STAMP_START:_STAMP_END])
        seconds, nanoseconds = words.view(f"{self.order}i4")[:, 0], words.view(f"{self.order}u4")[:, 1]
        return np.asarray(seconds.astype(np.int64) * _SECOND_NS + nanoseconds.astype(np.int64))

    def values(self, messages: Bytes) -> dict[str, Array]:
        """Channel to values ``(N, k)`` of messages ``(N, length)``."""
        if set(_IMU_CHANNEL) <= self.fields.keys():
            return {"imu": np.hstack([self._numbers(messages, name) for name in _IMU_CHANNEL])}
        return {name: self._numbers(messages, name) for name in self.fields}

    def _numbers(self, messages: Bytes, field: str) -> Array:
        offset, count = self.fields[field]
        if not count:
            return np.zeros((len(messages), 0))
        numbers = np.ascontiguousarray(messages[:, offset : offset + 8 * count]).view(f"{self.order}f8")
        return numbers.astype(float, copy=False)


def layout_of(message: bytes, message_type: str) -> CdrLayout:
    """Layout of a message of type ``pkg/msg/Name``; ValueError if it is cut short, or not plain CDR of this type."""
    if message[:2] not in (_LITTLE_ENDIAN, _BIG_ENDIAN):
        raise ValueError("is not plain CDR")
    cursor = _Cursor(message, _CDR_HEADER_BYTES if message_type == NUMBERS else _STAMP_END)
    try:
        source = [] if message_type == NUMBERS else [cursor.string()]
        if message_type == NUMBERS:
            for _ in range(cursor.count()):
                cursor.string()
                cursor.words(2)  # size and stride of a dimension
            cursor.words(1)  # offset of the data, which position controllers ignore
            cursor.doubles("position", cursor.count())
        elif message_type in (JOINT_STATE, CONTROLLER_STATE):
            source = [cursor.string() for _ in range(cursor.count())]
            for name in JOINT_CHANNELS if message_type == JOINT_STATE else _REFERENCE_CHANNELS:
                cursor.doubles(name, cursor.count())
        else:
            if message_type == ODOMETRY:
                cursor.string()
            for name, count in _FIXED_FIELDS[message_type]:
                cursor.doubles(name, count)
    except struct.error:
        raise ValueError("is cut short") from None
    rest = len(message) - cursor.at
    if rest < 0 and message_type == CONTROLLER_STATE:
        raise ValueError("is cut short")
    if message_type != CONTROLLER_STATE and not 0 <= rest <= _MAX_PADDING_BYTES:
        raise ValueError("has a wrong length")
    content = np.frombuffer(message, dtype=np.uint8)
    fixed = tuple((start, content[start:end]) for start, end in cursor.fixed)
    return CdrLayout(len(message), tuple(source), fixed, cursor.fields, cursor.order)


class _Cursor:
    """Reading position in a message; collects the fixed content from the start, and the fields up to the position."""

    def __init__(self, message: bytes, start: int) -> None:
        self.at = start
        self.order = "<" if message[:2] == _LITTLE_ENDIAN else ">"
        self.fields: dict[str, tuple[int, int]] = {}
        self.fixed = [(0, len(_LITTLE_ENDIAN))]
        self._message = message

    def count(self) -> int:
        """Read the length of a sequence or string."""
        start = self.at
        self._align(4)
        (value,) = struct.unpack_from(f"{self.order}I", self._message, self.at)
        self.at += 4
        self._fix(start)
        return int(value)

    def string(self) -> str:
        length, start = self.count(), self.at
        self.at += length
        self._fix(start)
        return self._message[start : self.at].removesuffix(b"\0").decode(errors="backslashreplace")

    def words(self, count: int) -> None:
        """Pass over integers of four bytes."""
        self._align(4)
        self.at += 4 * count

    def doubles(self, name: str, count: int) -> None:
        if count:
            self._align(8)
        if name:
            self.fields[name] = self.at, count
        self.at += 8 * count

    def _align(self, size: int) -> None:
        self.at += -(self.at - _CDR_HEADER_BYTES) % size

    def _fix(self, start: int) -> None:
        """Mark the bytes from ``start`` to the position as fixed, and join them with an adjacent fixed piece."""
        if self.fixed[-1][1] == start:
            start = self.fixed.pop()[0]
        self.fixed.append((start, self.at))


# Encoding


def encode(message_type: str, stamp_ns: int, values: Mapping[str, Array], frame: str = "",
        names: Sequence[str] = ()) -> bytes:
    """Encode a message of a recording as little-endian CDR.

    Parameters
    ----------
    values : map from channels to values ``(k,)``.
    frame : frame of the header.
    names : joints of a joint state; child frame of an odometry.
    """
    data = bytearray(_LITTLE_ENDIAN + b"\0\0" + struct.pack("<iI", *divmod(stamp_ns, _SECOND_NS)))
    _put_string(data, frame)
    if message_type == JOINT_STATE:
        _put_count(data, len(names))
        for name in names:
            _put_string(data, name)
        for channel in JOINT_CHANNELS:
            _put_count(data, len(values[channel]))
            if len(values[channel]):
                _put_doubles(data, values[channel])
        return bytes(data)
    if message_type == ODOMETRY:
        _put_string(data, "".join(names))
    if message_type == IMU:
        force, rate = np.split(np.asarray(values["imu"]), 2)
        values = {"orientation": _NO_ORIENTATION, **dict(zip(_IMU_CHANNEL, (force, rate), strict=True))}
    for name, count in _FIXED_FIELDS[message_type]:
        _put_doubles(data, values.get(name, np.zeros(count)))
    return bytes(data)


def _put_count(data: bytearray, count: int) -> None:
    _pad(data, 4)
    data.extend(struct.pack("<I", count))


def _put_string(data: bytearray, text: str) -> None:
    content = text.encode() + b"\0"
    _put_count(data, len(content))
    data.extend(content)


def _put_doubles(data: bytearray, values: Array) -> None:
    _pad(data, 8)
    data.extend(np.asarray(values, dtype="<f8").tobytes())


def _pad(data: bytearray, size: int) -> None:
    data.extend(bytes(-(len(data) - _CDR_HEADER_BYTES) % size))
