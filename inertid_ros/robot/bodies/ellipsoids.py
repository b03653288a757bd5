"""Ellipsoids that bound a link: given, or from the URDF's collision geometry."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from .inertial_parameters import PSEUDO_INERTIA_BASIS, mass_com_inertia


@dataclass(frozen=True)
class Ellipsoid:
    """``{x : (x - centre)^T shape^-1 (x - centre) <= 1}`` in the link's frame ([Wensing2018]_ eqs. 21-23).

    Attributes
    ----------
    centre : ndarray, shape (3,)
        Centre [m].
    shape : ndarray, shape (3, 3)
        Positive definite [m^2]; semi-axes are the roots of its eigenvalues.
    """

    centre: Array
    shape: Array

    @classmethod
    def from_axes(cls, centre: Array, rotation: Array, semi_axes: Array) -> "Ellipsoid":
        """From semi-axes ``(3,)`` m along the columns of ``rotation``."""
        return cls(np.asarray(centre, dtype=float), rotation @ np.diag(np.square(semi_axes)) @ rotation.T)

    @classmethod
    def around_box(cls, centre: Array, rotation: Array, half_sizes: Array) -> "Ellipsoid":
        """The smallest ellipsoid through the corners of a box."""
        return cls.from_axes(centre, rotation, np.sqrt(3.0) * np.asarray(half_sizes, dtype=float))

    @classmethod
    def around_cylinder(cls, centre: Array, rotation: Array, radius: float, length: float) -> "Ellipsoid":
        """The smallest ellipsoid around a cylinder along z."""
        axes = np.array([radius * np.sqrt(1.5), radius * np.sqrt(1.5), 0.5 * length * np.sqrt(3.0)])
        return cls.from_axes(centre, rotation, axes)

    @classmethod
    def from_quadric(cls, Q: Array) -> "Ellipsoid":
        """From a matrix ``(4, 4)`` with ``[x; 1]^T Q [x; 1] >= 0`` inside, of any scale; see :attr:`quadric`.

        Raises
        ------
        ModelError
            It is the matrix of something else, such as a hyperboloid, or with the opposite sign.
        """
        Q = 0.5 * (np.asarray(Q, dtype=float) + np.transpose(Q))
        inverse = -Q[:3, :3]
        try:
            np.linalg.cholesky(inverse)
        except (np.linalg.LinAlgError, ValueError):
            raise ModelError("ellipsoid: the upper left 3 x 3 of Q is not negative definite; change its sign") from None
        centre: Array = np.asarray(np.linalg.solve(inverse, Q[:3, 3]), dtype=float)
        size = float(Q[3, 3] + centre @ inverse @ centre)
        if not size > 0:
            raise ModelError("ellipsoid: no point is inside of Q; correct its last element")
        return cls(centre, np.asarray(size * np.linalg.inv(inverse), dtype=float))

    @classmethod
    def of_body(cls, pi: Array, scale: float = 1.0) -> "Ellipsoid":
        """The homogeneous one with the second moments of a body ``(10,)`` about its centre of mass, scaled."""
        mass, com, inertia = mass_com_inertia(pi)
        return cls(com, 5 * scale**2 * (0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass)

    def uniform(self, rng: np.random.Generator, count: int, scale: float = 1.0) -> Array:
        """Random points ``(count, 3)`` in it, or in a multiple of it."""
        direction = rng.normal(size=(count, 3))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        radius = rng.uniform(size=(count, 1)) ** (1 / 3)
        return np.asarray(self.centre + scale * radius * direction @ np.linalg.cholesky(self.shape).T)

    @property
    def quadric(self) -> Array:
        """``(4, 4)`` matrix Q with ``[x; 1]^T Q [x; 1] >= 0`` inside; density realizable if ``tr(J Q) >= 0``
        ([Wensing2018]_ eq. 23)."""
        inverse = np.linalg.inv(self.shape)
        side = inverse @ self.centre
        return np.block([[-inverse, side[:, None]], [side[None], 1.0 - self.centre @ side]])

    @property
    def row(self) -> Array:
        """``(10,)`` with ``row @ pi = tr(J(pi) Q)``."""
        return np.einsum("kij,ij->k", PSEUDO_INERTIA_BASIS, self.quadric)

    def com_block(self) -> Array:
        """``(16, 10)`` map from ``pi`` to ``[[m, (h - m c)^T], [h - m c, m shape]]``.

        The centre of mass is inside exactly if that is positive semidefinite ([Wensing2018]_ eq. 22).
        """
        block = np.zeros((10, 4, 4))
        block[0, 0, 0] = 1.0
        block[0, 1:, 1:] = self.shape
        block[0, 0, 1:] = block[0, 1:, 0] = -self.centre
        for axis in range(3):
            block[1 + axis, 0, 1 + axis] = block[1 + axis, 1 + axis, 0] = 1.0
        return block.reshape(10, 16).T


Ellipsoids = Mapping[str, tuple[Ellipsoid, ...]]
