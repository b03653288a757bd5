"""Synchronised samples from messages of joint states, wrenches and base motion, live or from a bag."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from inertid_ros.core.arrays import Array, Indices, IntArray, Mask, continuous_quaternions
from inertid_ros.core.errors import RecordingError

from .long_recording import Block, recording_from_blocks
from .messages import JOINT_CHANNELS, WIDTHS
from .recording import Recording

_WRENCH_WIDTH = 6
_EARLIEST_NS = -(2**63)
_TURN_TOLERANCE = 0.5  # rad; joints move less between two messages
_MAX_LATENCY_NS = 1_000_000_000  # longest wait for messages of a live channel


class JointsError(RecordingError):
    """A message lists other joints than the messages before it."""


class StampOrderError(RecordingError):
    """A header stamp repeats or goes back. Live recording drops the message and counts it; a bag is refused."""

    def __init__(self, where: str, last_ns: int, stamp_ns: int) -> None:
        super().__init__(
            f"{where}: time goes back or repeats (header.stamp {last_ns} ns, then {stamp_ns} ns);"
            " check the publisher's clock, or cut the recording there")


@dataclass
class ChannelStream:
    """Increasing stamps [ns] of one channel, and its values in pieces ``(k, width)``; ``k`` is 1 if ``late`` is not 0.

    A message that arrives up to ``late`` messages late is sorted in. Values up to ``taken_ns`` have already been
    returned; later messages must have later stamps.
    """

    width: int
    late: int = 0
    taken_ns: int = _EARLIEST_NS
    stamps_ns: list[int] = field(default_factory=list)
    pieces: list[Array] = field(default_factory=list)

    @property
    def values(self) -> Array:
        """All values, ``(N, width)``."""
        return np.concatenate([np.zeros((0, self.width)), *self.pieces])

    def extend(self, where: str, stamps_ns: IntArray, values: Array) -> None:
        """Add values ``(K, width)`` with increasing stamps ``(K,)``; ``where`` begins error messages.

        Only a single value may be late; several values must follow all earlier values.
        """
        count, first, row = len(self.stamps_ns), int(stamps_ns[0]), first_step_back(stamps_ns)
        place = bisect_left(self.stamps_ns, first)
        repeats = place < count and self.stamps_ns[place] == first
        late = self.late if len(stamps_ns) == 1 else 0
        if row or repeats or count - place > late or first <= self.taken_ns:
            newest = max([self.taken_ns, *self.stamps_ns[-1:]])
            raise StampOrderError(where, int(stamps_ns[row - 1]) if row else newest, int(stamps_ns[row]))
        self.stamps_ns[place:place] = stamps_ns.tolist()
        self.pieces[place:place] = list(values[:, None]) if self.late else [values]

    def at(self, stamps: IntArray, max_gap_ns: int, angles: int = 0) -> tuple[Array, Mask]:
        return interpolate(stamps, np.array(self.stamps_ns, dtype=np.int64), self.values, max_gap_ns, angles)

    def ends_within(self, stamps: IntArray, gap_ns: int, final: bool) -> Mask:
        """Flag stamps up to ``gap_ns`` before the first value and, if no more follow (``final``), after the last."""
        if not self.stamps_ns:
            return np.zeros(len(stamps), dtype=bool)
        before, after = self.stamps_ns[0] - stamps, stamps - self.stamps_ns[-1]
        return ((before > 0) & (before <= gap_ns)) | (final & (after > 0) & (after <= gap_ns))

    def drop(self, count: int) -> None:
        """Drop the first ``count`` values."""
        del self.stamps_ns[:count]
        self.pieces = self.pieces[count:] if self.late else [self.values[count:]]


def first_step_back(stamps: IntArray) -> int:
    """Row of the first stamp that is not later than its predecessor; 0 if all stamps increase."""
    if len(stamps) == 1:
        return 0
    return int(np.argmax(np.diff(stamps, prepend=stamps[0] - 1) <= 0))


def interpolate(stamps: IntArray, times: IntArray, values: Array, max_gap_ns: int,
        angles: int = 0) -> tuple[Array, Mask]:
    """Interpolate values ``(M, k)`` from times ``(M,)`` to stamps ``(N,)`` [ns], linearly, and flag the valid results.

    A result is valid if values lie within ``max_gap_ns`` on both sides of its stamp, or a value has exactly its stamp.
    The first ``angles`` columns may jump by a full turn, and then have the nearer value.
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
    change = values[after] - values[before]
    turns = np.abs(np.abs(change[:, :angles]) - 2 * np.pi) < _TURN_TOLERANCE
    share = np.broadcast_to(weight, change.shape).copy()
    share[:, :angles] = np.where(turns, np.round(share[:, :angles]), share[:, :angles])
    return np.where(exact[:, None], values[before], values[before] + share * change), valid


