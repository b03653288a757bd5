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
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE
from inertid_ros.kinematics.spatial import turned_forces
from inertid_ros.kinematics.tree_kinematics import RootMotion, TreeKinematics, TreeState
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.tree import TreeJoint

from .body_wrenches import in_body_frames, root_regressor

_BATCH = 128  # samples worked out together; their regressor fits the cache
_TABLE = np.ascontiguousarray(WRENCH_TABLE[..., :6].reshape(6 * BODY_PARAMETERS, -1).T)  # of velocities: momentum


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
    """
    kinematics = TreeKinematics(tree)
    out = np.empty((len(q), 6, BODY_PARAMETERS * len(tree)))
    for start in range(0, len(q), _BATCH):
        rows = slice(start, start + _BATCH)
        state = kinematics.state(q[rows], v[rows], np.zeros_like(v[rows]), RootMotion.of_twist(twist[rows]))
        momenta = _momenta(state)
        if pose is not None:
            placements = np.tile(np.eye(4), (len(momenta), 1, 1))
            placements[:, :3, :3], placements[:, :3, 3] = rotation_matrices(pose[rows, 3:]), pose[rows, :3]
            momenta = turned_forces(placements, momenta)
        out[rows] = momenta
    return out


def _momenta(state: TreeState) -> Array:
    """``(N, 6, 10 nb)`` momentum of each unit parameter ([Naveen2019]_ eq. 10)."""
    x, w = state.placements[..., :3, 3], state.velocity[..., 3:]
    local = in_body_frames(state, state.velocity[..., :3] + cross(w, x), w)
    return root_regressor(state, local.reshape(*w.shape[:2], 6), _TABLE)
