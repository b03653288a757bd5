"""What a recording holds: channels, length, steps of its stamps, and ranges of its joints."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.data.cleaning.as_measured import as_measured
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.stamp_checks import check_repairs

_GAP = 4.0  # periods
_OPTIONAL = ("velocity", "acceleration", "base_pose", "base_twist", "base_acceleration", "imu")


def recording_content(parts: Iterable[Recording]) -> dict[str, Any]:
    """Content of a recording, of a long one from its parts, of which one is in memory at a time.

    Parameters
    ----------
    parts : iterable of Recording
        Consecutive ones of one recording, or all of it.

    Returns
    -------
    dict
        Plain data, as ``inertid info --json`` prints it: positions in rad or m, efforts in N m or N, and times in
        seconds.
    """
    content = _Content()
    for part in parts:
        content.add(part)
    return content.plain()


class _Content:
    """Sums over the parts of a recording."""

    def __init__(self) -> None:
        self._parts: list[tuple[float, int]] = []  # usual step and samples of each
        self._first, self._last, self._gaps = 0.0, np.nan, 0
        self._steps, self._lowest, self._highest = np.array([np.inf, -np.inf]), np.array(np.inf), np.array(-np.inf)
        self._squares: Array = np.array(0.0)
        self._notices: dict[str, None] = {}

    def add(self, part: Recording) -> None:
        steps = np.diff(part.time)
        usual = float(np.median(steps))
        if self._parts:
            steps = np.append(steps, part.time[0] - self._last)
        else:
            self._first, self._recording = float(part.time[0]), part
        self._parts.append((usual, len(part)))
        self._last = float(part.time[-1])
        self._steps = np.array([min(self._steps[0], steps.min()), max(self._steps[1], steps.max())])
        self._gaps += int((steps > _GAP * usual).sum())
        self._lowest = np.minimum(self._lowest, part.position.min(axis=0))
        self._highest = np.maximum(self._highest, part.position.max(axis=0))
        self._squares = self._squares + np.sum(part.effort**2, axis=0)
        self._notices.update(dict.fromkeys((*part.notices, *map(str, check_repairs(as_measured(part))))))

    def plain(self) -> dict[str, Any]:
        recording, samples = self._recording, sum(count for _, count in self._parts)
        effort = np.sqrt(self._squares / samples)
        measured = ["position"] if np.isnan(effort).all() else ["position", "effort"]
        present = [channel for channel in _OPTIONAL if getattr(recording, channel) is not None]
        return {
            "name": recording.name,
            "samples": samples,
            "seconds": self._last - self._first,
            "rate_hz": 1.0 / float(np.median([usual for usual, _ in self._parts])),
            "shortest_step_s": self._steps[0],
            "longest_step_s": self._steps[1],
            "gaps": self._gaps,
            "channels": [*measured, *present, *(f"wrench/{frame}" for frame in recording.wrenches)],
            "notices": tuple(self._notices),
            "joints": [
                {
                    "name": name,
                    "lowest": self._lowest[i],
                    "highest": self._highest[i],
                    "rms_effort": None if np.isnan(effort[i]) else effort[i],
                }
                for i, name in enumerate(recording.joint_names)
            ],
        }
