"""Units that limits of a URDF cannot be in: degrees and millimetres, found by ranges and speeds that no joint has."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array

from .model import RobotModel
from .units import longest_chain

# Of the 62 robots of example-robot-data that load, no joint but those without a limit turns by more than 20 rad, and
# none is faster than 60 rad/s but those whose limit stands for none: powers of ten, and what exceeds _LARGEST.
_WIDEST, _LARGEST = 25.0, 1500.0  # rad, or rad/s
_FASTEST = 65.0  # rad/s
_TURNS, _ROUNDED = 20, 5e-3  # multiples of pi up to so many turns, to so many rad, are those of a multi-turn joint
_LONGEST_STROKE, _FASTEST_STROKE = 100.0, 25.0  # m, m/s
DEGREES, MILLIMETRES = np.pi / 180, 1e-3


@dataclass(frozen=True)
class DoubtfulLimits:
    """Limits of one kind that look as if they were in another unit.

    Attributes
    ----------
    key : str
        ``position`` or ``velocity``.
    joints : tuple of str
        Those that have such limits.
    unit : str
        That they look like.
    factor : float
        To the unit of the SI.
    evidence : str
        One clause.
    remedy : str
        What to change in the URDF.
    option : str
        YAML that replaces the limits in planning, in SI units.
    """

    key: str
    joints: tuple[str, ...]
    unit: str
    factor: float
    evidence: str
    remedy: str
    option: str

    def __str__(self) -> str:
        return f"URDF joint {self.evidence}; {self.remedy}, or set {self.option}"


def doubtful_limits(model: RobotModel) -> tuple[DoubtfulLimits, ...]:
    """Limits of positions and velocities that no joint of this robot has in SI units."""
    limits, slides = model.limits, np.any(model.axes[len(model.link_names) - model.joints :, :3] != 0, axis=1)
    width, far = limits.upper - limits.lower, np.maximum(np.abs(limits.lower), np.abs(limits.upper))
    stands_for_none = _power_of_ten(far) & (limits.lower == -limits.upper) | (far > _LARGEST)
    turned = (width > _WIDEST) & ~stands_for_none & ~(_whole_turns(limits.lower) & _whole_turns(limits.upper))
    stroke = max(_LONGEST_STROKE, 50 * longest_chain(model.pinocchio))
    slid = (width > stroke) & np.isfinite(width) & ~_power_of_ten(far)
    quick = (limits.velocity > np.where(slides, _FASTEST_STROKE, _WIDEST if turned.any() else _FASTEST)) & ~(
        _power_of_ten(limits.velocity) | (limits.velocity > _LARGEST)
    )
    doubtful = (("position", np.where(slides, slid, turned), _POSITIONS), ("velocity", quick, _SPEEDS))
    return tuple(
        _doubtful(model, key, which & kind_of_joint, kind)
        for key, which, kinds in doubtful
        for kind_of_joint, kind in zip((~slides, slides), kinds, strict=True)
        if (which & kind_of_joint).any()
    )


_POSITIONS = (("rad", "degrees", DEGREES), ("m", "millimetres", MILLIMETRES))
_SPEEDS = (("rad/s", "degrees per second", DEGREES), ("m/s", "millimetres per second", MILLIMETRES))


def _doubtful(model: RobotModel, key: str, which: NDArray[np.bool_], kind: tuple[str, str, float]) -> DoubtfulLimits:
    unit, looks_like, factor = kind
    indices = np.flatnonzero(which)
    names, limits = tuple(model.joint_names[index] for index in indices), model.limits
    if key == "position":
        worst = max(indices, key=lambda index: limits.upper[index] - limits.lower[index])
        given = f"goes from {limits.lower[worst]:g} to {limits.upper[worst]:g} {unit} by its limits"
        values = [f"[{factor * limits.lower[i]:.4g}, {factor * limits.upper[i]:.4g}]" for i in indices]
        what = "lower and upper"
    else:
        worst = max(indices, key=lambda index: limits.velocity[index])
        given = f"may move at {limits.velocity[worst]:g} {unit} by its limit"
        values = [f"{factor * limits.velocity[i]:.4g}" for i in indices]
        what = "velocity"
    others = f", as do those of {len(names) - 1} others" if len(names) > 1 else ""
    evidence = f"'{model.joint_names[worst]}' {given}, which looks like {looks_like}{others}"
    stated = ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
    remedy = f"multiply {what} of {', '.join(names)} by {factor:.6g} in the URDF"
    return DoubtfulLimits(key, names, looks_like, factor, evidence, remedy, f"limits.{key}: {{{stated}}}")


def _power_of_ten(values: Array) -> NDArray[np.bool_]:
    """Round numbers that stand for no limit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.log10(np.abs(values))
        return np.asarray(np.abs(exponent - np.round(exponent)) < 1e-9)


def _whole_turns(values: Array) -> NDArray[np.bool_]:
    halves = np.round(np.nan_to_num(values) / np.pi)
    return (np.abs(halves) <= 2 * _TURNS) & (np.abs(np.nan_to_num(values) - np.pi * halves) < _ROUNDED)
