"""Layout of the parameter vector: which column is which parameter of which body or joint."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array

from .inertial_parameters import BODY_PARAMETERS, NAMES, POSITIVE
from .rotors import Rotor
from .user_terms import UserTerm

COUPLING_TERMS = ("rotor_inertia", "viscous", "coulomb")
NON_NEGATIVE_TERMS = ("rotor_inertia", "viscous", "coulomb", "stiffness", "stribeck")
STRIBECK_SPEED = 0.2  # rad/s or m/s; gears and seals lose their extra friction at speeds of this order


@dataclass(frozen=True)
class Coupling:
    """A drive that turns with several joints at once, such as the last motor of a wrist that turns with ``q5 + q6``.

    It has a rotor inertia and friction of its own, on the speed ``sum ratio_j v_j``, and acts on each of its joints
    with that joint's ratio.

    Attributes
    ----------
    name : str
        Of its parameters, such as ``wrist.viscous``.
    joints : tuple of str
        ``k`` joints that it turns with.
    ratios : tuple of float
        ``k`` factors of their positions.
    """

    name: str
    joints: tuple[str, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class ParameterLayout:
    """Order of the parameter vector: ten of every link and rotor, drive terms of joints, couplings, user terms.

    ``tau = Y_bodies pi + rotor_inertia a + viscous v + (coulomb + stribeck exp(-|v| / v_s)) s + offset + stiffness q``
    with the direction ``s = tanh(v / v_t)``, or ``sign(v)`` where ``v_t`` is zero ([Lee2019]_ eq. 3.2.13;
    [Wensing2018]_ eq. 24).

    Attributes
    ----------
    links : tuple of str
        Names of the moving bodies, in Pinocchio's joint order.
    joints : tuple of str
        Names of the joints, in Pinocchio's velocity order.
    drive_terms : tuple of str
        Subset of :data:`DRIVE_TERMS` that is identified, in that order.
    couplings : tuple of Coupling
        Drives that turn with several joints, three terms each (:data:`COUPLING_TERMS`).
    rotors : tuple of Rotor
        Motors that are bodies of their own.
    stribeck_speeds : tuple of float
        ``n`` speeds ``v_s`` [rad/s or m/s]; empty where all are :data:`STRIBECK_SPEED`.
    terms : tuple of UserTerm
        Torques that a configuration adds.
    without_stribeck : tuple of str
        Joints that show no Stribeck friction: it is in none of their equations.
    transition_speeds : tuple of float
        ``n`` speeds ``v_t`` [rad/s or m/s]; empty where all are zero. These two follow from recordings, and do not make
        layouts different.
    """

    links: tuple[str, ...]
    joints: tuple[str, ...]
    drive_terms: tuple[str, ...] = DRIVE_TERMS
    couplings: tuple[Coupling, ...] = ()
    rotors: tuple[Rotor, ...] = ()
    stribeck_speeds: tuple[float, ...] = ()
    terms: tuple[UserTerm, ...] = ()
    without_stribeck: tuple[str, ...] = field(default=(), compare=False)
    transition_speeds: tuple[float, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        unknown = [term for term in self.drive_terms if term not in DRIVE_TERMS]
        if unknown:
            raise ValueError(f"unknown drive terms {unknown}; known are {list(DRIVE_TERMS)}")

    @property
    def body_size(self) -> int:
        """Columns of the links."""
        return BODY_PARAMETERS * len(self.links)

    @property
    def inertial_size(self) -> int:
        """Columns of links and rotors; drives start here."""
        return self.body_size + BODY_PARAMETERS * len(self.rotors)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Links, then rotors: all that has inertial parameters."""
        return self.links + tuple(rotor.name for rotor in self.rotors)

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.term_start + sum(len(term.expressions) for term in self.terms)

    @property
    def coupling_start(self) -> int:
        """First column of the couplings; drives end here."""
        return self.inertial_size + len(self.drive_terms) * len(self.joints)

    @property
    def term_start(self) -> int:
        """First column of the user terms; couplings end here."""
        return self.coupling_start + len(COUPLING_TERMS) * len(self.couplings)

    def body(self, index: int) -> slice:
        """Columns of one link or, beyond them, rotor."""
        return slice(BODY_PARAMETERS * index, BODY_PARAMETERS * (index + 1))

    def drive(self, term: str) -> slice:
        """Columns of one drive term, one per joint; empty where the term is not identified."""
        if term not in self.drive_terms:
            return slice(self.coupling_start, self.coupling_start)
        start = self.inertial_size + self.drive_terms.index(term) * len(self.joints)
        return slice(start, start + len(self.joints))

    def term(self, index: int) -> slice:
        """Columns of one user term."""
        start = self.term_start + sum(len(term.expressions) for term in self.terms[:index])
        return slice(start, start + len(self.terms[index].expressions))

    def bodies(self, parameters: Array) -> Array:
        """``(nb, 10)`` view of the links' part of a parameter vector."""
        return parameters[: self.body_size].reshape(len(self.links), BODY_PARAMETERS)

    def rotor_bodies(self, parameters: Array) -> Array:
        """``(r, 10)`` view of the rotors' part of a parameter vector."""
        return parameters[self.body_size : self.inertial_size].reshape(len(self.rotors), BODY_PARAMETERS)

    def all_bodies(self, parameters: Array) -> Array:
        """``(nb + r, 10)`` view of links and rotors."""
        return parameters[: self.inertial_size].reshape(-1, BODY_PARAMETERS)

    @property
    def positive_of_bodies(self) -> NDArray[np.int_]:
        """Columns of what is positive of every body that has an extent: mass and diagonal of the inertia."""
        return np.add.outer(np.arange(0, self.inertial_size, BODY_PARAMETERS), POSITIVE).ravel()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name per column, such as ``panda_link3.Ixx`` or ``panda_joint2.viscous``."""
        bodies = [f"{body}.{name}" for body in self.body_names for name in NAMES]
        drives = [f"{joint}.{term}" for term in self.drive_terms for joint in self.joints]
        couplings = [f"{coupling.name}.{term}" for coupling in self.couplings for term in COUPLING_TERMS]
        terms = [name for term in self.terms for name in term.parameter_names]
        return tuple(bodies + drives + couplings + terms)

    @cached_property
    def non_negative(self) -> np.ndarray:
        """Indices of drive columns that a real drive cannot have below zero."""
        columns = [np.arange(self.size)[self.drive(term)] for term in NON_NEGATIVE_TERMS]
        return np.concatenate([*columns, np.arange(self.coupling_start, self.term_start), self._term_columns(True)])

    @cached_property
    def of_any_size(self) -> np.ndarray:
        """Indices of columns that may be as large as the torque, of either sign: offsets and user terms."""
        return np.concatenate([np.arange(self.size)[self.drive("offset")], self._term_columns(False)])

    def _term_columns(self, non_negative: bool) -> np.ndarray:
        """Columns of user terms that are identified and of one sign or of either."""
        spans = [
            np.arange(self.size)[self.term(index)]
            for index, term in enumerate(self.terms)
            if term.non_negative == non_negative and not term.values
        ]
        return np.concatenate([np.zeros(0, dtype=int), *spans])

    @cached_property
    def stribeck_speed(self) -> Array:
        """``(n,)`` speed at which a drive has lost most of its extra friction."""
        return np.array(self.stribeck_speeds or [STRIBECK_SPEED] * len(self.joints))

    @cached_property
    def with_stribeck(self) -> NDArray[np.bool_]:
        """``(n,)`` which joints have Stribeck friction."""
        sought = "stribeck" in self.drive_terms
        return np.array([sought and joint not in self.without_stribeck for joint in self.joints])

    @cached_property
    def absent(self) -> NDArray[np.intp]:
        """Columns of Stribeck friction that joints do not have."""
        columns = np.arange(self.size)[self.drive("stribeck")]
        return columns[~self.with_stribeck] if len(columns) else columns

    @cached_property
    def transition_speed(self) -> Array:
        """``(n + couplings,)`` speed within which the friction of a drive turns; of a coupling, by its joints'."""
        of_joints = np.array(self.transition_speeds or [0.0] * len(self.joints))
        return np.sqrt(self.drive_ratios**2 @ of_joints**2)

    @cached_property
    def drive_ratios(self) -> Array:
        """``(n + couplings, n)`` ratio of every joint in every drive: joints' own drives first, then couplings."""
        return np.vstack([np.eye(len(self.joints)), self.coupling_ratios])

    @cached_property
    def coupling_ratios(self) -> Array:
        """``(couplings, n)`` ratio of every joint in every coupling."""
        ratios = np.zeros((len(self.couplings), len(self.joints)))
        for row, coupling in enumerate(self.couplings):
            ratios[row, [self.joints.index(joint) for joint in coupling.joints]] = coupling.ratios
        return ratios

    @cached_property
    def gearing(self) -> Array:
        """``(n + r, n)``: the joints' motion to that of joints and rotors."""
        gearing = np.vstack([np.eye(len(self.joints)), np.zeros((len(self.rotors), len(self.joints)))])
        for row, rotor in enumerate(self.rotors, start=len(self.joints)):
            gearing[row, self.joints.index(rotor.joint)] = rotor.ratio
        return gearing
