"""System momentum regressor of a tree on a free base: ``(p, l) = K(pose, twist, q, v) pi`` ([Naveen2019]_ eqs. 1-12).

Six rows per sample: linear momentum [N s] and angular momentum [N m s] of all bodies. Neither accelerations nor torques
enter. In the base frame, about its origin, the pose does not matter; where the total momentum of robot and wheels is
zero that is all one needs, as zero is zero in every frame. In the frame of the world, about its origin, a fixed point,
momentum is conserved.
"""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.tree_kinematics import BATCH, batches
from inertid_ros.robot.tree import TreeJoint

from .rigid_body_regressor import RigidBodyRegressor


def momentum_regressor(
    tree: Sequence[TreeJoint], twist: Array, q: Array, v: Array, pose: Array | None = None
) -> Array:
    """Regressor of the momentum of all bodies, the base first.

    Momentum is linear in the velocity as force is in the acceleration of a robot at rest that weighs nothing: the rows
    are those of the wrench on the base, with the velocity in place of the acceleration.

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
    regressor = RigidBodyRegressor(tree, np.zeros(3), base_only=True, world=pose is not None)
    positions = np.hstack([np.zeros((len(q), 7)) if pose is None else pose, q])
    velocities = np.hstack([twist, v])
    out = np.empty((6, regressor.width, len(q)))
    size = -(-len(q) // max(1, round(len(q) / BATCH)))  # batches of one size: the recursion keeps its arrays
    for rows in batches(len(q), max(size, 1)):
        position, velocity = (np.ascontiguousarray(channel[rows].T) for channel in (positions, velocities))
        regressor.write(position, np.zeros_like(velocity), velocity, out[..., rows])
    return out.transpose(2, 0, 1)
