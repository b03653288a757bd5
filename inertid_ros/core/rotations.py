"""Rotations of many samples at once: unit quaternions (x, y, z, w), rotation matrices, cross products."""

import logging

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array, Mask
from .errors import RecordingError

_log = logging.getLogger(__name__)
_MAX_NORM_ERROR = 0.02  # a larger error is not due to rounding


def cross(a: Array, b: Array, axis: int = -1) -> Array:
    """Cross product along the last axis or the first (0); several times faster than ``numpy.cross`` on small arrays."""
    (ax, ay, az), (bx, by, bz) = ((x[..., 0], x[..., 1], x[..., 2]) if axis else x for x in (a, b))
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=axis)


def skew(vector: ArrayLike) -> Array:
    """Cross-product matrices ``(..., 3, 3)`` of vectors ``(..., 3)``."""
    v = np.asarray(vector, dtype=float)
    out = np.zeros((*v.shape[:-1], 3, 3))
    out[..., 0, 1], out[..., 0, 2] = -v[..., 2], v[..., 1]
    out[..., 1, 0], out[..., 1, 2] = v[..., 2], -v[..., 0]
    out[..., 2, 0], out[..., 2, 1] = -v[..., 1], v[..., 0]
    return out


def rotation_matrices(quaternions: Array) -> Array:
    """``(..., 3, 3)`` rotation matrices of quaternions ``(..., 4)``; this function normalises them."""
    x, y, z, w = np.moveaxis(quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotate(quaternions: Array, vectors: Array) -> Array:
    """Transform vectors ``(N, 3)`` from the moving frame to the fixed frame, by unit quaternions ``(N, 4)``."""
    axis, scalar = quaternions[:, :3], quaternions[:, 3:]
    twice = 2.0 * cross(axis, vectors)
    return np.asarray(vectors + scalar * twice + cross(axis, twice))


def rotate_back(quaternions: Array, vectors: Array) -> Array:
    """Transform vectors ``(N, 3)`` from the fixed frame to the moving frame, by unit quaternions ``(N, 4)``."""
    return rotate(quaternions * np.array([-1.0, -1.0, -1.0, 1.0]), vectors)


def body_rate(quaternions: Array, derivatives: Array) -> Array:
    """``(N, 3)`` vector part of ``2 q* d`` for unit quaternions ``q`` and derivatives ``d``, ``(N, 4)`` each.

    The first derivative of ``q`` gives the angular velocity in the moving frame, the second derivative the angular
    acceleration. The rest of the second derivative is a multiple of ``q`` and adds nothing to the vector part.
    """
    axis, scalar = quaternions[:, :3], quaternions[:, 3:]
    return np.asarray(2.0 * (scalar * derivatives[:, :3] - derivatives[:, 3:] * axis - cross(axis, derivatives[:, :3])))


def continuous_quaternions(quaternions: Array) -> Array:
    """Quaternions ``(N, 4)`` with signs that do not jump between neighbours; q and -q are the same rotation."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0
    signs = np.where(np.cumsum(np.concatenate([[0], flips])) % 2, -1.0, 1.0)
    return quaternions * signs[:, None]


def checked_quaternions(quaternions: Array, name: str) -> tuple[Array, Mask]:
    """Measured quaternions ``(N, 4)`` as continuous unit quaternions.

    Parameters
    ----------
    name : recording, for messages.

    Returns
    -------
    unit : ndarray, shape (N, 4)
        Without jumps of sign. The next valid quaternion (at the end: the last) replaces an invalid quaternion.
    invalid : ndarray of bool, shape (N,)
        True if the length of the measured quaternion is not 1 within 2 %, or not finite.

    Raises
    ------
    RecordingError
        More than half of the quaternions are invalid.
    """
    norms = np.linalg.norm(quaternions, axis=1)
    invalid = ~(np.abs(norms - 1.0) <= _MAX_NORM_ERROR)  # also true for NaN
    if invalid.mean() > 0.5:
        raise RecordingError(
            f"{name}: base_pose holds quaternions of length {np.median(norms):.3g}, not 1, in {invalid.sum()} of"
            f" {len(invalid)} samples; check that they are qx qy qz qw, and the publisher of the pose"
        )
    if invalid.any():
        _log.warning("%s: base_pose holds %d quaternions that are not of length 1; left out", name, invalid.sum())
    valid = np.flatnonzero(~invalid)
    nearest = valid[np.clip(np.searchsorted(valid, np.arange(len(invalid))), 0, len(valid) - 1)]
    return continuous_quaternions(quaternions[nearest] / norms[nearest, None]), invalid
