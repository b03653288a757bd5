"""Measured orientations: unit quaternions (x, y, z, w) over time, without jumps of sign."""

import logging

import numpy as np
from numpy.typing import NDArray

from .arrays import Array
from .errors import RecordingError

_log = logging.getLogger(__name__)
_UNIT = 0.02  # a norm farther from one is not a rounded unit quaternion


def continuous(quaternions: Array) -> Array:
    """``(N, 4)`` with every sign chosen so that neighbours lie on the same side; q and -q are the same rotation."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0
    signs = np.where(np.cumsum(np.concatenate([[0], flips])) % 2, -1.0, 1.0)
    return quaternions * signs[:, None]


def checked(quaternions: Array, name: str) -> tuple[Array, NDArray[np.bool_]]:
    """Unit quaternions ``(N, 4)``, and where what was measured is none ``(N,)``; there the neighbours' stands in.

    Raises
    ------
    RecordingError: most of them are not unit quaternions.
    """
    norms = np.linalg.norm(quaternions, axis=1)
    bad = np.abs(norms - 1.0) > _UNIT
    if bad.mean() > 0.5:
        raise RecordingError(
            f"{name}: base_pose holds quaternions of length {np.median(norms):.3g}, not 1, in {bad.sum()} of {len(bad)}"
            " samples; check that they are qx qy qz qw, and the publisher of the pose"
        )
    if bad.any():
        _log.warning("%s: base_pose holds %d quaternions that are not of length 1; left out", name, bad.sum())
    good = np.flatnonzero(~bad)
    nearest = good[np.clip(np.searchsorted(good, np.arange(len(bad))), 0, len(good) - 1)]
    return continuous(quaternions[nearest] / norms[nearest, None]), bad


def rotate(quaternions: Array, vectors: Array) -> Array:
    """``(N, 3)`` vectors of the moving frame in the fixed one, by unit quaternions ``(N, 4)``."""
    axis, scalar = quaternions[:, :3], quaternions[:, 3:]
    cross = 2.0 * np.cross(axis, vectors)
    return vectors + scalar * cross + np.cross(axis, cross)


def rotate_back(quaternions: Array, vectors: Array) -> Array:
    """``(N, 3)`` vectors of the fixed frame in the moving one."""
    return rotate(quaternions * np.array([-1.0, -1.0, -1.0, 1.0]), vectors)


def body_rate(quaternions: Array, derivatives: Array) -> Array:
    """Vector part ``(N, 3)`` of ``2 q* d`` for unit quaternions ``q``.

    With the first derivative of ``q`` this is the angular velocity in the moving frame, with the second one the angular
    acceleration there: the rest of the second derivative is a multiple of ``q``.
    """
    axis, scalar = quaternions[:, :3], quaternions[:, 3:]
    return np.asarray(
        2.0 * (scalar * derivatives[:, :3] - derivatives[:, 3:] * axis - np.cross(axis, derivatives[:, :3]))
    )
