"""Drive regressor: the torque of the drives, linear in rotor inertia, friction, offset and stiffness (E 24)."""

import numpy as np

from ..robot.layout import COUPLING_TERMS, ParameterLayout
from ..robot.parameters import Array

COLUMNS = {
    "rotor_inertia": lambda q, v, a: a,
    "viscous": lambda q, v, a: v,
    "coulomb": lambda q, v, a: np.sign(v),
    "offset": lambda q, v, a: np.ones_like(v),
    "stiffness": lambda q, v, a: q,
}


def drive_columns(terms: tuple[str, ...], q: Array, v: Array, a: Array) -> Array:
    """``(..., len(terms))`` columns of one or many joints from position, velocity and acceleration ``(...)``."""
    if not terms:
        return np.zeros((*np.shape(v), 0))
    return np.stack([COLUMNS[term](q, v, a) for term in terms], axis=-1)


def channel_drive_columns(layout: ParameterLayout, joint: int) -> np.ndarray:
    """Columns of the layout that joint's own drive and its couplings fill, in the order of :func:`channel_drive`."""
    own = [layout.drive(term).start + joint for term in layout.drive_terms]
    terms = np.arange(len(COUPLING_TERMS))
    coupled = [layout.coupling_start + len(terms) * k + terms for k in np.flatnonzero(layout.coupling_ratios[:, joint])]
    return np.concatenate([np.array(own, dtype=int), *coupled])


def channel_drive(layout: ParameterLayout, joint: int, q: Array, v: Array, a: Array) -> Array:
    """``(N, k)`` regressor of a joint's torque on :func:`channel_drive_columns`, from motion ``(N, n)`` of all."""
    blocks = [drive_columns(layout.drive_terms, q[:, joint], v[:, joint], a[:, joint])]
    for ratios in layout.coupling_ratios:
        if ratios[joint]:
            blocks.append(ratios[joint] * drive_columns(COUPLING_TERMS, q @ ratios, v @ ratios, a @ ratios))
    return np.hstack(blocks)


def drive_torque(layout: ParameterLayout, parameters: Array, q: Array, v: Array, a: Array) -> Array:
    """``(N, n)`` torque of all drives and couplings along ``(N, n)`` motion."""
    torque = np.zeros_like(v)
    for joint in range(len(layout.joints)):
        torque[:, joint] = channel_drive(layout, joint, q, v, a) @ parameters[channel_drive_columns(layout, joint)]
    return torque
