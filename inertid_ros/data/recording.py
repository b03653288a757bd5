"""Recording: the raw channels of one experiment, exactly as they were measured, and the order of samples by stamp."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array, Indices, IntArray, Mask
from inertid_ros.core.errors import RecordingError, one_line
from inertid_ros.robot.recorded_joints import RecordedJoints

WRENCH_PREFIX = "wrench/"  # prefix of the names of wrench channels
COMMAND_CHANNELS = ("command_position", "command_velocity", "command_effort")
OPTIONAL_CHANNELS = (
    "velocity", "acceleration", "base_pose", "base_twist", "base_acceleration", "imu", *COMMAND_CHANNELS)
_BASE_WIDTHS = {"base_pose": 7, "base_twist": 6, "base_acceleration": 6, "imu": 6}
LOST_SAMPLE_PERIODS = 2.0
"""A longer step between stamps means lost samples; jitter of up to half a period on either side makes no such step."""
MAX_OTHER_CLOCK_SHARE = 0.02  # share of the stamps; with more, the user must decide which clock is right
_MIN_STEP_S = 0.5e-9  # stamps of ROS are whole nanoseconds
LATE_MESSAGES = 3  # periods by which messages of several threads overtake one another
_OTHER_CLOCK_STEP_RATIO = 1000.0  # step over the sum of all other steps; pauses in a recording are shorter
_COUNTS = ("late", "repeated", "elsewhere", "total", "stale")


@dataclass(frozen=True)
class StampRepairs:
    """Repairs of the stamps of a recording or of one channel, counted in samples.

    ``arrival_jitter`` is the standard deviation of the steps between times of arrival (NaN for header stamps), and
    ``scatter`` is the standard deviation of the removed jitter (0 if stamps were not made even), both relative to the
    period. The motion reveals ``lost`` samples and ``joins``.
    """

    late: int = 0  # put in order: stamps that went back by less than a few periods
    repeated: int = 0  # left out: a repeated stamp
    elsewhere: int = 0  # left out: stamps that go back further or come from another clock
    total: int = 0  # stamps before the repair
    arrival_jitter: float = float("nan")
    stale: int = 0  # left out: the previous state under a new stamp
    scatter: float = 0.0
    lost: int = 0  # samples missing between even stamps, found by the motion
    strange: int = 0  # left out: states of another publisher, which repeats one position
    joins: tuple[float, ...] = ()  # first stamp of every log appended to another log, after inserted gaps [s]

    def __add__(self, other: "StampRepairs") -> "StampRepairs":
        sums = {key: getattr(self, key) + getattr(other, key) for key in _COUNTS}
        return replace(self, **sums, scatter=max(self.scatter, other.scatter))

    @property
    def too_many_elsewhere(self) -> bool:
        """True if the user must decide which clock is right."""
        return self.elsewhere > MAX_OTHER_CLOCK_SHARE * self.total

    @property
    def count(self) -> int:
        """Number of wrong stamps."""
        return self.late + self.repeated + self.elsewhere


def in_order(stamps: IntArray | Array) -> tuple[Indices, StampRepairs]:
    """Sort samples by their stamps ``(N,)``, and leave out repeated stamps and stamps of another clock.

    Returns indices ``(K,)`` of the remaining samples by increasing stamp, and the repairs.
    """
    one_clock = on_one_clock(stamps)
    regular, rest = np.flatnonzero(one_clock), np.flatnonzero(~one_clock)
    if not len(rest) or len(regular) < 2:
        return regular, StampRepairs(elsewhere=len(rest), total=len(stamps))
    # Stamps a few periods off their neighbours are of messages that were overtaken; all others are of another clock.
    slack = (LATE_MESSAGES * np.median(np.diff(stamps[regular]))).astype(stamps.dtype)
    place = np.searchsorted(regular, rest)
    before, after = stamps[regular[np.maximum(place - 1, 0)]], stamps[regular[np.minimum(place, len(regular) - 1)]]
    near = rest[(stamps[rest] >= before - slack) & (stamps[rest] <= after + slack)]
    chosen = np.sort(np.concatenate([regular, near]))
    chosen = chosen[np.argsort(stamps[chosen], kind="stable")]
    new = np.concatenate([[True], np.diff(stamps[chosen]) > 0])
    repeated, elsewhere = int((~new).sum()), len(rest) - len(near)
    return chosen[new], StampRepairs(len(near) - repeated, repeated, elsewhere, len(stamps))


def on_one_clock(stamps: IntArray | Array) -> Mask:
    """Flag the stamps ``(N,)`` that belong to the clock of the majority.

    The flagged stamps are the longest increasing subsequence, so that a stamp that goes back or lies far ahead does
    not remove other stamps. Stamps at an end that lie far off (a zero before the first stamp, another epoch after the
    last) are not flagged.
    """
    flags = np.ones(len(stamps), dtype=bool) if (np.diff(stamps) > 0).all() else _longest_increasing(stamps)
    rows = np.flatnonzero(flags)
    steps = np.diff(stamps[rows]).astype(float)
    if len(steps) > 2:
        jump = int(np.argmax(steps))
        if steps[jump] > _OTHER_CLOCK_STEP_RATIO * (steps.sum() - steps[jump]):
            minority = rows[: jump + 1] if 2 * (jump + 1) < len(rows) else rows[jump + 1 :]
            flags[minority] = False
    return flags


def _longest_increasing(stamps: IntArray | Array) -> Mask:
    """Flag ``(N,)`` the longest strictly increasing subsequence, by patience sorting."""
    tails: list[float] = []
    last: list[int] = []
    before = np.full(len(stamps), -1)
    for index, stamp in enumerate(stamps.tolist()):
        length = bisect_left(tails, stamp)
        if length == len(tails):
            tails.append(stamp)
            last.append(index)
        else:
            tails[length], last[length] = stamp, index
        before[index] = last[length - 1] if length else -1
    keep = np.zeros(len(stamps), dtype=bool)
    index = last[-1] if last else -1
    while index >= 0:
        keep[index] = True
        index = int(before[index])
    return keep


@dataclass(frozen=True)
class Recording:
    """Raw, synchronised channels. Optional channels are None (or absent from ``wrenches``) if they were not recorded.

    Lost values may be NaN or infinite; preparation replaces them. Values beyond 1e30 become infinite, below 1e-30 zero.

    Raises RecordingError: shapes do not fit, a stamp is not finite, or stamps go back or advance by less than 1 ns.

    Attributes
    ----------
    joint_names : ``n`` names, any order; none if only wrenches, such as of a force-torque sensor, were recorded.
    time : (N,), strictly increasing, from the header stamps [s].
    position : (N, n), joint position [rad or m].
    effort : (N, n), joint torque or force, joint side [N m or N]; NaN throughout for joints without a sensor.
    velocity, acceleration : ndarray, shape (N, n), optional
    wrenches : map from frames to force [N] and torque [N m] acting on the robot, in that frame, ``(N, 6)``.
    base_pose : (N, 7), x y z [m], qx qy qz qw.
    base_twist : (N, 6), linear then angular, in the base frame [m/s, rad/s].
    base_acceleration : ndarray, shape (N, 6), optional
        Derivative of the twist in the base frame, as in Pinocchio (not the acceleration of a point).
    imu : (N, 6), specific force [m/s^2] and angular velocity [rad/s] in the axes of an inertial measurement unit on the
        base; at rest the force points up.
    command_position, command_velocity, command_effort : ndarray, shape (N, n), optional
        Commands to the drives [rad or m, per s, N m or N].
    name : name in messages (a file or topic name).
    notices : circumstances that matter to users of the recording, such as a bag that was not closed; one line each.
    continued : whether a longer recording has a part before this part, and whether it has a part after this part.
    context : number of samples from the neighbouring parts at the start and at the end, for the memory of filters.
    """

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    effort: Array
    velocity: Array | None = None
    acceleration: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    base_pose: Array | None = None
    base_twist: Array | None = None
    base_acceleration: Array | None = None
    imu: Array | None = None
    command_position: Array | None = None
    command_velocity: Array | None = None
    command_effort: Array | None = None
    name: str = "recording"
    notices: tuple[str, ...] = ()
    repairs: StampRepairs = StampRepairs()
    continued: tuple[bool, bool] = (False, False)
    context: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        names = tuple(str(name) for name in self.joint_names)
        time = self._array("time", self.time, ())
        if not names and not self.wrenches:
            raise RecordingError(f"{self.name}: joint_names is empty; record joint_states with names")
        if duplicates := sorted(name for name, count in Counter(names).items() if count > 1):
            raise RecordingError(f"{self.name}: joint_names lists {duplicates} twice; rename or drop one")
        if unprintable := [name for name in (*names, *self.wrenches) if one_line(name) != name]:
            raise RecordingError(f"{self.name}: the name '{unprintable[0]}' cannot be printed; rename it")
        checked: dict[str, object] = {"joint_names": names, "time": time}
        for channel in ("position", "effort", *OPTIONAL_CHANNELS):
            value = getattr(self, channel)
            if value is not None:
                checked[channel] = self._array(channel, value, (_BASE_WIDTHS.get(channel, len(names)),))
            elif channel not in OPTIONAL_CHANNELS:
                raise RecordingError(f"{self.name}: {channel} is missing; record joint_states with {channel} filled")
        checked["wrenches"] = {
            str(frame): self._array(f"{WRENCH_PREFIX}{frame}", wrench, (6,)) for frame, wrench in self.wrenches.items()}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if len(time) < 2:
            raise RecordingError(f"{self.name}: holds {len(time)} samples; record at least a few seconds")
        step = np.diff(time)
        if (small := step < _MIN_STEP_S).any():
            row = int(np.argmax(small)) + 1
            raise RecordingError(
                f"{self.name}: time goes back or repeats at sample {row} ({time[row - 1]} s to {time[row]} s); check"
                " the clock of the publisher, cut the recording there, or give the time in seconds")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """Span of the stamps [s]."""
        return float(self.time[-1] - self.time[0])

    @property
    def period(self) -> float:
        """Median step of the stamps [s]."""
        return float(np.median(np.diff(self.time)))

    def columns(self, joints: Iterable[str]) -> list[int]:
        """Columns of recorded joints."""
        return [self.joint_names.index(name) for name in joints]

    def select(self, rows: Mask) -> "Recording":
        """Recording of the samples flagged in ``rows (N,)``."""
        ahead, behind = self.context
        context = int(rows[:ahead].sum()), int(rows[len(rows) - behind :].sum())
        return replace(self, **split_wrenches({key: x[rows] for key, x in self.channels.items()}), context=context)

    @property
    def channels(self) -> dict[str, Array]:
        """Arrays with one row per sample, including time, by their key in an npz file."""
        arrays = {key: getattr(self, key) for key in ("time", "position", "effort", *OPTIONAL_CHANNELS)}
        arrays |= {f"{WRENCH_PREFIX}{frame}": wrench for frame, wrench in self.wrenches.items()}
        return {key: values for key, values in arrays.items() if values is not None}

    @property
    def own_rows(self) -> slice:
        """Rows without the context of neighbouring parts."""
        return slice(self.context[0], len(self) - self.context[1])

    def _array(self, channel: str, value: object, tail: tuple[int, ...]) -> Array:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise RecordingError(f"{self.name}: {channel} does not hold numbers; export it as float64") from None
        wanted = (len(np.atleast_1d(np.asarray(self.time))), *tail)
        if array.shape != wanted:
            raise RecordingError(f"{self.name}: {channel} has shape {array.shape}, expected {wanted}; fix the export")
        if channel == "time" and not (real := np.abs(array) < 1e20).all():  # nanoseconds since 1970 are below 1e19
            row = int(np.argmin(real))
            raise RecordingError(f"{self.name}: time is {array[row]} at sample {row}; cut it out or export it again")
        array = array.copy()
        if channel != "time":  # no measurements, and powers of them would overflow or underflow
            array[np.abs(array) > 1e30] = np.inf
            array[np.abs(array) < 1e-30] = 0.0
        array.flags.writeable = False
        return array


def split_wrenches(channels: Mapping[str, Array]) -> dict[str, Any]:
    """Fields of a :class:`Recording` from channels, given by their keys in an npz file."""
    frames = {key: key.removeprefix(WRENCH_PREFIX) for key in channels if key.startswith(WRENCH_PREFIX)}
    wrenches = {frame: channels[key] for key, frame in frames.items()}
    return {**{key: values for key, values in channels.items() if key not in frames}, "wrenches": wrenches}


def renamed(recording: Recording, joints: RecordedJoints) -> Recording:
    """Rename the joints to their names in the URDF, with a notice if names change.

    Raises RecordingError: two joints would get equal names.
    """
    notice = joints.translations(recording.joint_names)
    if not notice:
        return recording
    names = joints.urdf_names(recording.joint_names, recording.name)
    return replace(recording, joint_names=names, notices=(*recording.notices, notice))