class RecordingAssembler:
    """Collect joint states, wrenches and base motion, and return synchronised blocks or a whole recording.

    ``joints``, or else the first message, defines the order of the joints; messages with another order are reordered.
    Each message with the first joint becomes a sample. All other messages (wrenches, motion of a free base, joints in
    separate messages, such as of a second arm) are interpolated linearly to the stamps of the samples. A sample is
    left out, and becomes a gap, if another channel has no measurement within ``max_gap_s`` before or after it. Topics
    do not begin and end together: samples up to ``max_gap_s`` outside of another channel are left out uncounted.

    Parameters
    ----------
    name : name of the source in messages, such as the bag's path.
    joints : joints to take; messages without these joints (a gripper on this topic) are skipped. Empty: joints of the
        first message.
    channels : further channels that every sample must have: ``wrench/<frame>``, ``base_pose``, ``base_twist``, ``imu``.
    max_gap_s : largest time between a sample and a measurement of another channel [s].
    expected : joints of the robot, as a hint: messages without any of these joints are skipped, all others are taken
        with all their joints.
    late : number of messages of a channel that may overtake another message, which is then put in order. The newest
        ``late`` samples are held back until the end.

    Attributes
    ----------
    joint_names : joints in the order of the samples; empty before the first message.
    messages : number of joint states so far; errors identify a joint state by this number.
    samples : samples so far; messages that only add joints to samples do not count.
    dropped, missing : samples counted as left out because of a missing channel: in all, and by channel.
    """

    def __init__(self, name: str = "recording", joints: Sequence[str] = (), channels: Sequence[str] = (),
            max_gap_s: float = 0.05, expected: Sequence[str] = (), late: int = 0) -> None:
        self.name = name
        self.joint_names = tuple(joints)
        self.samples = self.dropped = 0
        self.missing = Counter[str]()
        self._late = late
        self._expected = frozenset(expected)
        self._max_gap_ns = round(max_gap_s * 1e9)
        self._chosen = bool(joints)
        self._columns: dict[tuple[str, ...], Indices | None] = {}  # by the joints of a message
        self._seen: set[str] = set()  # joints in all messages so far
        self.messages = 0
        self._has_velocity: bool | None = None
        self._states: ChannelStream | None = None  # position, velocity, effort in messages with the first joint
        self._streams = {channel: self._stream(channel) for channel in channels}  # interpolated channels
        self._parts: dict[str, Indices] = {}  # columns of joints that come in separate messages

    def add_joint_states(self, names: Sequence[str], stamps_ns: ArrayLike, position: ArrayLike,
            velocity: ArrayLike = (), effort: ArrayLike = ()) -> bool:
        """Take one ``sensor_msgs/JointState``, or several with equal joints in the order of their stamps.

        Returns False if the messages lack all wanted joints.

        Raises StampOrderError: a stamp repeats or is too late; all messages are refused.
        Raises RecordingError: position or effort is missing, or lengths or joints do not fit; all messages are refused.

        Parameters
        ----------
        stamps_ns : int64 (N,), header stamps [ns].
        position, velocity, effort : array_like, shape (len(names),) or (N, len(names))
            Velocity may be empty, and effort too if wrenches or base motion are recorded.
        """
        stamps = np.atleast_1d(np.asarray(stamps_ns, dtype=np.int64))
        where = f"{self.name}: joint state {self.messages + 1}"
        wrong_stamp = f"{self.name}: joint state {self.messages + 1 + first_step_back(stamps)}"
        self.messages += len(stamps)
        columns = self._columns_of(where, tuple(names))
        if columns is None:
            return False
        self._seen.update(names)
        given = {"position": position, "velocity": velocity, "effort": effort}
        channels = [self._in_order(where, channel, given[channel], len(names), columns) for channel in JOINT_CHANNELS]
        rows = np.concatenate(channels, axis=1)
        if columns[0] < 0:  # joints that come in separate messages
            self._add_part(wrong_stamp, stamps, rows, np.flatnonzero(columns >= 0))
            return True
        has_velocity = np.size(velocity) > 0
        if self._has_velocity is not None and has_velocity != self._has_velocity:
            state = "has" if has_velocity else "lacks"
            raise RecordingError(f"{where} {state} velocity, unlike earlier messages; use one publisher per topic")
        if self._states is None:
            self._states = ChannelStream(len(JOINT_CHANNELS) * len(columns), self._late)
        self._states.extend(wrong_stamp, stamps, rows)
        self._has_velocity = has_velocity
        self.samples += len(stamps)
        return True

    def add(self, channel: str, stamps_ns: ArrayLike, values: ArrayLike) -> None:
        """Take one or several measurements of a further channel, in the order of their stamps.

        Raises StampOrderError: a stamp of this channel repeats or is too late; all measurements are refused.

        Parameters
        ----------
        channel : ``wrench/<frame>`` [N, N m], ``base_pose``, ``base_twist``, ``imu``, or ``command_position``,
            ``command_velocity`` or ``command_effort`` of the joints.
        stamps_ns : int64 (N,), header stamps [ns].
        values : array_like, shape (k,) or (N, k)
        """
        stream = self._streams.setdefault(channel, self._stream(channel))
        rows = np.atleast_2d(np.asarray(values, dtype=float))
        stream.width = rows.shape[1]  # commands have the width of the joints
        if channel == "base_pose":
            # A quaternion and its negative are one rotation; their mean is not a rotation.
            last = [piece[-1:] for piece in stream.pieces[-1:]]
            turned = continuous_quaternions(np.concatenate([*last, rows])[:, 3:])
            rows = np.hstack([rows[:, :3], turned[len(last) :]])
        stream.extend(f"{self.name}: {channel}", np.atleast_1d(np.asarray(stamps_ns, dtype=np.int64)), rows)

    def add_commands(self, joints: Sequence[str], stamps_ns: ArrayLike, values: Mapping[str, Array]) -> None:
        """Take commands ``(N, len(joints))`` by channel of joint states, as :meth:`add`; no command is NaN.

        Commands before the first joint state, and commands to other joints, are left out.

        Raises RecordingError: the commands are not of these joints.
        """
        count = values["position"].shape[1]
        if count not in (0, len(joints)):
            raise RecordingError(
                f"{self.name}: a command has {count} positions for {len(joints)} joints; set command_joints to the"
                " parameter joints of its controller")
        columns = np.array([joints.index(name) if name in joints else -1 for name in self.joint_names], dtype=np.intp)
        for channel, rows in values.items():
            if rows.shape[1] == len(joints) and (columns >= 0).any():
                self.add(f"command_{channel}", stamps_ns, np.where(columns < 0, np.nan, rows[:, columns]))

    def take(self, final: bool = False, patient: bool = False) -> Block | None:
        """Return the samples whose other channels have arrived, each sample once; None before the first joint state.

        ``final`` returns all remaining samples. Otherwise a sample waits for its other channels until stamps are about
        one second later, or without limit if ``patient``, because messages of a file come topic by topic.
        """
        if self._states is None:
            return None
        stamps = np.array(self._states.stamps_ns, dtype=np.int64)
        ready = len(stamps) if final else min(self._ready(stamps, patient), max(len(stamps) - self._late, 0))
        stamps, keep, dropped = stamps[:ready], np.ones(ready, dtype=bool), np.zeros(ready, dtype=bool)
        interpolated: dict[str, Array] = {}
        for channel, stream in self._streams.items():
            interpolated[channel], valid = stream.at(stamps, self._max_gap_ns, len(self._parts.get(channel, ())))
            missing = ~valid & ~stream.ends_within(stamps, self._max_gap_ns, final)
            self.missing += Counter({channel: int(missing.sum())})  # only positive counts stay
            keep &= valid
            dropped |= missing
        if lacking := [name for name in self.joint_names if name not in self._seen]:
            self.missing += Counter({f"joints {', '.join(lacking)}": ready})
            keep[:], dropped[:] = False, True
        interpolated = {channel: values[keep] for channel, values in interpolated.items()}
        joints = self._states.values[:ready].reshape(ready, len(JOINT_CHANNELS), len(self.joint_names))[keep]
        for channel, columns in self._parts.items():
            joints[:, :, columns] = interpolated[channel].reshape(len(joints), len(JOINT_CHANNELS), len(columns))
        if ready:
            self._states.drop(ready)
            self._states.taken_ns = int(stamps[-1])
            for stream in self._streams.values():  # interpolation still needs the last value before
                stream.drop(max(bisect_right(stream.stamps_ns, int(stamps[-1])) - 1, 0))
        self.dropped += int(dropped.sum())
        channels = dict(zip(JOINT_CHANNELS, np.moveaxis(joints, 1, 0), strict=True))
        if not self._has_velocity:
            del channels["velocity"]
        channels |= {channel: values for channel, values in interpolated.items() if channel not in self._parts}
        return Block(self.joint_names, stamps[keep], channels)

    def recording(self, notices: tuple[str, ...] = ()) -> Recording:
        """Return all samples that were not taken yet as one recording; ``notices`` describe its origin.

        Raises RecordingError: samples are missing or not usable; see :class:`Recording`.
        """
        block = self.take(final=True)
        if block is not None and not len(block):
            raise RecordingError(
                f"{self.name}: no sample of {', '.join(self.missing or self._streams)} within"
                f" {self._max_gap_ns * 1e-9:g} s of any joint state; check its topic and its clock")
        return recording_from_blocks(self.name, [block] if block else [], (*notices, *self.notices))

    @property
    def notices(self) -> tuple[str, ...]:
        """Notice about the samples left out so far, if any."""
        channels = ", ".join(f"{channel} ({count})" for channel, count in self.missing.items())
        return (f"left out {self.dropped} samples without {channels}",) if self.dropped else ()

    def _stream(self, channel: str) -> ChannelStream:
        return ChannelStream(WIDTHS.get(channel, _WRENCH_WIDTH), late=self._late)

    def _columns_of(self, where: str, names: tuple[str, ...]) -> Indices | None:
        """Column of each wanted joint in a message with ``names``; None if the message lacks all wanted joints.

        -1 stands for a joint that comes in another message.
        """
        if names in self._columns:
            return self._columns[names]
        if self._expected and self._expected.isdisjoint(names):
            self._columns[names] = None
            return None
        if len(set(names)) != len(names):
            raise RecordingError(f"{where}: name lists a joint twice ({', '.join(names)}); fix the publisher")
        if not self.joint_names:
            if not names:
                raise RecordingError(f"{where}: name is empty; record a joint_states topic that names its joints")
            self.joint_names = names
        if not self._chosen and set(names) != set(self.joint_names):
            raise JointsError(
                f"{where}: name holds {', '.join(names) or 'no joints'}, but earlier messages hold"
                f" {', '.join(self.joint_names)}; list the joints to take in topics.joints (joints of the recorder)")
        columns = np.array([names.index(name) if name in names else -1 for name in self.joint_names], dtype=np.intp)
        self._columns[names] = None if (columns < 0).all() else columns
        return self._columns[names]

    def _in_order(self, where: str, channel: str, given: ArrayLike, count: int, columns: Indices) -> Array:
        """Values ``(N, count)`` of messages in the order of the wanted joints, ``(N, n)``; NaN for missing joints."""
        values = np.atleast_2d(np.asarray(given, dtype=float))
        width = values.shape[1]
        if width == count:
            rows = values[:, columns]
            rows[:, columns < 0] = np.nan
            return rows
        # Equations of the base and of momentum do not need effort.
        may_lack = channel == "velocity" or (channel == "effort" and len(self._streams) > len(self._parts))
        if width == 0 and may_lack:
            return np.full((len(values), len(columns)), np.nan)
        if width == 0:
            raise RecordingError(f"{where}: {channel} is empty; record joint states with {channel} filled")
        raise RecordingError(f"{where}: {channel} has {width} values for {count} joints; fix the publisher")

    def _add_part(self, where: str, stamps: IntArray, rows: Array, columns: Indices) -> None:
        """Take rows ``(N, 3 n)`` of messages with the joints in ``columns``, which do not include the first joint."""
        channel = f"joints {', '.join(self.joint_names[column] for column in columns)}"
        if channel not in self._parts:
            self._parts[channel] = columns
            self._streams[channel] = ChannelStream(len(JOINT_CHANNELS) * len(columns), self._late)
        where = f"{where} of {self.joint_names[columns[0]]}"
        chosen = rows.reshape(len(stamps), len(JOINT_CHANNELS), -1)[:, :, columns]
        self._streams[channel].extend(where, stamps, chosen.reshape(len(stamps), -1))

    def _ready(self, stamps: IntArray, patient: bool) -> int:
        """Number of leading samples whose other channels have arrived or were awaited long enough."""
        if not self._streams or len(stamps) == 0:
            return len(stamps)
        oldest = _EARLIEST_NS if patient else int(stamps[-1]) - self._max_gap_ns - _MAX_LATENCY_NS
        ends = [max([oldest, *stream.stamps_ns[-1:]]) for stream in self._streams.values()]
        return int(np.searchsorted(stamps, min(ends), side="right"))
