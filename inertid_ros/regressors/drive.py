"""Drive regressor: the torque of a joint's own drive, linear in rotor inertia, friction and offset (E 24)."""

import numpy as np

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
