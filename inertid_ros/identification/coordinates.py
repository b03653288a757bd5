"""Normalised coordinates: every body seen in the frame and units in which its prior pseudo-inertia is the identity.

With ``J(pi) = L S L^T`` and ``L L^T`` the prior, the coordinates of ``S`` are free of units and frames, the geometric
regularizers become the same for every body, and the problem is as well conditioned as the data allows (C 3.3.24).
"""

from dataclasses import dataclass

import numpy as np

from ..robot.layout import ParameterLayout
from ..robot.parameters import PSEUDO_INERTIA_BASIS, Array, from_pseudo_inertia, pseudo_inertia


@dataclass(frozen=True)
class Coordinates:
    """Affine map ``parameters = offset + matrix @ normalised``.

    Attributes
    ----------
    matrix: ``(p, p)`` block diagonal.
    offset: ``(p,)`` what links behind locked joints contribute for certain.
    prior: ``(p,)`` the prior in normalised coordinates; every body is the identity there.
    """

    layout: ParameterLayout
    matrix: Array
    offset: Array
    prior: Array

    def physical(self, normalised: Array) -> Array:
        return self.offset + self.matrix @ normalised

    def normalise(self, R: Array, z: Array) -> tuple[Array, Array]:
        """Equations ``R x = z`` in normalised coordinates."""
        return R @ self.matrix, z - R @ self.offset


def normalised_coordinates(
    layout: ParameterLayout, bodies: Array, locked: Array, drives: Array, drive_scale: Array
) -> Coordinates:
    """Coordinates around a physically consistent prior.

    Parameters
    ----------
    bodies, locked: ``(nb, 10)`` prior, and the part of it that is certain; their difference must be consistent.
    drives, drive_scale: ``(p - 10 nb,)`` prior and scale of the drive parameters.
    """
    matrix, offset = np.zeros((layout.size, layout.size)), np.zeros(layout.size)
    factors = np.linalg.cholesky(pseudo_inertia(bodies - locked))
    for index, L in enumerate(factors):
        block = layout.body(index)
        matrix[block, block] = from_pseudo_inertia(L @ PSEUDO_INERTIA_BASIS @ L.T).T
        offset[block] = locked[index]
    tail = np.arange(layout.body_size, layout.size)
    matrix[tail, tail] = drive_scale
    identity = np.tile(from_pseudo_inertia(np.eye(4)), len(bodies))
    return Coordinates(layout, matrix, offset, np.concatenate([identity, drives / drive_scale]))
