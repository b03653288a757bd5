"""Model options from a configuration."""

import numpy as np

from inertid_ros.config.robot import TERM_SHAPES, RobotOptions, RotorOptions, TermOptions

from .bodies.layout import Coupling
from .bodies.rotors import Rotor
from .bodies.user_terms import UserTerm
from .contacts import Contact, Plate
from .model import ModelOptions
from .wheels import Wheel


def model_options(options: RobotOptions) -> ModelOptions:
    """What :func:`~.model.load_model` takes, of the options of a configuration.

    Raises
    ------
    ModelError
        Values that no robot has.
    """
    x, y, z = options.gravity
    contacts = [Contact(name, contact.frame or name) for name, contact in options.contacts.items()]
    for name, plate in options.plates.items():
        contacts.append(Contact(name, plate.frame, Plate(plate.xyz, plate.rpy, plate.measures == "pressure")))
    return ModelOptions(
        dict(options.locked_joints),
        options.drive_terms,
        (x, y, z),
        tuple(Coupling(name, given.joints, given.ratios) for name, given in options.couplings.items()),
        tuple(_rotor(name, rotor) for name, rotor in options.rotors.items()),
        options.base,
        tuple(contacts),
        dict(options.stribeck_speeds),
        tuple(Wheel(name, w.inertia or np.nan, w.link, w.axis) for name, w in options.wheels.items()),
        dict(options.effort_scale),
        tuple(_term(name, term) for name, term in options.terms.items()),
        joint_names=dict(options.joint_names),
    )


def _term(name: str, given: TermOptions) -> UserTerm:
    expressions, non_negative = TERM_SHAPES[given.shape] if given.shape else (given.expressions, given.non_negative)
    non_negative = non_negative or given.non_negative
    return UserTerm(name, given.joint, tuple(expressions), non_negative, given.values, given.always)


def _rotor(name: str, given: RotorOptions) -> Rotor:
    placed = {"com": given.com, "xyz": given.xyz, "rpy": given.rpy, "axis": given.axis}
    if given.inertia:
        return Rotor(name, given.joint, given.link, given.ratio, given.mass, given.inertia, **placed)
    size = (given.radius, given.length)
    return Rotor.cylinder(name, given.joint, given.link, given.ratio, given.mass, size, **placed)
