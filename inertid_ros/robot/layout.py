"""Layout of the parameter vector: columns of the parameters of bodies, drives, couplings and user terms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from inertid_ros.config.robot import DRIVE_TERMS, TERM_SHAPES, TERM_SIGNALS, TermOptions
from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.expressions import Expression
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, NAMES, POSITIVE

from .rotors import Rotor

COUPLING_TERMS = ("rotor_inertia", "viscous", "coulomb")
NON_NEGATIVE_TERMS = ("rotor_inertia", "viscous", "coulomb", "stiffness", "stribeck")
MAX_FORMULAS = 200  # of all user terms; controllers compute them in each step, and fits cost the square of their number
STRIBECK_SPEED = 0.2  # rad/s or m/s; gears and seals lose their extra friction at speeds of this order


@dataclass(frozen=True)
class UserTerm:
    """Torque term of a joint from the configuration: ``sum_i x_i f_i(q, v, a)`` with unknown ``x`` and known ``f``.

    A coupling whose ratios change with the pose is a term, too, which acts on several joints.

    Attributes
    ----------
    name : prefix of parameter names, as in ``counterbalance.sin(q)``.
    expressions : ``k`` formulas of :data:`~inertid_ros.config.robot.TERM_SIGNALS`, see :class:`.Expression`.
    non_negative : whether the parameters cannot be negative, as for friction.
    values : ``k`` known parameters; empty if the parameters are identified.
    always : whether the term is kept even if it does not improve the prediction of held-out data.
    labels : ``k`` names of the parameters; empty: their formulas.
    further_joints, further_expressions : ``j`` other joints on which it acts, and ``k`` formulas for each of them.
    """

    name: str
    joint: str
    expressions: tuple[str, ...]
    non_negative: bool = False
    values: tuple[float, ...] = ()
    always: bool = False
    labels: tuple[str, ...] = ()
    further_joints: tuple[str, ...] = ()
    further_expressions: tuple[str, ...] = ()

    @classmethod
    def of_coupling(cls, name: str, position: str) -> "UserTerm":
        """Drive at the position ``f(q)``, with the terms :data:`COUPLING_TERMS` ([Lee2019]_ eqs. 3.6.57-59).

        Its speed is ``J v`` and its acceleration ``J a + dJ/dt v`` with the ratios ``J = df/dq``; joint ``j`` gets
        ``J_j`` times its torque. Raises ValueError: ``f`` is not smooth, or its derivatives are too long.
        """
        motor = Expression(position, ("q",))
        joints = sorted({joint for _, joint in motor.used})
        slopes = {joint: motor.derivative("q", joint) for joint in joints}
        ratios = {joint: slope for joint, slope in slopes.items() if slope != "0"}
        if not ratios:
            raise ValueError(f"{position} does not change with any joint; correct it")
        bends = [
            f'{1 + (one != other)}*({bend})*v["{one}"]*v["{other}"]'
            for one, ratio in ratios.items() for other in joints if one <= other
            and (bend := Expression(ratio, ("q",)).derivative("q", other)) != "0"]
        speed = " + ".join(f'({ratio})*v["{joint}"]' for joint, ratio in ratios.items())
        acceleration = " + ".join([*(f'({ratio})*a["{joint}"]' for joint, ratio in ratios.items()), *bends])
        drive = (acceleration, speed, f"sign({speed})")
        first, *others = [tuple(f"({ratio})*({part})" for part in drive) for ratio in ratios.values()]
        return cls(
            name, next(iter(ratios)), first, non_negative=True, always=True, labels=COUPLING_TERMS,
            further_joints=tuple(ratios)[1:], further_expressions=tuple(part for other in others for part in other))

    @classmethod
    def from_options(cls, name: str, term: TermOptions) -> "UserTerm":
        expressions, non_negative = TERM_SHAPES.get(term.shape, (term.expressions, False))
        return cls(name, term.joint, expressions, non_negative or term.non_negative, term.values, term.always)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """``k`` names of its parameters."""
        return tuple(f"{self.name}.{label}" for label in self.labels or self.expressions)

    @property
    def by_joint(self) -> dict[str, tuple[str, ...]]:
        """``k`` formulas for each joint on which the term acts."""
        every, count = self.expressions + self.further_expressions, len(self.expressions)
        joints = enumerate((self.joint, *self.further_joints))
        return {joint: every[i * count : (i + 1) * count] for i, joint in joints}

    @cached_property
    def formulas(self) -> dict[str, tuple[Expression, ...]]:
        """``k`` parsed formulas for each joint on which the term acts."""
        return {joint: tuple(Expression(text, TERM_SIGNALS) for text in texts)
            for joint, texts in self.by_joint.items()}

    @property
    def signals(self) -> set[tuple[str, str]]:
        """Pairs of signal and joint that the formulas use; an empty joint stands for the joint that a formula acts on.
        """
        return {used for formulas in self.formulas.values() for formula in formulas for used in formula.used}

    @property
    def uses_load(self) -> bool:
        """True if a formula depends on the torque of the bodies."""
        return any(signal == "load" for signal, _ in self.signals)


def misnamed(terms: Sequence[UserTerm], joints: Sequence[str]) -> str:
    """Problem of user terms: too many formulas, or the first term with an unknown joint; empty if all are valid."""
    if (count := sum(len(term.expressions) for term in terms)) > MAX_FORMULAS:
        return f"terms have {count} formulas; give at most {MAX_FORMULAS}"
    for term in terms:
        names = {*term.by_joint, *(joint for _, joint in term.signals if joint)}
        if unknown := sorted(names - set(joints)):
            return f"term '{term.name}': joint '{unknown[0]}' does not exist; the robot has {tuple(joints)}"
    return ""


@dataclass(frozen=True)
class Coupling:
    """Drive that turns with several joints at once, such as a wrist motor that turns with ``q5 + q6``.

    Its rotor inertia and friction act at the speed ``sum ratio_j v_j``; joint ``j`` gets ``ratio_j`` times its torque.

    Attributes
    ----------
    name : prefix of parameter names, as in ``wrist.viscous``.
    joints : ``k`` joints.
    ratios : ``k`` factors of their positions.
    """

    name: str
    joints: tuple[str, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class ParameterLayout:
    """Order of the parameter vector: ten per link and per rotor, drive terms of joints, couplings, user terms.

    With ``compensation``, the measured effort lacks the gravity of the controller's own model of the links; the ten
    parameters of each of its links follow the rotors. Of these ten, effort depends on mass and first moments.

    ``tau = Y_bodies pi + rotor_inertia a + viscous v + (coulomb + stribeck exp(-|v| / v_s)) s + offset + stiffness q``
    with the direction ``s = tanh(v / v_t)``, or ``sign(v)`` for ``v_t = 0`` ([Lee2019]_ eq. 3.2.13;
    [Wensing2018]_ eq. 24).

    Attributes
    ----------
    links : names of the moving bodies, in Pinocchio's joint order.
    joints : names of the joints, in Pinocchio's velocity order.
    drive_terms : identified subset of :data:`DRIVE_TERMS`, in that order.
    couplings : drives that turn with several joints, three terms each (:data:`COUPLING_TERMS`).
    stribeck_speeds : ``n`` speeds ``v_s`` [rad/s or m/s]; empty: all are :data:`STRIBECK_SPEED`.
    without_stribeck : joints without Stribeck friction in their equations.
    transition_speeds : ``n`` speeds ``v_t`` [rad/s or m/s]; empty: all are zero. Comparison ignores
        ``without_stribeck`` and ``transition_speeds``, which follow from recordings.
    """

    links: tuple[str, ...]
    joints: tuple[str, ...]
    drive_terms: tuple[str, ...] = DRIVE_TERMS
    couplings: tuple[Coupling, ...] = ()
    rotors: tuple[Rotor, ...] = ()
    stribeck_speeds: tuple[float, ...] = ()
    terms: tuple[UserTerm, ...] = ()
    compensation: bool = False
    without_stribeck: tuple[str, ...] = field(default=(), compare=False)
    transition_speeds: tuple[float, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if unknown := [term for term in self.drive_terms if term not in DRIVE_TERMS]:
            raise ValueError(f"unknown drive terms {unknown}; choose from {list(DRIVE_TERMS)}")

    @property
    def body_size(self) -> int:
        return BODY_PARAMETERS * len(self.links)

    @property
    def rotor_end(self) -> int:
        """Columns of links and rotors; the links of a gravity compensation start here."""
        return self.body_size + BODY_PARAMETERS * len(self.rotors)

    @property
    def inertial_size(self) -> int:
        """Columns of all bodies; drives start here."""
        return self.rotor_end + self.compensation * self.body_size

    @property
    def body_names(self) -> tuple[str, ...]:
        compensated = (f"compensated {link}" for link in self.links) if self.compensation else ()
        return (*self.links, *(rotor.name for rotor in self.rotors), *compensated)

    @property
    def size(self) -> int:
        return self.term_start + sum(len(term.expressions) for term in self.terms)

    @property
    def coupling_start(self) -> int:
        """First column of the couplings; drives end here."""
        return self.inertial_size + len(self.drive_terms) * len(self.joints)

    @property
    def rotor_inertias(self) -> Indices:
        """Columns of the rotor inertia of joints, then of couplings."""
        names = self.names[self.inertial_size :]
        return self.inertial_size + np.flatnonzero([name.endswith(".rotor_inertia") for name in names])

    @property
    def term_start(self) -> int:
        """First column of the user terms; couplings end here."""
        return self.coupling_start + len(COUPLING_TERMS) * len(self.couplings)

    def body(self, index: int) -> slice:
        """Columns of one body; indices of rotors, then of the links of a gravity compensation, follow the links."""
        return slice(BODY_PARAMETERS * index, BODY_PARAMETERS * (index + 1))

    def drive(self, term: str) -> slice:
        """Columns of one drive term, one per joint; empty if the term is not identified."""
        if term not in self.drive_terms:
            return slice(self.coupling_start, self.coupling_start)
        start = self.inertial_size + self.drive_terms.index(term) * len(self.joints)
        return slice(start, start + len(self.joints))

    def term(self, index: int) -> slice:
        start = self.term_start + sum(len(term.expressions) for term in self.terms[:index])
        return slice(start, start + len(self.terms[index].expressions))

    def bodies(self, parameters: Array) -> Array:
        """``(nb, 10)`` view of the links' part of a parameter vector."""
        return parameters[: self.body_size].reshape(len(self.links), BODY_PARAMETERS)

    def further_bodies(self, parameters: Array) -> Array:
        """``(k, 10)`` view of the part of rotors, then of the links of a gravity compensation."""
        return parameters[self.body_size : self.inertial_size].reshape(-1, BODY_PARAMETERS)

    def without_compensation(self, values: Array) -> Array:
        """Parameters ``(p,)``, or covariance ``(p, p)``, of the torque itself in place of efforts without gravity."""
        kept = np.ones(self.size)
        kept[self.rotor_end : self.inertial_size] = 0.0
        return values * kept if values.ndim == 1 else kept[:, None] * values * kept

    def all_bodies(self, parameters: Array) -> Array:
        """``(nb + r, 10)`` view of links, rotors and the links of a gravity compensation."""
        return parameters[: self.inertial_size].reshape(-1, BODY_PARAMETERS)

    @property
    def positive_of_bodies(self) -> Indices:
        """Columns of mass and of the diagonal of the inertia, which are positive for every body with an extent."""
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
        """Columns that cannot be negative for a real drive."""
        columns = [np.arange(self.size)[self.drive(term)] for term in NON_NEGATIVE_TERMS]
        return np.concatenate([*columns, np.arange(self.coupling_start, self.term_start), self._term_columns(True)])

    @cached_property
    def of_any_size(self) -> np.ndarray:
        """Columns that may be as large as the torque, of either sign: offsets and user terms."""
        return np.concatenate([np.arange(self.size)[self.drive("offset")], self._term_columns(False)])

    def _term_columns(self, non_negative: bool) -> np.ndarray:
        """Columns of identified user terms whose parameters cannot (True) or can (False) be negative."""
        wanted = [k for k, term in enumerate(self.terms) if term.non_negative == non_negative and not term.values]
        return np.concatenate([np.zeros(0, dtype=int), *(np.arange(self.size)[self.term(k)] for k in wanted)])

    @cached_property
    def stribeck_speed(self) -> Array:
        """``(n,)`` speeds ``v_s``."""
        return np.array(self.stribeck_speeds or [STRIBECK_SPEED] * len(self.joints))

    @cached_property
    def with_stribeck(self) -> Mask:
        """``(n,)`` whether a joint has Stribeck friction."""
        identified = "stribeck" in self.drive_terms
        return np.array([identified and joint not in self.without_stribeck for joint in self.joints])

    @property
    def known_terms(self) -> tuple[str, ...]:
        """Names of the parameters of user terms with given values."""
        return tuple(name for term in self.terms if term.values for name in term.parameter_names)

    @cached_property
    def absent(self) -> Indices:
        """Columns of Stribeck friction for joints without Stribeck friction."""
        columns = np.arange(self.size)[self.drive("stribeck")]
        return columns[~self.with_stribeck] if len(columns) else columns

    @cached_property
    def transition_speed(self) -> Array:
        """``(n + couplings,)`` speeds ``v_t``; the speeds of couplings follow from the speeds of their joints."""
        speeds = np.array(self.transition_speeds or [0.0] * len(self.joints))
        return np.sqrt(self.drive_ratios**2 @ speeds**2)

    @cached_property
    def drive_ratios(self) -> Array:
        """``(n + couplings, n)`` ratio of every joint (column) in every drive (row): single joints, then couplings."""
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
        """``(n + r, n)`` map from the motion of joints to the motion of joints and rotors."""
        gearing = np.vstack([np.eye(len(self.joints)), np.zeros((len(self.rotors), len(self.joints)))])
        for row, rotor in enumerate(self.rotors, start=len(self.joints)):
            gearing[row, self.joints.index(rotor.joint)] = rotor.ratio
        return gearing
