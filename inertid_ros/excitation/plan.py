"""Motion as dense knots, for inspection, storage, checks and execution.

Its files are plan.yaml, and ``trajectory_msgs/JointTrajectory`` in the format of ``ros2 topic echo``.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, FormatError
from inertid_ros.core.formats import read_text, read_yaml
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import Motion, Trajectory, knot_times
from inertid_ros.excitation.quintic import PiecewiseQuintic

MAX_KNOTS = 100_000
_MAX_DURATION_S = 2**31 - 1  # largest time in a trajectory message
_REST = 1e-6  # rad/s and rad/s^2; largest velocity and acceleration at the ends of a plan
_PLAN_FORMAT = "inertid_plan/1"
_LIMIT_FIELDS = ("lower", "upper", "velocity", "acceleration", "effort")
_MAX_PLAN_BYTES = 256 * 1024 * 1024
_PLAN_COMMENT = """\
# Motion for identification. SI: rad or m, per s, per s^2, N m or N. It starts and ends at rest.
# points: one row per point: time [s], then position, velocity, acceleration of every joint in the order of joint_names;
# between two points the motion is the quintic through both.
"""
_MESSAGE_CHANNELS = ("positions", "velocities", "accelerations")
_NANOSECONDS_PER_S = 10**9


@dataclass(frozen=True)
class Plan:
    """Motion that starts and ends at rest; the knots define quintics between them.

    Attributes
    ----------
    time : (N,), times of the knots from zero, strictly increasing [s].
    position, velocity, acceleration : (N, n), at the knots [rad or m, per s, per s^2].
    limits : limits for which the motion was planned.
    motion_type : ``fourier``, ``cycloidal``, ``bspline``, ``combinations``, ``ramp``, ``approach`` or
        ``joint_trajectory``.
    model_hash : ``RobotModel.hash`` of the kinematics for which the motion was planned; empty if unknown.
    condition_number : condition number of the base regressor along the motion, with columns of unit norm (unscaled for
        a floating base); NaN if not computed.

    Raises
    ------
    ExcitationError
        Values not finite or of wrong shape, duplicate joint, too many knots, invalid times, or motion at an end.
    """

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    limits: MotionLimits
    motion_type: str = "fourier"
    model_hash: str = ""
    seed: int = 0
    condition_number: float = float("nan")

    def __post_init__(self) -> None:
        names = self.joint_names
        duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
        if not names or duplicates:
            raise ExcitationError(f"plan: joint names are empty or repeat {duplicates}; name every joint once")
        if self.limits.joint_names != names:
            raise ExcitationError("plan: joints of the limits differ from the joints of the plan; use the same order")
        count = len(np.atleast_1d(self.time))
        if not 2 <= count <= MAX_KNOTS:
            raise ExcitationError(f"plan: has {count} points; give 2 to {MAX_KNOTS}")
        for channel in ("time", "position", "velocity", "acceleration"):
            self._freeze(channel, (count,) if channel == "time" else (count, len(names)))
        self._check_time()
        self._check_rest()

    @property
    def duration(self) -> float:
        return float(self.time[-1])

    @property
    def breaks(self) -> Array:
        return self.time

    @property
    def start(self) -> Array:
        return self.position[0]

    @cached_property
    def curve(self) -> PiecewiseQuintic:
        return PiecewiseQuintic(self.time, self.position, self.velocity, self.acceleration)

    def sample(self, t: Array) -> Motion:
        return self.curve.sample(t)

    def ordered(self, names: Sequence[str]) -> "Plan":
        """Copy with the joints ``names``, in their order."""
        order = [self.joint_names.index(name) for name in names]
        channels = {key: getattr(self, key)[:, order] for key in ("position", "velocity", "acceleration")}
        return replace(self, joint_names=tuple(names), limits=self.limits.ordered(names), **channels)

    def _freeze(self, channel: str, shape: tuple[int, ...]) -> None:
        array = np.array(getattr(self, channel), dtype=float)
        if array.shape != shape:
            raise ExcitationError(f"plan: {channel} has shape {array.shape}, expected {shape}")
        bad = ~np.isfinite(array)
        if bad.any():
            place = np.argwhere(bad)[0]
            joint = f", joint '{self.joint_names[place[1]]}'" if len(place) > 1 else ""
            raise ExcitationError(f"plan: {channel} is not finite at point {place[0]}{joint}; plan again")
        array.flags.writeable = False
        object.__setattr__(self, channel, array)

    def _check_time(self) -> None:
        if self.time[0] != 0:
            raise ExcitationError(f"plan: time begins at {self.time[0]:g} s; shift it to begin at 0")
        step = np.diff(self.time)
        if (step <= 0).any():
            row = int(np.argmax(step <= 0)) + 1
            raise ExcitationError(f"plan: time does not increase at point {row} ({self.time[row]:g} s); plan again")
        if self.duration > _MAX_DURATION_S:
            raise ExcitationError(f"plan: ends after {self.duration:g} s; a trajectory has at most {_MAX_DURATION_S} s")

    def _check_rest(self) -> None:
        for row, where in ((0, "start"), (-1, "end")):
            for channel in ("velocity", "acceleration"):
                values = np.abs(getattr(self, channel)[row])
                joint = int(np.argmax(values))
                if values[joint] > _REST:
                    raise ExcitationError(
                        f"plan: joint '{self.joint_names[joint]}' is not at rest at the {where} ({channel}"
                        f" {getattr(self, channel)[row][joint]:g}); a plan starts and ends at rest")


def plan_of(
        trajectory: Trajectory, limits: MotionLimits, *, knot_step: float = 0.02, motion_type: str = "ramp",
        model_hash: str = "", seed: int = 0) -> Plan:
    """Plan of a motion, with knots at most ``knot_step`` [s] apart and at every break of its third derivative."""
    time = knot_times(trajectory, knot_step)
    if len(time) > MAX_KNOTS:
        raise ExcitationError(f"plan: would have {len(time)} points; shorten the motion or widen the knot step")
    q, v, a = trajectory.sample(time)
    for array in (v, a):  # the ends are at rest in theory; remove rounding errors
        for row in (0, -1):
            array[row] = np.where(np.abs(array[row]) < _REST, 0.0, array[row])
    return Plan(limits.joint_names, time, q, v, a, limits, motion_type, model_hash, seed)


def slower(plan: Plan, scale: float) -> Plan:
    """Copy of a plan on the same path with the speed scaled by ``0 < scale <= 1``."""
    if not 0 < scale <= 1:
        raise ExcitationError(f"speed scale is {scale}; give 0 < scale <= 1")
    if scale == 1:
        return plan
    velocity, acceleration = plan.velocity * scale, plan.acceleration * scale**2
    return replace(plan, time=plan.time / scale, velocity=velocity, acceleration=acceleration)


def joined(before: Plan, after: Plan) -> Plan:
    """Join two plans; metadata and limits come from ``after``, with position limits widened by ``before``."""
    gap = np.abs(after.start - before.position[-1])
    joint = int(np.argmax(gap))
    if gap[joint] > 1e-9:
        raise ExcitationError(
            f"join: joint '{after.joint_names[joint]}' jumps by {gap[joint]:g} between plans; add a ramp between them")
    lower = np.minimum(before.limits.lower, after.limits.lower)
    upper = np.maximum(before.limits.upper, after.limits.upper)
    time = np.concatenate([before.time, before.duration + after.time[1:]])
    channels = ((plan.position, plan.velocity, plan.acceleration) for plan in (before, after))
    q, v, a = (np.concatenate([first, second[1:]]) for first, second in zip(*channels, strict=True))
    limits = replace(after.limits, lower=lower, upper=upper)
    return replace(after, time=time, position=q, velocity=v, acceleration=a, limits=limits)


def plan_text(plan: Plan) -> str:
    """Content of a plan.yaml; reading it restores the numbers exactly."""
    head: dict[str, Any] = {
        "format": _PLAN_FORMAT, "kind": plan.motion_type, "seed": plan.seed, "model_hash": plan.model_hash,
        "condition_number": float(plan.condition_number), "duration": plan.duration,
        "joint_names": list(plan.joint_names),
        "limits": {name: getattr(plan.limits, name).tolist() for name in _LIMIT_FIELDS}}
    text = yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=1000)
    rows = np.column_stack([plan.time, plan.position, plan.velocity, plan.acceleration])
    points = "".join(f"  - [{', '.join(map(repr, row))}]\n" for row in rows.tolist())
    return f"{_PLAN_COMMENT}{text}points:\n{points}"


def joint_trajectory_text(plan: Plan, joint_names: Sequence[str] = (), effort: Array | None = None) -> str:
    """A plan as a ``JointTrajectory`` message in YAML; times are rounded to nanoseconds.

    Parameters
    ----------
    joint_names : names in the message, in the order of the plan; empty keeps the plan's names.
    effort : (N, n), effort of every point [N m or N].
    """
    names = list(joint_names or plan.joint_names)
    head = {"header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}, "joint_names": names}
    lines = [yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=1000), "points:\n"]
    channels = dict(zip(_MESSAGE_CHANNELS, (plan.position, plan.velocity, plan.acceleration), strict=True))
    if effort is not None:
        channels["effort"] = effort
    for time, *rows in zip(plan.time.tolist(), *(channel.tolist() for channel in channels.values()), strict=True):
        seconds, nano = divmod(round(time * _NANOSECONDS_PER_S), _NANOSECONDS_PER_S)
        values = "".join(f", {name}: [{', '.join(map(repr, row))}]" for name, row in zip(channels, rows, strict=True))
        lines.append(f"- {{time_from_start: {{sec: {seconds}, nanosec: {nano}}}{values}}}\n")
    return "".join(lines)


def load_motion(path: str | Path, limits: MotionLimits | None = None) -> Plan:
    """Read a plan.yaml; with ``limits``, a ``trajectory_msgs/JointTrajectory`` in YAML is also accepted."""
    try:
        content = _read(Path(path))
        if limits is not None and "format" not in content and {"joint_names", "points"} <= set(content):
            return _from_joint_trajectory(content, limits)
        return _from_plan(content)
    except ExcitationError as error:
        raise ExcitationError(f"{path}: {error}") from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = read_yaml(read_text(path, _MAX_PLAN_BYTES))
    except FileNotFoundError:
        raise ExcitationError("no such plan file; check the path") from None
    except OSError as error:
        raise ExcitationError(f"cannot be read ({error.strerror}); give a plan.yaml") from None
    except FormatError as error:
        raise ExcitationError(f"{error}; give a plan.yaml") from None
    return content if isinstance(content, Mapping) else {}


def _from_plan(content: Mapping[str, Any]) -> Plan:
    if content.get("format") != _PLAN_FORMAT:
        raise ExcitationError(f"is not a plan (its format is not {_PLAN_FORMAT}); give a plan.yaml")
    names = tuple(str(name) for name in _list(content, "joint_names"))
    columns = content.get("limits")
    if not isinstance(columns, Mapping):
        raise ExcitationError("limits are missing")
    limits = MotionLimits(names, *(_numbers(_list(columns, key), f"limits.{key}") for key in _LIMIT_FIELDS))
    points, width = _points(content), 1 + 3 * len(names)
    for index, row in enumerate(points):
        if not isinstance(row, list) or len(row) != width:
            raise ExcitationError(f"point {index} does not hold {width} numbers")
    rows = _numbers(points, "points")
    seed, condition = content.get("seed", 0), _numbers(content.get("condition_number", np.nan), "condition_number")
    if type(seed) is not int:  # YAML's true is not a number
        raise ExcitationError("seed is not a whole number; plan again")
    if condition.shape:
        raise ExcitationError("condition_number is not a single number; plan again")
    kind, model_hash = (str(content.get(key, "")) for key in ("kind", "model_hash"))
    q, v, a = np.split(rows[:, 1:], 3, axis=1)
    return Plan(names, rows[:, 0], q, v, a, limits, kind, model_hash, seed, float(condition))


def _from_joint_trajectory(content: Mapping[str, Any], limits: MotionLimits) -> Plan:
    """Plan of a JointTrajectory, with its joints in the order of ``limits``."""
    names = [str(name) for name in _list(content, "joint_names")]
    if sorted(names) != sorted(limits.joint_names):
        raise ExcitationError(f"joints {names} differ from the robot's joints {list(limits.joint_names)}; plan again")
    order = [names.index(name) for name in limits.joint_names]
    time, knots = [], []
    for row, point in enumerate(_points(content)):
        try:
            since = point["time_from_start"]
            time.append(float(since["sec"]) + float(since["nanosec"]) / _NANOSECONDS_PER_S)
        except (TypeError, KeyError, ValueError, OverflowError):
            raise ExcitationError(f"point {row} has no time_from_start with sec and nanosec; plan again") from None
        for channel in _MESSAGE_CHANNELS:
            try:
                knots.append(np.array(point.get(channel), dtype=float))
            except (TypeError, ValueError, OverflowError):
                knots.append(np.zeros(0))
            if knots[-1].shape != (len(names),):
                raise ExcitationError(
                    f"point {row} needs {len(names)} {channel}; a motion has position, velocity and acceleration")
    q, v, a = np.array(knots).reshape(len(time), 3, -1).swapaxes(0, 1)[:, :, order]
    return Plan(limits.joint_names, np.array(time), q, v, a, limits, "joint_trajectory")


def _points(content: Mapping[str, Any]) -> list[Any]:
    points = _list(content, "points")
    if not 2 <= len(points) <= MAX_KNOTS:
        raise ExcitationError(f"has {len(points)} points; give 2 to {MAX_KNOTS}")
    return points


def _list(content: Mapping[str, Any], key: str) -> list[Any]:
    value = content.get(key)
    if not isinstance(value, list):
        raise ExcitationError(f"{key} is missing or not a list; plan again")
    return value


def _numbers(value: Any, what: str) -> Array:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ExcitationError(f"{what} does not hold numbers; plan again") from None
