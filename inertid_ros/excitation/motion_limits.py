"""Limits of a motion, and the proof that a curve keeps them, also between samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, ModelError, log_once
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.model import RobotModel

_CURVE_SLACK = 1e-9  # relative; a motion scaled exactly onto its limit must not fail by the last bit
_CHANNEL_UNITS = (("position", "rad"), ("velocity", "rad/s"), ("acceleration", "rad/s^2"))


@dataclass(frozen=True)
class MotionLimits:
    """Limits per joint, ``(n,)`` each: finite, lower below upper, all other limits positive."""

    joint_names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    effort: Array

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        for name in ("lower", "upper", "velocity", "acceleration", "effort"):
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != (n,):
                raise ExcitationError(f"limits: {name} has shape {value.shape}, expected {(n,)}")
            value.flags.writeable = False
            object.__setattr__(self, name, value)
            for joint, number in zip(self.joint_names, value, strict=True):
                if not np.isfinite(number):
                    raise ExcitationError(f"joint '{joint}': {name} limit is missing or not finite; set limits.{name}")
                if name in ("velocity", "acceleration", "effort") and number <= 0:
                    raise ExcitationError(f"joint '{joint}': {name} limit is {number:g}; set a positive limits.{name}")
        for joint, lower, upper in zip(self.joint_names, self.lower, self.upper, strict=True):
            if lower >= upper:
                raise ExcitationError(
                    f"joint '{joint}': position range {lower:g} to {upper:g} has no width; widen limits.position or"
                    " lower limits.position_margin")

    @property
    def bounds(self) -> tuple[tuple[Array, Array], ...]:
        """Lower and upper limits of position, velocity and acceleration."""
        return (self.lower, self.upper), (-self.velocity, self.velocity), (-self.acceleration, self.acceleration)

    def ordered(self, names: Sequence[str]) -> "MotionLimits":
        """Copy with the limits of the joints ``names``, in their order."""
        order = [self.joint_names.index(name) for name in names]
        columns = (self.lower, self.upper, self.velocity, self.acceleration, self.effort)
        return MotionLimits(tuple(names), *(column[order] for column in columns))

    def scaled(self, velocity: float = 1.0, acceleration: float = 1.0) -> "MotionLimits":
        """Copy with fractions of the velocity and acceleration limits."""
        return replace(self, velocity=self.velocity * velocity, acceleration=self.acceleration * acceleration)


def motion_limits(model: RobotModel, options: LimitOptions | None = None) -> MotionLimits:
    """Limits of the model's joints after margins and fractions.

    ExcitationError if an option names an unknown joint or a limit is missing; ModelError if ranges look like degrees or
    millimetres and the options do not give these ranges.
    """
    options = options or LimitOptions()
    names, urdf, unlimited = model.joint_names, model.limits, np.isinf(model.limits.velocity)
    lower, upper = _position_limits(model, options)
    unstated = [name for name, none in zip(names, unlimited, strict=True) if none and name not in options.velocity]
    if unstated:
        log_once(
            f"URDF joints without a velocity limit: {', '.join(unstated)}; their limit is {options.default_velocity:g}"
            " rad/s or m/s (limits.default_velocity); set limits.velocity to change it")
    values = {
        "velocity": np.where(unlimited, options.default_velocity, urdf.velocity), "effort": np.array(urdf.effort),
        "acceleration": np.full(len(names), options.default_acceleration)}
    for key, limits in values.items():
        for name, value in getattr(options, key).items():
            limits[_joint(model, key, name)] = value
    values["velocity"] *= options.velocity_fraction
    values["effort"] *= options.effort_fraction
    return MotionLimits(names, lower, upper, **values)


def _joint(model: RobotModel, key: str, name: str) -> int:
    """Index in the model of joint ``name`` from the option ``limits.<key>``; ExcitationError if locked or unknown."""
    names = model.joint_names
    if name in model.options.locked_joints:
        raise ExcitationError(f"joint '{name}': is locked and needs no limit; leave limits.{key}.{name} out")
    if name not in names:
        raise ExcitationError(f"limits.{key} names joint '{name}', which is not one of {', '.join(names)}")
    return names.index(name)


def _position_limits(model: RobotModel, options: LimitOptions) -> tuple[Array, Array]:
    """Lower and upper limits ``(n,)``: limits of the URDF minus the margin, narrowed by the options."""
    urdf = model.limits
    lower, upper = urdf.lower + options.position_margin, urdf.upper - options.position_margin
    free = np.isinf(urdf.lower) & np.isinf(urdf.upper)
    lower, upper = np.where(free, -options.continuous_range, lower), np.where(free, options.continuous_range, upper)
    in_other_unit = _joints_in_other_unit(model, options)
    for name, (low, high) in options.position.items():
        joint = _joint(model, "position", name)
        if free[joint] or name in in_other_unit:
            lower[joint], upper[joint] = low, high
            continue
        if low < lower[joint] or high > upper[joint]:
            log_once(
                f"limits.position.{name} is {low:g} to {high:g}, beyond {lower[joint]:g} to {upper[joint]:g}, the"
                f" URDF's limits minus limits.position_margin ({options.position_margin:g}); the joint stays within"
                " these limits")
        lower[joint], upper[joint] = max(low, lower[joint]), min(high, upper[joint])
    _check_ranges(model, options, lower, upper)
    return lower, upper


def _joints_in_other_unit(model: RobotModel, options: LimitOptions) -> set[str]:
    """Joints whose URDF ranges seem not to be in SI units.

    ModelError if ``limits.position`` does not give the ranges of these joints; other doubtful limits are logged.
    """
    for doubt in model.doubtful_limits:
        if not set(doubt.joints) <= set(getattr(options, doubt.key)):
            if doubt.key == "position":
                raise ModelError(str(doubt))
            log_once(str(doubt))
    return {joint for doubt in model.doubtful_limits if doubt.key == "position" for joint in doubt.joints}


def _check_ranges(model: RobotModel, options: LimitOptions, lower: Array, upper: Array) -> None:
    """Reject joints for which the URDF's limits minus the margin leave no range; the message proposes to lock them."""
    urdf, names = model.limits, model.joint_names
    widths, margin = urdf.upper - urdf.lower, options.position_margin
    near = f"its range is within twice limits.position_margin ({margin:g})"
    for narrow, why, remedy in (
        (widths <= 0, "its <limit> has no range", "correct the URDF"),
        ((widths > 0) & (widths <= 2 * margin), near, "lower limits.position_margin"),
    ):
        joints = np.flatnonzero(narrow & (lower >= upper))
        if len(joints):
            first = joints[0]
            middles = (f"{names[joint]}: {0.5 * (urdf.lower[joint] + urdf.upper[joint]):.4g}" for joint in joints)
            raise ExcitationError(
                f"URDF joint '{names[first]}': {why}, {urdf.lower[first]:g} to {urdf.upper[first]:g} rad or m, so that"
                " it cannot move"
                + (f" (and {len(joints) - 1} more)" if len(joints) > 1 else "")
                + f"; {remedy}, or hold with robot.locked_joints: {{{', '.join(middles)}}}")


