"""Messages of joint states, wrenches and base motion, live or from a bag, to synchronised samples."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

from .blocks import Block, recording_from_blocks
from .channel_stream import ChannelStream, StampOrderError
from .messages import WIDTHS
from .recording import Recording
from .stamp_order import place_of

_PART, _SEPARATOR = "joints ", ", "  # of joints that come in messages of their own
_BEFORE_ALL = -(2**63)  # ns
_LATENCY_NS = 1_000_000_000  # what is this late does not come any more


class JointsError(RecordingError):
    """A message lists other joints than those before it."""


class RecordingAssembler:
    """Collects joint states, wrenches and base motion, and gives synchronised blocks, or a whole recording.

    Joints keep the order of the first message; messages that list the same joints in another order are reordered. Where
    the joints to take come in several messages (of two arms, say), those of the first of them are the samples, to whose
    stamps the others are interpolated linearly like wrenches.
    Wrenches and the motion of a free base are interpolated linearly to the joint-state stamps; a joint state that has
    no sample of one of them within ``max_wrench_gap_s`` before and after it is left out, which later reads as a gap.

    Parameters
    ----------
    name : str
        Name of the source in messages, such as the bag's path.
    joints : sequence of str
        Joints to take; messages with none of them (a gripper on the same topic) are skipped. Empty: those of the first
        message.
    wrench_frames : sequence of str
        Frames for which every sample must have a wrench.
    max_wrench_gap_s : float
        Largest distance in time to a sample of another channel [s].
    expected : sequence of str
        Joints of the robot, as a hint: messages with none of them are skipped, others are taken whole.
    base : sequence of str
        Channels of a free base that every sample must have, of ``base_pose``, ``base_twist``, ``imu``.
    late : int
        Number of messages of a channel that may come before one that they are after: it is put in order. As many of the
        newest samples are not given before the end.

    Attributes
    ----------
    joint_names : tuple of str
        Joints in the order of the samples; empty before the first message.
    samples : int
        Samples so far; messages that only add joints to samples are none.
    dropped : int
        Samples left out because a channel was missing at their stamps.
    missing : dict of str to int
        The same by channel.
    """

    def __init__(
        self,
        name: str = "recording",
        joints: Sequence[str] = (),
        wrench_frames: Sequence[str] = (),
        max_wrench_gap_s: float = 0.05,
        expected: Sequence[str] = (),
        base: Sequence[str] = (),
        late: int = 0,
    ) -> None:
        self.name = name
        self._late = late
        self._expected = frozenset(expected)
        self.joint_names = tuple(joints)
        self._max_gap_ns = round(max_wrench_gap_s * 1e9)
        self._chosen = bool(joints)
        self._orders: dict[tuple[str, ...], NDArray[np.intp] | None] = {}
        self._parts: dict[str, ChannelStream] = {}
        self._held: set[str] = set()  # joints that messages have held so far
        self._messages = 0
        self._last_ns: int | None = None
        self._given_ns = _BEFORE_ALL  # of the newest sample that was given
        self.samples = 0
        self._has_velocity: bool | None = None
        self._stamps: list[int] = []
        self._rows: dict[str, list[Array]] = {"position": [], "velocity": [], "effort": []}
        self._wrenches = {frame: self._stream(6) for frame in wrench_frames}
        self._base = {channel: self._stream(WIDTHS[channel]) for channel in base}
        self.dropped = 0
        self.missing: dict[str, int] = {}

    def add_joint_state(
        self,
        names: Sequence[str],
        stamp_ns: int,
        position: ArrayLike,
        velocity: ArrayLike = (),
        effort: ArrayLike = (),
    ) -> bool:
        """Take one ``sensor_msgs/JointState``; a message for which this raises is not kept.

        Parameters
        ----------
        names : sequence of str
            Joints of the message.
        stamp_ns : int
            Header stamp [ns].
        position, velocity, effort : array_like, shape (len(names),)
            Values; velocity may be empty, and effort too where wrenches or base motion are recorded.

        Returns
        -------
        bool
            False where the message has none of the wanted joints.

        Raises
        ------
        StampOrderError
            The stamp repeats, or is later than it may be.
        RecordingError
            Position or effort is missing, or lengths or joints do not fit; names the message.
        """
        rows = {
            key: np.asarray(value, dtype=float).reshape(1, -1)
            for key, value in (("position", position), ("velocity", velocity), ("effort", effort))
        }
        return self.add_joint_states(names, np.array([stamp_ns], dtype=np.int64), **rows)

    def add_joint_states(
        self, names: Sequence[str], stamps_ns: NDArray[np.int64], position: Array, velocity: Array, effort: Array
    ) -> bool:
        """Take several ``sensor_msgs/JointState`` of the same joints, in the order of their stamps ``(N,)``.

        Parameters
        ----------
        names, stamps_ns
            Joints of the messages, and header stamps [ns].
        position, velocity, effort : ndarray, shape (N, len(names))
            Or ``(N, 0)``, as one message may leave them empty.

        Returns
        -------
        bool
            False where the messages have none of the wanted joints.

        Raises
        ------
        StampOrderError, RecordingError
            As for one message; nothing is kept.
        """
        self._messages += len(stamps_ns)
        order = self._order(tuple(names))
        if order is None:
            return False
        where = f"{self.name}: joint state {self._messages}"
        values = {"position": position, "velocity": velocity, "effort": effort}
        self._held.update(names)
        if order[0] < 0:
            return self._add_part(where, stamps_ns, values, len(names), order)
        rows = {key: self._rows_of(where, key, value, len(names), order) for key, value in values.items()}
        has_velocity = rows["velocity"].shape[1] > 0
        if self._has_velocity is not None and has_velocity != self._has_velocity:
            state = "has" if has_velocity else "lacks"
            raise RecordingError(f"{where} {state} velocity, unlike those before; use one publisher per topic")
        newest = int(stamps_ns[-1]) if self._last_ns is None else max(int(stamps_ns[-1]), self._last_ns)
        place = place_of(self._stamps, stamps_ns, self._late)
        if place is None or stamps_ns[0] <= self._given_ns:
            raise StampOrderError(where, newest, int(stamps_ns[0]))
        self._has_velocity, self._last_ns = has_velocity, newest
        self._stamps[place:place] = stamps_ns.tolist()
        for key, row in rows.items():
            self._rows[key].insert(place, row)
        self.samples += len(stamps_ns)
        return True

    def _add_part(
        self, where: str, stamps_ns: NDArray[np.int64], values: dict[str, Array], count: int, order: NDArray[np.intp]
    ) -> bool:
        """Take messages that hold some of the joints, but not the first."""
        columns = np.flatnonzero(order >= 0)
        rows = [self._rows_of(where, key, value, count, order) for key, value in values.items()]
        rows = [row[:, columns] if row.size else np.full((len(row), len(columns)), np.nan) for row in rows]
        key = _SEPARATOR.join(self.joint_names[column] for column in columns)
        stream = self._parts.setdefault(key, self._stream(3 * len(columns)))
        stream.extend(f"{where} of {self.joint_names[columns[0]]}", stamps_ns, np.hstack(rows))
        return True

    def add_wrench(self, frame: str, stamp_ns: int, force: ArrayLike, torque: ArrayLike) -> None:
        """Take force [N] and torque [N m] of one ``geometry_msgs/WrenchStamped`` of a frame.

        Raises
        ------
        StampOrderError
            The stamp [ns] of this frame repeats, or is later than it may be.
        """
        wrench = np.concatenate([np.asarray(force, dtype=float), np.asarray(torque, dtype=float)])
        self.add_wrenches(frame, np.array([stamp_ns], dtype=np.int64), wrench[None])

    def add_wrenches(self, frame: str, stamps_ns: NDArray[np.int64], wrenches: Array) -> None:
        """Take forces [N] and torques [N m] ``(N, 6)`` of a frame in the order of their stamps ``(N,)`` [ns].

        Raises
        ------
        StampOrderError
            As for one message; nothing is kept.
        """
        self._wrenches.setdefault(frame, self._stream(6)).extend(f"{self.name}: wrench/{frame}", stamps_ns, wrenches)

    def add_base(self, channel: str, stamp_ns: int, values: Array) -> None:
        """Take one measurement of the base, of ``base_pose (7,)``, ``base_twist (6,)`` or ``imu (6,)``.

        Raises
        ------
        StampOrderError
            The stamp [ns] of this channel repeats, or is later than it may be.
        """
        self.add_bases(channel, np.array([stamp_ns], dtype=np.int64), values[None])

    def add_bases(self, channel: str, stamps_ns: NDArray[np.int64], values: Array) -> None:
        """Take measurements of the base ``(N, 7)`` or ``(N, 6)`` in the order of their stamps ``(N,)`` [ns].

        Raises
        ------
        StampOrderError
            As for one message; nothing is kept.
        """
        stream = self._base.setdefault(channel, self._stream(WIDTHS[channel]))
        if channel == "base_pose":  # a quaternion and its negative are one rotation, and their mean is none
            chain = np.vstack([*stream.values[-1:], values])[:, 3:]
            turned = np.cumprod(np.where(np.sum(chain[1:] * chain[:-1], axis=1) < 0, -1.0, 1.0))
            signs = np.concatenate([np.ones(len(values) - len(turned)), turned])
            values = np.hstack([values[:, :3], signs[:, None] * values[:, 3:]])
        stream.extend(f"{self.name}: {channel}", stamps_ns, values)

    @property
    def newest_ns(self) -> int | None:
        """Stamp of the newest sample [ns]."""
        return self._last_ns

    def take(self, final: bool = False, patient: bool = False) -> Block | None:
        """Samples whose other channels have all arrived, each given once; all that are left when ``final``.

        None before the first joint state. What is late by more than a second does not come any more, unless
        ``patient``: messages of a file come topic by topic.
        """
        if not self.joint_names or self._has_velocity is None:
            return None
        stamps = np.array(self._stamps, dtype=np.int64)
        ready = len(stamps) if final else min(self._ready(stamps, patient), max(len(stamps) - self._late, 0))
        keep = np.ones(ready, dtype=bool)
        interpolated: dict[str, dict[str, Array]] = {}
        for group, streams in (("wrench/", self._wrenches), ("", self._base), (_PART, self._parts)):
            interpolated[group] = {}
            for key, stream in streams.items():
                interpolated[group][key], valid = stream.at(stamps[:ready], self._max_gap_ns)
                if not valid.all():
                    self.missing[group + key] = self.missing.get(group + key, 0) + int((~valid).sum())
                keep &= valid
        lacking = [name for name in self.joint_names if name not in self._held]
        if lacking and ready:
            key = _PART + _SEPARATOR.join(lacking)
            self.missing[key] = self.missing.get(key, 0) + ready
            keep[:] = False
        columns = {key: self._pop(key, ready)[keep] for key in self._rows}
        for key, values in interpolated[_PART].items():
            joints = [self.joint_names.index(joint) for joint in key.split(_SEPARATOR)]
            for channel, own in zip(self._rows, np.split(values[keep], len(self._rows), axis=1), strict=True):
                if columns[channel].size:
                    columns[channel][:, joints] = own
        del self._stamps[:ready]
        if ready:
            self._given_ns = int(stamps[ready - 1])
            for stream in (*self._wrenches.values(), *self._base.values(), *self._parts.values()):
                stream.drop_before(stamps[ready - 1])
        self.dropped += int(ready - keep.sum())
        return Block(
            self.joint_names,
            stamps[:ready][keep],
            columns["position"],
            columns["velocity"] if self._has_velocity else None,
            columns["effort"],
            {key: values[keep] for key, values in interpolated["wrench/"].items()},
            {key: values[keep] for key, values in interpolated[""].items()},
        )

    def recording(self, notices: tuple[str, ...] = ()) -> Recording:
        """Everything that was not taken yet as one recording, with ``notices`` of how it was obtained.

        Raises
        ------
        RecordingError
            There are no samples, or they are not usable; see :class:`Recording`.
        """
        block = self.take(final=True)
        if block is not None and not len(block) and self.dropped:
            raise RecordingError(
                f"{self.name}: no sample of {', '.join(self.missing)} within {self._max_gap_ns * 1e-9:g} s of any joint"
                " state; check its topic and its clock"
            )
        return recording_from_blocks(self.name, [block] if block else [], (*notices, *self.notices))

    @property
    def notices(self) -> tuple[str, ...]:
        """What was left out so far, in one line."""
        channels = ", ".join(f"{key} ({count})" for key, count in self.missing.items())
        return (f"left out {self.dropped} samples without {channels}",) if self.dropped else ()

    def _stream(self, width: int) -> ChannelStream:
        return ChannelStream(width, late=self._late)

    def _order(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        """Column of each wanted joint in a message with ``names``, -1 where another message has it; None where it has
        none of them."""
        if names in self._orders:
            return self._orders[names]
        if self._expected and self._expected.isdisjoint(names):
            self._orders[names] = None
            return None
        where = f"{self.name}: joint state {self._messages}"
        if len(set(names)) != len(names):
            raise RecordingError(f"{where}: name lists a joint twice ({', '.join(names)}); fix the publisher")
        if not self.joint_names:
            if not names:
                raise RecordingError(f"{where}: name is empty; record a joint_states topic that names its joints")
            self.joint_names = names
        missing = [name for name in self.joint_names if name not in names]
        skipped = self._chosen and len(missing) == len(self.joint_names)
        columns = [names.index(name) if name in names else -1 for name in self.joint_names]
        order = None if skipped else np.array(columns, dtype=np.intp)
        if not self._chosen and (missing or len(names) != len(self.joint_names)):
            raise JointsError(
                f"{where}: name holds {', '.join(names) or 'nothing'}, but earlier or wanted are"
                f" {', '.join(self.joint_names)}; list the joints to take in topics.joints (joints of the"
                " recorder)"
            )
        self._orders[names] = order
        return order

    def _rows_of(self, where: str, channel: str, values: Array, count: int, order: NDArray[np.intp]) -> Array:
        """Values ``(N, count)`` of messages in the order of the wanted joints, ``(N, n)``."""
        width = values.shape[1]
        if width == count:
            rows = values[:, order]
            rows[:, order < 0] = np.nan
            return rows
        if width == 0 and channel == "velocity":
            return values
        if width == 0 and channel == "effort" and (self._wrenches or self._base):
            return np.full((len(values), len(order)), np.nan)  # equations of the base and of momentum need none
        if width == 0:
            raise RecordingError(f"{where}: {channel} is empty; record joint states with {channel} filled")
        raise RecordingError(f"{where}: {channel} has {width} values for {count} joints; fix the publisher")

    def _ready(self, stamps: NDArray[np.int64], patient: bool) -> int:
        """Number of leading samples that no later message can change."""
        streams = [*self._wrenches.values(), *self._base.values(), *self._parts.values()]
        if not streams or len(stamps) == 0:
            return len(stamps)
        oldest = _BEFORE_ALL if patient else int(stamps[-1]) - self._max_gap_ns - _LATENCY_NS
        ends = [max([oldest, *stream.stamps_ns[-1:]]) for stream in streams]
        return int(np.searchsorted(stamps, min(ends), side="right"))

    def _pop(self, channel: str, count: int) -> Array:
        if not count:
            return np.zeros((0, len(self.joint_names)))
        rows = np.concatenate(self._rows[channel])
        # One piece a sample, where late ones are put between them.
        self._rows[channel] = list(rows[count:, None]) if self._late else [rows[count:]]
        return rows[:count]
