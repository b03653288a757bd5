"""Columns of user terms: torque of a joint that a configuration adds, linear in unknowns.

The torque that a drive has to transmit to the bodies behind it, on which the friction of gears depends
([Hamon2010]_ eq. 5), is not linear in the parameters: ``load`` is that of given bodies, and
:func:`~inertid_ros.identification.identify.identify` fits again with those that it found.
"""

from collections.abc import Mapping

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.newton_euler import rigid_torque
from inertid_ros.dynamics.user_terms import term_columns, term_torque
from inertid_ros.robot.bodies.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .drive_regressor import DriveMotion


def channel_term_columns(layout: ParameterLayout, joint: int) -> np.ndarray:
    """Columns of the layout that the user terms of a joint fill, in the order of :func:`term_rows`."""
    columns = [layout.term(index) for index, term in enumerate(layout.terms) if term.joint == layout.joints[joint]]
    return np.concatenate([np.zeros(0, dtype=int), *(np.arange(span.start, span.stop) for span in columns)])


def term_rows(
    model: RobotModel, samples: Samples, motion: DriveMotion, rows: slice = slice(None)
) -> list[list[Array]]:
    """The columns of every joint's user terms, ``(N,)`` each, at some rows of samples, of which ``motion`` is."""
    layout = model.layout
    columns: list[list[Array]] = [[] for _ in layout.joints]
    if layout.terms:
        for joint, column in term_columns(layout.terms, layout.joints, _signals(model, samples, motion, rows)):
            columns[joint].append(column)
    return columns


def predicted_term_torque(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    """``(N, n)`` torque of all user terms."""
    layout = model.layout
    signals = _signals(model, samples, DriveMotion.of(layout, samples), slice(None))
    return term_torque(layout.terms, parameters[layout.term_start :], layout.joints, signals)


def _signals(model: RobotModel, samples: Samples, motion: DriveMotion, rows: slice) -> Mapping[str, Array]:
    """``(N, n)`` signals by name, see :data:`~inertid_ros.config.robot.TERM_SIGNALS`."""
    layout, joints = model.layout, model.joints
    signals = {"q": motion.q, "v": motion.v, "a": motion.a, "direction": motion.direction[:, :joints]}
    if any(term.uses_load for term in layout.terms):
        load = rigid_torque(model, model.load_bodies, samples.q[rows], samples.v[rows], samples.a[rows])
        signals["load"] = load[:, model.velocities - joints :]
    return signals
