"""Drive regressor: joint torque linear in rotor inertia, friction, offset and stiffness ([Wensing2018]_ eq. 24), and in
the unknowns of user terms.

The friction of gears depends on the torque that a drive transmits to the bodies behind it ([Hamon2010]_ eq. 5). This
dependence is not linear in the parameters: the signal ``load`` is computed from given bodies, and
:func:`~inertid_ros.identification.identify.identify` repeats the fit with the estimated bodies.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array, Indices
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import COUPLING_TERMS, ParameterLayout, UserTerm
from inertid_ros.robot.model import RobotModel


def friction_direction(velocity: Array, transition_speed: Array) -> Array:
    """``(..., d)`` direction of sliding: ``tanh(v / transition_speed)``, or ``sign(v)`` if that speed is zero."""
    smooth = transition_speed > 0
    if not smooth.any():
        return np.sign(velocity)
    return np.where(smooth, np.tanh(velocity / np.where(smooth, transition_speed, 1.0)), np.sign(velocity))


def dry_friction(velocity: Array, coulomb: Array, stribeck: Array, stribeck_speed: Array) -> Array:
    """``(..., d)`` magnitude of dry friction, ``coulomb + stribeck exp(-|v| / stribeck_speed)`` [N m or N].

    The Stribeck part falls to 1/e at ``stribeck_speed (d,)`` [rad/s or m/s].
    """
    return coulomb + stribeck * _slow_share(velocity, stribeck_speed)


def fading_direction(direction: Array, velocity: Array, stribeck_speed: Array) -> Array:
    """``(..., d)`` direction of sliding times ``exp(-|v| / stribeck_speed)``, the column of Stribeck friction."""
    return np.asarray(direction * _slow_share(velocity, stribeck_speed))


def _slow_share(velocity: Array, stribeck_speed: Array) -> Array:
    """``(..., d)`` share of Stribeck friction that remains at a velocity."""
    return np.asarray(np.exp(-np.abs(velocity) / stribeck_speed))


def friction_torque(velocity: Array, terms: Mapping[str, Array], stribeck_speed: Array,
        transition_speed: Array) -> Array:
    """Torque or force ``(..., d)`` that drives must apply against friction [N m or N].

    ``viscous v + (coulomb + stribeck exp(-|v| / stribeck_speed)) tanh(v / transition_speed)`` ([Wensing2018]_ eq. 24,
    with a Stribeck term and a smooth direction).

    Parameters
    ----------
    terms : (d,), ``viscous``, ``coulomb`` and ``stribeck`` [N m s/rad, N m, N m; or in m and N].
    """
    dry = dry_friction(velocity, terms["coulomb"], terms["stribeck"], stribeck_speed)
    return terms["viscous"] * velocity + dry * friction_direction(velocity, transition_speed)


def dry_friction_columns(layout: ParameterLayout, samples: Samples) -> tuple[Array, Array]:
    """Columns of dry friction, low-passed like the measured torque.

    ``(N, n + couplings)`` for Coulomb friction of all drives, joints first, and ``(N, n)`` for Stribeck friction (zero
    for joints without Stribeck friction). If ``samples.undecimated`` is None, the velocity of the samples is used.
    """
    if samples.undecimated is None:
        dry = _columns(layout, samples.v[:, samples.v.shape[1] - len(layout.joints) :])
    else:
        shapes = (layout.drive_ratios, layout.transition_speed, layout.with_stribeck, layout.stribeck_speed)
        key = tuple(shape.tobytes() for shape in shapes)
        dry = samples.undecimated.filtered(lambda velocity: _columns(layout, velocity), key)
    drives = len(layout.drive_ratios)
    return dry[:, :drives], dry[:, drives:]


def _columns(layout: ParameterLayout, velocity: Array) -> Array:
    """Columns ``(N, n + couplings + n)`` for joint velocities ``(N, n)``, before the low-pass."""
    direction = friction_direction(velocity @ layout.drive_ratios.T, layout.transition_speed)
    fading = np.zeros_like(velocity)
    if layout.with_stribeck.any():
        fading = layout.with_stribeck * fading_direction(
            direction[:, : len(layout.joints)], velocity, layout.stribeck_speed)
    return np.hstack([direction, fading])


def term_columns(terms: Sequence[UserTerm], joint_names: Sequence[str],
        signals: Mapping[str, Array]) -> list[tuple[int, int, Array]]:
    """Parameter index, joint index and values ``(N,)`` of every formula of user terms, in the order of the terms.

    ``signals`` maps the names of signals (:data:`~inertid_ros.config.robot.TERM_SIGNALS`) to ``(N, n)``.
    """
    joint_signals = {name: dict(zip(joint_names, np.transpose(array), strict=True)) for name, array in signals.items()}
    columns, first = [], 0
    for term in terms:
        for joint, formulas in term.formulas.items():
            own_signals = {name: by_joint[joint] for name, by_joint in joint_signals.items()}
            for parameter, formula in enumerate(formulas, start=first):
                values = np.asarray(formula(own_signals, joint_signals), dtype=float)
                columns.append((parameter, joint_names.index(joint), values))
        first += len(term.expressions)
    return columns


def term_torque(terms: Sequence[UserTerm], values: Array, joint_names: Sequence[str],
        signals: Mapping[str, Array]) -> Array:
    """``(N, n)`` torque [N m or N] of terms with parameters ``values (k,)``; see :func:`term_columns`."""
    torque = np.zeros((len(next(iter(signals.values()))), len(joint_names)))
    for parameter, joint, column in term_columns(terms, joint_names, signals):
        torque[:, joint] += values[parameter] * column
    return torque


class DriveMotion(NamedTuple):
    """Motion of all drives.

    Attributes
    ----------
    q, v, a : (N, n), position, velocity, acceleration of the joints.
    direction : ndarray, shape (N, n + couplings)
        Direction of sliding from -1 to 1, joints first, then couplings, low-passed like the torque.
    fading : ndarray, shape (N, n)
        Direction times ``exp(-|v| / v_s)``, low-passed like the torque; zero without Stribeck friction.
    """

    q: Array
    v: Array
    a: Array
    direction: Array
    fading: Array

    @classmethod
    def from_samples(cls, layout: ParameterLayout, samples: Samples) -> "DriveMotion":
        base_q, base_v = (motion.shape[1] - len(layout.joints) for motion in (samples.q, samples.v))
        q, v, a = samples.q[:, base_q:], samples.v[:, base_v:], samples.a[:, base_v:]
        return cls(q, v, a, *dry_friction_columns(layout, samples))

    def select(self, rows: slice | Indices) -> "DriveMotion":
        """Select samples; the samples of each column are adjacent in memory."""
        return DriveMotion(*(np.asfortranarray(signal[rows]) for signal in self))

    def of_joints(self) -> "DriveMotion":
        """Motion of the drives of single joints."""
        return self._replace(direction=self.direction[:, : self.v.shape[1]])

    def of_coupling(self, ratios: Array, index: int) -> "DriveMotion":
        """Motion ``(N,)`` of one coupling, whose drive turns with ``ratios`` of the joints."""
        v = self.v @ ratios
        direction = self.direction[:, self.v.shape[1] + index]
        return DriveMotion(self.q @ ratios, v, self.a @ ratios, direction, np.zeros_like(v))

    def signals(self, load: Array | None) -> Mapping[str, Array]:
        """Signals ``(N, n)`` of user terms by name, see :data:`~inertid_ros.config.robot.TERM_SIGNALS`."""
        signals = {"q": self.q, "v": self.v, "a": self.a, "direction": self.direction[:, : self.v.shape[1]]}
        return signals if load is None else {**signals, "load": load}


_MAX_SIGNAL = 1e100  # of a user term; squares of larger signals overflow
_COLUMNS = {
    "rotor_inertia": lambda motion: motion.a, "viscous": lambda motion: motion.v,
    "coulomb": lambda motion: motion.direction, "offset": lambda motion: np.ones_like(motion.v),
    "stiffness": lambda motion: motion.q, "stribeck": lambda motion: motion.fading}


def drive_columns(terms: tuple[str, ...], motion: DriveMotion) -> Array:
    """Columns ``(N, len(terms))`` of one drive from its motion; the samples of each column are adjacent in memory."""
    if not terms:
        return np.zeros((len(motion.v), 0))
    return np.stack([_COLUMNS[term](motion) for term in terms]).T


def joint_columns(layout: ParameterLayout, joint: int) -> Indices:
    """Layout columns of a joint's drive, couplings and user terms, in the order of :func:`drive_rows`."""
    drives = [layout.drive(term).start + joint for term in layout.drive_terms]
    terms = np.arange(len(COUPLING_TERMS))
    coupled = [layout.coupling_start + len(terms) * k + terms for k in np.flatnonzero(layout.coupling_ratios[:, joint])]
    spans = [layout.term(index) for index, term in enumerate(layout.terms) if layout.joints[joint] in term.by_joint]
    return np.concatenate([np.array(drives, dtype=int), *coupled, *(np.r_[span] for span in spans)])


