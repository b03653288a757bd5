"""Units that lengths, masses and inertias of a URDF cannot be in: those of CAD exporters, found by sizes that no robot
has."""

import logging

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.log_once import log_once
from inertid_ros.robot.bodies.inertial_parameters import mass_com_inertia

# Over the 62 robots of example-robot-data that load, the median radius of gyration is 0.02 to 0.9 of the length of the
# longest chain of links; one of kg mm^2 or g mm^2 is 1000 times as long. The border is just below the least of these:
# robots of unit bodies on short links are no mistake. Mass over the cube of this length is 1.2 to 48 kg/m^3; grams and
# tonnes are a factor of 1000 away, the borders in the geometric middle.
_LONGEST_GYRATION = 15.0
_DENSEST, _THINNEST = 250.0, 0.04  # kg/m^3
_FEWEST = 3  # links for which the length of the robot says what its mass can be
# Without the way to the first joint, which may be anywhere in the world. In millimetres it is 10 m for the smallest and
# the density 1e-9 of what it should be, in centimetres 1e-6: either is told from a crane, and from masses in tonnes.
_LONGEST, _THINNEST_EVER = 10.0, 2e-4  # m, kg/m^3
_USUAL_LENGTH, _USUAL_DENSITY = 1.0, 8.0  # m, kg/m^3
_LENGTHS = (("centimetres", 1e-2, 1.0), ("millimetres", 1e-3, 1.0), ("millimetres, and masses in grams", 1e-3, 1e-3))


def check_units(model: pin.Model, links: tuple[str, ...], bodies: Array) -> None:
    """Refuse inertias that no body of this robot's size can have; warn of masses that it hardly has.

    Parameters
    ----------
    bodies : ndarray, shape (nb, 10)
        Parameters of the moving links about their joint frames.

    Raises
    ------
    ModelError
        Names the link that is worst, and the factor.
    """
    length = longest_chain(model)
    if length <= 0:
        return
    mass, _, inertia = mass_com_inertia(bodies)
    _check_lengths(longest_chain(model, from_base=False), float(mass.sum()))
    gyration = np.sqrt(np.maximum(np.trace(inertia, axis1=1, axis2=2), 0.0) / 2 / mass)
    worst = int(np.argmax(gyration))
    if np.median(gyration) > _LONGEST_GYRATION * length:
        raise ModelError(
            f"URDF link '{links[worst]}': its inertia has a radius of gyration of {gyration[worst]:.3g} m, in a robot"
            f" that is {length:.2g} m long; inertias seem to be in kg mm^2: multiply all by 1e-6 (by 1e-9, and masses"
            " by 1e-3, if they are in g mm^2 and g)"
        )
    if gyration[worst] > _LONGEST_GYRATION * length:
        log_once(
            logging.WARNING,
            f"URDF link '{links[worst]}': its inertia has a radius of gyration of {gyration[worst]:.3g} m, in a robot"
            f" that is {length:.2g} m long, and no body has that; if its inertia is in kg mm^2, multiply it by 1e-6",
        )
    density, heaviest = float(mass.sum()) / length**3, int(np.argmax(mass))
    if len(mass) >= _FEWEST and not _THINNEST < density < _DENSEST:
        unit, factor = ("grams", "1e-3") if density > _DENSEST else ("tonnes", "1e3")
        log_once(
            logging.WARNING,
            f"URDF link '{links[heaviest]}': has {mass[heaviest]:.3g} kg, and the robot {mass.sum():.3g} kg on"
            f" {length:.2g} m; if masses are in {unit}, multiply them by {factor}, and inertias alike",
        )


def _check_lengths(length: float, mass: float) -> None:
    """Raise ModelError for a robot that is long and has next to no mass for that."""
    if length <= _LONGEST or mass / length**3 >= _THINNEST_EVER:
        return

    def distance(unit: tuple[str, float, float]) -> float:
        _, factor, of_mass = unit
        size = np.log10(factor * length / _USUAL_LENGTH)
        return float(np.hypot(size, np.log10(of_mass * mass / (factor * length) ** 3 / _USUAL_DENSITY)))

    unit, factor, of_mass = min(_LENGTHS, key=distance)
    raise ModelError(
        f"URDF: its joints lie {length:.3g} m behind one another, and all of it has {mass:.3g} kg; lengths seem to be"
        f" in {unit}: multiply xyz of every <origin>, and size, radius, length and scale of every shape, by {factor:g}"
        + (f", masses by {of_mass:g}" if of_mass != 1 else "")
        + ", and inertias alike, or export it again in metres and kilograms"
    )


def longest_chain(model: pin.Model, from_base: bool = True) -> float:
    """Longest way along joints [m], from the root or from the first joint behind it."""
    lengths = np.zeros(model.njoints)
    for joint in range(1, model.njoints):
        if not (from_base or model.parents[joint]):
            continue
        step = float(np.linalg.norm(model.jointPlacements[joint].translation))
        lengths[joint] = lengths[model.parents[joint]] + step
    return float(lengths.max())
