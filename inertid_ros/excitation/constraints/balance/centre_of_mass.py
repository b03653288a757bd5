"""The constraint that the centre of mass stays above an area ([Ayusawa2017]_ eq. 52)."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.constraint import Constraint, ConstraintUsage, MotionSamples, Penalty
from inertid_ros.excitation.limits.continuous_time import DerivativeBounds, executed_curve, find_anywhere
from inertid_ros.excitation.motions.trajectories import Trajectory
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

from .polygon import Polygon
from .robot_masses import RobotMasses

_PENALTY = 3000.0  # 1/m^2
_BEGINS = 0.1  # of the width of the area from its edges, where the penalty begins


class CentreOfMassConstraint(Constraint):
    """The centre of mass of the prior, projected along gravity, stays above an area on the ground.

    Parameters
    ----------
    model : RobotModel
        The robot; its root link rests on the ground.
    area : Polygon
        In the plane ``z = ground`` of the root frame.
    ground : float
        Height of the ground in the root frame [m].
    """

    positions_only = True

    def __init__(self, model: RobotModel, area: Polygon, ground: float) -> None:
        self.area, self._masses, self._chain = area, RobotMasses.of(model), TreeKinematics.of(model)
        self._along = along = self._masses.gravity / self._masses.gravity[2]
        self._ground = ground
        # Distance from an edge: normal . (c + along (ground - c_z)) - offset, linear in the centre.
        self._rows = np.column_stack([area.normals, -area.normals @ along[:2]])
        self._offsets = area.offsets - ground * (area.normals @ along[:2])

    def below(self, q: Array) -> Array:
        """``(N, n)`` poses to the ``(N, 2)`` points on the ground below the centre of mass, along gravity [m]."""
        centre = self._masses.centre(self._chain.placements(q))
        return np.asarray((centre + np.outer(self._ground - centre[:, 2], self._along))[:, :2], dtype=float)

    def check_start(self, pose: Array) -> None:
        """See :class:`.Constraint`."""
        slack = float(self._distances(self._masses.centre(self._chain.placements(pose[None]))).min())
        if slack < 0:
            x, y = self.below(pose[None])[0]
            raise ExcitationError(
                f"centre of mass: is at ({x:.4f}, {y:.4f}) m in the start pose, {-slack:.4f} m outside its area;"
                " start elsewhere or widen balance.com_region"
            )

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Mean over samples of the squared violation of the edges, with a margin [m^2]."""
        lack = np.maximum(_BEGINS * self.area.width - self._distances(self._masses.centre(motion.placements)), 0.0)
        if not lack.any():
            return Penalty(0.0)
        push = -2 * _PENALTY / len(motion) * lack @ self._rows
        jacobian = self._masses.jacobian(motion.chain, motion.placements, motion.screws)
        return Penalty(_PENALTY / len(motion) * float((lack**2).sum()), position=(jacobian @ push[..., None])[..., 0])

    def check(self, trajectory: Trajectory) -> None:
        """See :class:`.Constraint`; the speed of the centre is bounded by those of the joints."""
        curve = executed_curve(trajectory)
        violation = find_anywhere(curve, self, len(self._offsets))
        if violation is not None:
            x, y = self.below(curve.sample(np.array([violation.time]))[0])[0]
            raise ExcitationError(
                f"centre of mass: is at ({x:.4f}, {y:.4f}) m at {violation.time:.3f} s, {-violation.value:.4f} m"
                " outside its area; move less or widen balance.com_region"
            )

    def values(self, q: Array, v: Array, a: Array, channels: Array) -> Array:
        """See :class:`.Slack`: distances from edges [m]."""
        distances = self._distances(self._masses.centre(self._chain.placements(q)))
        return np.asarray(distances[np.arange(len(q)), channels], dtype=float)

    def rates(self, speeds: DerivativeBounds, channels: Array) -> Array:
        """See :class:`.Slack`."""
        speed = speeds.velocity @ self._masses.lever_arms
        return np.asarray(speed * np.linalg.norm(self._rows, axis=1)[channels], dtype=float)

    def usage(self, trajectory: Trajectory) -> ConstraintUsage:
        """See :class:`.Constraint`."""
        placements = self._chain.placements(executed_curve(trajectory).position)
        slack = float(self._distances(self._masses.centre(placements)).min())
        used = 1.0 - slack / self.area.width
        return ConstraintUsage(used, "distance of the centre of mass from the middle of its area")

    def _distances(self, centre: Array) -> Array:
        return np.asarray(centre @ self._rows.T - self._offsets, dtype=float)
