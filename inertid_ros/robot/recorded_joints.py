"""What recordings and controllers call the joints of a robot, where they have other names than the URDF."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from inertid_ros.core.errors import RecordingError

_ANY = "*"
_SEPARATORS = "_-/."


@dataclass(frozen=True)
class RecordedJoints:
    """Joints of a robot, and their names in joint states and commands.

    Inside the package joints have the names of the URDF. They are translated where messages and files become
    recordings, and where commands leave.

    Attributes
    ----------
    joints : tuple of str
        Names in the URDF; empty where the robot is not known.
    names : mapping of str to str
        Name in recordings to name in the URDF. Both may hold one ``*``, which stands for the same text in both. A name
        without ``*`` goes before patterns, these go in their order; other names are the same in both.
    """

    joints: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def own(self, recorded: Sequence[str], where: str) -> tuple[str, ...]:
        """Names in the URDF of names in recordings; ``where`` they stand begins messages.

        Raises
        ------
        RecordingError
            Two names become one.
        """
        own = tuple(_translated(name, self.names) for name in recorded)
        twice = sorted({name for name in own if own.count(name) > 1})
        if twice and len(set(recorded)) == len(recorded):
            same = " and ".join(other for other, name in zip(recorded, own, strict=True) if name == twice[0])
            raise RecordingError(f"{where}: {same} both become {twice[0]}; correct robot.joint_names")
        return own

    def recorded(self, own: Sequence[str]) -> tuple[str, ...]:
        """Names in recordings, and of commands to controllers, of names in the URDF."""
        return tuple(_translated(name, self._inverse) for name in own)

    @cached_property
    def _inverse(self) -> Mapping[str, str]:
        inverse: dict[str, str] = {}
        for recorded, own in self.names.items():
            inverse.setdefault(own, recorded)
        return inverse

    def told(self, recorded: Sequence[str]) -> str:
        """A line on names that are translated; empty where none is."""
        own = self.own(recorded, "joints")
        changed = [f"{name} is {new}" for name, new in zip(recorded, own, strict=True) if name != new]
        others = f" and {len(changed) - 2} others by robot.joint_names" if len(changed) > 2 else " by robot.joint_names"
        return ", ".join(changed[:2]) + others if changed else ""


def proposed_names(recorded: Sequence[str], joints: Sequence[str]) -> dict[str, str]:
    """Names, or one pattern, by which a recording might hold the joints that it lacks; empty where none fits.

    Parameters
    ----------
    recorded : sequence of str
        Names in the recording that are no names of the robot.
    joints : sequence of str
        Joints of the robot that the recording lacks, in the order of the URDF.

    Returns
    -------
    dict of str to str
        Value of ``robot.joint_names``: a pattern where one gives all joints in their order, single names where their
        number is the same and the numbers in them do not contradict their order.
    """
    if not joints or len(recorded) < len(joints):
        return {}
    for first in recorded if len(joints) > 1 else ():
        for pattern in _patterns(first, joints[0]):
            if {_translated(name, pattern) for name in recorded} >= set(joints):
                return pattern
    numbers = [[int("0" + re.sub(r"\D", "", name)) for name in names] for names in (recorded, joints)]
    ordered = all(np.array_equal(np.argsort(each, kind="stable"), np.arange(len(each))) for each in numbers)
    return dict(zip(recorded, joints, strict=True)) if ordered and len(recorded) == len(joints) else {}


def _patterns(recorded: str, own: str) -> list[dict[str, str]]:
    """Patterns that replace the beginning, or the end, in which two names differ."""
    same = len(os.path.commonprefix([recorded[::-1], own[::-1]]))
    begins = [name[: len(name) - same] for name in (recorded, own)]
    if same and recorded[-same] in _SEPARATORS:
        begins = [begin + recorded[-same] for begin in begins]
    same = len(os.path.commonprefix([recorded, own]))
    ends = [name[same:] for name in (recorded, own)]
    if same and recorded[same - 1] in _SEPARATORS:
        ends = [recorded[same - 1] + end for end in ends]
    return [{begins[0] + _ANY: begins[1] + _ANY}, {_ANY + ends[0]: _ANY + ends[1]}]


def _translated(name: str, names: Mapping[str, str]) -> str:
    """The name of the first entry that fits, without ``*`` before those with; else the same name."""
    if name in names and _ANY not in name:
        return names[name]
    for pattern, new in names.items():
        begin, star, end = pattern.partition(_ANY)
        if star and len(name) >= len(begin) + len(end) and name.startswith(begin) and name.endswith(end):
            return new.replace(_ANY, name[len(begin) : len(name) - len(end)])
    return name
