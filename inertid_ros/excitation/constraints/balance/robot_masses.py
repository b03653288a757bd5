"""Masses of a whole robot, its root link included, and their centre."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.kinematics.lever_arms import lever_arm_bounds
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
from inertid_ros.robot.bodies.inertial_parameters import mass_com_inertia
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class RobotMasses:
    """Masses of the root and the moving bodies by the URDF.

    Attributes
    ----------
    root : float
        Mass of the root with all that is fixed to it [kg].
    root_moment : ndarray, shape (3,)
        First moment of the root in its frame [kg m].
    bodies : ndarray, shape (n,)
        Masses of the moving bodies [kg].
    centres : ndarray, shape (n, 3)
        Their centres of mass in the bodies' frames [m].
    gravity : ndarray, shape (3,)
        Gravity in the root frame [m/s^2].
    lever_arms : ndarray, shape (n,)
        Bound of how far the centre of all mass moves per radian (metre) of each joint [m].
    """

    root: float
    root_moment: Array
    bodies: Array
    centres: Array
    gravity: Array
    lever_arms: Array

    @classmethod
    def of(cls, model: RobotModel) -> "RobotMasses":
        """Masses of a robot model."""
        fixed = model.pinocchio.inertias[0]
        bodies, centres, _ = mass_com_inertia(model.body_prior)
        return cls(
            float(fixed.mass),
            float(fixed.mass) * np.array(fixed.lever),
            bodies,
            centres,
            np.array(model.options.gravity, dtype=float),
            _mass_lever_arms(model, bodies, centres) / (float(fixed.mass) + bodies.sum()),
        )

    @property
    def total(self) -> float:
        """Total mass [kg]."""
        return self.root + float(self.bodies.sum())

    @property
    def weight(self) -> float:
        """Weight [N]."""
        return self.total * float(np.linalg.norm(self.gravity))

    @property
    def root_reaction(self) -> Array:
        """``(6,)`` force and torque about the root origin that hold the root itself."""
        return np.concatenate([-self.root * self.gravity, -np.cross(self.root_moment, self.gravity)])

    def moments(self, placements: Array) -> Array:
        """``(N, n, 3)`` mass times centre of mass of the bodies in the root frame, from ``(N, n, 4, 4)``."""
        points = (placements[..., :3, :3] @ self.centres[..., None])[..., 0] + placements[..., :3, 3]
        return np.asarray(points * self.bodies[:, None], dtype=float)

    def centre(self, placements: Array) -> Array:
        """``(N, 3)`` centre of all mass in the root frame [m]."""
        return np.asarray((self.moments(placements).sum(axis=1) + self.root_moment) / self.total, dtype=float)

    def jacobian(self, chain: TreeKinematics, placements: Array, screws: Array) -> Array:
        """``(N, n, 3)`` derivative of the centre of all mass with respect to the joints."""
        beyond = chain.ancestry.astype(float)  # joints by the bodies they move
        mass, moment = beyond @ self.bodies, beyond @ self.moments(placements)
        moved = screws[..., :3] * mass[:, None] + np.cross(screws[..., 3:], moment)
        return np.asarray(moved / self.total, dtype=float)


def _mass_lever_arms(model: RobotModel, bodies: Array, centres: Array) -> Array:
    """``(n,)`` sums over what a joint moves of mass times the largest distance from it [kg m]."""
    points = (lever_arm_bounds(model, body, float(np.linalg.norm(centre))) for body, centre in enumerate(centres))
    return np.asarray(sum(mass * point for mass, point in zip(bodies, points, strict=True)), dtype=float)
