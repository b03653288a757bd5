"""Checks of raw channels against the robot's URDF: positions, limits, locked joints, signs of efforts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import joints as urdf_joints, parsing

from .stamp_checks import check_repairs, check_stamps, velocity_ratio

_DEGREES, _MILLIMETRES, _NEWTON_MILLIMETRES = 180 / np.pi, 1000.0, 1000.0
# A unit that changes: tolerances of the jump, and of the change of typical values, in logarithms of the factor.
_UNIT_LOG_TOLERANCE, _LEVEL_LOG_TOLERANCE = 0.1, 1.0
# Positions against the URDF's limits.
_LIMIT_SLACK = 0.05  # share of the range between the limits; limits in URDFs have margins on either side
_MAX_ANGLE = 4 * np.pi  # rad; cables and hoses stop revolute joints at far smaller angles
_MIN_EXCESS = np.radians(20)  # beyond a limit; a smaller excess rather means a wrong limit
_CARE_EXCESS = 0.25  # share of the range; many URDFs state limits that their robot does not have
# Locked joints that move.
_LOCKED_TOLERANCE = 1e-3  # rad or m; less is noise
_CARE_TORQUE_SHARE, _REFUSE_TORQUE_SHARE = 0.002, 0.02  # relative change of a joint's torque; URDFs err by more
_TORQUE_SAMPLES = 200  # several in each period of the motion
# Efforts whose sign bit is read as part of the number.
_MIN_GAP_SHARE = 0.05  # width of an empty gap over a joint's range of efforts
_MIN_SIDE_SHARE, _MIN_SIDE_SPREAD = 0.02, 0.02  # shares of the values, and of their range, on either side of the gap
# Speeds.
_EQUAL_RATES = 1.05  # ratio of two joints' velocity ratios; filters of velocities change each joint's ratio differently
_MIN_RATE_FACTOR, _MAX_RATE_FACTOR = 1.2, 6.0  # of stamps; larger factors are units of velocities (2 pi: turns)
_SPEED_WINDOW_S = 0.05
_SPEED_LIMIT_RATIO = 1.1  # drives exceed their limit a little


def screen_channels(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on repaired channels: stamps, or if stamps are right, positions, limits, locked joints and sign bits."""
    stamps, findings = check_stamps(recording), check_repairs(recording)
    if stamps:
        return (*findings, *stamps)
    checks = check_units_midway, check_positions, check_velocities, check_limits, check_locked, check_sign_bits
    found = (finding for check in checks for finding in check(recording, model))
    return (*findings, *(replace(finding, recording=recording.name) for finding in found))


def refuse(findings: Iterable[Finding]) -> None:
    """Raise the first finding of severity REFUSE as a RecordingError."""
    for finding in findings:
        if finding.severity is Severity.REFUSE:
            raise RecordingError(str(finding))


