"""Translation between the joint names of the URDF and other names in recordings and controllers."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from inertid_ros.config.robot import MarkerOptions
from inertid_ros.core.errors import RecordingError, first_few

POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")  # parts of the pose of a segment in recordings [m, 1]

_ANY = "*"
_SEPARATORS = "_-/."
_MAX_DIGITS = 18  # that order names; Python refuses numbers of thousands of digits


@dataclass(frozen=True)
class RecordedJoints:
    """Joints of a robot, and their names in joint states and commands.

    Inside the package joints have the names of the URDF. Names are translated when messages and files become
    recordings, and when commands are sent.

    Attributes
    ----------
    joints : names in the URDF; empty if the robot is unknown.
    names : map from names in recordings to names in the URDF. A pair may be a pattern with one ``*`` in each name,
        which stands for any text that the two names share. Names without ``*`` precede patterns; the first pattern that
        matches applies; names without a match stay unchanged.
    markers : markers of motion capture, whose columns are replaced by the poses of segments.
    """

    joints: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    markers: Mapping[str, MarkerOptions] = field(default_factory=dict)

    def urdf_names(self, recorded: Sequence[str], where: str) -> tuple[str, ...]:
        """Translate recorded names to URDF names; RecordingError that starts with ``where`` if two names map to one."""
        names = tuple(_translated(name, self.names) for name in recorded)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice and len(set(recorded)) == len(recorded):
            sources = " and ".join(source for source, name in zip(recorded, names, strict=True) if name == twice[0])
            raise RecordingError(f"{where}: {sources} are both mapped to {twice[0]}; correct robot.joint_names")
        return names

    def recorded(self, names: Sequence[str]) -> tuple[str, ...]:
        """Translate URDF names to names in recordings and in commands to controllers."""
        return tuple(_translated(name, self._inverse) for name in names)

    @cached_property
    def _inverse(self) -> Mapping[str, str]:
        inverse: dict[str, str] = {}
        for recorded, name in self.names.items():
            inverse.setdefault(name, recorded)
        return inverse

    def translations(self, recorded: Sequence[str]) -> str:
        """Message about translated names; empty without translations."""
        names = self.urdf_names(recorded, "joints")
        changed = [f"{name} is {new}" for name, new in zip(recorded, names, strict=True) if name != new]
        return f"{first_few(changed, 2)} by robot.joint_names" if changed else ""


def proposed_names(recorded: Sequence[str], joints: Sequence[str]) -> dict[str, str]:
    """Proposal for ``robot.joint_names`` if a recording lacks joints of the robot; may be empty.

    The proposal is one pattern if a pattern gives all joints. Otherwise it pairs single names, if both lists are
    equally long and the numbers in their names ascend. ``recorded`` are names that the robot does not have, ``joints``
    are joints that the recording lacks, in the order of the URDF.
    """
    if not joints or len(recorded) < len(joints):
        return {}
    for first in recorded if len(joints) > 1 else ():
        for pattern in _patterns(first, joints[0]):
            if {_translated(name, pattern) for name in recorded} >= set(joints):
                return pattern
    numbers = [[int("0" + re.sub(r"\D", "", name)[:_MAX_DIGITS]) for name in names] for names in (recorded, joints)]
    ordered = all(np.array_equal(np.argsort(row, kind="stable"), np.arange(len(row))) for row in numbers)
    return dict(zip(recorded, joints, strict=True)) if ordered and len(recorded) == len(joints) else {}


def _patterns(recorded: str, own: str) -> list[dict[str, str]]:
    """Two patterns: one replaces the beginning in which two names differ, the other the end."""
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
    """Name from the first match, names without ``*`` first; the name itself if there is no match."""
    if name in names and _ANY not in name:
        return names[name]
    for pattern, new in names.items():
        begin, star, end = pattern.partition(_ANY)
        if star and len(name) >= len(begin) + len(end) and name.startswith(begin) and name.endswith(end):
            return new.replace(_ANY, name[len(begin) : len(name) - len(end)])
    return name
