"""Does this recording belong to this robot? Checks of raw channels against its URDF, and what is refused."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import joints as urdf_joints
from inertid_ros.robot.urdf import parsing

from .stamp_checks import check_repairs, check_stamps, velocity_ratio

_LIMIT_SLACK = 0.05  # of the range between the limits; URDFs state them with margins on either side
_MAX_ANGLE = 4 * np.pi  # rad; cables and hoses end revolute joints that have limits long before
_DEGREES, _MILLIMETRES = 180 / np.pi, 1000.0
_MIN_EXCESS = np.radians(20)  # beyond a limit; what leaves it by less is rather a limit that is wrong
_LOCKED_TOLERANCE = 1e-3  # rad or m; less is noise
_CARE_TORQUE_SHARE, _REFUSE_TORQUE_SHARE = 0.002, 0.02  # of a joint's torque, changed by a locked joint that moves; URDFs err by more
_SPEED_WINDOW_S = 0.05
_SPEED_LIMIT_RATIO = 1.1  # times the limit; drives exceed it a little
_TORQUE_SAMPLES = 200  # some for each period of a motion


def screen_channels(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on raw channels, before they are prepared: units of stamps and positions, locked joints.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
    """
    stamps = check_stamps(recording)
    checks = () if stamps else (check_positions, check_limits, check_locked)
    return (*check_repairs(recording), *stamps, *chain.from_iterable(check(recording, model) for check in checks))


def refuse(findings: Iterable[Finding]) -> None:
    """Raise what must not be fitted.

    Raises
    ------
    RecordingError
        The first finding that is to be refused.
    """
    for finding in findings:
        if finding.severity is Severity.REFUSE:
            raise RecordingError(str(finding))