def usage(curve: PiecewiseQuintic, limits: MotionLimits) -> list[Array]:
    """Fractions ``(n,)`` of the limits of position, velocity and acceleration that the whole curve uses.

    A position fraction is 0 in the middle of the range, and above 1 outside.
    """
    fractions = []
    for order, (lower, upper) in enumerate(limits.bounds):
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        fractions.append(np.abs(curve.extremes(order)[0] - middle).max(axis=0) / half)
    return fractions


def check_curve(curve: PiecewiseQuintic, limits: MotionLimits) -> None:
    """Reject a curve that exceeds its limits, also between knots; the error has joint, time, value and limit."""
    for order, (lower, upper) in enumerate(limits.bounds):
        channel, unit = _CHANNEL_UNITS[order]
        slack = _CURVE_SLACK * np.maximum(np.abs(lower), np.abs(upper))
        values, times = curve.extremes(order)
        beyond = np.array([lower - values[0], values[1] - upper]) > slack
        if beyond.any():
            joint, side = np.argwhere(beyond.T)[0]
            raise ExcitationError(
                f"joint '{limits.joint_names[joint]}': {channel} {values[side, joint]:.6g} {unit} at"
                f" {times[side, joint]:.3f} s is beyond its limit {(lower, upper)[side][joint]:.6g} {unit}; plan"
                " within the limits or correct them")
