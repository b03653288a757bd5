"""Limits that a motion keeps, and the proof that it keeps them between samples too."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..errors import ExcitationError
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .quintic import PiecewiseQuintic

_ROUNDING = 1e-9  # relative; a motion scaled exactly onto its limit must not fail by the last bit
_CHANNELS = (("position", "rad"), ("velocity", "rad/s"), ("acceleration", "rad/s^2"))


@dataclass(frozen=True)
class LimitOptions:
    """How the limits of a motion follow from those of the URDF. Joint names map to values (rad or m, s, N m or N).

    Attributes
    ----------
    position_margin: kept from both position limits of the URDF [rad or m].
    velocity_fraction: of the URDF's velocity limit that a motion may use, 0 to 1.
    effort_fraction: of the URDF's effort limit that the prior model may need, 0 to 1; the rest covers its error.
    default_acceleration: for joints that ``acceleration`` does not name; a URDF has none [rad/s^2 or m/s^2].
    acceleration: joint name to limit [rad/s^2 or m/s^2].
    velocity, effort: joint name to limit in place of the URDF's, before the fraction.
    position: joint name to ``(lower, upper)``, a box inside the URDF's limits [rad or m].
    continuous_range: joints without position limits stay within plus and minus this [rad].
    """

    position_margin: float = 0.05
    velocity_fraction: float = 0.8
    effort_fraction: float = 0.8
    default_acceleration: float = 5.0
    acceleration: Mapping[str, float] = field(default_factory=dict)
    velocity: Mapping[str, float] = field(default_factory=dict)
    effort: Mapping[str, float] = field(default_factory=dict)
    position: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    continuous_range: float = np.pi


@dataclass(frozen=True)
class MotionLimits:
    """Limits per joint, ``(n,)`` each, finite and of positive width.

    Raises
    ------
    ExcitationError: a limit is missing, not finite, not positive, or lower is not below upper; the joint is named.
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
    ExcitationError: an option names an unknown joint or is out of range, or a limit is missing.
    """
    options = options or LimitOptions()
    names = model.joint_names
    for fraction in ("velocity_fraction", "effort_fraction"):
        if not 0 < getattr(options, fraction) <= 1:
            raise ExcitationError(f"limits.{fraction} is {getattr(options, fraction)}; give 0 < value <= 1")
    if not options.position_margin >= 0:
        raise ExcitationError(f"limits.position_margin is {options.position_margin}; give 0 or more")
    for key in ("acceleration", "velocity", "effort", "position"):
        unknown = sorted(set(getattr(options, key)) - set(names))
        if unknown:
            raise ExcitationError(f"limits.{key} names joint '{unknown[0]}', which is not one of {list(names)}")
    given = model.limits
    lower, upper = given.lower + options.position_margin, given.upper - options.position_margin
    free = np.isinf(given.lower) & np.isinf(given.upper)
    lower, upper = np.where(free, -options.continuous_range, lower), np.where(free, options.continuous_range, upper)
    for index, name in enumerate(names):
        if name in options.position:
            box = np.array(options.position[name], dtype=float)
            if box.shape != (2,) or not np.isfinite(box).all():
                raise ExcitationError(f"limits.position of joint '{name}' is not a finite (lower, upper); give two numbers")
            low, high = (-np.inf, np.inf) if free[index] else (lower[index], upper[index])
            lower[index], upper[index] = max(box[0], low), min(box[1], high)
    velocity = np.array([options.velocity.get(name, given.velocity[i]) for i, name in enumerate(names)])
    effort = np.array([options.effort.get(name, given.effort[i]) for i, name in enumerate(names)])
    acceleration = np.array([options.acceleration.get(name, options.default_acceleration) for name in names])
    return MotionLimits(
        names, lower, upper, velocity * options.velocity_fraction, acceleration, effort * options.effort_fraction
    )


def usage(curve: PiecewiseQuintic, limits: MotionLimits) -> tuple[Array, Array, Array]:
    """Fraction of each limit that the whole curve uses, ``(n,)`` for position range, velocity and acceleration.

    A position fraction above 1 lies outside the range; 0 is its middle.
    """
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    out = []
    for order, (centre, bound) in enumerate(((middle, half), (0.0, limits.velocity), (0.0, limits.acceleration))):
        smallest, largest = curve.extremes(order)
        low, high = np.array([e.value for e in smallest]) - centre, np.array([e.value for e in largest]) - centre
        out.append(np.maximum(np.abs(low), np.abs(high)) / bound)
    return out[0], out[1], out[2]


def check_curve(curve: PiecewiseQuintic, limits: MotionLimits) -> None:
    """Refuse a curve that leaves its limits anywhere, between knots too.

    Raises
    ------
    ExcitationError: naming the joint, the time, the value and the limit.
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
            for extreme, limit, beyond in (
                (smallest[joint], lower[joint], lower[joint] - smallest[joint].value),
                (largest[joint], upper[joint], largest[joint].value - upper[joint]),
            ):
                if beyond > slack[joint]:
                    raise ExcitationError(
                        f"joint '{name}': {channel} {extreme.value:.6g} {unit} at {extreme.time:.3f} s is beyond its limit"
                        f" {limit:.6g} {unit}; plan within the limits or correct them"
                    )
