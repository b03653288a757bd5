"""Streams of messages to a recording: the one way from topics, live or in a bag, to synchronised samples."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

from .base_messages import WIDTHS
from .recording import Recording

_log = logging.getLogger(__name__)
_NOTHING = "holds no joint states; record the joint_states topic while the robot moves"
_EMPTY = np.zeros(0)
_LATENCY_NS = 1_000_000_000  # what is this late does not come any more


class StampOrderError(RecordingError):
    """A header stamp repeats or goes back. Live recording counts and drops the message; a bag is refused."""


@dataclass(frozen=True)
class Block:
    """Synchronised samples, a row each, in the order of their stamps.

    Attributes
    ----------
    joint_names: ``n`` names.
    stamps_ns: ``(N,)`` int64, header stamps of the joint states.
    position, effort: ``(N, n)``.
    velocity: ``(N, n)``; None where the robot does not report it.
    wrenches: frame to ``(N, 6)`` force and torque at the same stamps.
    base: motion of a free base, ``base_pose (N, 7)``, ``base_twist (N, 6)``, ``imu (N, 6)``, where it is recorded.
    """

    joint_names: tuple[str, ...]
    stamps_ns: NDArray[np.int64]
    position: Array
    velocity: Array | None
    effort: Array
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    base: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.stamps_ns)


@dataclass
class _Stream:
    """Stamps and values of one channel that is not the joints'."""

    width: int
    stamps_ns: list[int] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)

    def add(self, where: str, stamp_ns: int, values: Array) -> None:
        if self.stamps_ns and stamp_ns <= self.stamps_ns[-1]:
            raise StampOrderError(
                f"{where}: time goes back or repeats (header.stamp {self.stamps_ns[-1]} ns, then {stamp_ns} ns);"
                " check the publisher's clock, or cut the recording there"
            )
        self.stamps_ns.append(stamp_ns)
        self.values.append(values)

    def at(self, stamps: NDArray[np.int64], max_gap_ns: int) -> tuple[Array, NDArray[np.bool_]]:
        """Interpolated, and where it is known."""
        times = np.array(self.stamps_ns, dtype=np.int64)
        return interpolate(stamps, times, np.array(self.values).reshape(len(times), self.width), max_gap_ns)


