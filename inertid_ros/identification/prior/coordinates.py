"""Normalised coordinates: every body seen in the frame and units in which its prior pseudo-inertia is the identity.

With ``J(pi) = L S L^T`` and ``L L^T`` the prior, the coordinates of ``S`` are free of units and frames, the geometric
regularizers become the same for every body, and the problem is as well conditioned as the data allows (C 3.3.24).
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.information.information import Information
from inertid_ros.robot.bodies.inertial_parameters import PSEUDO_INERTIA_BASIS, from_pseudo_inertia, pseudo_inertia
from inertid_ros.robot.bodies.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

ENERGY_SHARE = 0.05  # scale of a drive parameter: its torque is this share of the joint's
_STILL = 1e-4  # rad, rad/s, rad/s^2 or the same in m; a joint that moves less shows nothing of its drive


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
    bodies, locked: ``(nb, 10)`` prior of links and rotors, and the part of it that is certain; their difference must
        be consistent.
    drives, drive_scale: ``(p - 10 nb,)`` prior and scale of the drive parameters.
    """
    matrix, offset = np.zeros((layout.size, layout.size)), np.zeros(layout.size)
    factors = np.linalg.cholesky(pseudo_inertia(bodies - locked))
    for index, L in enumerate(factors):
        block = layout.body(index)
        matrix[block, block] = from_pseudo_inertia(L @ PSEUDO_INERTIA_BASIS @ L.T).T
        offset[block] = locked[index]
    tail = np.arange(layout.inertial_size, layout.size)
    matrix[tail, tail] = drive_scale
    identity = np.tile(from_pseudo_inertia(np.eye(4)), len(bodies))
    return Coordinates(layout, matrix, offset, np.concatenate([identity, drives / drive_scale]))


def prior_coordinates(model: RobotModel, information: Information) -> Coordinates:
    """Normalised coordinates; a drive parameter of one makes a small share of its channel's measurement."""
    layout = model.layout
    torque = np.maximum(information.rms_measured, 1e-3 * information.rms_measured.max())
    scale = np.full(layout.size, np.inf)
    for channel, level in zip(information.channels, torque, strict=True):
        effect = np.linalg.norm(channel.triangle[:, :-1], axis=0) / np.sqrt(max(channel.count, 1))
        effect = np.where(effect > _STILL, effect, 1.0)  # nothing is seen of it: as if it moved at a rate of one
        scale[channel.columns] = np.minimum(scale[channel.columns], ENERGY_SHARE * level / effect)
    scale[np.isinf(scale)] = 1.0  # drives are in no equation of momentum, and stay as they are
    given, tail = model.prior, slice(layout.inertial_size, None)
    # Not less than what the measurement shows: damping and friction of a URDF are often placeholders near zero.
    scale[layout.non_negative] = np.maximum(scale[layout.non_negative], given[layout.non_negative])
    return normalised_coordinates(layout, model.inertial_belief, model.inertial_locked, given[tail], scale[tail])
