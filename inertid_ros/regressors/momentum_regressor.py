"""System momentum regressor of a tree on a free base: ``(p, l) = K(pose, twist, q, v) pi`` (B 1-12).

Six rows per sample: linear momentum [N s] and angular momentum [N m s] of all bodies. Neither accelerations nor torques
enter. In frame "base" the momentum is in base coordinates and about the origin of the base frame, and the pose does not
matter; where the total momentum of robot and wheels is zero that is all one needs, as zero is zero in every frame. In
frame "world" it is in coordinates of the world and about its origin, a fixed point: this one is conserved.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.floating import BodyMotion, body_motions, cross, rotations
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.tree import TreeJoint

BATCH = 1024  # samples worked out together
_PRODUCTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # of the inertia, in the order of the parameters


def momentum_regressor(
    tree: Sequence[TreeJoint], twist: Array, q: Array, v: Array, pose: Array | None = None
) -> Array:
    """Regressor of the momentum of all bodies, the base first.

    Parameters
    ----------
    tree: whose first body is the base.
    twist: ``(N, 6)`` of the base in its own frame, linear [m/s] then angular [rad/s].
    q, v: ``(N, n)`` joint positions and velocities.
    pose: ``(N, 7)`` of the base in the world, x y z [m], qx qy qz qw: momentum in the world frame about its origin.
        Without it, in the base frame about the base's origin.

    Returns
    -------
    ``(N, 6, 10 nb)``. In memory the samples of one entry are neighbours.
    """
    out = np.empty((6, BODY_PARAMETERS * len(tree), len(q)))
    for start in range(0, len(q), BATCH):
        rows = slice(start, start + BATCH)
        part = out[..., rows]
        for body, motion in enumerate(body_motions(tree, twist[rows].T, q[rows].T, v[rows].T)):
            _write(motion, part[:, BODY_PARAMETERS * body : BODY_PARAMETERS * (body + 1)])
    if pose is not None:
        out = to_world(out, pose)
    return out.transpose(2, 0, 1)


def to_world(momentum: Array, pose: Array) -> Array:
    """``(6, ..., N)`` momenta about the base's origin, in base coordinates, to the world frame and about its origin."""
    rotation, position = rotations(pose[:, 3:]), pose[:, :3].T
    shape = momentum.shape
    flat = momentum.reshape(6, -1, shape[-1])
    linear = np.einsum("ijk,jck->ick", rotation, flat[:3])
    angular = np.einsum("ijk,jck->ick", rotation, flat[3:]) + cross(position[:, None], linear)
    return np.concatenate([linear, angular]).reshape(shape)


def _write(motion: BodyMotion, out: Array) -> None:
    """Fill ``out (6, 10, k)`` with the momentum of each unit parameter of a body (B 10)."""
    R, p, linear, w = motion.rotation, motion.position, motion.linear, motion.angular
    force, torque = out[:3], out[3:]
    force[:, 0] = linear
    force[:, 1:4] = cross(w[:, None], R)
    force[:, 4:] = 0.0
    torque[:, 0] = cross(p, linear)
    torque[:, 1:4] = cross(p[:, None], force[:, 1:4]) + cross(R, linear[:, None])
    local = np.einsum("ijk,ik->jk", R, w)
    for column, (a, b) in enumerate(_PRODUCTS, start=4):
        torque[:, column] = R[:, a] * local[b]
        if a != b:
            torque[:, column] += R[:, b] * local[a]
