"""Momentum equations along a motion of joints and wheels, as the prior predicts the motion of the base."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.dynamics.base_from_momentum import BaseMotion
from inertid_ros.regressors.momentum_regressor import momentum_regressor
from inertid_ros.robot.tree import TreeJoint
from inertid_ros.robot.wheels import MountedWheels


class MomentumRows:
    """Rows of a robot that floats at rest until its joints and wheels move: its total momentum is zero (B 26).

    They are in the base frame, about the base's origin. Those in an inertial frame have nearly the same singular
    values: they are turned, which changes none, and moved by what little the base moves.

    Parameters
    ----------
    tree : sequence of TreeJoint
        Whose first body is the base.
    bodies : ndarray, shape (nb, 10)
        Prior.
    wheels : MountedWheels
        Planned after the joints.
    columns : ndarray
        Independent columns of the inertial parameters.
    """

    def __init__(self, tree: Sequence[TreeJoint], bodies: Array, wheels: MountedWheels, columns: np.ndarray) -> None:
        self._tree, self._joints, self._columns = tree, len(tree) - 1, columns
        self._base = BaseMotion(tree, bodies, wheels)

    def rows(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """See :class:`~.rows.MotionRows`; velocities are those of base and joints."""
        q, v, speeds = q[:, : self._joints], v[:, : self._joints], v[:, self._joints :]
        twist = self._base.twist(q, v, speeds)
        rows = momentum_regressor(self._tree, twist, q, v)[:, :, self._columns]
        return rows, np.hstack([twist, v])
