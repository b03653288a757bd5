"""System momentum regressor of a tree on a free base: ``(p, l) = K(pose, twist, q, v) pi`` ([Naveen2019]_ eqs. 1-12).

Six rows per sample: linear momentum [N s] and angular momentum [N m s] of all bodies. Neither accelerations nor torques
enter. In the base frame, about its origin, the pose does not matter; where the total momentum of robot and wheels is
zero that is all one needs, as zero is zero in every frame. In the frame of the world, about its origin, a fixed point,
momentum is conserved.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross, rotation_matrices
from inertid_ros.kinematics.tree_kinematics import RootMotion, TreeKinematics
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, INERTIA_ELEMENTS
from inertid_ros.robot.tree import TreeJoint

_BATCH = 256  # samples worked out together; the arrays of all bodies fit the cache


def momentum_regressor(
    tree: Sequence[TreeJoint], twist: Array, q: Array, v: Array, pose: Array | None = None
) -> Array:
    """Regressor of the momentum of all bodies, the base first.

    Parameters
    ----------
    tree : sequence of TreeJoint
        Its first body is the base.
    twist : ndarray, shape (N, 6)
        Of the base in its own frame, linear [m/s] then angular [rad/s].
    q, v : ndarray, shape (N, n)
        Joint positions and velocities.
    pose : ndarray, shape (N, 7), optional
        Of the base in the world, x y z [m], qx qy qz qw: momentum in the world frame about its origin. Without it, in
        the base frame about the base's origin.

    Returns
    -------
    ndarray, shape (N, 6, 10 nb)
        In memory the samples of one column are neighbours.
    """
    kinematics = TreeKinematics(tree)
    out = np.empty((6, len(tree), BODY_PARAMETERS, len(q)))
    for start in range(0, len(q), _BATCH):
        rows = slice(start, start + _BATCH)
        placements, _, velocity = kinematics.motion(q[rows], v[rows], RootMotion.of_twist(twist[rows]))
        _write(_samples_last(placements), _samples_last(velocity), out[..., rows])
    momenta = out.reshape(6, BODY_PARAMETERS * len(tree), len(q))
    if pose is not None:
        turn, lever = np.moveaxis(rotation_matrices(pose[:, 3:]), 0, -1), pose[:, :3].T
        momenta[:3] = np.einsum("ijk,jck->ick", turn, momenta[:3])
        momenta[3:] = np.einsum("ijk,jck->ick", turn, momenta[3:]) + cross(lever[:, None], momenta[:3], axis=0)
    return momenta.transpose(2, 0, 1)


def _samples_last(values: Array) -> Array:
    """``(N, nb, ...)`` to ``(..., nb, N)``, in memory, too."""
    return np.ascontiguousarray(np.moveaxis(values, (0, 1), (-1, -2)))


def _write(placements: Array, velocity: Array, out: Array) -> None:
    """Fill ``out (6, nb, 10, k)`` with the momentum of each unit parameter of each body ([Naveen2019]_ eq. 10)."""
    R, p, w = placements[:3, :3], placements[:3, 3], velocity[3:]
    linear = velocity[:3] + cross(w, p, axis=0)  # of the origin of the body's frame
    force, torque = np.moveaxis(out, 2, 1)[:3], np.moveaxis(out, 2, 1)[3:]
    force[:, 0] = linear
    force[:, 1:4] = cross(w[:, None], R, axis=0)
    force[:, 4:] = 0.0
    torque[:, 0] = cross(p, linear, axis=0)
    torque[:, 1:4] = cross(p[:, None], force[:, 1:4], axis=0) + cross(R, linear[:, None], axis=0)
    local = np.einsum("ij...,i...->j...", R, w)
    for column, (a, b) in enumerate(INERTIA_ELEMENTS, start=4):
        torque[:, column] = R[:, a] * local[b]
        if a != b:
            torque[:, column] += R[:, b] * local[a]
