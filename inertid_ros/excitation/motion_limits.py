"""Limits that a motion keeps, and the proof that it keeps them between samples too."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, ModelError, log_once
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.model import RobotModel

T = TypeVar("T")
_ROUNDING = 1e-9  # relative; a motion scaled exactly onto its limit must not fail by the last bit
_CHANNELS = (("position", "rad"), ("velocity", "rad/s"), ("acceleration", "rad/s^2"))


@dataclass(frozen=True)
class MotionLimits:
    """Limits per joint, ``(n,)`` each, finite and of positive width.

    Raises
    ------
    ExcitationError
        A limit is missing, not finite, not positive, or lower is not below upper; the joint is named.
    """

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
                    " lower limits.position_margin"
                )

    def scaled(self, velocity: float = 1.0, acceleration: float = 1.0) -> "MotionLimits":
        """The same with fractions of the velocity and acceleration limits."""
        return replace(self, velocity=self.velocity * velocity, acceleration=self.acceleration * acceleration)


def motion_limits(model: RobotModel, options: LimitOptions | None = None) -> MotionLimits:
    """Limits of the model's joints after margins and fractions.

    Raises
    ------
    ExcitationError
        An option names an unknown joint, or a limit is missing.
    ModelError
        Ranges of joints look like degrees or millimetres, and no option states them.
    """
    options = options or LimitOptions()
    names = model.joint_names
    given = model.limits
    lower, upper = given.lower + options.position_margin, given.upper - options.position_margin
    free = np.isinf(given.lower) & np.isinf(given.upper)
    lower, upper = np.where(free, -options.continuous_range, lower), np.where(free, options.continuous_range, upper)
    wrong = _in_other_unit(model, options)
    for name, (low, high) in _per_joint(options.position, "position", names):
        index = names.index(name)
        if not free[index] and name not in wrong and (low < lower[index] or high > upper[index]):
            log_once(
                logging.WARNING,
                f"limits.position.{name} is {low:g} to {high:g}, beyond {lower[index]:g} to {upper[index]:g}, which are"
                f" the URDF's limits less limits.position_margin ({options.position_margin:g}); the joint keeps to"
                " these",
            )
        lower[index] = low if free[index] or name in wrong else max(low, lower[index])
        upper[index] = high if free[index] or name in wrong else min(high, upper[index])
    _check_ranges(model, options, lower, upper)
    unlimited = np.isinf(given.velocity)
    silent = [name for name, none in zip(names, unlimited, strict=True) if none and name not in options.velocity]
    if silent:
        log_once(
            logging.WARNING,
            f"URDF joints without a velocity limit: {', '.join(silent)}; they are planned for"
            f" {options.default_velocity:g} rad/s or m/s (limits.default_velocity), which limits.velocity changes",
        )
    values = {
        "velocity": np.where(unlimited, options.default_velocity, given.velocity),
        "effort": np.array(given.effort),
        "acceleration": np.full(len(names), options.default_acceleration),
    }
    for key, array in values.items():
        for name, value in _per_joint(getattr(options, key), key, names):
            array[names.index(name)] = value
    velocity, effort = values["velocity"] * options.velocity_fraction, values["effort"] * options.effort_fraction
    return MotionLimits(names, lower, upper, velocity, values["acceleration"], effort)


def _in_other_unit(model: RobotModel, options: LimitOptions) -> set[str]:
    """Joints whose ranges are in no unit of the SI and are stated by options; warns of speeds that are not.

    Raises
    ------
    ModelError
        Ranges are not stated.
    """
    wrong = set[str]()
    for found in model.doubtful_limits:
        stated = set(found.joints) <= set(getattr(options, found.key))
        if found.key == "position":
            if not stated:
                raise ModelError(str(found))
            wrong.update(found.joints)
        elif not stated:
            log_once(logging.WARNING, str(found))
    return wrong


def _check_ranges(model: RobotModel, options: LimitOptions, lower: Array, upper: Array) -> None:
    """Reject joints whose URDF, or the margin from it, leaves no range to move in.

    Raises
    ------
    ExcitationError
        Names all of them, and how they are held.
    """
    given = model.limits
    widths = given.upper - given.lower
    stuck, narrow = widths <= 0, (widths > 0) & (widths <= 2 * options.position_margin)
    for chosen, why, remedy in (
        (stuck, "its <limit> has no range", "correct the URDF"),
        (
            narrow,
            f"its range is within twice limits.position_margin ({options.position_margin:g})",
            "lower limits.position_margin",
        ),
    ):
        joints = np.flatnonzero(chosen & (lower >= upper))
        if len(joints):
            held = ", ".join(
                f"{model.joint_names[joint]}: {0.5 * (given.lower[joint] + given.upper[joint]):.4g}" for joint in joints
            )
            raise ExcitationError(
                f"URDF joint '{model.joint_names[joints[0]]}': {why}, {given.lower[joints[0]]:g} to"
                f" {given.upper[joints[0]]:g} rad or m, so that it cannot be planned for"
                + (f", nor {len(joints) - 1} others" if len(joints) > 1 else "")
                + f"; {remedy}, or hold with robot.locked_joints: {{{held}}}"
            )


def _per_joint(given: Mapping[str, T], key: str, names: Sequence[str]) -> Iterable[tuple[str, T]]:
    """Joints and what is given for them.

    Raises
    ------
    ExcitationError
        The robot has no such joint.
    """
    for joint in given:
        if joint not in names:
            raise ExcitationError(f"limits.{key} names joint '{joint}', which is not one of {', '.join(names)}")
    return given.items()


def usage(curve: PiecewiseQuintic, limits: MotionLimits) -> tuple[Array, Array, Array]:
    """Fraction of each limit that the whole curve uses, ``(n,)`` for position range, velocity and acceleration.

    A position fraction above 1 lies outside the range; 0 is its middle.
    """
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    out = []
    zero = np.zeros_like(middle)
    for order, (centre, bound) in enumerate(((middle, half), (zero, limits.velocity), (zero, limits.acceleration))):
        smallest, largest = curve.extremes(order)
        out.append(np.maximum(np.abs(smallest.value - centre), np.abs(largest.value - centre)) / bound)
    return out[0], out[1], out[2]


def check_curve(curve: PiecewiseQuintic, limits: MotionLimits) -> None:
    """Reject a curve that leaves its limits anywhere, between knots too.

    Raises
    ------
    ExcitationError
        The curve leaves a limit; joint, time, value and limit are named.
    """
    bounds = (
        (limits.lower, limits.upper),
        (-limits.velocity, limits.velocity),
        (-limits.acceleration, limits.acceleration),
    )
    for order, (lower, upper) in enumerate(bounds):
        channel, unit = _CHANNELS[order]
        slack = _ROUNDING * np.maximum(np.abs(lower), np.abs(upper))
        smallest, largest = curve.extremes(order)
        for joint, name in enumerate(limits.joint_names):
            for extreme, limit, sign in ((smallest, lower, -1), (largest, upper, 1)):
                value, time = extreme.value[joint], extreme.time[joint]
                if sign * (value - limit[joint]) > slack[joint]:
                    raise ExcitationError(
                        f"joint '{name}': {channel} {value:.6g} {unit} at {time:.3f} s is beyond its limit"
                        f" {limit[joint]:.6g} {unit}; plan within the limits or correct them"
                    )
