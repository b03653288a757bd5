"""Messages of one topic, decoded by their layouts and joined in the order in which they were recorded."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.data.bag_storage.bag_backends import BagBackend
from inertid_ros.data.messages import (
    IMU,
    JOINT_STATE,
    ODOMETRY,
    WRENCH_STAMPED,
    base_values,
    stamp_ns,
    wrench_values,
)

from .cdr_layout import CdrLayout, UnsuitableError, layout_of
from .raw_messages import RawMessages

_MOST_LAYOUTS = 8  # of several publishers of a topic


@dataclass(frozen=True)
class Columns:
    """Messages of the same source in the order in which they were recorded.

    Attributes
    ----------
    source : tuple of str
        Joints of joint states; the frame of other messages.
    first_ns : int
        Time of recording of the first [ns].
    stamps_ns : ndarray of int64, shape (N,)
        Header stamps, or times of recording where these are asked for [ns].
    values : dict of str to ndarray, shape (N, k)
        Channel to values.
    """

    source: tuple[str, ...]
    first_ns: int
    stamps_ns: NDArray[np.int64]
    values: dict[str, Array]


@dataclass
class _Group:
    """Messages of one layout."""

    layout: CdrLayout
    source: tuple[str, ...]
    indices: list[NDArray[np.intp]] = field(default_factory=list)
    stamps: list[NDArray[np.int64]] = field(default_factory=list)
    values: list[dict[str, Array]] = field(default_factory=list)


class TopicColumns:
    """Collects the messages of a topic.

    Parameters
    ----------
    backend : BagBackend
        Library that the first message of each layout is compared with.
    message_type : str
        ``pkg/msg/Name``.
    arrival : bool
        Whether stamps are times of recording.

    Attributes
    ----------
    count : int
        Messages so far.
    """

    def __init__(self, backend: BagBackend, message_type: str, arrival: bool) -> None:
        self._backend, self._type, self._arrival = backend, message_type, arrival
        self._groups: list[_Group] = []
        self.count, self._last_ns = 0, -(2**63)
        self._first_ns: dict[int, int] = {}

    def add(self, messages: RawMessages) -> None:
        """Take messages that were recorded after those before.

        Raises
        ------
        UnsuitableError
            They are of too many layouts, or were recorded earlier.
        """
        if not len(messages):
            return
        if messages.times[0] < self._last_ns or (np.diff(messages.times) < 0).any():
            raise UnsuitableError
        self._last_ns = int(messages.times[-1])
        rest = np.arange(len(messages))
        for group in self._groups:
            rest = self._take(group, messages, rest)
        while len(rest):
            if len(self._groups) == _MOST_LAYOUTS:
                raise UnsuitableError
            group = self._group(messages.one(int(rest[0])))
            self._first_ns[len(self._groups)] = int(messages.times[rest[0]])
            self._groups.append(group)
            left = self._take(group, messages, rest)
            if len(left) == len(rest):
                raise UnsuitableError
            rest = left
        self.count += len(messages)

    def columns(self) -> list[Columns]:
        """Messages of every source, joined, each message once: those that came after the last call.

        Raises
        ------
        UnsuitableError
            Messages of one source leave fields empty that others fill.
        """
        by_source: dict[Hashable, list[tuple[int, _Group]]] = {}
        for index, group in enumerate(self._groups):
            same = frozenset(group.source) if self._type == JOINT_STATE else group.source
            by_source.setdefault(same, []).append((index, group))
        new = [groups for groups in by_source.values() if any(len(own) for _, group in groups for own in group.indices)]
        joined = [self._joined(groups) for groups in new]
        for group in self._groups:
            group.indices, group.stamps, group.values = [], [], []
        return joined

    def _take(self, group: _Group, messages: RawMessages, rest: NDArray[np.intp]) -> NDArray[np.intp]:
        """Take what has the layout of a group, and return what is left."""
        fits = messages.lengths[rest] == group.layout.length
        rows = messages.rows(rest[fits], group.layout.length)
        same = group.layout.matches(rows)
        if not same.all():
            rows = rows[same]
        fits[fits] = same
        chosen = rest[fits]
        group.indices.append(chosen + self.count)
        group.stamps.append(messages.times[chosen] if self._arrival else group.layout.stamps(rows))
        group.values.append(_channels(self._type, group.layout.values(rows)))
        return rest[~fits]

    def _group(self, message: bytes) -> _Group:
        """The group that begins with a message, once its layout says of it what the library says."""
        layout = layout_of(message, self._type)
        try:
            content = self._backend.deserialize(message, self._type)
            joints = self._type == JOINT_STATE
            source = tuple(content.name) if joints else (str(content.header.frame_id),)
            expected = _values_of(self._type, content)
            stamp = stamp_ns(content)
        except Exception:  # a library raises whatever the bytes lead to
            raise UnsuitableError from None
        row = np.frombuffer(message, dtype=np.uint8)[None]
        found = _channels(self._type, layout.values(row))
        same = all(np.array_equal(found[key][0], np.asarray(own), equal_nan=True) for key, own in expected.items())
        if not same or set(found) != set(expected) or int(layout.stamps(row)[0]) != stamp:
            raise UnsuitableError
        return _Group(layout, source)

    def _joined(self, groups: list[tuple[int, _Group]]) -> Columns:
        first, source = groups[0][0], groups[0][1].source
        columns: dict[str, list[Array]] = {}
        for _, group in groups:
            order = [group.source.index(name) for name in source]
            for own in group.values:
                for key, values in own.items():
                    is_ordered = self._type != JOINT_STATE or not values.shape[1] or group.source == source
                    columns.setdefault(key, []).append(values if is_ordered else values[:, order])
        if any(len({values.shape[1] for values in pieces}) > 1 for pieces in columns.values()):
            raise UnsuitableError
        stamps = np.concatenate([piece for _, group in groups for piece in group.stamps])
        joined = {key: np.concatenate(pieces) for key, pieces in columns.items()}
        if len(groups) > 1:
            place = np.argsort(np.concatenate([piece for _, group in groups for piece in group.indices]))
            stamps, joined = stamps[place], {key: values[place] for key, values in joined.items()}
        return Columns(source, self._first_ns[first], stamps, joined)


def _channels(message_type: str, fields: dict[str, Array]) -> dict[str, Array]:
    """Channel to values ``(N, k)`` as a recording has them."""
    if message_type == ODOMETRY:
        return {"base_pose": fields["pose"], "base_twist": fields["twist"]}
    if message_type == IMU:
        return {"imu": np.hstack([fields["linear_acceleration"], fields["angular_velocity"]])}
    names = {"pose": "base_pose", "twist": "base_twist"}
    return {names.get(key, key): values for key, values in fields.items()}


def _values_of(message_type: str, content: Any) -> Mapping[str, Any]:
    """Channel to values of one message that a library has decoded."""
    if message_type == JOINT_STATE:
        return {key: getattr(content, key) for key in ("position", "velocity", "effort")}
    return {"wrench": wrench_values(content)} if message_type == WRENCH_STAMPED else base_values(message_type, content)
