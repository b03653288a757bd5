"""A robot as its calibration left it, and how far its friction may have drifted since."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.bodies.layout import ParameterLayout

_DRIFTING = ("viscous", "coulomb", "stribeck")


@dataclass(frozen=True)
class CalibratedRobot:
    """A robot as its result states it.

    Attributes
    ----------
    equations : Equations
        Of joint torques.
    parameters : ndarray, shape (p,)
        In the order of the layout.
    covariance : ndarray, shape (p, p)
        Of the parameters.
    deviation : ndarray, shape (c,)
        Standard deviation of the residual per channel [N m or N].
    counts : ndarray, shape (c,)
        Independent samples that it was found from.
    """

    equations: Equations
    parameters: Array
    covariance: Array
    deviation: Array
    counts: Array

    @property
    def layout(self) -> ParameterLayout:
        """Of the parameters."""
        return self.equations.model.layout


@dataclass(frozen=True)
class FrictionDrift:
    """How much friction differs from that of the calibration; standard deviations as shares of a joint's friction.

    Attributes
    ----------
    since_calibration : float
        Of all recordings of a payload, and the reference.
    between_recordings : float
        Of recordings with payload from the reference.
    """

    since_calibration: float = 0.1
    between_recordings: float = 0.03

    def root(self, layout: ParameterLayout, parameters: Array, share: float) -> Array:
        """``(p, k)`` root of the covariance: friction by its share, offsets by the same share of Coulomb friction."""
        deviation = np.zeros(layout.size)
        for term in _DRIFTING:
            deviation[layout.drive(term)] = share * np.abs(parameters[layout.drive(term)])
        if "coulomb" in layout.drive_terms and "offset" in layout.drive_terms:
            deviation[layout.drive("offset")] = share * np.abs(parameters[layout.drive("coulomb")])
        couplings = slice(layout.coupling_start, layout.term_start)
        deviation[couplings] = share * np.abs(parameters[couplings])
        return np.diag(deviation)[:, deviation > 0]
