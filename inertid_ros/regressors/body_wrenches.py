"""The wrench that each body takes, linear in its parameters, in the root frame: what every regressor row is made of.

With these, a row of any regressor is a product: with the screw of a joint it is that joint's torque, and without one
it is a component of the wrench that the ground must bring up at the root (C B.3; A 18-23).
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.dynamics.newton_euler import WRENCH_TABLE
from inertid_ros.kinematics.chain import Chain, ChainState, cross
from inertid_ros.kinematics.sweep import PRODUCTS
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

_TABLE = np.ascontiguousarray(WRENCH_TABLE.reshape(6 * BODY_PARAMETERS, PRODUCTS).T)


@dataclass(frozen=True)
class BodyWrenches:
    """Wrenches of all bodies at N samples.

    Attributes
    ----------
    spin: ``(N, nb, 3)`` angular velocity in the frame of the body.
    entries: ``(N, 6, 10 nb)`` (force, torque) about the root origin, in the root frame, per unit of each parameter.
    """

    spin: Array
    entries: Array

    @classmethod
    def of(cls, state: ChainState) -> "BodyWrenches":
        """From the motion of the bodies."""
        R, x = state.placements[..., :3, :3], state.placements[..., :3, 3]
        w, A = state.velocity[..., 3:], state.acceleration
        pull = A[..., :3] + cross(A[..., 3:], x) + cross(w, state.velocity[..., :3] + cross(w, x))
        local = np.stack([pull, A[..., 3:], w], axis=-2) @ R  # rows: R^T applied to each
        spin = local[..., 2, :]
        products = np.empty((*spin.shape[:-1], PRODUCTS))
        products[..., :3], products[..., 3:6] = local[..., 0, :], local[..., 1, :]
        products[..., 6:9] = spin[..., :1] * spin
        products[..., 9:11] = spin[..., 1:2] * spin[..., 1:]
        products[..., 11] = spin[..., 2] ** 2
        samples, bodies = spin.shape[:2]
        wrench = (products.reshape(-1, PRODUCTS) @ _TABLE).reshape(samples, bodies, 2, 3, BODY_PARAMETERS)
        turned = R[:, :, None] @ wrench
        turned[:, :, 1] += cross(x[..., None, :], turned[:, :, 0].swapaxes(-1, -2)).swapaxes(-1, -2)
        entries = turned.reshape(samples, bodies, 6, BODY_PARAMETERS).swapaxes(1, 2)
        return cls(spin, np.ascontiguousarray(entries).reshape(samples, 6, -1))

    def joint_rows(self, chain: Chain, state: ChainState) -> Array:
        """``(N, n, 10 nb)`` regressor of the joint torques."""
        return (state.screws @ self.entries) * carried(chain)


def carried(chain: Chain) -> Array:
    """``(n, 10 nb)`` one where a joint carries the body, else zero."""
    return np.repeat(chain.ancestry, BODY_PARAMETERS, axis=1).astype(float)
