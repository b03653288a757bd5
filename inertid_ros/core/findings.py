"""Findings of checks, and the table of their causes and remedies that messages and documentation are made from."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any


@dataclass(frozen=True)
class Cause:
    """Cause that findings may have.

    Attributes
    ----------
    meaning : one clause, without punctuation at its end.
    remedies : Mapping[str, str]
        Case to an imperative; messages fill in the words in braces. The case is empty for the remedy of all messages.
    """

    meaning: str
    remedies: Mapping[str, str]


def _cause(meaning: str, remedy: str = "", **cases: str) -> Cause:
    return Cause(meaning, {**({"": remedy} if remedy else {}), **cases})


_OMITTED = "these samples are left out"
_RATES = "check units and signs of the rates, and the inertia of the wheels"

SYMPTOMS: Mapping[str, Mapping[str, Cause]] = {
    "Recorded values are missing, jump, repeat, or have steps": {
        "spikes": _cause("single samples are far off the rest", f"{_OMITTED}; check wiring, driver and network"),
        "dropouts": _cause("values are missing", f"{_OMITTED}; check driver and network"),
        "gaps": _cause(
            "the stamps show that samples were lost",
            "short gaps are bridged and left out of the fit, long ones split the recording; record on the robot's own"
            " computer, or over a faster network"),
        "stuck_channel": _cause("a channel repeats its last value", f"{_OMITTED}; read the sensor at its own rate"),
        "coarse_channel": _cause("a channel is quantised coarsely", "record a larger motion or a finer channel"),
        "wrapped_angle": _cause(
            "the angle is wrapped at a full turn", "full turns are added, nothing needs to be done"),
    },
    "Stamps are out of order, in another unit, or the recording is too short": {
        "mixed_clocks": _cause("stamps come from different clocks", "stamp all messages by one clock"),
        "stamp_order": _cause(
            "stamps are out of order or repeat",
            "publish from one thread, and no faster than the clock of the stamps runs"),
        "repeated_states": _cause(
            "states are published again before there are new ones",
            f"{_OMITTED}; publish at the rate at which the driver reads its hardware",
            positions="they are filtered as they are; read positions at the rate at which they are published",
        ),
        "arrival_times": _cause(
            "times are those of arrival, not of measurement", "let the publisher stamp its messages",
            scatter="even ones are taken; let the driver stamp states when it reads them"),
        "time_unit": _cause("stamps are not in seconds", "divide the stamps by {factor} (they look like {unit})"),
        "short_recording": _cause(
            "the recording is too short", "record longer, so that every joint goes there and back several times"),
    },
    "Positions do not fit the URDF": {
        "position_unit": _cause(
            "positions are not in radians or metres", "convert the positions to {wanted} (they look like {unit})",
            by_effort="convert the positions to radians"),
        "position_offset": _cause(
            "the zero of the joint differs from the URDF's",
            "subtract {turn} degrees from the positions of {joint}, or correct its <origin> in the URDF"),
        "beyond_limits": _cause(
            "positions lie outside the limits of the URDF", "correct the limits of the URDF or the positions"),
        "beyond_velocity": _cause(
            "a joint moves faster than the URDF allows",
            "correct the limit in the URDF (limits.velocity: {{{joint}: {speed}}} for planning), or the stamps"),
        "limits_unit": _cause(
            "limits of the URDF look like another unit",
            "multiply them by {factor} in the URDF; for planning, {option} replaces them"),
        "locked_joint_moves": _cause(
            "a joint that is locked, by robot.locked_joints or because others mimic it, moves",
            "take {joint} out of robot.locked_joints, correct its position there, or hold it while recording",
            mimicked="hold {joint} while recording, or delete <mimic> of {followers} from the URDF and record them"
            " too: joints that mimic others are not identified with them"),
    },
    "Efforts do not fit the URDF: the error of the URDF as given is about 100 % or above, or masses come out absurd": {
        "effort_sign": _cause(
            "the effort has the opposite sign", "set robot.effort_scale to {scales}, or correct the driver"),
        "effort_unit": _cause("the effort is in another unit", "set robot.effort_scale to {scales}"),
        "effort_current": _cause(
            "the effort is a motor current, or has the wrong gain",
            "set robot.effort_scale to gear ratio times torque constant of every joint",
            estimated="set robot.effort_scale to gear ratio times torque constant of every joint (about {scales})"),
        "undeclared_load": _cause(
            "the robot carries what the URDF does not know",
            "the result holds it; add it to the URDF, so that collisions and limits know it too"),
        "effort_exchange": _cause(
            "the efforts of joints are exchanged",
            "exchange the efforts of {one} and {other} in the driver or the recording"),
        "joint_exchange": _cause(
            "the names of joints are exchanged", "exchange the names {one} and {other} in the driver or the recording",
            by_limits="exchange the names {one} and {other} if they are exchanged, or correct the limits of the URDF"),
        "gravity_compensated": _cause(
            "gravity has been taken out of the effort",
            "record the whole torque of the joints, or set robot.gravity to [0, 0, 0] and trust no mass"),
        "lacks_weight": _cause(
            "the effort of a joint is far below the weight that it carries",
            "set robot.effort_scale of {joint} (gear ratio times torque constant), or, where a spring or counterweight"
            " carries it, hold it with robot.locked_joints"),
        "gravity_direction": _cause("gravity points elsewhere in the root frame", "set robot.gravity to {vector}"),
        "no_effort": _cause(
            "the joint reports no usable effort",
            "their equations are left out, so that their drives, and bodies after them, are known less well or not at"
            " all; enable their effort interface, or lock them (robot.locked_joints)"),
        "delay": _cause(
            "effort and motion are reported of different instants",
            "stamp both alike; identify.remove_delay takes out small delays",
            too_large="stamp both alike, and check signs of effort; nothing was shifted",
            removed="it was shifted back (identify.remove_delay); controllers meet the delay all the same"),
        "counterbalance": _cause(
            "a spring or counterweight carries a part of what is on the joint",
            "declare it: robot.terms: {{balance: {{joint: {joint}, shape: counterbalance}}}}, or its formula;"
            " otherwise the bodies hold it"),
        "coupling": _cause(
            "the effort follows the speed of another joint: their drives are coupled",
            "declare the drive: robot.couplings: {drive}"),
    },
    "Parameters stay at the URDF's values, or their intervals are wide": {
        "little_motion": _cause("the joint hardly moves", "excite it too, or lock it with robot.locked_joints"),
        "lockstep": _cause(
            "joints move in proportion to one another",
            "move each joint with frequencies or phases of its own (inertid excite plans such a motion)"),
        "not_excited": _cause(
            "the motion cannot show all parameters",
            positions="widen limits.position, which is narrowest for '{joint}', where there is space",
            motion="plan a motion of half the base frequency and twice the duration (excitation.base_frequency_hz,"
            " excitation.duration_s), or from another start (--start)",
            room="give the motion more room where it is safe ({option}), or plan from another start (--start)",
            ranges="give more range where there is space (limits.position, limits.position_margin, the URDF's limits),"
            " or expect values near the URDF's for them",
            speeds="give more speed where the robot has it (limits.velocity, limits.acceleration), or expect values"
            " near the URDF's for them",
            geometry="expect values near the URDF's for them, or leave them out of the criterion"
            " (excitation.kept_parameters)"),
    },
    "A plan is made, but nobody has said what is below the robot": {
        "unknown_floor": _cause(
            "the motion may meet a floor or table that nobody stated",
            "set excitation.floor_m, or excitation.mounting: none where nothing is below the robot"),
    },
    "Single parameters are absurd, or the solver did not finish": {
        "mass_implausible": _cause(
            "the mass of a link is far from the URDF's",
            "check the efforts of the joints before it (unit, sign, gain: robot.effort_scale), and in the URDF its"
            " mass and what is mounted on it",
            total="check the unit of the efforts (robot.effort_scale) and the masses of the URDF"),
        "mass_open": _cause(
            "the data do not show a mass so well that it counts",
            "do not read this mass by itself, since others predict the torque as well; where it is known, state it"
            " (constraints.mass)"),
        "friction_excluded": _cause(
            "friction of the URDF's <dynamics> is beyond the measured efforts",
            "it was not used; correct or drop damping and friction of these joints in the URDF"),
        "load_elsewhere": _cause(
            "a known load does not act as it was declared",
            "correct com of this load (robot.loads), in the frame of its link: gains of drives follow from it"),
        "effort_without_friction": _cause(
            "efforts may be computed by a model, not measured",
            "record what torque sensors or motor currents tell, not the torque that a controller commands or expects:"
            " its model is all that it holds; nothing is wrong in a simulation without friction"),
        "parameter_implausible": _cause(
            "a parameter is beyond what such a joint can have",
            "leave stiffness out of robot.drive_terms, unless the joint has a spring"),
        "little_excited": _cause(
            "the motion leaves much of the torque open",
            "record a motion that moves these joints more (inertid excite --prior plans one)"),
        "border_reached": _cause(
            "a parameter lies at a border that was set for it",
            "check constraints.{option}: the data wants this parameter beyond it",
            open="check constraints.{option}: the URDF's value is beyond it, and the data do not show this parameter"),
        "inconsistent": _cause("a body is not physically consistent", "use identify.estimator=consistent"),
        "not_optimal": _cause(
            "the solver stopped before the optimum",
            "use the default solver and regularizer, and look for constraints that contradict one another"),
    },
    "The error stays large": {
        "worse_than_nothing": _cause(
            "the error is not below what is measured itself", "check sign and units of effort and position",
            momentum=_RATES),
        "worse_than_urdf": _cause(
            "the error is not below that of the URDF as given",
            "check the effort of this joint, and record a motion that moves it more",
            all_joints="record a richer motion, and check that these recordings are of this robot", momentum=_RATES),
        "above_noise": _cause(
            "the torque error is far above the noise of the effort",
            "look for what the model lacks at this joint: gain of its effort (robot.effort_scale), coupled drives"
            " (robot.couplings), delay (identify.remove_delay)", momentum=_RATES),
        "does_not_generalise": _cause(
            "the error is much larger on held-out data than on the data fitted",
            "fit more and different motions, and check that the recordings are of one robot and payload"),
    },
    'Errors are small, and the verdict is "use with care" all the same': {
        "not_validated": _cause(
            "no other motion has been compared with the result",
            "record a second, different motion and give it with --validate"),
        "held_out_not_new": _cause("what was held out is the motion that was fitted", "validate with another motion"),
    },
}
"""Symptom to its causes, by name; docs/guides/bad_result.md is made from it."""

CAUSES: Mapping[str, Cause] = {name: cause for causes in SYMPTOMS.values() for name, cause in causes.items()}


def remedy_for(cause: str, case: str = "", **values: object) -> str:
    """Remedy of a cause, with ``values`` in place of its words in braces.

    Raises
    ------
    KeyError
        Unknown cause or case, or a word without a value.
    """
    return CAUSES[cause].remedies[case].format(**values)


class Severity(IntEnum):
    """Consequence of a finding, in ascending order."""

    NOTICE = 0  # it is reported, nothing else
    CARE = 1  # the result is to be used with care
    REJECT = 2  # the result is not to be used
    REFUSE = 3  # nothing is fitted to the recording


@dataclass(frozen=True)
class Finding:
    """Result of a check that found something.

    Attributes
    ----------
    cause : likely cause, a key of :data:`CAUSES`; any other is a ValueError.
    severity : Severity
    evidence : what was found, where and by how much, as a clause that begins with its subject.
    remedy : imperative from :func:`remedy_for`; names the option that helps if there is one.
    subjects : joints, links or contacts concerned; empty for all.
    recording : name of the recording; empty for a finding about a result.
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

    @classmethod
    def with_remedy(
        cls, cause: str, severity: Severity, evidence: str, *subjects: str,
        recording: str = "", case: str = "", **values: object,
    ) -> "Finding":  # fmt: skip
        """Finding with the remedy of its cause, in a ``case`` and with ``values`` as :func:`remedy_for` takes them."""
        return cls(cause, severity, evidence, remedy_for(cause, case, **values), subjects, recording)

    def content(self) -> dict[str, Any]:
        """Plain data for JSON; ``message`` is the one-line message."""
        plain = {**asdict(self), "severity": self.severity.name.lower(), "subjects": list(self.subjects)}
        return {**plain, "message": str(self)}

    def __str__(self) -> str:
        where = f"{self.recording}: " if self.recording else ""
        return f"{where}{self.evidence} ({CAUSES[self.cause].meaning}); {self.remedy}"


def subjects_of(findings: Iterable[Finding], cause: str) -> frozenset[str]:
    """Subjects of all findings of a cause."""
    return frozenset(subject for finding in findings if finding.cause == cause for subject in finding.subjects)
