"""A cause of efforts that do not fit the motion, as the change that would put them right."""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.layout import Coupling
from inertid_ros.robot.bodies.user_terms import UserTerm
from inertid_ros.robot.model import RobotModel

from .torque_columns import Motion


@dataclass(frozen=True)
class Hypothesis:
    """A cause, and what efforts and motion would be without it.

    Attributes
    ----------
    cause : str
        Key of :data:`~inertid_ros.core.findings.CAUSES`; empty for what was recorded.
    mixing : ndarray, shape (n, n)
        Efforts as they should be, of those recorded.
    motion : Motion
        Motion as it should be.
    gravity : ndarray, shape (3,)
        m/s^2 in the root frame.
    joints : tuple of int
        That it is about; empty: all.
    amount : tuple of float
        Factors of the efforts, degrees, seconds, ratios, m/s^2 or kg, by the cause.
    lag : float
        How much later than the motion efforts were reported [s].
    coupling : Coupling, optional
        A drive that turns with several joints.
    terms : tuple of UserTerm
        Torques that act beside those of the robot as given.
    link : str
        That carries a load which the URDF does not know; empty where there is none.
    bodies : ndarray, shape (nb, 10), optional
        Parameters of the links with that load; those of the URDF where there are none.
    penalty : float
        Cost of the parameters that were fitted to find it, and of having looked at many alike.
    """

    cause: str
    mixing: Array
    motion: Motion
    gravity: Array
    joints: tuple[int, ...] = ()
    amount: tuple[float, ...] = ()
    lag: float = 0.0
    coupling: Coupling | None = None
    terms: tuple[UserTerm, ...] = ()
    link: str = ""
    bodies: Array | None = None
    penalty: float = 0.0

    @property
    def found(self) -> "Hypothesis":
        """The same as what was recorded, with which further causes are compared."""
        return replace(self, joints=(), amount=(), link="", penalty=0.0)

    def robot(self, model: RobotModel) -> RobotModel:
        """A robot with these bodies."""
        return model if self.bodies is None else model.with_prior_bodies(self.bodies)


def exchanged(count: int, one: int, other: int) -> list[int]:
    """Order of so many joints in which two are exchanged."""
    order = list(range(count))
    order[one], order[other] = other, one
    return order


def reordered(model: RobotModel, motion: Motion, order: list[int]) -> Motion:
    """Motion with joints in another order; that of a free base stays."""
    n = model.joints

    def moved(values: Array, first: int) -> Array:
        return np.hstack([values[:, :first], values[:, first:][:, order]])

    return Motion(
        moved(motion.q, model.positions - n), moved(motion.v, model.velocities - n),
        moved(motion.a, model.velocities - n), np.hstack([motion.direction[:, order], motion.direction[:, n:]]),
    )


def turned(model: RobotModel, motion: Motion, joint: int, angle: float) -> Motion:
    """Motion with a joint turned by an angle [rad]."""
    q = motion.q.copy()
    q[:, model.positions - model.joints + joint] += angle
    return replace(motion, q=q)


def scaled(model: RobotModel, motion: Motion, joints: list[int], factor: float) -> Motion:
    """Motion of some joints times a factor."""
    changed = {}
    for key in ("q", "v", "a"):
        values = getattr(motion, key).copy()
        values[:, [values.shape[1] - model.joints + joint for joint in joints]] *= factor
        changed[key] = values
    return replace(motion, **changed)
