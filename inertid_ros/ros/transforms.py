"""Quaternions at the message boundary: the only module that chooses the library that converts them.

``tf_transformations`` is the ROS package; it wraps ``transforms3d`` in the conventions of ROS. Where it is not
installed, ``transforms3d`` is used directly. Quaternions are (x, y, z, w).
"""

import numpy as np
from numpy.typing import ArrayLike

from inertid_ros.core.arrays import Array

try:
    import tf_transformations as _tf
except ImportError:
    _tf = None

import transforms3d


def matrix_to_quaternion(rotation: ArrayLike) -> Array:
    """``(3, 3)`` rotation matrix to the unit quaternion (x, y, z, w)."""
    rotation = np.asarray(rotation, dtype=float)
    if _tf is not None:
        homogeneous = np.eye(4)
        homogeneous[:3, :3] = rotation
        return np.asarray(_tf.quaternion_from_matrix(homogeneous))
    w, x, y, z = transforms3d.quaternions.mat2quat(rotation)
    return np.array([x, y, z, w])
