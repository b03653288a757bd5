"""Messages of joint states, wrenches and base motion, live or from a bag, to synchronised samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

from .blocks import Block, recording_from_blocks
from .messages import WIDTHS
from .recording import Recording, place_of

_JOINTS_PREFIX, _JOINTS_SEPARATOR = "joints ", ", "  # key of joints that come in messages of their own
_EARLIEST_NS = -(2**63)
_MAX_LATENCY_NS = 1_000_000_000  # later messages of a live channel are not waited for


class JointsError(RecordingError):
    """A message lists other joints than those before it."""


class StampOrderError(RecordingError):
    """A header stamp repeats or goes back. Live recording drops the message and counts it; a bag is refused."""

    def __init__(self, where: str, last_ns: int, stamp_ns: int) -> None:
        super().__init__(
            f"{where}: time goes back or repeats (header.stamp {last_ns} ns, then {stamp_ns} ns);"
            " check the publisher's clock, or cut the recording there"
        )


@dataclass
class ChannelStream:
    """Stamps and values of one channel.

    Attributes
    ----------
    width : int
        Number of values per stamp.
    stamps_ns : list of int
        Increasing header stamps [ns].
    values : list of ndarray, shape (width,)
        One per stamp.
    late : int
        Number of messages that may arrive before an earlier one.
    """

    width: int
    stamps_ns: list[int] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    late: int = 0

    def extend(self, where: str, stamps_ns: NDArray[np.int64], values: Array) -> None:
        """Take the values ``(N, width)`` of increasing stamps ``(N,)``.

        Raises
        ------
        StampOrderError
            A stamp repeats, or is too late; ``where`` names the channel in the message.
        """
        place = place_of(self.stamps_ns, stamps_ns, self.late)
        if place is None:
            raise StampOrderError(where, int(max([*self.stamps_ns[-1:], stamps_ns[0]])), int(stamps_ns[0]))
        self.stamps_ns[place:place] = stamps_ns.tolist()
        self.values[place:place] = list(values)

    def at(self, stamps: NDArray[np.int64], max_gap_ns: int) -> tuple[Array, NDArray[np.bool_]]:
        """Interpolated values and their validity; see :func:`interpolate`."""
        times = np.array(self.stamps_ns, dtype=np.int64)
        return interpolate(stamps, times, np.array(self.values).reshape(len(times), self.width), max_gap_ns)

    def drop_before(self, stamp: np.int64) -> None:
        """Drop all values before the last one at or before ``stamp`` [ns], which later stamps still need."""
        first = max(int(np.searchsorted(self.stamps_ns, stamp, side="right")) - 1, 0)
        del self.stamps_ns[:first]
        del self.values[:first]


def interpolate(
    stamps: NDArray[np.int64], times: NDArray[np.int64], values: Array, max_gap_ns: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Interpolate values ``(M, k)`` at times ``(M,)`` linearly at stamps ``(N,)`` [ns], and flag the valid results.

    A result is valid if there is a value within ``max_gap_ns`` on both sides, or one with exactly the same stamp.
    """
    out, valid = np.zeros((len(stamps), values.shape[1])), np.zeros(len(stamps), dtype=bool)
    if len(times) == 0 or len(stamps) == 0:
        return out, valid
    after = np.searchsorted(times, stamps, side="left")
    exact = (after < len(times)) & (times[np.minimum(after, len(times) - 1)] == stamps)
    before = np.clip(np.where(exact, after, after - 1), 0, len(times) - 1)
    after = np.minimum(after, len(times) - 1)
    inside = (stamps >= times[before]) & (stamps <= times[after])
    valid = inside & (stamps - times[before] <= max_gap_ns) & (times[after] - stamps <= max_gap_ns)
    step = np.maximum(times[after] - times[before], 1)
    weight = ((stamps - times[before]) / step)[:, None]
    out = np.where(exact[:, None], values[before], values[before] + weight * (values[after] - values[before]))
    return out, valid


