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
    if not layout.terms:
        return columns
    signals = _signals(model, samples, motion, rows)
    for term in layout.terms:
        joint = layout.joints.index(term.joint)
        own = {name: of_joints[term.joint] for name, of_joints in signals.items()}
        columns[joint].extend(np.asarray(formula(own, signals)) for formula in term.formulas)
    return columns


def term_torque(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    """``(N, n)`` torque of all user terms."""
    torque, motion = np.zeros((len(samples), model.joints)), DriveMotion.of(model.layout, samples)
    for joint, columns in enumerate(term_rows(model, samples, motion)):
        for parameter, column in zip(parameters[channel_term_columns(model.layout, joint)], columns, strict=True):
            torque[:, joint] += parameter * column
    return torque


def _signals(
    model: RobotModel, samples: Samples, motion: DriveMotion, rows: slice
) -> Mapping[str, Mapping[str, Array]]:
    """Signal to joint to samples ``(N,)``, see :data:`~inertid_ros.config.robot.TERM_SIGNALS`."""
    layout = model.layout
    arrays = {"q": motion.q, "v": motion.v, "a": motion.a, "direction": motion.direction}
    if any(term.uses_load for term in layout.terms):
        state = (samples.q[rows], samples.v[rows], samples.a[rows])
        arrays["load"] = rigid_torque(model, model.load_bodies, *state)[:, model.velocities - model.joints :]
    return {name: dict(zip(layout.joints, array.T, strict=False)) for name, array in arrays.items()}
