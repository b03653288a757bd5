"""Files of a plan: plan.yaml, and ``trajectory_msgs/JointTrajectory`` as ``ros2 topic echo`` prints it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, FormatError
from inertid_ros.core.formats import read_yaml
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import MAX_KNOTS, Plan

_PLAN_FORMAT = "inertid_plan/1"
_LIMIT_FIELDS = ("lower", "upper", "velocity", "acceleration", "effort")
_MAX_PLAN_BYTES = 256 * 1024 * 1024
_PLAN_COMMENT = """\
# A motion for identification. SI: rad or m, per s, per s^2, N m or N. It starts and ends at rest.
# points: one row each, time [s], then position, velocity, acceleration of every joint in the order of joint_names;
# between the points the motion is the quintic that they define.
"""
_MESSAGE_CHANNELS = ("positions", "velocities", "accelerations")
_NANOSECONDS_PER_S = 10**9


def plan_text(plan: Plan) -> str:
    """Content of a plan.yaml; reading it gives the same numbers to the last bit."""
    limits = {name: getattr(plan.limits, name).tolist() for name in _LIMIT_FIELDS}
    head: dict[str, Any] = {
        "format": _PLAN_FORMAT,
        "kind": plan.motion_type,
        "seed": plan.seed,
        "model_hash": plan.model_hash,
        "condition_number": float(plan.condition_number),
        "duration": plan.duration,
        "joint_names": list(plan.joint_names),
        "limits": limits,
    }
    text = yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=1000)
    rows = np.column_stack([plan.time, plan.position, plan.velocity, plan.acceleration])
    points = "".join(f"  - [{', '.join(map(repr, row))}]\n" for row in rows.tolist())
    return f"{_PLAN_COMMENT}{text}points:\n{points}"


def joint_trajectory_text(plan: Plan) -> str:
    """A plan as the text of a message; times are rounded to nanoseconds."""
    head = {
        "header": {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""},
        "joint_names": list(plan.joint_names),
    }
    text: str = yaml.safe_dump(head, sort_keys=False, default_flow_style=None, width=1000)
    rows = zip(plan.position.tolist(), plan.velocity.tolist(), plan.acceleration.tolist(), strict=True)
    lines = ["points:\n"]
    for time, channels in zip(plan.time.tolist(), rows, strict=True):
        seconds, nano = divmod(round(time * _NANOSECONDS_PER_S), _NANOSECONDS_PER_S)
        named = zip(_MESSAGE_CHANNELS, channels, strict=True)
        values = "".join(f", {name}: [{', '.join(map(repr, row))}]" for name, row in named)
        lines.append(f"- {{time_from_start: {{sec: {seconds}, nanosec: {nano}}}{values}}}\n")
    return text + "".join(lines)


def load_motion(path: str | Path, limits: MotionLimits) -> Plan:
    """Read a plan, or a ``trajectory_msgs/JointTrajectory`` in YAML, to which ``limits`` apply since it has none.

    Raises
    ------
    ExcitationError
        No such file, neither of them, or a plan that :class:`.Plan` refuses.
    """
    content = _read(Path(path))
    if "format" not in content and {"joint_names", "points"} <= set(content):
        return _joint_trajectory(content, limits, path)
    return _plan(content, path)


def load_plan(path: str | Path) -> Plan:
    """Read a plan; errors as of :func:`load_motion`."""
    return _plan(_read(Path(path)), path)


def _plan(content: Mapping[str, Any], path: str | Path) -> Plan:
    if content.get("format") != _PLAN_FORMAT:
        raise ExcitationError(f"{path}: is not a plan (its format is not {_PLAN_FORMAT}); give a plan.yaml")
    try:
        names = tuple(str(name) for name in _list(content, "joint_names"))
        columns = content.get("limits")
        if not isinstance(columns, Mapping):
            raise ExcitationError("limits are missing")
        limits = MotionLimits(names, *(_numbers(_list(columns, key), f"limits.{key}") for key in _LIMIT_FIELDS))
        points = _list(content, "points")
        if not 2 <= len(points) <= MAX_KNOTS:
            raise ExcitationError(f"has {len(points)} points; give 2 to {MAX_KNOTS}")
        width = 1 + 3 * len(names)
        for index, row in enumerate(points):
            if not isinstance(row, list) or len(row) != width:
                raise ExcitationError(f"point {index} does not hold {width} numbers")
        rows = _numbers(points, "points")
        position, velocity, acceleration = np.split(rows[:, 1:], 3, axis=1)
        return Plan(
            names, rows[:, 0], position, velocity, acceleration, limits,
            str(content.get("kind", "")),
            str(content.get("model_hash", "")),
            _seed(content.get("seed", 0)),
            _single(content.get("condition_number", float("nan")), "condition_number"),
        )
    except ExcitationError as error:
        raise ExcitationError(f"{path}: {error}") from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_PLAN_BYTES:
            raise ExcitationError(f"{path}: larger than {_MAX_PLAN_BYTES // 2**20} MiB; this is not a plan")
        content = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExcitationError(f"{path}: no such plan file; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExcitationError(f"{path}: cannot be read ({error.__class__.__name__}); give a plan.yaml") from None
    except FormatError as error:
        raise ExcitationError(f"{path}: {error}; give a plan.yaml") from None
    if not isinstance(content, Mapping):
        raise ExcitationError(f"{path}: is not a plan (its format is not {_PLAN_FORMAT}); give a plan.yaml")
    return content


def _list(content: Mapping[str, Any], key: str) -> list[Any]:
    value = content.get(key)
    if not isinstance(value, list):
        raise ExcitationError(f"{key} is missing or not a list; plan again")
    return value


def _seed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ExcitationError("seed is not a whole number; plan again")
    return value


def _single(value: Any, what: str) -> float:
    numbers = _numbers(value, what)
    if numbers.shape:
        raise ExcitationError(f"{what} is not one number; plan again")
    return float(numbers)


def _numbers(value: Any, what: str) -> Array:
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ExcitationError(f"{what} does not hold numbers; plan again") from None


def _joint_trajectory(content: Mapping[str, Any], limits: MotionLimits, path: str | Path) -> Plan:
    """The plan of a JointTrajectory, with its joints in the order of ``limits``."""
    listed = content.get("joint_names")
    names = [str(name) for name in listed] if isinstance(listed, list) else []
    if sorted(names) != sorted(limits.joint_names):
        robot = list(limits.joint_names)
        raise ExcitationError(f"{path}: joints {names} are not those of the robot, {robot}; plan again")
    points = content.get("points")
    if not isinstance(points, list) or not 2 <= len(points) <= MAX_KNOTS:
        raise ExcitationError(f"{path}: holds no list of 2 to {MAX_KNOTS} points; plan again")
    order = [names.index(name) for name in limits.joint_names]
    time = np.array([_seconds(point, row, path) for row, point in enumerate(points)])
    position, velocity, acceleration = (
        np.array([_row(point, row, channel, len(names), path) for row, point in enumerate(points)])[:, order]
        for channel in _MESSAGE_CHANNELS
    )
    try:
        return Plan(limits.joint_names, time, position, velocity, acceleration, limits, "joint_trajectory")
    except ExcitationError as error:
        raise ExcitationError(f"{path}: {error}") from None


def _seconds(point: Any, row: int, path: str | Path) -> float:
    since = point.get("time_from_start") if isinstance(point, Mapping) else None
    try:
        return float(since["sec"]) + float(since["nanosec"]) / _NANOSECONDS_PER_S  # type: ignore[index]
    except (TypeError, KeyError, ValueError, OverflowError):
        raise ExcitationError(f"{path}: point {row} has no time_from_start with sec and nanosec; plan again") from None


def _row(point: Mapping[str, Any], row: int, channel: str, width: int, path: str | Path) -> Array:
    values = point.get(channel)
    try:
        numbers = np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(0)
    if numbers.shape != (width,):
        raise ExcitationError(
            f"{path}: point {row} has no {width} {channel}; a motion needs position, velocity and acceleration"
        )
    return numbers