def check_positions(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on positions against the URDF's limits.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
        ``position_unit`` where joints leave their limits and would not in degrees or millimetres, ``position_offset``
        where turning the zero by a quarter or half a turn brings a joint back, and ``beyond_limits``.
    """
    ranges = _ranges(recording, model)
    findings: list[Finding] = []
    for slides in (False, True):
        alike = [each for each in ranges if each.slides == slides]
        unit = _wrong_unit(recording.name, alike)
        findings += [unit] if unit else [_beyond(recording.name, each, alike) for each in alike if each.outside()]
    return tuple(findings)


def check_limits(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on limits of the URDF that are in another unit, or that joints exceed in speed.

    Identification rests on neither, so that they are notices.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
        ``limits_unit`` and ``beyond_velocity``.
    """
    findings, doubtful = [], set[str]()
    for found in model.doubtful_limits:
        doubtful |= set(found.joints) if found.key == "velocity" else set()
        remedy = remedy_for("limits_unit", factor=f"{found.factor:.6g}", option=found.option)
        findings.append(Finding("limits_unit", Severity.NOTICE, found.evidence, remedy, found.joints, recording.name))
    speeds = _fastest(recording)
    for joint, limit in zip(model.joint_names, model.limits.velocity.tolist(), strict=True):
        if joint not in recording.joint_names or joint in doubtful:
            continue
        speed = float(speeds[recording.joint_names.index(joint)])
        if speed > _SPEED_LIMIT_RATIO * limit:
            evidence = (
                f"{joint} moves at {speed:.3g} rad/s or m/s, {speed / limit:.3g} times the URDF's velocity limit of"
                f" {limit:.3g}"
            )
            remedy = remedy_for("beyond_velocity", joint=joint, speed=f"{speed:.3g}")
            findings.append(Finding("beyond_velocity", Severity.NOTICE, evidence, remedy, (joint,), recording.name))
    return tuple(findings)


def _fastest(recording: Recording) -> Array:
    """``(n,)`` highest speed that joints keep for some time [rad/s or m/s]; jumps and noise do not count."""
    time, position = recording.time, recording.position
    steps = max(1, round(_SPEED_WINDOW_S / float(np.median(np.diff(time)))))
    if len(time) <= steps:
        return np.zeros(position.shape[1])
    speeds = np.abs(position[steps:] - position[:-steps]) / (time[steps:] - time[:-steps])[:, None]
    return np.asarray(np.percentile(speeds, 99.5, axis=0))


def check_locked(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on joints that are locked, by options or since others mimic them, and move or rest elsewhere.

    How grave that is decides the change of torque in the URDF's own inertias.

    Parameters
    ----------
    recording : Recording
        Raw channels; locked joints that were not recorded are not checked.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
    """
    findings = []
    for joint, position in model.options.locked_joints.items():
        if joint not in recording.joint_names:
            continue
        values = recording.position[:, recording.joint_names.index(joint)]
        if np.abs(values - position).max() <= _LOCKED_TOLERANCE:
            continue
        share = _torque_change(recording, model, joint)
        severity = Severity.REFUSE if share > _REFUSE_TORQUE_SHARE else Severity.CARE if share > _CARE_TORQUE_SHARE else Severity.NOTICE
        range_ = float(np.ptp(values))
        what = f"moves by {range_:.3g}" if range_ > _LOCKED_TOLERANCE else f"rests at {np.median(values):.4g}"
        evidence = (
            f"{joint}, which is locked at {position:.4g}, {what} rad or m"
            f" and changes the torque of a joint by {100 * share:.3g} %"
        )
        remedy = _locked_remedy(model, joint)
        findings.append(Finding("locked_joint_moves", severity, evidence, remedy, (joint,), recording.name))
    return tuple(findings)


def _locked_remedy(model: RobotModel, joint: str) -> str:
    followers = urdf_joints.followers(parsing.parse_description(model.urdf), {joint})
    if followers:
        return remedy_for("locked_joint_moves", "mimicked", joint=joint, followers=", ".join(followers))
    return remedy_for("locked_joint_moves", joint=joint)


@dataclass(frozen=True)
class _Range:
    """Where a joint has been, its limits, and how fast its position changes against its measured velocity."""

    joint: str
    slides: bool
    low: float
    high: float
    lower: float
    upper: float
    ratio: float

    @property
    def unit(self) -> float:
        """What turns the SI unit into the one that is often recorded in its place."""
        return _MILLIMETRES if self.slides else _DEGREES

    def outside(self, factor: float = 1.0, shift: float = 0.0) -> float:
        """How far it leaves its limits, beyond their slack, where positions are divided and shifted first."""
        width = self.upper - self.lower
        if not (np.isfinite(width) and width > 0):
            return 0.0
        past = max(self.lower - (self.low / factor - shift), self.high / factor - shift - self.upper)
        return max(past - _LIMIT_SLACK * width, 0.0)

    def at_place_of(self, other: "_Range") -> "_Range":
        """The same motion of another joint."""
        return replace(self, lower=other.lower, upper=other.upper)

    def certainly_in_other_unit(self) -> bool:
        """Whether no zero of the joint, however wrong, explains where it is or how fast it goes."""
        if abs(np.log(abs(self.ratio) / self.unit)) < np.log(2.0):
            return True
        far = 10 * (self.upper - self.lower) if self.slides else _MAX_ANGLE
        return self.outside() > 0 and max(-self.low, self.high) > far

    def __str__(self) -> str:
        return (
            f"position of {self.joint} goes from {self.low:.4g} to {self.high:.4g} where the URDF's limits are"
            f" {self.lower:.4g} and {self.upper:.4g}"
        )


def _ranges(recording: Recording, model: RobotModel) -> list[_Range]:
    ratios = velocity_ratio(recording)
    slides = np.any(model.axes[len(model.link_names) - model.joints :, :3] != 0, axis=1)
    out = []
    for index, joint in enumerate(model.joint_names):
        if joint in recording.joint_names:
            column = recording.joint_names.index(joint)
            values, ratio = recording.position[:, column], float(ratios[column])
            limits = (float(model.limits.lower[index]), float(model.limits.upper[index]))
            out.append(
                _Range(joint, bool(np.atleast_1d(slides)[index]), float(values.min()), float(values.max()), *limits,
                       ratio if np.isfinite(ratio) and ratio else 1.0)
            )
    return out


def _wrong_unit(name: str, ranges: list[_Range]) -> Finding | None:
    """Degrees or millimetres, where that is certain of one joint and possible of all."""
    certain = [each for each in ranges if each.certainly_in_other_unit()]
    if not certain or any(each.outside(each.unit) for each in ranges):
        return None
    worst = max(certain, key=lambda each: each.high - each.low)
    unit, wanted = ("millimetres", "metres") if worst.slides else ("degrees", "radians")
    evidence = str(worst)
    if not worst.outside():
        evidence = f"position of {worst.joint} changes {worst.ratio:.3g} times as fast as its measured velocity"
    remedy = remedy_for("position_unit", wanted=wanted, unit=unit)
    return Finding("position_unit", Severity.REFUSE, evidence, remedy, tuple(each.joint for each in certain), name)


def _beyond(name: str, joint: _Range, others: list[_Range]) -> Finding:
    """A joint that leaves its limits, and the turn of its zero or the exchange of names that would bring it back.

    That is no more than a suspicion: many limits are wrong, and where gravity shows the zero, efforts say more.
    """
    width = joint.upper - joint.lower
    for turn in () if joint.slides else (90, -90, 180, -180):
        if joint.outside() > _MIN_EXCESS and not joint.outside(shift=np.radians(turn)):
            remedy = remedy_for("position_offset", turn=turn, joint=joint.joint)
            return Finding("position_offset", Severity.CARE, str(joint), remedy, (joint.joint,), name)
    fit = [each for each in others if not (each.at_place_of(joint).outside() or joint.at_place_of(each).outside())]
    if joint.outside() > _MIN_EXCESS and len(fit) == 1:
        pair = (joint.joint, fit[0].joint)
        remedy = remedy_for("joint_exchange", "by_limits", one=pair[0], other=pair[1])
        return Finding("joint_exchange", Severity.CARE, str(joint), remedy, pair, name)
    # Many URDFs state limits that their robot does not have: only far beyond them is this more than a notice.
    severity = Severity.CARE if joint.outside() > 0.25 * width else Severity.NOTICE
    return Finding("beyond_limits", severity, str(joint), remedy_for("beyond_limits"),
                   (joint.joint,), name)


def _torque_change(recording: Recording, model: RobotModel, joint: str) -> float:
    """Largest change of a joint's RMS torque, as a share of it, where a locked joint is held where it was instead.

    What mimics the joint goes with it. A base that moves freely is taken to stand.
    """
    if any(name not in recording.joint_names for name in model.joint_names):
        return 0.0
    root = parsing.parse_description(model.urdf)
    whole = pin.buildModelFromXML(urdf_joints.without_geometry(root))
    whole.gravity.linear = model.pinocchio.gravity.linear
    column = {name: whole.joints[whole.getJointId(name)].idx_v for name in list(whole.names)[1:]}
    rows = np.unique(np.linspace(0, len(recording) - 1, _TORQUE_SAMPLES).astype(int))
    time, recorded = recording.time[rows], dict(zip(recording.joint_names, recording.position[rows].T, strict=True))
    held = dict(model.options.locked_joints)
    assumed = np.zeros((len(rows), whole.nv))
    for name, position in urdf_joints.locked_joints(root, held).items():
        assumed[:, column[name]] = position
    for name in model.joint_names:
        assumed[:, column[name]] = recorded[name]
    moved = assumed.copy()
    for row, position in enumerate(recorded[joint].tolist()):
        at = urdf_joints.locked_joints(root, {**held, joint: position})
        moved[row, [column[name] for name in at]] = list(at.values())
    data, own = whole.createData(), [column[name] for name in model.joint_names]

    def torque(q: Array) -> Array:
        states = zip(q, *_derivatives(time, q), strict=True)
        return np.array([pin.rnea(whole, data, *state)[own] for state in states])

    right, wrong = torque(moved), torque(assumed)
    size, change = (np.sqrt(np.mean(each**2, axis=0)) for each in (wrong, right - wrong))
    return float(np.max(change / np.maximum(size, 0.01 * size.max() + 1e-12), initial=0.0))


def _derivatives(time: Array, q: Array) -> tuple[Array, Array]:
    """Rough velocity and acceleration."""
    v = np.gradient(q, time, axis=0)
    return v, np.gradient(v, time, axis=0)