class RecordingAssembler:
    """Collects joint states and wrenches and gives synchronised blocks, or a whole recording.

    Joints keep the order of the first message; messages that list the same joints in another order are reordered.
    Wrenches and the motion of a free base are interpolated linearly to the joint-state stamps; a joint state that has
    no sample of one of them within ``max_wrench_gap_s`` before and after it is left out, which later reads as a gap.

    Parameters
    ----------
    name: what error messages call the source, such as the bag's path.
    joints: joints to take; messages with none of them (a gripper on the same topic) are skipped. Empty: those of the
        first message.
    wrench_frames: frames that every sample must have a wrench for.
    max_wrench_gap_s: see above.
    expected: joints of the robot, as a hint: messages with none of them are skipped, others are taken whole.
    base: channels of a free base that every sample must have, of ``base_pose``, ``base_twist``, ``imu``.
    """

    def __init__(
        self,
        name: str = "recording",
        joints: Sequence[str] = (),
        wrench_frames: Sequence[str] = (),
        max_wrench_gap_s: float = 0.05,
        expected: Sequence[str] = (),
        base: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._expected = frozenset(expected)
        self.joint_names = tuple(joints)
        self._max_gap_ns = round(max_wrench_gap_s * 1e9)
        self._chosen = bool(joints)
        self._orders: dict[tuple[str, ...], NDArray[np.intp] | None] = {}
        self._messages = 0
        self._last_ns: int | None = None
        self._has_velocity: bool | None = None
        self._stamps: list[int] = []
        self._rows: dict[str, list[Array]] = {"position": [], "velocity": [], "effort": []}
        self._wrenches = {frame: _Stream(6) for frame in wrench_frames}
        self._base = {channel: _Stream(WIDTHS[channel]) for channel in base}
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
        """Take one ``sensor_msgs/JointState``; False where it has none of our joints. Not kept where it raises.

        Raises
        ------
        StampOrderError: the stamp is not after the one before.
        RecordingError: position or effort missing, lengths or joints that do not fit; names the message.
        """
        self._messages += 1
        order = self._order(tuple(names))
        if order is None:
            return False
        where = f"{self.name}: joint state {self._messages}"
        values = {"position": position, "velocity": velocity, "effort": effort}
        rows = {key: self._row(where, key, value, len(names), order) for key, value in values.items()}
        has_velocity = len(rows["velocity"]) > 0
        if self._has_velocity is not None and has_velocity != self._has_velocity:
            state = "has" if has_velocity else "lacks"
            raise RecordingError(f"{where} {state} velocity, unlike those before; use one publisher per topic")
        if self._last_ns is not None and stamp_ns <= self._last_ns:
            raise StampOrderError(
                f"{where}: time goes back or repeats (header.stamp {self._last_ns} ns, then {stamp_ns} ns);"
                " check the publisher's clock, or cut the recording there"
            )
        self._has_velocity, self._last_ns = has_velocity, stamp_ns
        self._stamps.append(stamp_ns)
        for key, row in rows.items():
            self._rows[key].append(row)
        return True

    def add_wrench(self, frame: str, stamp_ns: int, force: ArrayLike, torque: ArrayLike) -> None:
        """Take one ``geometry_msgs/WrenchStamped`` of a frame.

        Raises
        ------
        StampOrderError: the stamp is not after the one before of this frame.
        """
        stream = self._wrenches.setdefault(frame, _Stream(6))
        wrench = np.concatenate([np.asarray(force, dtype=float), np.asarray(torque, dtype=float)])
        stream.add(f"{self.name}: wrench/{frame}", stamp_ns, wrench)

    def add_base(self, channel: str, stamp_ns: int, values: Array) -> None:
        """Take one measurement of the base, for ``base_pose``, ``base_twist`` or ``imu``.

        Raises
        ------
        StampOrderError: the stamp is not after the one before of this channel.
        """
        stream = self._base.setdefault(channel, _Stream(WIDTHS[channel]))
        if channel == "base_pose" and stream.values and values[3:] @ stream.values[-1][3:] < 0:
            values = np.concatenate([values[:3], -values[3:]])  # the same rotation; a mean with its negative is none
        stream.add(f"{self.name}: {channel}", stamp_ns, values)

    def take(self, final: bool = False) -> Block | None:
        """Samples whose wrenches are all known by now, each given once; all that are left when ``final``.

        Returns None before the first joint state.
        """
        if not self.joint_names or self._has_velocity is None:
            return None
        stamps = np.array(self._stamps, dtype=np.int64)
        ready = len(stamps) if final else self._ready(stamps)
        keep = np.ones(ready, dtype=bool)
        found: dict[str, dict[str, Array]] = {}
        for group, streams in (("wrench/", self._wrenches), ("", self._base)):
            found[group] = {}
            for key, stream in streams.items():
                found[group][key], known = stream.at(stamps[:ready], self._max_gap_ns)
                if not known.all():
                    self.missing[group + key] = self.missing.get(group + key, 0) + int((~known).sum())
                keep &= known
        columns = {key: self._pop(key, ready)[keep] for key in self._rows}
        del self._stamps[:ready]
        self._forget_streams(stamps[ready - 1] if ready else None)
        self.dropped += int(ready - keep.sum())
        return Block(
            self.joint_names,
            stamps[:ready][keep],
            columns["position"],
            columns["velocity"] if self._has_velocity else None,
            columns["effort"],
            {key: values[keep] for key, values in found["wrench/"].items()},
            {key: values[keep] for key, values in found[""].items()},
        )

    def recording(self, notices: tuple[str, ...] = ()) -> Recording:
        """Everything that was not taken yet as one recording, with ``notices`` of how it was obtained.

        Raises
        ------
        RecordingError: there is nothing, or it is not usable; see :class:`Recording`.
        """
        block = self.take(final=True)
        if block is None or (len(block) == 0 and self.dropped == 0):
            raise RecordingError(f"{self.name}: {_NOTHING}")
        if len(block) == 0:
            raise RecordingError(
                f"{self.name}: no sample of {', '.join(self.missing)} within {self._max_gap_ns * 1e-9:g} s of any joint"
                " state; check its topic and its clock"
            )
        if self.dropped:
            parts = ", ".join(f"{key} ({count})" for key, count in self.missing.items())
            notices = (*notices, f"left out {self.dropped} samples without {parts}")
        return recording_from_blocks(self.name, [block], notices)

    def _order(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        """Column of each of our joints in a message with ``names``; None where it has none of them."""
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
        order = None if missing else np.array([names.index(name) for name in self.joint_names], dtype=np.intp)
        skipped = self._chosen and len(missing) == len(self.joint_names)
        if not skipped and (missing or (not self._chosen and len(names) != len(self.joint_names))):
            raise RecordingError(
                f"{where}: name holds {', '.join(names) or 'nothing'}, but earlier or wanted are"
                f" {', '.join(self.joint_names)}; list the joints to take in topics.joints"
            )
        self._orders[names] = order
        return order

    def _row(self, where: str, channel: str, value: ArrayLike, count: int, order: NDArray[np.intp]) -> Array:
        row = np.asarray(value, dtype=float)
        if row.shape == (count,):
            return row[order]
        if row.size == 0 and channel == "velocity":
            return _EMPTY
        if row.size == 0 and channel == "effort" and (self._wrenches or self._base):
            return np.full(len(order), np.nan)  # base rows and momentum do without
        if row.size == 0:
            raise RecordingError(f"{where}: {channel} is empty; record joint states with {channel} filled")
        raise RecordingError(f"{where}: {channel} has {row.size} values for {count} joints; fix the publisher")

    def _ready(self, stamps: NDArray[np.int64]) -> int:
        """Number of leading samples that nothing that is yet to come can change."""
        streams = [*self._wrenches.values(), *self._base.values()]
        if not streams or len(stamps) == 0:
            return len(stamps)
        oldest = int(stamps[-1]) - self._max_gap_ns - _LATENCY_NS
        ends = [max([oldest, *stream.stamps_ns[-1:]]) for stream in streams]
        return int(np.searchsorted(stamps, min(ends), side="right"))

    def _pop(self, channel: str, count: int) -> Array:
        rows = self._rows[channel][:count]
        del self._rows[channel][:count]
        return np.array(rows).reshape(count, -1) if count else np.zeros((0, len(self.joint_names)))

    def _forget_streams(self, stamp: np.int64 | None) -> None:
        """Drop what lies before the last wrench at or before ``stamp``; later samples still need that one."""
        if stamp is None:
            return
        for stream in (*self._wrenches.values(), *self._base.values()):
            first = max(int(np.searchsorted(stream.stamps_ns, stamp, side="right")) - 1, 0)
            del stream.stamps_ns[:first]
            del stream.values[:first]


def interpolate(
    stamps: NDArray[np.int64], times: NDArray[np.int64], values: Array, max_gap_ns: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Values of a stream ``(M,)``, ``(M, k)`` at other stamps ``(N,)``, linearly, and whether they are known.

    Known means a sample within ``max_gap_ns`` on both sides, or one with exactly the same stamp.
    """
    out, known = np.zeros((len(stamps), values.shape[1])), np.zeros(len(stamps), dtype=bool)
    if len(times) == 0 or len(stamps) == 0:
        return out, known
    after = np.searchsorted(times, stamps, side="left")
    exact = (after < len(times)) & (times[np.minimum(after, len(times) - 1)] == stamps)
    before = np.clip(np.where(exact, after, after - 1), 0, len(times) - 1)
    after = np.minimum(after, len(times) - 1)
    inside = (stamps >= times[before]) & (stamps <= times[after])
    known = inside & (stamps - times[before] <= max_gap_ns) & (times[after] - stamps <= max_gap_ns)
    span = np.maximum(times[after] - times[before], 1)
    weight = ((stamps - times[before]) / span)[:, None]
    out = np.where(exact[:, None], values[before], values[before] + weight * (values[after] - values[before]))
    return out, known


def recording_from_blocks(name: str, blocks: Iterable[Block], notices: tuple[str, ...] = ()) -> Recording:
    """One recording of consecutive blocks; time counts from the first stamp, ``(ns - ns0) * 1e-9``.

    Joints without an effort interface (NaN throughout) are left out, unless there are wrenches, which can do without;
    a velocity that is NaN throughout for some joint counts as not measured. Both with a notice.

    Raises
    ------
    RecordingError: blocks of different joints or channels, or not usable; see :class:`Recording`.
    """
    blocks = [block for block in blocks if len(block)]
    if not blocks:
        raise RecordingError(f"{name}: {_NOTHING}")
    first = blocks[0]
    for block in blocks[1:]:
        same = (block.velocity is None) == (first.velocity is None) and set(block.wrenches) == set(first.wrenches)
        same = same and set(block.base) == set(first.base)
        if block.joint_names != first.joint_names or not same:
            raise RecordingError(f"{name}: joints or channels change within the recording; start a new recording")
    stamps = np.concatenate([block.stamps_ns for block in blocks])
    position, effort = (np.concatenate([getattr(block, key) for block in blocks]) for key in ("position", "effort"))
    velocity = None
    if first.velocity is not None:
        velocity = np.concatenate([block.velocity for block in blocks if block.velocity is not None])
    silent = np.isnan(effort).all(axis=0) & (not (first.wrenches or first.base))
    if silent.all():
        raise RecordingError(f"{name}: effort is NaN for every joint; enable the effort state interface of the driver")
    if silent.any():
        lost = ", ".join(joint for joint, gone in zip(first.joint_names, silent, strict=True) if gone)
        notices = (*notices, f"left out joints whose effort is NaN throughout: {lost}")
    joints = tuple(joint for joint, gone in zip(first.joint_names, silent, strict=True) if not gone)
    if velocity is not None and np.isnan(velocity[:, ~silent]).all(axis=0).any():
        notices = (*notices, "velocity is NaN throughout for some joint and is not used")
        velocity = None
    for notice in notices:
        _log.warning("%s: %s", name, notice)
    return Recording(
        joint_names=joints,
        time=(stamps - stamps[0]) * 1e-9,
        position=position[:, ~silent],
        effort=effort[:, ~silent],
        velocity=None if velocity is None else velocity[:, ~silent],
        wrenches={frame: np.concatenate([block.wrenches[frame] for block in blocks]) for frame in first.wrenches},
        **{channel: np.concatenate([block.base[channel] for block in blocks]) for channel in first.base},
        name=name,
        notices=notices,
    )
