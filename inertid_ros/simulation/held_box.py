"""Box: what a simulated arm can hold, to see whether it is identified."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from inertid_ros.core.arrays import Array

_BESIDE = 0.05  # m


@dataclass(frozen=True)
class Box:
    """A homogeneous box in the frame of a link.

    Attributes
    ----------
    mass : float
        [kg].
    com : ndarray, shape (3,)
        Its centre [m].
    inertia : ndarray, shape (3, 3)
        About its centre [kg m^2].
    """

    mass: float
    com: Array
    inertia: Array

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        mass: float,
        sides: tuple[float, float] = (0.05, 0.2),
        ahead: tuple[float, float] = (0.05, 0.15),
    ) -> "Box":
        """Return a box in any orientation, whose centre is up to 5 cm beside the axis z of the frame.

        Parameters
        ----------
        rng : Generator
        mass : float
            [kg].
        sides, ahead : tuple of float
            Ranges of the lengths of its sides, and of its centre along z [m].
        """
        squares = rng.uniform(*sides, 3) ** 2
        turn = Rotation.random(random_state=rng).as_matrix()
        com = np.array([*rng.uniform(-_BESIDE, _BESIDE, 2), rng.uniform(*ahead)])
        return cls(mass, com, turn @ np.diag(mass / 12 * (squares.sum() - squares)) @ turn.T)

    @property
    def numbers(self) -> Array:
        """``(10,)`` mass, centre of mass, inertia xx, xy, xz, yy, yz, zz about it."""
        return np.array([self.mass, *self.com, *self.inertia[np.triu_indices(3)]])
