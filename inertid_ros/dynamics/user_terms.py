"""Torque of user terms: the same formulas for the fit, for its validation and for controllers."""

from collections.abc import Mapping, Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.user_terms import UserTerm


def term_columns(
    terms: Sequence[UserTerm], joint_names: Sequence[str], signals: Mapping[str, Array]
) -> list[tuple[int, Array]]:
    """Joint and values ``(N,)`` of every formula, in the order of the parameters.

    Parameters
    ----------
    joint_names : sequence of str
        ``n`` names, of the columns of every signal.
    signals : mapping of str to ndarray, shape (N, n)
        Those of :data:`~inertid_ros.config.robot.TERM_SIGNALS` that the terms use.
    """
    others = {name: dict(zip(joint_names, np.transpose(array), strict=True)) for name, array in signals.items()}
    columns = []
    for term in terms:
        own = {name: of_joints[term.joint] for name, of_joints in others.items()}
        joint = joint_names.index(term.joint)
        columns += [(joint, np.asarray(formula(own, others), dtype=float)) for formula in term.formulas]
    return columns


def term_torque(
    terms: Sequence[UserTerm], values: Array, joint_names: Sequence[str], signals: Mapping[str, Array]
) -> Array:
    """``(N, n)`` torque of terms with the values ``(k,)`` of their parameters [N m or N]; see :func:`term_columns`."""
    torque = np.zeros((len(next(iter(signals.values()))), len(joint_names)))
    for value, (joint, column) in zip(values, term_columns(terms, joint_names, signals), strict=True):
        torque[:, joint] += value * column
    return torque
