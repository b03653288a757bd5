"""Types of the messages that make a recording, and their content as arrays: one message, or many of one layout at once.

Single messages may be of any class with the fields of the message: rclpy's, or those of a bag reader. CDR aligns a
number to its size, counted from the end of the encapsulation header of four bytes (XTypes 1.3, 7.4.1).
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inertid_ros.config.recordings import BaseTopics, RecordingTopics
from inertid_ros.core.arrays import Array

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH_STAMPED = "geometry_msgs/msg/WrenchStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
TWIST_STAMPED = "geometry_msgs/msg/TwistStamped"
IMU = "sensor_msgs/msg/Imu"
LATEST_NS = 2**62  # stamps in the year 2116; differences still fit 64 bits
WIDTHS = {"base_pose": 7, "base_twist": 6, "imu": 6}
Bytes = NDArray[np.uint8]
_CDR_HEADER_BYTES, _STAMP_START, _STAMP_END = 4, 4, 12
_LITTLE_ENDIAN = b"\x00\x01"  # plain CDR
_MAX_PADDING_BYTES = 3  # bytes behind the last field
_SECOND_NS = 1_000_000_000
# Names and counts of the float64 numbers behind the header; those without a name are not used.
_FIXED_FIELDS = {
    WRENCH_STAMPED: [("wrench", 6)],
    POSE_STAMPED: [("base_pose", 7)],
    TWIST_STAMPED: [("base_twist", 6)],
    ODOMETRY: [("base_pose", 7), ("", 36), ("base_twist", 6), ("", 36)],
    IMU: [("", 4 + 9), ("angular_velocity", 3), ("", 9), ("linear_acceleration", 3), ("", 9)],
}


def stamp_ns(message: Any) -> int:
    """Header stamp of a message [ns]."""
    return int(message.header.stamp.sec * _SECOND_NS + message.header.stamp.nanosec)


def wrench_values(message: Any) -> Array:
    """Force [N] and torque [N m] ``(6,)`` of a ``geometry_msgs/WrenchStamped``."""
    return _six(message.wrench.force, message.wrench.torque)


def wanted_topics(topics: RecordingTopics) -> dict[str, str]:
    """Topic to type of the messages that make a recording."""
    joint_states = dict.fromkeys((topics.joint_states, *topics.further_joint_states), JOINT_STATE)
    wrenches = dict.fromkeys((wrench.topic for wrench in topics.wrenches.values()), WRENCH_STAMPED)
    return {**joint_states, **wrenches, **base_topics(topics)}


def base_topics(topics: BaseTopics) -> dict[str, str]:
    """Topic to type of the messages with the motion of a free base."""
    types = {topics.odometry: ODOMETRY, topics.pose: POSE_STAMPED, topics.twist: TWIST_STAMPED, topics.imu: IMU}
    return {topic: message_type for topic, message_type in types.items() if topic}


def message_values(message_type: str, message: Any) -> dict[str, Array]:
    """Channel to values ``(k,)`` of one message."""
    return {channel: read(message) for channel, read in _READERS[message_type].items()}


def channels_of(message_type: str) -> tuple[str, ...]:
    """Channels in messages of a type."""
    return tuple(_READERS[message_type])


def source_of(message_type: str, message: Any) -> tuple[str, ...]:
    """Joints of a joint state; frame of another message."""
    return tuple(message.name) if message_type == JOINT_STATE else (str(message.header.frame_id),)


def tare_topic(topic: str) -> str:
    """Topic of a bag with what was subtracted from a wrench topic during recording."""
    return f"{topic}/tare"


def _pose(pose: Any) -> Array:
    quaternion = pose.orientation
    return np.array([*_xyz(pose.position), quaternion.x, quaternion.y, quaternion.z, quaternion.w])


def _six(first: Any, second: Any) -> Array:
    return np.array([*_xyz(first), *_xyz(second)])


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


_READERS: dict[str, dict[str, Callable[[Any], Array]]] = {
    JOINT_STATE: {
        "position": lambda message: np.asarray(message.position, dtype=float),
        "velocity": lambda message: np.asarray(message.velocity, dtype=float),
        "effort": lambda message: np.asarray(message.effort, dtype=float),
    },
    WRENCH_STAMPED: {"wrench": wrench_values},
    # Pose of the child frame, and its twist in its own axes, as defined by the message.
    ODOMETRY: {
        "base_pose": lambda message: _pose(message.pose.pose),
        "base_twist": lambda message: _six(message.twist.twist.linear, message.twist.twist.angular),
    },
    POSE_STAMPED: {"base_pose": lambda message: _pose(message.pose)},
    # Twist of a body in its own axes: the header's frame must be that of the base.
    TWIST_STAMPED: {"base_twist": lambda message: _six(message.twist.linear, message.twist.angular)},
    # Specific force, at rest upwards, and angular velocity; the orientation is not used.
    IMU: {"imu": lambda message: _six(message.linear_acceleration, message.angular_velocity)},
}


class UnsuitableError(Exception):
    """A bag, or a message of it, cannot be read by columns."""


@dataclass(frozen=True)
class RawMessages:
    """Serialised messages of one topic in one piece of memory, in the order of recording.

    Attributes
    ----------
    content : ndarray of uint8
        Memory that holds all of them.
    offsets, lengths : ndarray of int64, shape (N,)
        Start and length of each [bytes].
    times : ndarray of int64, shape (N,)
        Times of recording [ns].
    """

    content: Bytes
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def one(self, index: int) -> bytes:
        """Message at an index."""
        start = self.offsets[index]
        return bytes(self.content[start : start + self.lengths[index]])

    def rows(self, chosen: NDArray[np.intp], length: int) -> Bytes:
        """Messages of one length at indices ``(K,)``, ``(K, length)``."""
        return pieces(self.content, self.offsets[chosen], length)


def pieces(content: Bytes, offsets: NDArray[np.int64], length: int) -> Bytes:
    """Pieces ``(N, length)`` of memory that begin at ``offsets (N,)``."""
    return np.asarray(sliding_window_view(content, length)[offsets])


@dataclass(frozen=True)
class CdrLayout:
    """Layout of messages with the same strings and lengths of sequences.

    Attributes
    ----------
    length : int
        Length of the message [bytes].
    fixed : tuple of (int, ndarray of uint8)
        Offset and bytes of the content that all messages of this layout share.
    fields : mapping of str to (int, int)
        Field to offset [bytes] and count of its float64 numbers.
    """

    length: int
    fixed: tuple[tuple[int, Bytes], ...]
    fields: Mapping[str, tuple[int, int]]

    def matches(self, messages: Bytes) -> NDArray[np.bool_]:
        """Flag the messages ``(N, length)`` of this layout, ``(N,)``."""
        flags = np.ones(len(messages), dtype=bool)
        for offset, content in self.fixed:
            equal = messages[:, offset : offset + len(content)] == content
            if not equal.all():
                flags &= equal.all(axis=1)
        return flags

    def stamps(self, messages: Bytes) -> NDArray[np.int64]:
        """Header stamps ``(N,)`` of messages ``(N, length)`` [ns]."""
        words = np.ascontiguousarray(messages[:, _STAMP_START:_STAMP_END])
        seconds, nanoseconds = words.view("<i4")[:, 0].astype(np.int64), words.view("<u4")[:, 1].astype(np.int64)
        return np.asarray(seconds * _SECOND_NS + nanoseconds)

    def values(self, messages: Bytes) -> dict[str, Array]:
        """Channel to values ``(N, k)`` of messages ``(N, length)``."""
        columns = {}
        for name, (offset, count) in self.fields.items():
            numbers = np.ascontiguousarray(messages[:, offset : offset + 8 * count])
            columns[name] = numbers.view("<f8") if count else np.zeros((len(messages), 0))
        if "linear_acceleration" in columns:
            return {"imu": np.hstack([columns["linear_acceleration"], columns["angular_velocity"]])}
        return columns


def layout_of(message: bytes, message_type: str) -> CdrLayout:
    """Layout of a message of a type ``pkg/msg/Name``.

    Raises
    ------
    UnsuitableError
        It is not little-endian plain CDR of one of the types that make a recording, or is cut short.
    """
    if message[:2] != _LITTLE_ENDIAN:
        raise UnsuitableError
    try:
        cursor = _Cursor(message)
        cursor.string()
        if message_type == JOINT_STATE:
            for _ in range(cursor.count()):
                cursor.string()
            for name in ("position", "velocity", "effort"):
                cursor.doubles(name, cursor.count())
        else:
            if message_type == ODOMETRY:
                cursor.string()
            for name, count in _FIXED_FIELDS[message_type]:
                cursor.doubles(name, count)
    except (struct.error, KeyError):
        raise UnsuitableError from None
    if not 0 <= len(message) - cursor.at <= _MAX_PADDING_BYTES:
        raise UnsuitableError
    content = np.frombuffer(message, dtype=np.uint8)
    return CdrLayout(len(message), tuple((start, content[start:end]) for start, end in cursor.fixed), cursor.fields)


class _Cursor:
    """Position in a message behind its stamp, with the fixed content and the numbers passed so far."""

    def __init__(self, message: bytes) -> None:
        self.at = _STAMP_END
        self.fields: dict[str, tuple[int, int]] = {}
        self.fixed = [(0, len(_LITTLE_ENDIAN))]
        self._message = message

    def count(self) -> int:
        """Length of a sequence or string."""
        start = self.at
        self._align(4)
        (value,) = struct.unpack_from("<I", self._message, self.at)
        self.at += 4
        self._fix(start)
        return int(value)

    def string(self) -> None:
        start, length = self.at, self.count()
        self.at += length
        self._fix(start)

    def doubles(self, name: str, count: int) -> None:
        if count:
            self._align(8)
        if name:
            self.fields[name] = self.at, count
        self.at += 8 * count

    def _align(self, size: int) -> None:
        self.at += -(self.at - _CDR_HEADER_BYTES) % size

    def _fix(self, start: int) -> None:
        """Mark the bytes from ``start`` to here as fixed, joined with the piece before them."""
        if self.fixed[-1][1] == start:
            start = self.fixed.pop()[0]
        self.fixed.append((start, self.at))
