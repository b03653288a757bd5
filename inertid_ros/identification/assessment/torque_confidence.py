"""Uncertainty of predicted torque over a robot's range: one number to compare motions, rounds and results by.

Standard deviations of single parameters are no such measure: what no motion excites stays uncertain, without effect on
torque. A controller uses torque, so its uncertainty is taken at random states, which no recording chose.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import dense_equations
from inertid_ros.regressors.force_equations import ForceEquations
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate

STATES = 500
_SPEED = 0.5  # of the velocity limits
_ANGULAR_FREQUENCY = np.pi  # rad/s; accelerations are those of oscillations of half a hertz
_RANGE, _VELOCITY = np.pi, 1.0  # rad or m, per s; where the URDF has no limit


@dataclass(frozen=True)
class TorqueConfidence:
    """Uncertainty of predicted torque over random states of the robot.

    Attributes
    ----------
    joint_names : tuple of str
        In the order of the model.
    deviation : ndarray, shape (n,)
        Root mean square of the standard deviation of predicted torque [N m or N].
    torque : ndarray, shape (n,)
        Root mean square of predicted torque [N m or N].
    """

    joint_names: tuple[str, ...]
    deviation: Array
    torque: Array

    @cached_property
    def shares(self) -> Array:
        """``(n,)`` deviation as a share of torque; of the largest torque where a joint has none of its own."""
        return self.deviation / np.maximum(self.torque, 1e-3 * max(float(self.torque.max()), 1e-300))

    @property
    def share(self) -> float:
        """Deviation as a share of torque, of the joint where it is largest."""
        return float(self.shares.max())

    @property
    def joint(self) -> str:
        """Name of the joint where that share is largest."""
        return self.joint_names[int(np.argmax(self.shares))]


def sample_states(model: RobotModel, count: int = STATES, seed: int = 0) -> Samples:
    """Random states ``(count, n)`` of a robot, independent over joints, without torque.

    Positions are uniform in the limits, velocities up to half of theirs, accelerations normal and in proportion.
    """
    rng, limits = np.random.default_rng(seed), model.limits
    lower = np.where(np.isfinite(limits.lower), limits.lower, -_RANGE)
    upper = np.where(np.isfinite(limits.upper), limits.upper, _RANGE)
    bounded = np.isfinite(limits.velocity) & (limits.velocity > 0)
    speed: Array = _SPEED * np.where(bounded, limits.velocity, _VELOCITY)
    shape = (count, model.joints)
    q: Array = rng.uniform(lower, upper, shape)
    v: Array = rng.uniform(-speed, speed, shape)
    a: Array = rng.normal(size=shape) * (_ANGULAR_FREQUENCY / np.sqrt(3.0) * speed)
    every = np.ones(shape, dtype=bool)
    time = np.linspace(0.0, 1.0, count)
    return Samples(time, q, v, a, np.zeros(shape), every, every[:, 0], "random states")


def torque_confidence(estimate: Estimate, states: Samples | None = None) -> TorqueConfidence:
    """Uncertainty of torque that an estimate predicts, by its own covariance (data and prior together).

    Parameters
    ----------
    states : Samples, optional
        To predict at; random ones by default, the same for every estimate of one robot.

    Raises
    ------
    IdentificationError
        The robot has a free base.
    """
    return StateTorques(estimate.model, states).confidence(estimate.parameters, estimate.covariance)


class StateTorques:
    """Equations of torque at random states, for the confidence of any number of parameters.

    Parameters
    ----------
    model : RobotModel
        Robot on a fixed base.
    states : Samples, optional
        Random ones by default, the same for every estimate of one robot.

    Raises
    ------
    IdentificationError
        The robot has a free base.
    """

    def __init__(self, model: RobotModel, states: Samples | None = None) -> None:
        if model.free:
            raise IdentificationError("confidence: torque at random states is defined for robots on a fixed base only")
        # Stribeck friction that was left out of the estimate may be there: its uncertainty is part of the torque's.
        equations = ForceEquations(model.with_stribeck_of(np.ones(model.joints, dtype=bool)))
        self._model, self._columns = model, equations.columns
        self._states = states if states is not None else sample_states(model)
        chunks = [[rows for rows, _ in chunk] for chunk in dense_equations(equations, self._states)]
        self._rows = [np.concatenate(rows) for rows in zip(*chunks, strict=True)]

    def confidence(self, parameters: Array, covariance: Array) -> TorqueConfidence:
        """Confidence by parameters ``(p,)`` with a covariance ``(p, p)``."""
        squares = [
            np.sum((rows @ covariance[np.ix_(columns, columns)]) * rows)
            for rows, columns in zip(self._rows, self._columns, strict=True)
        ]
        torque = ForceEquations(self._model).predict(parameters, self._states)
        return TorqueConfidence(
            self._model.joint_names,
            np.sqrt(np.maximum(squares, 0.0) / len(self._states)),
            np.sqrt(np.mean(torque**2, axis=0)),
        )