class RecordingAssembler:
    """Collect joint states, wrenches and base motion, and give synchronised blocks or a whole recording.

    Joints keep the order of the first message; messages with the same joints in another order are reordered. If the
    joints come in several messages (of two arms, say), those with the first joint define the samples, and the others
    are interpolated linearly to their stamps, like wrenches and the motion of a free base. A joint state that lacks a
    sample of another channel within ``max_wrench_gap_s`` before or after it is left out, and later reads as a gap.

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
        Number of messages of a channel that may arrive before an earlier one, which is put in order. As many of the
        newest samples are held back until the end.

    Attributes
    ----------
    joint_names : tuple of str
        Joints in the order of the samples; empty before the first message.
    samples : int
        Samples so far; messages that only add joints to samples do not count.
    dropped : int
        Samples left out because of a missing channel.
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
        self._seen: set[str] = set()  # joints of all messages so far
        self._messages = 0
        self._last_ns: int | None = None
        self._taken_ns = _EARLIEST_NS  # stamp of the newest sample that was taken
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
        """Take one ``sensor_msgs/JointState``; see :meth:`add_joint_states`.

        Velocity may be empty, and effort too if wrenches or base motion are recorded.
        """
        rows = {
            key: np.asarray(value, dtype=float).reshape(1, -1)
            for key, value in (("position", position), ("velocity", velocity), ("effort", effort))
        }
        return self.add_joint_states(names, np.array([stamp_ns], dtype=np.int64), **rows)

    def add_joint_states(
        self, names: Sequence[str], stamps_ns: NDArray[np.int64], position: Array, velocity: Array, effort: Array
    ) -> bool:
        """Take several ``sensor_msgs/JointState`` of the same joints, in the order of their stamps.

        Parameters
        ----------
        names : sequence of str
            Joints of the messages.
        stamps_ns : ndarray of int64, shape (N,)
            Header stamps [ns].
        position, velocity, effort : ndarray, shape (N, len(names))
            Or ``(N, 0)``, as messages may leave them empty.

        Returns
        -------
        bool
            False if the messages have none of the wanted joints.

        Raises
        ------
        StampOrderError
            A stamp repeats or is too late; no message is taken.
        RecordingError
            Position or effort is missing, or lengths or joints do not fit; no message is taken.
        """
        self._messages += len(stamps_ns)
        order = self._order(tuple(names))
        if order is None:
            return False
        where = f"{self.name}: joint state {self._messages}"
        values = {"position": position, "velocity": velocity, "effort": effort}
        self._seen.update(names)
        if order[0] < 0:
            return self._add_part(where, stamps_ns, values, len(names), order)
        rows = {key: self._rows_of(where, key, value, len(names), order) for key, value in values.items()}
        has_velocity = rows["velocity"].shape[1] > 0
        if self._has_velocity is not None and has_velocity != self._has_velocity:
            state = "has" if has_velocity else "lacks"
            raise RecordingError(f"{where} {state} velocity, unlike those before; use one publisher per topic")
        newest = int(stamps_ns[-1]) if self._last_ns is None else max(int(stamps_ns[-1]), self._last_ns)
        place = place_of(self._stamps, stamps_ns, self._late)
        if place is None or stamps_ns[0] <= self._taken_ns:
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
        key = _JOINTS_SEPARATOR.join(self.joint_names[column] for column in columns)
        stream = self._parts.setdefault(key, self._stream(3 * len(columns)))
        stream.extend(f"{where} of {self.joint_names[columns[0]]}", stamps_ns, np.hstack(rows))
        return True

    def add_wrench(self, frame: str, stamp_ns: int, force: ArrayLike, torque: ArrayLike) -> None:
        """Take force [N] and torque [N m] of one ``geometry_msgs/WrenchStamped``; see :meth:`add_wrenches`."""
        wrench = np.concatenate([np.asarray(force, dtype=float), np.asarray(torque, dtype=float)])
        self.add_wrenches(frame, np.array([stamp_ns], dtype=np.int64), wrench[None])

    def add_wrenches(self, frame: str, stamps_ns: NDArray[np.int64], wrenches: Array) -> None:
        """Take wrenches ``(N, 6)`` [N, N m] of a frame, in the order of their stamps ``(N,)`` [ns].

        Raises
        ------
        StampOrderError
            A stamp of this frame repeats or is too late; no wrench is taken.
        """
        self._wrenches.setdefault(frame, self._stream(6)).extend(f"{self.name}: wrench/{frame}", stamps_ns, wrenches)

    def add_base(self, channel: str, stamp_ns: int, values: Array) -> None:
        """Take one measurement of the base; see :meth:`add_bases`."""
        self.add_bases(channel, np.array([stamp_ns], dtype=np.int64), values[None])

    def add_bases(self, channel: str, stamps_ns: NDArray[np.int64], values: Array) -> None:
        """Take ``base_pose (N, 7)``, ``base_twist (N, 6)`` or ``imu (N, 6)`` in the order of their stamps [ns].

        Raises
        ------
        StampOrderError
            A stamp of this channel repeats or is too late; no measurement is taken.
        """
        stream = self._base.setdefault(channel, self._stream(WIDTHS[channel]))
        if channel == "base_pose":
            # A quaternion and its negative are one rotation; their mean is not a rotation.
            chain = np.vstack([*stream.values[-1:], values])[:, 3:]
            turned = np.cumprod(np.where(np.sum(chain[1:] * chain[:-1], axis=1) < 0, -1.0, 1.0))
            signs = np.concatenate([np.ones(len(values) - len(turned)), turned])
            values = np.hstack([values[:, :3], signs[:, None] * values[:, 3:]])
        stream.extend(f"{self.name}: {channel}", stamps_ns, values)

    def take(self, final: bool = False, patient: bool = False) -> Block | None:
        """Return the samples whose other channels have all arrived, each once; None before the first joint state.

        With ``final`` all remaining samples are returned. Other channels are waited for at most a second of stamps, or
        without limit if ``patient`` (messages of a file come topic by topic).
        """
        if not self.joint_names or self._has_velocity is None:
            return None
        stamps = np.array(self._stamps, dtype=np.int64)
        ready = len(stamps) if final else min(self._ready(stamps, patient), max(len(stamps) - self._late, 0))
        keep = np.ones(ready, dtype=bool)
        interpolated: dict[str, dict[str, Array]] = {}
        for group, streams in (("wrench/", self._wrenches), ("", self._base), (_JOINTS_PREFIX, self._parts)):
            interpolated[group] = {}
            for key, stream in streams.items():
                interpolated[group][key], valid = stream.at(stamps[:ready], self._max_gap_ns)
                if not valid.all():
                    self.missing[group + key] = self.missing.get(group + key, 0) + int((~valid).sum())
                keep &= valid
        lacking = [name for name in self.joint_names if name not in self._seen]
        if lacking and ready:
            key = _JOINTS_PREFIX + _JOINTS_SEPARATOR.join(lacking)
            self.missing[key] = self.missing.get(key, 0) + ready
            keep[:] = False
        columns = {key: self._pop(key, ready)[keep] for key in self._rows}
        for key, values in interpolated[_JOINTS_PREFIX].items():
            joints = [self.joint_names.index(joint) for joint in key.split(_JOINTS_SEPARATOR)]
            for channel, part in zip(self._rows, np.split(values[keep], len(self._rows), axis=1), strict=True):
                if columns[channel].size:
                    columns[channel][:, joints] = part
        del self._stamps[:ready]
        if ready:
            self._taken_ns = int(stamps[ready - 1])
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
        """Return all samples that were not taken yet as one recording, with ``notices`` on how it was obtained.

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
        """Notice about the samples left out so far, if any."""
        channels = ", ".join(f"{key} ({count})" for key, count in self.missing.items())
        return (f"left out {self.dropped} samples without {channels}",) if self.dropped else ()

    def _stream(self, width: int) -> ChannelStream:
        return ChannelStream(width, late=self._late)

    def _order(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        """Column of each wanted joint in a message with ``names``; None if it has none of them.

        -1 stands for a joint that comes in another message.
        """
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
        oldest = _EARLIEST_NS if patient else int(stamps[-1]) - self._max_gap_ns - _MAX_LATENCY_NS
        ends = [max([oldest, *stream.stamps_ns[-1:]]) for stream in streams]
        return int(np.searchsorted(stamps, min(ends), side="right"))

    def _pop(self, channel: str, count: int) -> Array:
        if not count:
            return np.zeros((0, len(self.joint_names)))
        rows = np.concatenate(self._rows[channel])
        # One piece a sample, where late ones are put between them.
        self._rows[channel] = list(rows[count:, None]) if self._late else [rows[count:]]
        return rows[:count]
