"""Mass, centre of mass and inertia of every body with intervals, and what of each the data determine.

Standard deviations of an estimate are those of the ten parameters about the joint frame; readers of a report think in
masses, centres of mass and inertias about these. Both are the same to first order: ``c = h / m`` and
``I_c = I_o - (|h|^2 1 - h h^T) / m`` with ``h = m c``.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate, log_normal_interval
from inertid_ros.identification.assessment.identifiability import PRIOR
from inertid_ros.robot.bodies.inertial_parameters import INERTIA_ELEMENTS, mass_com_inertia

_DIAGONAL = np.array([3, 5, 8])  # of the inertia behind the centre of mass


@dataclass(frozen=True)
class BodyIntervals:
    """Intervals of 95 % of one body.

    Attributes
    ----------
    mass_interval : ndarray, shape (2,)
        [kg].
    com_interval : ndarray, shape (3, 2)
        Centre of mass x, y, z in the joint frame [m]; NaN of a body without mass.
    inertia_interval : ndarray, shape (6, 2)
        xx, xy, yy, xz, yz, zz about the centre of mass in the axes of the joint frame [kg m^2]; NaN likewise.
    determined : dict
        ``mass`` (a word), ``com`` (three) and ``inertia`` (six, in the order of ``inertia_interval``): identifiability
        of the parameter about the joint frame that each belongs to.
    """

    mass_interval: Array
    com_interval: Array
    inertia_interval: Array
    determined: dict[str, str | tuple[str, ...]]


def body_intervals(estimate: Estimate) -> tuple[BodyIntervals, ...]:
    """Intervals of every moving body of an estimate, in the order of the model."""
    layout = estimate.layout
    return tuple(_of_body(estimate, layout.body(index)) for index in range(len(layout.links)))


def _of_body(estimate: Estimate, columns: slice) -> BodyIntervals:
    pi, covariance = estimate.parameters[columns], estimate.covariance[columns, columns]
    verdicts = [each.verdict for each in estimate.identifiability[columns]] or [PRIOR] * len(pi)
    determined: dict[str, str | tuple[str, ...]] = {
        "mass": verdicts[0], "com": tuple(verdicts[1:4]), "inertia": tuple(verdicts[4:])
    }  # fmt: skip
    interval = np.full((9, 2), np.nan)
    if pi[0] > 0:
        slopes = com_inertia_slopes(pi)
        deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, covariance, slopes), 0.0))
        _, com, inertia = mass_com_inertia(pi)
        values = np.concatenate([com, [inertia[element] for element in INERTIA_ELEMENTS]])
        interval = values[:, None] + NORMAL_95 * deviation[:, None] * [-1.0, 1.0]
        positive = _DIAGONAL[values[_DIAGONAL] > 0.0]
        interval[positive] = log_normal_interval(values[positive], deviation[positive])
    return BodyIntervals(estimate.interval[columns][0], interval[:3], interval[3:], determined)


def com_inertia_slopes(pi: Array) -> Array:
    """``(9, 10)`` derivatives of centre of mass and inertia about it (xx, xy, yy, xz, yz, zz) by the parameters.

    Parameters
    ----------
    pi : ndarray, shape (10,)
        Of a body with mass.
    """
    mass, com, eye = pi[0], pi[1:4] / pi[0], np.eye(3)
    slopes = np.zeros((9, 10))
    slopes[:3, 0], slopes[:3, 1:4] = -com / mass, eye / mass
    for row, (first, second) in enumerate(INERTIA_ELEMENTS, start=3):
        slopes[row, 1 + row] = 1.0
        slopes[row, 0] = eye[first, second] * (com @ com) - com[first] * com[second]
        slopes[row, 1:4] = com[first] * eye[second] + com[second] * eye[first] - 2 * eye[first, second] * com
    return slopes