def drive_rows(layout: ParameterLayout, motion: DriveMotion, load: Array | None = None) -> list[list[Array]]:
    """Columns ``(N,)`` of every joint; shared columns are computed once. ``load`` comes from :func:`load_of_terms`.

    Raises IdentificationError: a formula of a user term is not finite, or too large, at a sample.
    """
    signals = [_COLUMNS[term](motion.of_joints()) for term in layout.drive_terms]
    rows = [[signal[:, joint] for signal in signals] for joint in range(len(layout.joints))]
    for index, ratios in enumerate(layout.coupling_ratios):
        coupled = drive_columns(COUPLING_TERMS, motion.of_coupling(ratios, index)).T
        for joint in np.flatnonzero(ratios):
            rows[joint].extend(ratios[joint] * coupled)
    if layout.terms:
        names = layout.names[layout.term_start :]
        for parameter, of_joint, column in term_columns(layout.terms, layout.joints, motion.signals(load)):
            if not (usable := np.abs(column) < _MAX_SIGNAL).all():
                q, v = (values[np.argmin(usable), of_joint] for values in (motion.q, motion.v))
                raise IdentificationError(
                    f"robot.terms: '{names[parameter]}' is infinite, NaN or too large at position {q:.3g} rad or m and"
                    f" velocity {v:.3g} rad/s or m/s of {layout.joints[of_joint]}; write a formula that is finite on"
                    " the whole motion")
            rows[of_joint].append(column)
    return rows


def drive_torque(layout: ParameterLayout, parameters: Array, motion: DriveMotion, load: Array | None = None) -> Array:
    """``(N, n)`` torque of all drives, couplings and user terms. ``load`` comes from :func:`load_of_terms`."""
    torque = np.zeros_like(motion.v)
    for term in layout.drive_terms:
        torque += parameters[layout.drive(term)] * _COLUMNS[term](motion.of_joints())
    coupled = parameters[layout.coupling_start : layout.term_start].reshape(-1, len(COUPLING_TERMS))
    for index, (ratios, values) in enumerate(zip(layout.coupling_ratios, coupled, strict=True)):
        torque += np.outer(drive_columns(COUPLING_TERMS, motion.of_coupling(ratios, index)) @ values, ratios)
    if layout.terms:
        torque += term_torque(layout.terms, parameters[layout.term_start :], layout.joints, motion.signals(load))
    return torque


def load_of_terms(model: RobotModel, q: Array, v: Array, a: Array) -> Array | None:
    """Signal ``load (N, n)``, the joint torque that moves the bodies; None if no user term depends on the signal."""
    if not any(term.uses_load for term in model.layout.terms):
        return None
    return rigid_torque(model, model.load_bodies, q, v, a)[:, model.velocities - model.joints :]
