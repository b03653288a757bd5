"""Drive regressor: torque linear in rotor inertia, friction, offset and stiffness ([Wensing2018]_ eq. 24)."""

from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.friction import dry_friction_columns
from inertid_ros.robot.bodies.layout import COUPLING_TERMS, ParameterLayout


class DriveMotion(NamedTuple):
    """Motion of all drives.

    Attributes
    ----------
    q, v, a : ndarray, shape (N, n)
        Position, velocity, acceleration of the joints.
    direction : ndarray, shape (N, n + couplings)
        Direction of sliding from -1 to 1, of joints, then of couplings, low-passed like the torque.
    fading : ndarray, shape (N, n)
        Direction times the share of the Stribeck friction that is left at the speed of the joint, low-passed likewise.
    """

    q: Array
    v: Array
    a: Array
    direction: Array
    fading: Array

    @classmethod
    def of(cls, layout: ParameterLayout, samples: Samples) -> "DriveMotion":
        """Motion along samples."""
        base_q, base_v = (motion.shape[1] - len(layout.joints) for motion in (samples.q, samples.v))
        q, v, a = samples.q[:, base_q:], samples.v[:, base_v:], samples.a[:, base_v:]
        return cls(q, v, a, *dry_friction_columns(layout, samples))

    def select(self, rows: slice) -> "DriveMotion":
        """Some of the samples; in memory the samples of a column are neighbours."""
        return DriveMotion(*(np.asfortranarray(signal[rows]) for signal in self))

    def along(self, ratios: Array, drive: int) -> "DriveMotion":
        """Motion ``(N,)`` of one drive that turns with ``ratios`` of the joints."""
        v = self.v @ ratios
        return DriveMotion(self.q @ ratios, v, self.a @ ratios, self.direction[:, drive], np.zeros_like(v))


COLUMNS = {
    "rotor_inertia": lambda motion: motion.a,
    "viscous": lambda motion: motion.v,
    "coulomb": lambda motion: motion.direction,
    "offset": lambda motion: np.ones_like(motion.v),
    "stiffness": lambda motion: motion.q,
    "stribeck": lambda motion: motion.fading,
}


def drive_columns(terms: tuple[str, ...], motion: DriveMotion) -> Array:
    """``(N, len(terms))`` columns of one drive from its motion; in memory the samples of a column are neighbours."""
    if not terms:
        return np.zeros((len(motion.v), 0))
    return np.stack([COLUMNS[term](motion) for term in terms]).T


def channel_drive_columns(layout: ParameterLayout, joint: int) -> np.ndarray:
    """Columns of the layout that joint's own drive and its couplings fill, in the order of :func:`drive_rows`."""
    own = [layout.drive(term).start + joint for term in layout.drive_terms]
    terms = np.arange(len(COUPLING_TERMS))
    coupled = [layout.coupling_start + len(terms) * k + terms for k in np.flatnonzero(layout.coupling_ratios[:, joint])]
    return np.concatenate([np.array(own, dtype=int), *coupled])


def drive_rows(layout: ParameterLayout, motion: DriveMotion) -> list[list[Array]]:
    """The columns of every joint, ``(N,)`` each; what joints share is worked out once."""
    of_joints = motion._replace(direction=motion.direction[:, : len(layout.joints)])
    own = [COLUMNS[term](of_joints) for term in layout.drive_terms]
    rows = [[signal[:, joint] for signal in own] for joint in range(len(layout.joints))]
    for index, ratios in enumerate(layout.coupling_ratios):
        coupled = drive_columns(COUPLING_TERMS, motion.along(ratios, len(layout.joints) + index)).T
        for joint in np.flatnonzero(ratios):
            rows[joint].extend(ratios[joint] * coupled)
    return rows


def drive_torque(layout: ParameterLayout, parameters: Array, motion: DriveMotion) -> Array:
    """``(N, n)`` torque of all drives and couplings."""
    of_joints = motion._replace(direction=motion.direction[:, : len(layout.joints)])
    torque = np.zeros_like(motion.v)
    for term in layout.drive_terms:
        torque += parameters[layout.drive(term)] * COLUMNS[term](of_joints)
    coupled = parameters[layout.coupling_start : layout.term_start].reshape(-1, len(COUPLING_TERMS))
    for index, (ratios, own) in enumerate(zip(layout.coupling_ratios, coupled, strict=True)):
        columns = drive_columns(COUPLING_TERMS, motion.along(ratios, len(layout.joints) + index))
        torque += np.outer(columns @ own, ratios)
    return torque
