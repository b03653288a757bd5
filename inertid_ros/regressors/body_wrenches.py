"""The wrench that each body takes, linear in its parameters, in the root frame: what every regressor row is made of.

With these, a row of any regressor is a product: with the screw of a joint it is that joint's torque, and without one
it is a component of the wrench that the ground must bring up at the root ([Lee2019]_ eq. B.3; [Ayusawa2017]_
eqs. 18-23).
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.rotations import cross
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE, wrench_products
from inertid_ros.kinematics.spatial import turned_forces
from inertid_ros.kinematics.tree_kinematics import TreeKinematics, TreeState
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

_TABLE = np.ascontiguousarray(WRENCH_TABLE.reshape(6 * BODY_PARAMETERS, -1).T)


@dataclass(frozen=True)
class BodyWrenches:
    """Wrenches of all bodies at N samples.

    Attributes
    ----------
    angular_velocity : ndarray, shape (N, nb, 3)
        In the frame of the body [rad/s].
    regressor : ndarray, shape (N, 6, 10 nb)
        (force, torque) about the root origin, in the root frame, per unit of each parameter.
    """

    angular_velocity: Array
    regressor: Array

    @classmethod
    def of(cls, state: TreeState) -> "BodyWrenches":
        """From the motion of the bodies."""
        x, A = state.placements[..., :3, 3], state.acceleration
        v, w = state.velocity[..., :3], state.velocity[..., 3:]
        at_origin = A[..., :3] + cross(A[..., 3:], x) + cross(w, v + cross(w, x))
        local = np.stack([at_origin, A[..., 3:], w], axis=-2) @ state.placements[..., :3, :3]  # rows: R^T applied
        products = wrench_products(local[..., 0, :], local[..., 1, :], local[..., 2, :])
        samples, bodies, count = products.shape
        wrenches = (products.reshape(-1, count) @ _TABLE).reshape(samples, bodies, 6, BODY_PARAMETERS)
        regressor = turned_forces(state.placements, wrenches).swapaxes(1, 2)
        return cls(local[..., 2, :], regressor.reshape(samples, 6, bodies * BODY_PARAMETERS))


def moved_columns(kinematics: TreeKinematics) -> Array:
    """``(n, 10 nb)`` one where a joint moves the body, else zero."""
    return np.repeat(kinematics.ancestry, BODY_PARAMETERS, axis=1).astype(float)
