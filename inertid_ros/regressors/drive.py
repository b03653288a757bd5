"""Drive regressor: the torque of a joint's own drive, linear in rotor inertia, friction and offset (E 24)."""

import numpy as np

from ..robot.parameters import Array

COLUMNS = {
    "rotor_inertia": lambda v, a: a,
    "viscous": lambda v, a: v,
    "coulomb": lambda v, a: np.sign(v),
    "offset": lambda v, a: np.ones_like(v),
}


def drive_columns(terms: tuple[str, ...], v: Array, a: Array) -> Array:
    """``(..., len(terms))`` columns of one or many joints from velocity and acceleration ``(...)``."""
    if not terms:
        return np.zeros((*np.shape(v), 0))
    return np.stack([COLUMNS[term](v, a) for term in terms], axis=-1)
