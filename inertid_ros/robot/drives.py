"""Friction and user terms of drives, for fit, validation, controllers and simulator."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples

from .layout import ParameterLayout, UserTerm


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


def friction_torque(
    velocity: Array, terms: Mapping[str, Array], stribeck_speed: Array, transition_speed: Array
) -> Array:
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
    columns, drives = partial(_columns, layout), len(layout.drive_ratios)
    if samples.undecimated is None:
        dry = columns(samples.v[:, samples.v.shape[1] - len(layout.joints) :])
    else:
        shapes = (layout.drive_ratios, layout.transition_speed, layout.with_stribeck, layout.stribeck_speed)
        dry = samples.undecimated.filtered(columns, tuple(shape.tobytes() for shape in shapes))
    return dry[:, :drives], dry[:, drives:]


def _columns(layout: ParameterLayout, velocity: Array) -> Array:
    """Columns ``(N, n + couplings + n)`` for joint velocities ``(N, n)``, before the low-pass."""
    direction = friction_direction(velocity @ layout.drive_ratios.T, layout.transition_speed)
    fading = np.zeros_like(velocity)
    if layout.with_stribeck.any():
        fading = layout.with_stribeck * fading_direction(
            direction[:, : len(layout.joints)], velocity, layout.stribeck_speed)
    return np.hstack([direction, fading])


def term_columns(
    terms: Sequence[UserTerm], joint_names: Sequence[str], signals: Mapping[str, Array]
) -> list[tuple[int, Array]]:
    """Joint index and values ``(N,)`` of every formula of user terms, in the order of the parameters.

    ``signals`` maps the names of signals (:data:`~inertid_ros.config.robot.TERM_SIGNALS`) to ``(N, n)``.
    """
    joint_signals = {name: dict(zip(joint_names, np.transpose(array), strict=True)) for name, array in signals.items()}
    columns = []
    for term in terms:
        own_signals = {name: by_joint[term.joint] for name, by_joint in joint_signals.items()}
        joint = joint_names.index(term.joint)
        columns += [(joint, np.asarray(formula(own_signals, joint_signals), dtype=float)) for formula in term.formulas]
    return columns


def term_torque(
    terms: Sequence[UserTerm], values: Array, joint_names: Sequence[str], signals: Mapping[str, Array]
) -> Array:
    """``(N, n)`` torque [N m or N] of terms with parameters ``values (k,)``; see :func:`term_columns`."""
    torque = np.zeros((len(next(iter(signals.values()))), len(joint_names)))
    for value, (joint, column) in zip(values, term_columns(terms, joint_names, signals), strict=True):
        torque[:, joint] += value * column
    return torque
