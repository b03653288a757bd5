"""Dead reckoning: poses integrated from measured twists ([Naveen2019]_ eqs. 44-47)."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import continuous_quaternions, skew

_SMALL = 1e-4  # rad; below, series instead of quotients of small numbers


def dead_reckoning(time: Array, twist: Array, start: Array) -> Array:
    """Poses of a body whose measured twist is held between samples at its mean.

    The mean of neighbours is exact to second order in the step, where the forward steps of [Naveen2019]_ are to first.

    Parameters
    ----------
    time : ndarray, shape (N,)
        Time [s].
    twist : ndarray, shape (N, 6)
        In the body frame, linear then angular [m/s, rad/s].
    start : ndarray, shape (7,)
        First pose: x y z [m], qx qy qz qw.

    Returns
    -------
    ndarray, shape (N, 7)
        Poses; the signs of the quaternions do not jump.
    """
    steps = 0.5 * (twist[1:] + twist[:-1]) * np.diff(time)[:, None]
    return compose_twists(start, steps)


def fine_dead_reckoning(period: float, twist: Array, start: Array) -> Array:
    """Poses to fourth order in the step, from twists at the samples and midway between them.

    Parameters
    ----------
    period : float
        Time between samples [s].
    twist : ndarray, shape (2 N - 1, 6)
        In the body frame, linear then angular [m/s, rad/s], half a period apart.
    start : ndarray, shape (7,)
        First pose: x y z [m], qx qy qz qw.

    Returns
    -------
    ndarray, shape (N, 7)
    """
    first, middle, last = twist[:-1:2], twist[1::2], twist[2::2]
    steps = period / 6 * (first + 4 * middle + last)
    return compose_twists(start, steps + period**2 / 12 * _bracket(first, last))


def compose_twists(start: Array, steps: Array) -> Array:
    """Poses ``(N + 1, 7)`` after twists ``(N, 6)``, each held for one unit of time, one after the other."""
    transforms = np.concatenate([_homogeneous(start)[None], _exponential(steps)])
    stride = 1
    while stride < len(transforms):  # a scan: all products of the first k in log2 N rounds
        transforms[stride:] = transforms[:-stride] @ transforms[stride:]
        stride *= 2
    turns = np.vstack([start[3:], scipy.spatial.transform.Rotation.from_matrix(transforms[1:, :3, :3]).as_quat()])
    return np.hstack([transforms[:, :3, 3], continuous_quaternions(turns)])


def _homogeneous(pose: Array) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = scipy.spatial.transform.Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
    return out


def _exponential(twists: Array) -> Array:
    """Exponential map of twists ``(N, 6)``, as transforms ``(N, 4, 4)``."""
    angle = np.linalg.norm(twists[:, 3:], axis=1)
    safe, small = np.where(angle < _SMALL, 1.0, angle), angle < _SMALL
    first = np.where(small, 1 - angle**2 / 6, np.sin(angle) / safe)
    second = np.where(small, 0.5 - angle**2 / 24, (1 - np.cos(angle)) / safe**2)
    third = np.where(small, 1 / 6 - angle**2 / 120, (1 - first) / safe**2)
    cross = skew(twists[:, 3:])
    square = cross @ cross
    out = np.zeros((len(twists), 4, 4))
    out[:, :3, :3] = np.eye(3) + first[:, None, None] * cross + second[:, None, None] * square
    translation = np.eye(3) + second[:, None, None] * cross + third[:, None, None] * square
    out[:, :3, 3] = (translation @ twists[:, :3, None])[..., 0]
    out[:, 3, 3] = 1.0
    return out


def _bracket(a: Array, b: Array) -> Array:
    """Lie bracket of twists ``(N, 6)``."""
    (v, w), (x, y) = (a[:, :3], a[:, 3:]), (b[:, :3], b[:, 3:])
    return np.hstack([np.cross(w, x) + np.cross(v, y), np.cross(w, y)])
