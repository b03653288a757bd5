"""Where the numbers of a serialised message are, so that messages of one layout are decoded at once.

CDR aligns a number to its size, counted from the end of the encapsulation header of four bytes (XTypes 1.3, 7.4.1).
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.data.messages import IMU, JOINT_STATE, ODOMETRY, POSE_STAMPED, TWIST_STAMPED, WRENCH_STAMPED

Bytes = NDArray[np.uint8]

_HEADER, _STAMP, _STAMP_END = 4, 4, 12
_LITTLE_ENDIAN = b"\x00\x01"  # plain CDR
_MOST_PADDING = 3  # bytes behind the last field
_NANOSECONDS = 1_000_000_000
# Numbers of the fields behind the header, of double precision and fixed size.
_FIELDS = {
    WRENCH_STAMPED: {"wrench": 6},
    POSE_STAMPED: {"pose": 7},
    TWIST_STAMPED: {"twist": 6},
    ODOMETRY: {"pose": 7, "pose_covariance": 36, "twist": 6, "twist_covariance": 36},
    IMU: {
        "orientation": 4, "orientation_covariance": 9, "angular_velocity": 3, "angular_velocity_covariance": 9,
        "linear_acceleration": 3, "linear_acceleration_covariance": 9,
    },
}  # fmt: skip


class UnsuitableError(Exception):
    """A bag, or a message of it, is not one that can be read by columns."""


@dataclass(frozen=True)
class CdrLayout:
    """Layout of a message whose strings and lengths of sequences are given.

    Attributes
    ----------
    length : int
        Of the message [bytes].
    fixed : tuple of (int, ndarray of uint8)
        Offset and bytes of what messages of this layout have in common.
    fields : mapping of str to (int, int)
        Field to the offset [bytes] and the count of its numbers of double precision.
    """

    length: int
    fixed: tuple[tuple[int, Bytes], ...]
    fields: Mapping[str, tuple[int, int]]

    def matches(self, messages: Bytes) -> NDArray[np.bool_]:
        """Which messages ``(N, length)`` have this layout, ``(N,)``."""
        same = np.ones(len(messages), dtype=bool)
        for offset, content in self.fixed:
            equal = messages[:, offset : offset + len(content)] == content
            if not equal.all():
                same &= equal.all(axis=1)
        return same

    def stamps(self, messages: Bytes) -> NDArray[np.int64]:
        """Header stamps ``(N,)`` of messages ``(N, length)`` [ns]."""
        words = np.ascontiguousarray(messages[:, _STAMP:_STAMP_END])
        seconds, nanoseconds = words.view("<i4")[:, 0].astype(np.int64), words.view("<u4")[:, 1].astype(np.int64)
        return np.asarray(seconds * _NANOSECONDS + nanoseconds)

    def values(self, messages: Bytes) -> dict[str, Array]:
        """Field to its numbers ``(N, count)``."""
        columns = {}
        for name, (offset, count) in self.fields.items():
            own = np.ascontiguousarray(messages[:, offset : offset + 8 * count])
            columns[name] = own.view("<f8") if count else np.zeros((len(messages), 0))
        return columns


def layout_of(message: bytes, message_type: str) -> CdrLayout:
    """Layout of a message, ``pkg/msg/Name``.

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
            for name, count in _FIELDS[message_type].items():
                cursor.doubles(name, count)
    except (struct.error, KeyError):
        raise UnsuitableError from None
    if not 0 <= len(message) - cursor.at <= _MOST_PADDING:
        raise UnsuitableError
    content = np.frombuffer(message, dtype=np.uint8)
    return CdrLayout(len(message), tuple((start, content[start:end]) for start, end in cursor.fixed), cursor.fields)


class _Cursor:
    """Goes through a message behind its stamp, and notes what is fixed and where numbers are."""

    def __init__(self, message: bytes) -> None:
        self.at = _STAMP_END
        self.fields: dict[str, tuple[int, int]] = {}
        self.fixed = [(0, len(_LITTLE_ENDIAN))]
        self._message = message

    def count(self) -> int:
        """The length of a sequence or string."""
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
        self.fields[name] = self.at, count
        self.at += 8 * count

    def _align(self, size: int) -> None:
        self.at += -(self.at - _HEADER) % size

    def _fix(self, start: int) -> None:
        """What is between ``start`` and here is the same in all messages; one piece with what is before it."""
        if self.fixed[-1][1] == start:
            start = self.fixed.pop()[0]
        self.fixed.append((start, self.at))
