"""Quaternions and Euler angles at the message boundary: the only module that knows which library does it.

``tf_transformations`` is the ROS package; it wraps ``transforms3d`` in the conventions of ROS. Where it is not
installed, ``transforms3d`` is used directly. Quaternions are (x, y, z, w), Euler angles are roll, pitch, yaw about
fixed axes, as in a URDF.
"""

import numpy as np
from numpy.typing import ArrayLike

from inertid_ros.core.arrays import Array

try:
    import tf_transformations as _tf
except ImportError:
    _tf = None

import transforms3d

_AXES = "sxyz"


def quaternion_to_matrix(quaternion: ArrayLike) -> Array:
    """(x, y, z, w) of any nonzero length to the ``(3, 3)`` rotation matrix."""
    x, y, z, w = np.asarray(quaternion, dtype=float)
    if _tf is not None:
        return np.asarray(_tf.quaternion_matrix([x, y, z, w]))[:3, :3]
    return np.asarray(transforms3d.quaternions.quat2mat([w, x, y, z]))


def matrix_to_quaternion(rotation: ArrayLike) -> Array:
    """``(3, 3)`` rotation matrix to the unit quaternion (x, y, z, w)."""
    rotation = np.asarray(rotation, dtype=float)
    if _tf is not None:
        homogeneous = np.eye(4)
        homogeneous[:3, :3] = rotation
        return np.asarray(_tf.quaternion_from_matrix(homogeneous))
    w, x, y, z = transforms3d.quaternions.mat2quat(rotation)
    return np.array([x, y, z, w])


def rpy_to_matrix(rpy: ArrayLike) -> Array:
    """Roll, pitch, yaw [rad] about fixed axes to the ``(3, 3)`` rotation matrix."""
    roll, pitch, yaw = np.asarray(rpy, dtype=float)
    if _tf is not None:
        return np.asarray(_tf.euler_matrix(roll, pitch, yaw, _AXES))[:3, :3]
    return np.asarray(transforms3d.euler.euler2mat(roll, pitch, yaw, _AXES))


def matrix_to_rpy(rotation: ArrayLike) -> Array:
    """``(3, 3)`` rotation matrix to roll, pitch, yaw [rad] about fixed axes."""
    rotation = np.asarray(rotation, dtype=float)
    if _tf is not None:
        homogeneous = np.eye(4)
        homogeneous[:3, :3] = rotation
        return np.asarray(_tf.euler_from_matrix(homogeneous, _AXES))
    return np.asarray(transforms3d.euler.mat2euler(rotation, _AXES))
