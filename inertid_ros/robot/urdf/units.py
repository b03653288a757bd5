"""Detect wrong units of lengths, masses, inertias and limits in a URDF, as some CAD exporters write them.

Wrong units give sizes, masses and speeds that are impossible for a robot.
"""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.core.inertial_parameters import mass_com_inertia

from .joints import JointLimits

# Inertias and masses. Over the 62 robots of example-robot-data that load, the median radius of gyration is 0.02 to 0.9
# of the length of the longest chain of links; inertias in kg mm^2 or g mm^2 make the ratio 1000 times as large. The
# bound is just below 20, the smallest ratio in wrong units, so that robots of unit bodies on short links pass. Mass
# over the cube of the length is 1.2 to 48 kg/m^3. The upper bound is the geometric mean of 48 and 1200 (the lightest
# robot in grams), the lower bound the geometric mean of 1.2 and 0.0012 (the lightest robot in tonnes).
_MAX_GYRATION_RATIO = 15.0
_MAX_DENSITY, _MIN_DENSITY = 250.0, 0.04  # kg/m^3
_MIN_LINKS_FOR_DENSITY = 3  # fewer links do not define the size of the robot
# Lengths, measured from the first joint, which may be anywhere in the world. If lengths are in millimetres, the
# smallest robot seems 10 m long and the density is 1e-9 of its true value (in centimetres 1e-6). Such densities occur
# neither for a crane nor for masses in tonnes.
_MAX_LENGTH, _MIN_DENSITY_OF_LONG = 10.0, 2e-4  # m, kg/m^3
_USUAL_LENGTH, _USUAL_DENSITY = 1.0, 8.0  # m, kg/m^3
_LENGTH_UNITS = (
    ("centimetres", 1e-2, 1.0), ("millimetres", 1e-3, 1.0), ("millimetres, and masses in grams", 1e-3, 1e-3))
# Limits. Joints of the robots of example-robot-data have limits of at most 20 rad and 60 rad/s, except numbers that
# stand for no limit: powers of ten, and numbers above _MAX_LIMIT.
_MAX_RANGE, _MAX_LIMIT = 25.0, 1500.0  # rad, or rad/s
_MAX_SPEED = 65.0  # rad/s
_MAX_TURNS, _TURN_ROUNDING = 20, 5e-3  # limits this close [rad] to a multiple of pi belong to a multi-turn joint
_MAX_STROKE, _MAX_STROKE_SPEED = 100.0, 25.0  # m, m/s
_GRAVITY = 9.81  # m/s^2
DEGREES, MILLIMETRES = np.pi / 180, 1e-3
_POSITIONS = (("rad", "degrees", DEGREES), ("m", "millimetres", MILLIMETRES))
_SPEEDS = (("rad/s", "degrees per second", DEGREES), ("m/s", "millimetres per second", MILLIMETRES))


def check_units(model: pin.Model, links: tuple[str, ...], bodies: Array) -> None:
    """Check lengths, inertias and masses against the size of the robot.

    ModelError for impossible lengths, or if the inertias of most links are impossible; a warning for a single
    impossible inertia or unlikely masses. ``bodies (nb, 10)`` are the parameters of the moving links in their joint
    frames.
    """
    length = longest_chain(model)
    if length <= 0:
        return
    mass, _, inertia = mass_com_inertia(bodies)
    metres = max(float(np.linalg.norm(model.gravity.linear)) / _GRAVITY, 1.0)  # gravity in feet/s^2: lengths in feet
    _check_lengths(longest_chain(model, from_base=False) / metres, float(mass.sum()))
    gyration = np.sqrt(np.maximum(np.trace(inertia, axis1=1, axis2=2), 0.0) / 2 / mass)
    worst = int(np.argmax(gyration))
    found = (
        f"URDF link '{links[worst]}': its inertia has a radius of gyration of {gyration[worst]:.3g} m, in a robot that"
        f" is {length:.2g} m long")
    if np.median(gyration) > _MAX_GYRATION_RATIO * length:
        raise ModelError(
            f"{found}; inertias seem to be in kg mm^2: multiply all by 1e-6 (by 1e-9, and masses by 1e-3, if they are"
            " in g mm^2 and g)")
    if gyration[worst] > _MAX_GYRATION_RATIO * length:
        log_once(f"{found}, which is impossible; if its inertia is in kg mm^2, multiply it by 1e-6")
    density, heaviest = float(mass.sum()) / length**3, int(np.argmax(mass))
    if len(mass) >= _MIN_LINKS_FOR_DENSITY and not _MIN_DENSITY < density < _MAX_DENSITY:
        unit, factor = ("grams", "1e-3") if density > _MAX_DENSITY else ("tonnes", "1e3")
        log_once(
            f"URDF link '{links[heaviest]}': has {mass[heaviest]:.3g} kg, and the robot {mass.sum():.3g} kg on"
            f" {length:.2g} m; if masses are in {unit}, multiply masses and inertias by {factor}")


