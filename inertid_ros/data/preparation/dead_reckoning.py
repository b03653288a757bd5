"""Poses from twists: what a base sensor of velocities alone says of where the robot is (B 44-47)."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import continuous
from inertid_ros.robot.bodies.inertial_parameters import skew

_SMALL = 1e-4  # rad; below, series instead of quotients of small numbers


def dead_reckoning(time: Array, twist: Array, start: Array) -> Array:
    """``(N, 7)`` poses (x y z, qx qy qz qw) of a body whose measured twist is held between samples at its mean.

    The mean of neighbours is exact to second order in the step, where B's forward steps are to first.

    Parameters
    ----------
    time: ``(N,)`` s. twist: ``(N, 6)`` in the body frame, linear then angular. start: ``(7,)`` first pose.
    """
    steps = 0.5 * (twist[1:] + twist[:-1]) * np.diff(time)[:, None]
    return composed(start, steps)


def fine_dead_reckoning(period: float, twist: Array, start: Array) -> Array:
    """The same to fourth order, from twists ``(2 N - 1, 6)`` at the samples, ``period`` [s] apart, and midway."""
    first, middle, last = twist[:-1:2], twist[1::2], twist[2::2]
    steps = period / 6 * (first + 4 * middle + last)
    return composed(start, steps + period**2 / 12 * _bracket(first, last))


def composed(start: Array, steps: Array) -> Array:
    """``(N + 1, 7)`` poses after ``(N, 6)`` twists, each held for one unit of time, one after the other."""
    transforms = np.concatenate([_homogeneous(start)[None], _exponential(steps)])
    reach = 1
    while reach < len(transforms):  # a scan: all products of the first k in log2 N rounds
        transforms[reach:] = transforms[:-reach] @ transforms[reach:]
        reach *= 2
    turns = np.vstack([start[3:], scipy.spatial.transform.Rotation.from_matrix(transforms[1:, :3, :3]).as_quat()])
    return np.hstack([transforms[:, :3, 3], continuous(turns)])


def _homogeneous(pose: Array) -> Array:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = scipy.spatial.transform.Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
    return out


def _exponential(twists: Array) -> Array:
    """``(N, 4, 4)`` of ``(N, 6)``."""
    angle = np.linalg.norm(twists[:, 3:], axis=1)
    safe, small = np.where(angle < _SMALL, 1.0, angle), angle < _SMALL
    first = np.where(small, 1 - angle**2 / 6, np.sin(angle) / safe)
    second = np.where(small, 0.5 - angle**2 / 24, (1 - np.cos(angle)) / safe**2)
    third = np.where(small, 1 / 6 - angle**2 / 120, (1 - first) / safe**2)
    cross = skew(twists[:, 3:])
    square = cross @ cross
    out = np.zeros((len(twists), 4, 4))
    out[:, :3, :3] = np.eye(3) + first[:, None, None] * cross + second[:, None, None] * square
    slide = np.eye(3) + second[:, None, None] * cross + third[:, None, None] * square
    out[:, :3, 3] = (slide @ twists[:, :3, None])[..., 0]
    out[:, 3, 3] = 1.0
    return out


def _bracket(a: Array, b: Array) -> Array:
    """Lie bracket of twists ``(N, 6)``."""
    (v, w), (x, y) = (a[:, :3], a[:, 3:]), (b[:, :3], b[:, 3:])
    return np.hstack([np.cross(w, x) + np.cross(v, y), np.cross(w, y)])
