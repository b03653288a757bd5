"""Contact of a legged robot with the ground: soles of its feet, and the force plates below them."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array


@dataclass(frozen=True)
class Sole:
    """A flat rectangle of a foot that is in contact with the ground.

    Attributes
    ----------
    frame : str
        Link that it belongs to.
    rotation : ndarray, shape (3, 3)
        Of the sole's axes (x to the toes, z away from the ground) in the link's.
    centre : ndarray, shape (3,)
        Of the rectangle in the link's frame [m].
    length, width : float
        Of the rectangle [m].
    plate : str
        Name of the force plate below it.
    """

    frame: str
    rotation: Array
    centre: Array
    length: float
    width: float
    plate: str

    @property
    def placement(self) -> pin.SE3:
        """Of the sole in its link."""
        return pin.SE3(self.rotation, self.centre)

    @property
    def corners(self) -> Array:
        """``(4, 3)`` in the link's frame [m]."""
        signs = np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]])
        return self.centre + 0.5 * signs * np.array([self.length, self.width, 0.0]) @ self.rotation.T


@dataclass(frozen=True)
class SimulatedPlate:
    """A force plate that is fixed in the world. It measures the wrench of the ground on the robot, in its own frame.

    Attributes
    ----------
    name : str
        Of the plate and of its frame.
    rotation : ndarray, shape (3, 3)
        Of the plate's axes in the world's.
    origin : ndarray, shape (3,)
        Of the plate's frame in the world [m]; the surface is at height zero.
    """

    name: str
    rotation: Array
    origin: Array

    @property
    def placement(self) -> pin.SE3:
        """Of the plate in the world."""
        return pin.SE3(np.array(self.rotation), np.array(self.origin))