def check_units_midway(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Finding on positions or efforts whose unit changes: the values of most joints jump by its factor, and stay so."""
    for channel, unit in (("position", _DEGREES), ("effort", _NEWTON_MILLIMETRES)):
        levels = np.log(np.abs(getattr(recording, channel)) + 1e-300)
        jumps = np.median(np.diff(levels, axis=0), axis=1)
        last = int(np.argmax(np.abs(jumps)))
        medians = (np.median(part, axis=0) for part in np.split(levels, [last + 1]))
        stays = abs(np.median(np.subtract(*medians)) + jumps[last]) < _LEVEL_LOG_TOLERANCE
        if abs(abs(jumps[last]) - np.log(unit)) < _UNIT_LOG_TOLERANCE and stays:
            evidence = (
                f"{channel}s change by a factor of {np.exp(jumps[last]):.3g}"
                f" {recording.time[last] - recording.time[0]:.2f} s after the start, and stay so")
            return (Finding.with_remedy(f"{channel}_unit", Severity.REFUSE, evidence, case="midway"),)
    return ()


def check_positions(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on positions against the URDF's limits.

    ``position_unit`` if joints leave their limits in SI units but not in degrees or millimetres. Else, for each joint
    beyond its limits: ``position_offset`` if a quarter or half turn of its zero brings the joint back,
    ``joint_exchange`` if an exchange of names with one other joint does, or ``beyond_limits``.
    """
    ranges = _ranges(recording, model)
    findings: list[Finding] = []
    for slides in (False, True):
        alike = [joint for joint in ranges if joint.slides == slides]
        unit = _wrong_unit(alike)
        findings += [unit] if unit else [_beyond(joint, alike) for joint in alike if joint.outside()]
    return tuple(findings)


def check_velocities(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Finding ``time_unit`` if positions of most joints change by one factor faster than their measured velocities."""
    ratios = velocity_ratio(recording)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    factor = float(np.median(ratios)) if len(ratios) > 1 else 1.0
    alike = np.abs(np.log(ratios / factor)) < np.log(_EQUAL_RATES)
    if not _MIN_RATE_FACTOR < max(factor, 1 / factor) < _MAX_RATE_FACTOR or alike.mean() < 0.75:
        return ()
    evidence = f"positions of {alike.sum()} joints change {factor:.3g} times as fast as their measured velocities"
    return (Finding.with_remedy("time_unit", Severity.REJECT, evidence, case="rate", factor=f"{factor:.4g}"),)


def check_limits(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings ``limits_unit`` on limits in another unit, and ``beyond_velocity`` on speeds above the limit.

    Both are notices, because identification does not depend on limits.
    """
    findings, doubtful = [], set[str]()
    for limit in model.doubtful_limits:
        doubtful |= set(limit.joints) if limit.key == "velocity" else set()
        words = {"factor": f"{limit.factor:.6g}", "option": limit.option}
        findings.append(Finding.with_remedy("limits_unit", Severity.NOTICE, limit.evidence, *limit.joints, **words))
    speeds = dict(zip(recording.joint_names, _fastest(recording).tolist(), strict=True))
    for joint, most in zip(model.joint_names, model.limits.velocity.tolist(), strict=True):
        speed = speeds.get(joint, 0.0)
        if joint not in doubtful and speed > _SPEED_LIMIT_RATIO * most:
            evidence = f"{joint} moves at {speed:.3g} rad/s or m/s, {speed / most:.3g} times the URDF's velocity limit"
            evidence, words = f"{evidence} of {most:.3g}", {"joint": joint, "speed": f"{speed:.3g}"}
            findings.append(Finding.with_remedy("beyond_velocity", Severity.NOTICE, evidence, joint, **words))
    return tuple(findings)


def _fastest(recording: Recording) -> Array:
    """Highest speed ``(n,)`` that joints keep for some time [rad/s or m/s], without jumps and noise."""
    time, position = recording.time, recording.position
    steps = max(1, round(_SPEED_WINDOW_S / recording.period))
    if len(time) <= steps:
        return np.zeros(position.shape[1])
    speeds = np.abs(position[steps:] - position[:-steps]) / (time[steps:] - time[:-steps])[:, None]
    return np.asarray(np.percentile(speeds, 99.5, axis=0))


def check_locked(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on joints that are locked (by options, or because joints mimic them) but move or rest elsewhere.

    The resulting change of torque, by the URDF's inertias, decides the severity. Locked joints that were not recorded
    are not checked.
    """
    if not model.options.locked_joints:
        return ()
    findings, root = [], parsing.parse_description(model.urdf)
    turning = {joint.get("name") for joint in root.iter("joint") if joint.get("type") == "continuous"}
    for joint, position in model.options.locked_joints.items():
        if joint not in recording.joint_names:
            continue
        values = recording.position[:, recording.joint_names.index(joint)]
        if joint in turning:  # drivers report continuous joints within a full turn
            values = position + np.remainder(values - position + np.pi, 2 * np.pi) - np.pi
        if np.abs(values - position).max() <= _LOCKED_TOLERANCE:
            continue
        share = _torque_change(recording, model, joint, values)
        severity = Severity.CARE if share > _CARE_TORQUE_SHARE else Severity.NOTICE
        severity = Severity.REFUSE if share > _REFUSE_TORQUE_SHARE else severity
        span = float(np.ptp(values))
        what = f"moves by {span:.3g}" if span > _LOCKED_TOLERANCE else f"rests at {np.median(values):.4g}"
        evidence = (
            f"{joint}, which is locked at {position:.4g}, {what} rad or m"
            f" and changes the torque of a joint by {100 * share:.3g} %")
        followers = urdf_joints.followers(root, {joint})
        case = "rests" if span <= _LOCKED_TOLERANCE else "mimicked" if followers else ""
        words = {"joint": joint, "followers": ", ".join(followers), "position": f"{np.median(values):.4g}"}
        findings.append(Finding.with_remedy("locked_joint_moves", severity, evidence, joint, case=case, **words))
    return tuple(findings)


def check_sign_bits(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Finding ``effort_magnitude`` if the driver of a bus reads the sign bit of efforts as part of the number.

    All numbers are then positive, with a gap: positive efforts end below the value of the bit, negative efforts start
    at this value.
    """
    bits = dict[str, float]()
    if (recording.effort < 0).any():
        return ()
    for joint in model.joint_names:
        if joint not in recording.joint_names:
            continue
        values = recording.effort[:, recording.joint_names.index(joint)]
        values = np.sort(values[np.isfinite(values)])
        few = round(_MIN_SIDE_SHARE * len(values))
        if len(values) < 2 / _MIN_SIDE_SHARE:
            continue
        steps = np.diff(values[few:-few])
        below = few + int(np.argmax(steps))
        span, low, bit = values[-1] - values[0], values[below], values[below + 1]
        apart = steps.max() > _MIN_GAP_SHARE * span and min(low - values[0], values[-1] - bit) > _MIN_SIDE_SPREAD * span
        # A torque that changes its sign is small at times, and all magnitudes are below the bit.
        if apart and values[few] < 0.5 * low and values[-1] < 2 * bit:
            bits[joint] = float(bit)
    if not bits:
        return ()
    joint, bit = next(iter(bits.items()))
    evidence = f"efforts are never negative, and efforts of {', '.join(bits)} have a gap (for {joint} below {bit:.4g});"
    evidence += " values above the gap look like negative efforts whose sign bit was read as part of the number"
    return (Finding.with_remedy("effort_magnitude", Severity.REFUSE, evidence, *bits),)


@dataclass(frozen=True)
class _Range:
    """Range of a joint's positions, its limits, and the ratio of its speed to its measured velocity."""

    joint: str
    slides: bool
    low: float
    high: float
    lower: float
    upper: float
    ratio: float

    @property
    def unit(self) -> float:
        """Factor from the SI unit to the unit that is often recorded instead."""
        return _MILLIMETRES if self.slides else _DEGREES

    def outside(self, factor: float = 1.0, shift: float = 0.0) -> float:
        """Distance beyond limits and slack, after division of positions by ``factor`` and subtraction of ``shift``."""
        width = self.upper - self.lower
        if not (np.isfinite(width) and width > 0):
            return 0.0
        past = max(self.lower - (self.low / factor - shift), self.high / factor - shift - self.upper)
        return max(past - _LIMIT_SLACK * width, 0.0)

    def at_place_of(self, other: "_Range") -> "_Range":
        """Range of this joint's positions with the limits of another joint."""
        return replace(self, lower=other.lower, upper=other.upper)

    def certainly_in_other_unit(self) -> bool:
        """True if only another unit explains the positions or speeds of the joint, and a wrong zero does not."""
        if abs(np.log(abs(self.ratio) / self.unit)) < np.log(2.0):
            return True
        far = 10 * (self.upper - self.lower) if self.slides else _MAX_ANGLE
        return self.outside() > 0 and max(-self.low, self.high) > far

    def __str__(self) -> str:
        return (
            f"position of {self.joint} goes from {self.low:.4g} to {self.high:.4g}, but the URDF's limits are"
            f" {self.lower:.4g} and {self.upper:.4g}")


def _ranges(recording: Recording, model: RobotModel) -> list[_Range]:
    ratios = velocity_ratio(recording)
    ratios = np.where(np.isfinite(ratios) & (ratios != 0), ratios, 1.0)
    lows, highs = recording.position.min(axis=0), recording.position.max(axis=0)
    out = []
    for index, joint in enumerate(model.joint_names):
        if joint in recording.joint_names:
            column = recording.joint_names.index(joint)
            numbers = lows[column], highs[column], model.limits.lower[index], model.limits.upper[index], ratios[column]
            out.append(_Range(joint, bool(model.slides[index]), *map(float, numbers)))
    return out


def _wrong_unit(ranges: list[_Range]) -> Finding | None:
    """Finding on degrees or millimetres, if they are certain for one joint and possible for all joints."""
    certain = [joint for joint in ranges if joint.certainly_in_other_unit()]
    if not certain or any(joint.outside(joint.unit) for joint in ranges):
        return None
    worst = max(certain, key=lambda joint: joint.high - joint.low)
    unit, wanted = ("millimetres", "metres") if worst.slides else ("degrees", "radians")
    evidence = str(worst)
    if not worst.outside():
        evidence = f"position of {worst.joint} changes {worst.ratio:.3g} times as fast as its measured velocity"
    joints = (joint.joint for joint in certain)
    return Finding.with_remedy("position_unit", Severity.REFUSE, evidence, *joints, wanted=wanted, unit=unit)


def _beyond(joint: _Range, others: list[_Range]) -> Finding:
    """Finding on a joint beyond its limits, with a turn of its zero or an exchange of names that would bring it back.

    The finding is only a suspicion: many limits are wrong, and under gravity, efforts are better evidence of the zero.
    """
    name = joint.joint
    if joint.outside() > _MIN_EXCESS:
        for turn in () if joint.slides else (90, -90, 180, -180):
            if not joint.outside(shift=np.radians(turn)):
                return Finding.with_remedy("position_offset", Severity.CARE, str(joint), name, shift=-turn, joint=name)
        partners = [
            other for other in others if not (other.at_place_of(joint).outside() or joint.at_place_of(other).outside())]
        if len(partners) == 1:
            words = {"case": "by_limits", "one": name, "other": partners[0].joint}
            return Finding.with_remedy("joint_exchange", Severity.CARE, str(joint), name, partners[0].joint, **words)
    severity = Severity.CARE if joint.outside() > _CARE_EXCESS * (joint.upper - joint.lower) else Severity.NOTICE
    return Finding.with_remedy("beyond_limits", severity, str(joint), name)


def _torque_change(recording: Recording, model: RobotModel, joint: str, moved: Array) -> float:
    """Largest relative change of any joint's RMS torque if a locked joint moves (``moved (N,)``) instead of being held.

    Joints that mimic the locked joint follow it. A free base is assumed to stand still.
    """
    if any(name not in recording.joint_names for name in model.joint_names):
        return 0.0
    root = parsing.parse_description(model.urdf)
    whole = urdf_joints.full_model(root, model.options.gravity, free=False)
    column = {name: whole.joints[whole.getJointId(name)].idx_v for name in list(whole.names)[1:]}
    rows = np.unique(np.linspace(0, len(recording) - 1, _TORQUE_SAMPLES).astype(int))
    recorded = dict(zip(recording.joint_names, recording.position[rows].T, strict=True))
    data, columns = whole.createData(), [column[name] for name in model.joint_names]

    def torque(positions: Array) -> Array:
        """Torque ``(N, n)`` with the locked joint at positions ``(N,)``."""
        q = np.zeros((len(rows), whole.nv))
        for row, position in enumerate(positions.tolist()):
            held = urdf_joints.locked_joints(root, {**model.options.locked_joints, joint: position})
            q[row, [column[name] for name in held]] = list(held.values())
        for name in model.joint_names:
            q[:, column[name]] = recorded[name]
        v = np.gradient(q, recording.time[rows], axis=0)
        states = zip(q, v, np.gradient(v, recording.time[rows], axis=0), strict=True)
        return np.array([pin.rnea(whole, data, *state)[columns] for state in states])

    right, wrong = torque(moved[rows]), torque(np.full(len(rows), model.options.locked_joints[joint]))
    size, change = (np.sqrt(np.mean(x**2, axis=0)) for x in (wrong, right - wrong))
    return float(np.max(change / np.maximum(size, 0.01 * size.max() + 1e-12), initial=0.0))