def _check_lengths(length: float, mass: float) -> None:
    """Raise ModelError for a robot with far too little mass for its length."""
    if length <= _MAX_LENGTH or mass / length**3 >= _MIN_DENSITY_OF_LONG:
        return
    _, factors, of_masses = map(np.array, zip(*_LENGTH_UNITS, strict=True))
    sizes = np.log10(factors * length / _USUAL_LENGTH)
    densities = np.log10(of_masses * mass / (factors * length) ** 3 / _USUAL_DENSITY)
    unit, factor, of_mass = _LENGTH_UNITS[int(np.argmin(np.hypot(sizes, densities)))]
    raise ModelError(
        f"URDF: its longest chain of joints is {length:.3g} m long, and its mass is {mass:.3g} kg; lengths seem to be"
        f" in {unit}: multiply xyz of every <origin>, and size, radius, length and scale of every shape, by {factor:g}"
        + (f", masses by {of_mass:g}" if of_mass != 1 else "")
        + ", and correct inertias, too; or export it again in metres and kilograms")


def longest_chain(model: pin.Model, from_base: bool = True) -> float:
    """Length of the longest chain of joints [m], from the root or from the first joint."""
    lengths = np.zeros(model.njoints)
    for joint in range(1, model.njoints):
        if not (from_base or model.parents[joint]):
            continue
        step = float(np.linalg.norm(model.jointPlacements[joint].translation))
        lengths[joint] = lengths[model.parents[joint]] + step
    return float(lengths.max())


@dataclass(frozen=True)
class DoubtfulLimits:
    """Limits of one quantity that seem not to be in SI units.

    Attributes
    ----------
    key : ``position`` or ``velocity``.
    factor : factor from the apparent unit to SI.
    option : YAML that replaces the limits in planning, in SI units.
    """

    key: str
    joints: tuple[str, ...]
    factor: float
    evidence: str
    remedy: str
    option: str

    def __str__(self) -> str:
        return f"URDF {self.evidence}; {self.remedy}, or set {self.option}"


def doubtful_limits(names: tuple[str, ...], limits: JointLimits, slides: Mask,
        length: float) -> tuple[DoubtfulLimits, ...]:
    """Position and velocity limits that are impossible in SI units.

    Parameters
    ----------
    slides : bool (n,), whether a joint is prismatic.
    length : length of the longest chain of joints [m].
    """
    far = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
    width = np.where(np.isfinite(far), limits.upper - limits.lower, 0.0)
    no_range = _power_of_ten(far) & ((limits.lower == -limits.upper) | slides)
    turns = _whole_turns(limits.lower) & _whole_turns(limits.upper) | (far > _MAX_LIMIT)
    stroke = max(_MAX_STROKE, 50 * length)
    ranges = np.where(slides, width > stroke, (width > _MAX_RANGE) & ~turns) & ~no_range
    fastest = np.where(slides, _MAX_STROKE_SPEED, _MAX_RANGE if (ranges & ~slides).any() else _MAX_SPEED)
    speeds = (limits.velocity > fastest) & (limits.velocity <= _MAX_LIMIT) & ~_power_of_ten(limits.velocity)
    positions, velocities = np.column_stack([limits.lower, limits.upper]), limits.velocity[:, None]
    return tuple(
        _doubtful(key, names, values, which & of_type, unit)
        for key, values, which, units in (
            ("position", positions, ranges, _POSITIONS), ("velocity", velocities, speeds, _SPEEDS))
        for of_type, unit in zip((~slides, slides), units, strict=True) if (which & of_type).any())


def _doubtful(key: str, names: tuple[str, ...], values: Array, which: Mask,
        units: tuple[str, str, float]) -> DoubtfulLimits:
    """Limits of the joints ``which``; ``values`` are ``(n, 2)`` for positions, ``(n, 1)`` for velocities."""
    si, looks_like, factor = units
    joints = tuple(name for name, doubtful in zip(names, which, strict=True) if doubtful)
    worst = int(np.argmax(np.where(which, np.ptp(np.column_stack([values, np.zeros(len(names))]), axis=1), 0.0)))
    stated = " to ".join(f"{value:g}" for value in values[worst])
    texts = [", ".join(f"{factor * value:.4g}" for value in row) for row in values[which]]
    option = ", ".join(
        f"{name}: {f'[{text}]' if key == 'position' else text}" for name, text in zip(joints, texts, strict=True))
    others = f" (and {len(joints) - 1} more)" if len(joints) > 1 else ""
    what = "lower and upper" if key == "position" else "velocity"
    return DoubtfulLimits(
        key, joints, factor,
        f"limits of '{names[worst]}': {key} of {stated} {si} looks like {looks_like}{others}",
        f"multiply {what} of {', '.join(joints)} by {factor:.6g} in the URDF", f"limits.{key}: {{{option}}}")


def _power_of_ten(values: Array) -> Mask:
    """True if each limit is a power of ten, which stands for no limit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.log10(np.abs(values))
        return np.asarray(np.abs(exponent - np.round(exponent)) < 1e-9)


def _whole_turns(values: Array) -> Mask:
    halves = np.round(np.nan_to_num(values) / np.pi)
    return (np.abs(halves) <= 2 * _MAX_TURNS) & (np.abs(np.nan_to_num(values) - np.pi * halves) < _TURN_ROUNDING)
