"""A plan as ``trajectory_msgs/JointTrajectory`` in YAML, the text that ``ros2 topic echo`` prints and ``pub`` takes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.motion_limits import MotionLimits

from .plan import MAX_KNOTS, Plan

_CHANNELS = ("positions", "velocities", "accelerations")
_NANO = 10**9


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
        seconds, nano = divmod(round(time * _NANO), _NANO)
        named = zip(_CHANNELS, channels, strict=True)
        values = "".join(f", {name}: [{', '.join(map(repr, row))}]" for name, row in named)
        lines.append(f"- {{time_from_start: {{sec: {seconds}, nanosec: {nano}}}{values}}}\n")
    return text + "".join(lines)


def parse_joint_trajectory(content: Mapping[str, Any], limits: MotionLimits, path: str | Path) -> Plan:
    """The plan that a JointTrajectory holds, with its joints in the order of ``limits``.

    Parameters
    ----------
    content : mapping
        Parsed content of the file.
    limits : MotionLimits
        Limits of the robot; a JointTrajectory has none.

    Raises
    ------
    ExcitationError
        Other joints, a point without position, velocity and acceleration, or not a plan (see :class:`.Plan`).
    """
    given = content.get("joint_names")
    names = [str(name) for name in given] if isinstance(given, list) else []
    if sorted(names) != sorted(limits.joint_names):
        own = list(limits.joint_names)
        raise ExcitationError(f"{path}: joints {names} are not those of the robot, {own}; plan again")
    points = content.get("points")
    if not isinstance(points, list) or not 2 <= len(points) <= MAX_KNOTS:
        raise ExcitationError(f"{path}: holds no list of 2 to {MAX_KNOTS} points; plan again")
    order = [names.index(name) for name in limits.joint_names]
    time = np.array([_seconds(point, row, path) for row, point in enumerate(points)])
    position, velocity, acceleration = (
        np.array([_row(point, row, channel, len(names), path) for row, point in enumerate(points)])[:, order]
        for channel in _CHANNELS
    )
    try:
        return Plan(limits.joint_names, time, position, velocity, acceleration, limits, "joint_trajectory")
    except ExcitationError as error:
        raise ExcitationError(f"{path}: {error}") from None


def _seconds(point: Any, row: int, path: str | Path) -> float:
    since = point.get("time_from_start") if isinstance(point, Mapping) else None
    try:
        return float(since["sec"]) + float(since["nanosec"]) / _NANO  # type: ignore[index]
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
