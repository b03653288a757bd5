"""Spatial vectors: motions (linear, angular) and forces (force, torque) about one point, over the last axis."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross


def motion_cross(V: Array, M: Array) -> Array:
    """``V x M`` of spatial motions ``(..., 6)``."""
    v, w, m, k = V[..., :3], V[..., 3:], M[..., :3], M[..., 3:]
    return np.concatenate([cross(w, m) + cross(v, k), cross(w, k)], axis=-1)


def force_cross(V: Array, F: Array) -> Array:
    """``V x* F`` of a spatial motion and a spatial force ``(..., 6)``."""
    v, w, f, n = V[..., :3], V[..., 3:], F[..., :3], F[..., 3:]
    return np.concatenate([cross(w, f), cross(w, n) + cross(v, f)], axis=-1)


def turned_forces(placements: Array, forces: Array) -> Array:
    """Spatial forces in the root frame, about its origin, given in frames placed in it.

    Parameters
    ----------
    placements : ndarray, shape (..., 4, 4)
        Of the frames in the root frame.
    forces : ndarray, shape (..., 6, k)
        ``k`` forces (force, torque) in each of the frames, about its origin.

    Returns
    -------
    ndarray, shape (..., 6, k)
    """
    R, x = placements[..., :3, :3], placements[..., :3, 3]
    split = forces.reshape(*forces.shape[:-2], 2, 3, forces.shape[-1])
    out = R[..., None, :, :] @ split
    out[..., 1, :, :] += cross(x[..., None, :], out[..., 0, :, :].swapaxes(-1, -2)).swapaxes(-1, -2)
    return np.asarray(out.reshape(forces.shape))
