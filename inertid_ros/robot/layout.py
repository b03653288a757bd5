"""Which column is which parameter of which body or joint: the only place that knows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .parameters import BODY_PARAMETERS, NAMES, Array

DRIVE_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stiffness", "stribeck")
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
    name: of its parameters, such as ``wrist.viscous``.
    joints, ratios: ``k`` names and ``k`` factors.
    """

    name: str
    joints: tuple[str, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class ParameterLayout:
    """Order of the parameter vector: ten of every body, then each drive term of every joint, then couplings.

    ``tau = Y_bodies pi + rotor_inertia a + viscous v + (coulomb + stribeck exp(-|v| / v_s)) sign(v) + offset
    + stiffness q`` with ``v_s`` = :data:`STRIBECK_SPEED` (C 3.2.13; E 24).

    Attributes
    ----------
    links: names of the moving bodies, in Pinocchio's joint order.
    joints: names of the joints, in Pinocchio's velocity order.
    drive_terms: subset of :data:`DRIVE_TERMS` that is identified, in that order.
    couplings: drives that turn with several joints, three terms each (:data:`COUPLING_TERMS`).
    """

    links: tuple[str, ...]
    joints: tuple[str, ...]
    drive_terms: tuple[str, ...] = DRIVE_TERMS
    couplings: tuple[Coupling, ...] = ()

    def __post_init__(self) -> None:
        unknown = [term for term in self.drive_terms if term not in DRIVE_TERMS]
        if unknown:
            raise ValueError(f"unknown drive terms {unknown}; known are {list(DRIVE_TERMS)}")

    @property
    def body_size(self) -> int:
        return BODY_PARAMETERS * len(self.links)

    @property
    def size(self) -> int:
        return self.coupling_start + len(COUPLING_TERMS) * len(self.couplings)

    @property
    def coupling_start(self) -> int:
        """First column of the couplings; drives end here."""
        return self.body_size + len(self.drive_terms) * len(self.joints)

    def body(self, index: int) -> slice:
        """Columns of one body."""
        return slice(BODY_PARAMETERS * index, BODY_PARAMETERS * (index + 1))

    def drive(self, term: str) -> slice:
        """Columns of one drive term, one per joint; empty where the term is not identified."""
        if term not in self.drive_terms:
            return slice(self.coupling_start, self.coupling_start)
        start = self.body_size + self.drive_terms.index(term) * len(self.joints)
        return slice(start, start + len(self.joints))

    def bodies(self, parameters: Array) -> Array:
        """``(nb, 10)`` view of the inertial part of a parameter vector."""
        return parameters[: self.body_size].reshape(len(self.links), BODY_PARAMETERS)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name per column, such as ``panda_link3.Ixx`` or ``panda_joint2.viscous``."""
        bodies = [f"{link}.{name}" for link in self.links for name in NAMES]
        drives = [f"{joint}.{term}" for term in self.drive_terms for joint in self.joints]
        couplings = [f"{coupling.name}.{term}" for coupling in self.couplings for term in COUPLING_TERMS]
        return tuple(bodies + drives + couplings)

    @cached_property
    def non_negative(self) -> np.ndarray:
        """Indices of drive columns that a real drive cannot have below zero."""
        columns = [np.arange(self.size)[self.drive(term)] for term in NON_NEGATIVE_TERMS]
        return np.concatenate([*columns, np.arange(self.coupling_start, self.size)])

    def drives(self, parameters: Array) -> Array:
        """``(terms, n)`` view of the drive part of a parameter vector."""
        return parameters[self.body_size : self.coupling_start].reshape(len(self.drive_terms), len(self.joints))

    @cached_property
    def coupling_ratios(self) -> Array:
        """``(couplings, n)`` ratio of every joint in every coupling."""
        ratios = np.zeros((len(self.couplings), len(self.joints)))
        for row, coupling in enumerate(self.couplings):
            ratios[row, [self.joints.index(joint) for joint in coupling.joints]] = coupling.ratios
        return ratios
