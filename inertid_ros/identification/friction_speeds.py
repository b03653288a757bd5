"""Transition speeds of friction, and whether joints have Stribeck friction at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import r_factor
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Information
from inertid_ros.regressors.equations import Equations, equations_of

from .drive_term_test import DriveTermTest

_LEAST_TRANSITION = 1e-3  # rad/s or m/s; a slower drive may as well rest
# tanh has the slope of the expected sign of a velocity with normal noise, E sign(v + noise) = erf(v / (sqrt(2) noise)).
_TRANSITION_PER_NOISE = np.sqrt(np.pi / 2)


def with_transition_speeds(equations: Equations, recordings: Sequence[Samples]) -> Equations:
    """The equations of the same robot with friction that turns within the noise of velocity.

    Near zero the sign of a measured velocity is not sure. The expected sign, given what was measured, makes friction
    parameters come out right on average, where the bare sign would make them too small. Transition speeds that the
    robot has already stay.
    """
    for samples in recordings:
        equations.check(samples)
    model, levels = equations.model, [samples.noise for samples in recordings if samples.noise is not None]
    if model.layout.transition_speeds or not levels or not has_joints(equations):
        return equations
    noise = np.sqrt(np.mean(np.square(levels), axis=0))[model.velocities - model.joints :]
    speeds = np.maximum(_TRANSITION_PER_NOISE * noise, _LEAST_TRANSITION)
    return equations_of(model.with_transition_speeds(speeds), equations.equation_type)


def has_joints(equations: Equations) -> bool:
    """Whether there are equations of the torque of joints, in which their friction is."""
    return len(range(equations.count)[equations.joint_channels]) > 0


def check_stribeck(equations: Equations) -> None:
    """Check that there is Stribeck friction whose speed could be fitted.

    Raises
    ------
    IdentificationError
        The robot has no Stribeck term, or the equations no joints.
    """
    if "stribeck" not in equations.model.layout.drive_terms or not has_joints(equations):
        raise IdentificationError(
            "identify.fit_stribeck_speed: there is no Stribeck friction in these equations; add stribeck to"
            " robot.drive_terms or leave it off"
        )


@dataclass(frozen=True)
class ChosenStribeck:
    """Equations with Stribeck friction only of joints that show it, and the information of the data under them.

    Attributes
    ----------
    covariance : ndarray, shape (p, p)
        Of the parameters, by the uncertainty of fitted speeds; zero where they were given.
    """

    equations: Equations
    information: Information
    covariance: Array

    @classmethod
    def of(
        cls, equations: Equations, information: Information, present: NDArray[np.bool_], covariance: Array | None = None
    ) -> "ChosenStribeck":
        """With the columns of joints without Stribeck friction set to zero."""
        model, size = equations.model, equations.model.layout.size
        covariance = np.zeros((size, size)) if covariance is None else covariance
        if np.array_equal(present, model.layout.with_stribeck):
            return cls(equations, information, covariance)
        reduced = equations_of(model.with_stribeck_of(present), equations.equation_type)
        layout, channels, earlier = reduced.model.layout, [], information.earlier
        for channel in information.channels:
            factor = channel.r_factor.copy()
            factor[:, np.flatnonzero(np.isin(channel.columns, layout.absent))] = 0.0
            channels.append(replace(channel, r_factor=r_factor(factor)))
        if earlier is not None:
            earlier = replace(earlier, R=np.where(np.isin(np.arange(size), layout.absent), 0.0, earlier.R))
        information = replace(information, layout=layout, channels=tuple(channels), earlier=earlier)
        return cls(reduced, information, covariance)


def stribeck_where_significant(equations: Equations, information: Information, test: DriveTermTest) -> ChosenStribeck:
    """Stribeck friction at the speeds that the robot has, of joints that show it."""
    present = equations.model.layout.with_stribeck
    if present.any() and has_joints(equations):
        present = present & test.passed(equations, test.fit(equations, information, "stribeck").significance, 1)
    return ChosenStribeck.of(equations, information, present)
