"""Equations per measured channel: which columns a joint's torque depends on, and their values."""

from collections.abc import Iterator

import numpy as np

from ..data.samples import Samples
from ..robot.model import RobotModel
from ..robot.parameters import BODY_PARAMETERS, Array
from .drive import Motion, channel_drive, channel_drive_columns, drive_torque
from .inverse_dynamics import rigid_torque
from .joint_torque import carried_bodies, joint_torque_regressor
from .rotors import channel_rotor_columns, rotor_regressor, rotor_torque

CHUNK = 2048  # samples; small enough to stay in cache, large enough to keep LAPACK busy


def channel_columns(model: RobotModel) -> tuple[np.ndarray, ...]:
    """For each joint, the layout's columns that its torque depends on: carried bodies, rotors, drives."""
    layout = model.layout
    columns = []
    for joint, bodies in enumerate(carried_bodies(model)):
        inertial = [BODY_PARAMETERS * body + k for body in bodies for k in range(BODY_PARAMETERS)]
        rotors = channel_rotor_columns(model, joint)
        columns.append(np.concatenate([np.array(inertial, dtype=int), rotors, channel_drive_columns(layout, joint)]))
    return tuple(columns)


def channel_equations(model: RobotModel, samples: Samples, chunk: int = CHUNK) -> Iterator[list[tuple[Array, Array]]]:
    """Yield, chunk by chunk, a list over joints of ``(A (k, p_j), tau (k,))`` with the unmasked rows.

    ``A @ x[channel_columns(model)[j]] = tau`` for the parameter vector ``x`` of ``model.layout``.
    """
    layout, columns = model.layout, channel_columns(model)
    for start in range(0, len(samples), chunk):
        rows = slice(start, start + chunk)
        motion, tau, mask = Motion.of(layout, samples, rows), samples.tau[rows], samples.mask[rows]
        inertial = joint_torque_regressor(model, motion.q, motion.v, motion.a)
        if layout.rotors:
            inertial = np.concatenate([inertial, rotor_regressor(model, motion.q, motion.v, motion.a)], axis=-1)
        equations = []
        for joint, used in enumerate(columns):
            keep = mask[:, joint]
            bodies = used[used < layout.inertial_size]
            drives = channel_drive(layout, joint, motion.keep(keep))
            equations.append((np.hstack([inertial[keep, joint][:, bodies], drives]), tau[keep, joint]))
        yield equations


def predict_torque(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    """``(N, n)`` joint torques that a parameter vector predicts: of links, rotors and drives."""
    layout, motion = model.layout, (samples.q, samples.v, samples.a)
    rigid = rigid_torque(model, layout.bodies(parameters), *motion)
    rigid += rotor_torque(model, layout.rotor_bodies(parameters), *motion)
    return rigid + drive_torque(layout, parameters, Motion.of(layout, samples))
