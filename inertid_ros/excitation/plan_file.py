"""Files of a plan: plan.yaml, and ``trajectory_msgs/JointTrajectory`` in the format of ``ros2 topic echo``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, FormatError
from inertid_ros.core.formats import read_text, read_yaml
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import MAX_KNOTS, Plan

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


def plan_text(plan: Plan) -> str:
    """Content of a plan.yaml; reading it restores the numbers exactly."""
    head: dict[str, Any] = {
        "format": _PLAN_FORMAT, "kind": plan.motion_type, "seed": plan.seed, "model_hash": plan.model_hash,
        "condition_number": float(plan.condition_number), "duration": plan.duration,
        "joint_names": list(plan.joint_names),
        "limits": {name: getattr(plan.limits, name).tolist() for name in _LIMIT_FIELDS},
    }
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
                    f"point {row} needs {len(names)} {channel}; a motion has position, velocity and acceleration"
                )
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
