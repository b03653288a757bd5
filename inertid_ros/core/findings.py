"""Findings: what a check saw in a recording or in a result, how grave it is, its likely cause and the remedy."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

CAUSES = {
    # the recording: samples
    "spikes": "single samples are far off the rest",
    "dropouts": "values are missing",
    "gaps": "the stamps show that samples were lost",
    "stuck_channel": "a channel repeats its last value",
    "coarse_channel": "a channel is quantised coarsely",
    "wrapped_angle": "the angle is wrapped at a full turn",
    "mixed_clocks": "stamps come from different clocks",
    "stamp_order": "stamps are out of order or repeat",
    "arrival_times": "times are those of arrival, not of measurement",
    "time_unit": "stamps are not in seconds",
    "short_recording": "the recording is too short",
    # the recording: whose it is, and in which units
    "position_unit": "positions are not in radians or metres",
    "position_offset": "the zero of the joint differs from the URDF's",
    "beyond_limits": "positions lie outside the limits of the URDF",
    "locked_joint_moves": "a joint that was said to be locked moves",
    "effort_sign": "the effort has the opposite sign",
    "effort_unit": "the effort is in another unit",
    "effort_current": "the effort is a motor current, or has the wrong gain",
    "undeclared_load": "the robot carries what the URDF does not know",
    "effort_exchange": "the efforts of joints are exchanged",
    "joint_exchange": "the names of joints are exchanged",
    "gravity_compensated": "gravity has been taken out of the effort",
    "gravity_direction": "gravity points elsewhere in the root frame",
    "no_effort": "the joint reports no usable effort",
    "delay": "effort and motion are reported of different instants",
    "coupling": "the effort follows the speed of another joint: their drives are coupled",
    # the motion
    "little_motion": "the joint hardly moves",
    "lockstep": "joints move in proportion to one another",
    "not_excited": "the motion cannot show all parameters",
    "unknown_floor": "the motion may meet a floor or table that nobody stated",
    # the result
    "mass_implausible": "the mass of a link is far from the URDF's",
    "friction_excluded": "friction of the URDF's <dynamics> is beyond the measured efforts",
    "parameter_implausible": "a parameter is beyond what such a joint can have",
    "little_excited": "the motion leaves much of the torque open",
    "border_reached": "a parameter lies at a border that was set for it",
    "inconsistent": "a body is not physically consistent",
    "not_optimal": "the solver stopped before the optimum",
    "worse_than_nothing": "the error is not below what is measured itself",
    "worse_than_urdf": "the error is not below that of the URDF as given",
    "above_noise": "the torque error is far above the noise of the effort",
    "does_not_generalise": "the error is much larger on held-out data than on the data fitted",
    "not_validated": "no other motion has been compared with the result",
    "held_out_not_new": "what was held out is the motion that was fitted",
}
"""Cause to one line about it; the only causes that findings may have."""


class Severity(IntEnum):
    """What follows from a finding, in ascending order."""

    NOTICE = 0
    """It is reported, nothing else."""
    CARE = 1
    """The result is to be used with care."""
    REJECT = 2
    """The result is not to be used."""
    REFUSE = 3
    """Nothing is fitted to the recording."""


@dataclass(frozen=True)
class Finding:
    """One finding of one check.

    Attributes
    ----------
    cause : str
        The likely cause, a key of :data:`CAUSES`.
    severity : Severity
        What follows from it.
    evidence : str
        What was found, where and by how much, as a clause that begins with its subject.
    remedy : str
        What to do, as an imperative; names the option that cures it where there is one.
    subjects : tuple of str
        Joints, links or contacts that it is about; empty where it is about all.
    recording : str
        Name of the recording; empty where it is about a result.

    Raises
    ------
    ValueError
        The cause is not in :data:`CAUSES`.
    """

    cause: str
    severity: Severity
    evidence: str
    remedy: str
    subjects: tuple[str, ...] = ()
    recording: str = ""

    def __post_init__(self) -> None:
        if self.cause not in CAUSES:
            raise ValueError(f"no cause '{self.cause}'")

    def content(self) -> dict[str, Any]:
        """Return it as plain data; ``message`` is the one-line message."""
        plain = {**asdict(self), "severity": self.severity.name.lower(), "subjects": list(self.subjects)}
        return {**plain, "message": str(self)}

    def __str__(self) -> str:
        where = f"{self.recording}: " if self.recording else ""
        return f"{where}{self.evidence} ({CAUSES[self.cause]}); {self.remedy}"


def subjects_of(findings: Iterable[Finding], cause: str) -> frozenset[str]:
    """Return the subjects of all findings of a cause."""
    return frozenset(subject for finding in findings if finding.cause == cause for subject in finding.subjects)
