"""Decode the messages of a topic to columns; messages of one layout are decoded at once."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array, Indices, IntArray
from inertid_ros.core.errors import RecordingError
from inertid_ros.data import messages as msg

_MAX_LAYOUTS = 1000  # layouts of a topic; its publishers may leave fields empty


@dataclass(frozen=True)
class Columns:
    """Messages of one source on a topic, in the order of recording.

    Attributes
    ----------
    source : joints of joint states, or the frame of wrenches.
    place : time of recording of the source's first message [ns], and the offset of this message in memory.
    indices : (N,), indices of the messages among all messages of the topic.
    times_ns, stamps_ns : ndarray of int64, shape (N,)
        Times of recording, and header stamps or (if the caller wants them) times of recording [ns].
    values : map from channels to values ``(N, k)``.
    """

    topic: str
    type: str
    source: tuple[str, ...]
    place: tuple[int, int]
    indices: Indices
    times_ns: IntArray
    stamps_ns: IntArray
    values: dict[str, Array]

    def rows(self, chosen: Indices) -> "Columns":
        """Columns of the messages at the indices ``chosen``."""
        arrays: dict[str, Any] = {name: getattr(self, name)[chosen] for name in ("indices", "times_ns", "stamps_ns")}
        return replace(self, **arrays, values={channel: rows[chosen] for channel, rows in self.values.items()})


@dataclass
class _Group:
    """Messages of one layout: their number so far, and the pieces that were not taken yet."""

    layout: msg.CdrLayout
    source: tuple[str, ...]
    place: tuple[int, int]
    count: int = 0
    pieces: list[Columns] = field(default_factory=list)


class TopicColumns:
    """Collect the messages of a topic.

    Parameters
    ----------
    bag : name in errors.
    arrival : whether stamps are times of recording.
    frame : frame of wrenches; if empty, the frame in the messages.

    Attributes
    ----------
    is_in_order : whether the times of recording never went back.
    """

    def __init__(self, bag: str, topic: str, message_type: str, arrival: bool, frame: str = "") -> None:
        self.topic, self.type, self.is_in_order = topic, message_type, True
        self._bag, self._arrival, self._frame = bag, arrival, frame
        self._groups: list[_Group] = []
        self._count, self._last_ns = 0, -(2**63)

    @property
    def samples(self) -> int:
        """Largest number of messages of one layout so far."""
        return max((group.count for group in self._groups), default=0)

    def add(self, messages: msg.RawMessages) -> None:
        """Add messages; RecordingError if a message has another type, or there are too many layouts."""
        times = messages.times
        self.is_in_order &= bool(times[0] >= self._last_ns and (np.diff(times) >= 0).all())
        self._last_ns = int(times[-1])
        rest = np.arange(len(messages))
        for group in self._groups:
            rest = self._take(group, messages, rest)
        while len(rest):
            group = self._group(messages, int(rest[0]))
            self._groups.append(group)
            rest = self._take(group, messages, rest)
        self._count += len(messages)

    def columns(self) -> list[Columns]:
        """Return the messages of every source since the last call, in the order of their times of recording."""
        pieces: dict[Hashable, list[Columns]] = {}
        for group in self._groups:
            widths = tuple(count for _, count in group.layout.fields.values())
            pieces.setdefault((frozenset(group.source), widths), []).extend(group.pieces)
            group.pieces = []
        return [self._joined(of_one_array) for of_one_array in pieces.values() if of_one_array]

    def _take(self, group: _Group, messages: msg.RawMessages, rest: Indices) -> Indices:
        """Take the messages with the layout of a group, and return the rows of the other messages."""
        layout = group.layout
        fits = messages.lengths[rest] == layout.length
        if not fits.any():
            return rest
        rows = messages.rows(rest[fits], layout.length)
        same = layout.matches(rows)
        if not same.all():
            rows = rows[same]
        fits[fits] = same
        chosen = rest[fits]
        if len(chosen):
            times = messages.times[chosen]
            stamps = times if self._arrival else layout.stamps(rows)
            values, indices = layout.values(rows), chosen + self._count
            group.pieces.append(
                Columns(self.topic, self.type, group.source, group.place, indices, times, stamps, values))
            group.count += len(chosen)
        return rest[~fits]

    def _group(self, messages: msg.RawMessages, index: int) -> _Group:
        if len(self._groups) == _MAX_LAYOUTS:
            raise RecordingError(f"{self._bag}: {self.topic} has too many kinds of messages; check its publishers")
        try:
            layout = msg.layout_of(messages.one(index), self.type)
        except ValueError as error:
            where = f"{self._bag}: message {self._count + index + 1} on {self.topic}"
            raise RecordingError(f"{where}: is not a valid {self.type} ({error}); record again") from None
        source = layout.source
        if self.type not in (msg.JOINT_STATE, msg.CONTROLLER_STATE):
            source = (self._frame or layout.source[0],) if self.type == msg.WRENCH_STAMPED else ()
        return _Group(layout, source, (int(messages.times[index]), int(messages.offsets[index])))

    def _joined(self, pieces: list[Columns]) -> Columns:
        """Join the pieces of one source, which may list its joints in different orders."""
        source = pieces[0].source
        channels: dict[str, list[Array]] = {channel: [] for channel in pieces[0].values}
        for piece in pieces:
            order = [piece.source.index(name) for name in source]
            for channel, rows in piece.values.items():
                is_ordered = piece.source == source or not rows.shape[1]
                channels[channel].append(rows if is_ordered else rows[:, order])
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("indices", "times_ns", "stamps_ns")}
        values = {channel: np.concatenate(rows) for channel, rows in channels.items()}
        joined = replace(pieces[0], place=min(piece.place for piece in pieces), **arrays, values=values)
        if self.is_in_order and (np.diff(joined.indices) > 0).all():
            return joined
        return joined.rows(np.lexsort((joined.indices, joined.times_ns)))
