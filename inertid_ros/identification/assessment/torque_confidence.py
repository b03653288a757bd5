"""Torque over a robot's range: its uncertainty, its scale, and its difference between two results.

Standard deviations of single parameters are not suited to compare motions, rounds and results: a parameter that motion
cannot excite stays uncertain, but has no effect on torque. A controller uses torque, so the uncertainty of torque is
evaluated at random states that do not depend on the recordings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import geodesic_distance
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Channel, Information
from inertid_ros.regressors.equations import Equations, ForceEquations, dense_equations
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate

RANDOM_STATES = 500
_SPEED_SHARE = 0.5  # of the velocity limits
_OSCILLATION_RAD_PER_S = np.pi  # rad/s; accelerations as in oscillations of half a hertz
_MIN_SHOWN_SHARE = 1e-3  # of the largest joint torque: a smaller torque does not count in shares of its uncertainty
_MIN_SCALE_SHARE = 0.01  # of the largest joint torque: coupling, such as contact wrenches, hides smaller torques


@dataclass(frozen=True)
class TorqueConfidence:
    """Uncertainty of predicted torque over random states of the robot.

    Attributes
    ----------
    deviation : (n,), root mean square of the standard deviation of predicted torque [N m or N]
    torque : (n,), root mean square of predicted torque [N m or N]
    """

    joint_names: tuple[str, ...]
    deviation: Array
    torque: Array

    @cached_property
    def shares(self) -> Array:
        """Deviation ``(n,)`` over each joint's torque, or over a thousandth of the largest torque if that is larger."""
        return self.deviation / _at_least_shown(self.torque)

    @property
    def share(self) -> float:
        return float(self.shares.max())

    @property
    def joint(self) -> str:
        return self.joint_names[int(np.argmax(self.shares))]


def sample_states(model: RobotModel, count: int = RANDOM_STATES) -> Samples:
    """Random states ``(count, n)`` of a robot, independent over joints, without torque.

    Positions are uniform within their limits, and velocities within half of their limits. Accelerations are normal,
    with deviations in proportion to the velocity limits.
    """
    rng, shape = np.random.default_rng(0), (count, model.joints)
    lower, upper, fastest = model.limits.range_to_sample
    speed: Array = _SPEED_SHARE * fastest
    q: Array = rng.uniform(lower, upper, shape)
    v: Array = rng.uniform(-speed, speed, shape)
    a: Array = rng.normal(size=shape) * (_OSCILLATION_RAD_PER_S / np.sqrt(3.0) * speed)
    every = np.ones(shape, dtype=bool)
    time = np.linspace(0.0, 1.0, count)
    return Samples(time, q, v, a, np.zeros(shape), every, every[:, 0], "random states")


def torque_confidence(estimate: Estimate, states: Samples | None = None) -> TorqueConfidence:
    """Uncertainty of an estimate's predicted torque, from its own covariance (data and prior together).

    Parameters
    ----------
    states : states for the prediction; by default random states, identical for every estimate of one robot
    """
    return StateTorques(estimate.model, states).confidence(estimate.parameters, estimate.covariance)


class StateTorques:
    """Torque equations at random states, for the confidence of any number of parameter sets.

    Parameters
    ----------
    states : by default random states, identical for every estimate of one robot
    """

    def __init__(self, model: RobotModel, states: Samples | None = None) -> None:
        if model.free:
            raise IdentificationError("confidence: torque at random states is defined for robots on a fixed base only")
        # Stribeck friction that the estimate leaves out may exist: its uncertainty is part of the torque's uncertainty.
        equations = ForceEquations(model.with_layout(without_stribeck=()))
        self._model, self._columns = model, equations.columns
        self._states = states if states is not None else sample_states(model)
        self._rows = [rows for rows, _ in next(dense_equations(equations, self._states, len(self._states)))]

    @property
    def coefficients(self) -> Array:
        """``(n, N, p)`` equations of every joint's torque at ``N`` states."""
        coefficients = np.zeros((len(self._rows), len(self._states), self._model.layout.size))
        for joint, (rows, columns) in enumerate(zip(self._rows, self._columns, strict=True)):
            coefficients[joint][:, columns] = rows
        return coefficients * self._model.layout.without_compensation(np.ones(coefficients.shape[2]))

    def confidence(self, parameters: Array, covariance: Array) -> TorqueConfidence:
        """Confidence for parameters ``(p,)`` with a covariance ``(p, p)``."""
        layout = self._model.layout
        parameters, covariance = layout.without_compensation(parameters), layout.without_compensation(covariance)
        squares = [
            np.sum((rows @ covariance[np.ix_(columns, columns)]) * rows)
            for rows, columns in zip(self._rows, self._columns, strict=True)]
        torque = ForceEquations(self._model).predict(parameters, self._states)
        return TorqueConfidence(
            self._model.joint_names,
            np.sqrt(np.maximum(squares, 0.0) / len(self._states)),
            np.sqrt(np.mean(torque**2, axis=0)))


@dataclass(frozen=True)
class TorqueScale:
    """Size of the torque of every channel, as the scale of errors; ``|`` takes the larger size.

    Attributes
    ----------
    variation : (c,), root mean square about the mean: an offset alone explains a constant torque
    """

    torque: Array
    variation: Array

    def __or__(self, other: "TorqueScale") -> "TorqueScale":
        return TorqueScale(np.maximum(self.torque, other.torque), np.maximum(self.variation, other.variation))

    @classmethod
    def from_recordings(
            cls, equations: Equations, parameters: tuple[Array, Array], recordings: Sequence[Samples],
            fitted: Information | None = None) -> "TorqueScale":
        """Largest scale of recordings, fitted data and random states; zero for unmeasured channels.

        The scale of a joint is at least a hundredth of the largest joint torque.

        Parameters
        ----------
        parameters : tuple of ndarray, shape (p,)
            Parameters of the URDF as given, and parameters whose errors are measured. Torque at random states uses the
            bodies of the URDF, since identified bodies that are far too heavy must not raise the scale of their own
            errors. The drives come from the second set, since URDFs lack friction, which is most of a wrist's torque.
        """
        measured, joints = cls.of_samples(recordings), equations.joint_channels
        size = equations.model.layout.inertial_size
        scale = measured | cls.over_range(equations, np.concatenate([parameters[0][:size], parameters[1][size:]]))
        if fitted is not None:
            scale = scale | cls.of_information(fitted)
        raised = []
        for sizes in (scale.torque, scale.variation):
            values = sizes.copy()
            values[joints] = np.maximum(values[joints], _MIN_SCALE_SHARE * scale.torque[joints].max(initial=0.0))
            raised.append(np.where(measured.torque > 0, values, 0.0))
        return cls(*raised)

    @classmethod
    def of_samples(cls, recordings: Sequence[Samples]) -> "TorqueScale":
        """Scale of all measured and usable samples; zero for unmeasured channels."""
        valid = np.concatenate([samples.valid for samples in recordings])
        tau = np.where(valid, np.concatenate([samples.tau for samples in recordings]), 0.0)
        counts = np.maximum(valid.sum(axis=0), 1)
        square, mean = np.sum(tau**2, axis=0) / counts, np.sum(tau, axis=0) / counts
        return cls(np.sqrt(square), np.sqrt(np.maximum(square - mean**2, 0.0)))

    @classmethod
    def of_information(cls, information: Information) -> "TorqueScale":
        """Scale of the fitted data; the mean of a channel without an offset parameter counts as zero."""
        means = [_mean(channel, information) for channel in information.channels]
        square = information.rms_measured**2
        return cls(np.sqrt(square), np.sqrt(np.maximum(square - np.square(means), 0.0)))

    @classmethod
    def over_range(cls, equations: Equations, parameters: Array) -> "TorqueScale":
        """Scale at random states for parameters ``(p,)`` of a robot on a fixed base; zero for other robots.

        The variation is zero: only recorded data define it.
        """
        torque = variation = np.zeros(equations.count)
        if isinstance(equations, ForceEquations) and not equations.model.free:
            parameters = equations.model.layout.without_compensation(parameters)
            predicted = equations.predict(parameters, sample_states(equations.model))
            torque = np.sqrt(np.mean(predicted**2, axis=0))
        return cls(torque, variation)


def _mean(channel: Channel, information: Information) -> float:
    """Mean of a channel's measurement, from the column of ones in its equations; 0 without this column."""
    names = [information.layout.names[column] for column in channel.columns]
    offsets = [index for index, name in enumerate(names) if name.endswith(".offset")]
    if len(offsets) != 1:
        return 0.0
    ones, measured = channel.r_factor[:, offsets[0]], channel.r_factor[:, -1]
    return float(ones @ measured) / max(float(ones @ ones), 1e-300)


@dataclass(frozen=True)
class ParameterSet:
    """Parameters of one result.

    Attributes
    ----------
    parameters : (p,), in the order of the model's layout
    """

    model: RobotModel
    parameters: Array
    covariance: Array


@dataclass(frozen=True)
class ParameterChange:
    """Change of one parameter between two results.

    Attributes
    ----------
    deviations : difference in combined standard deviations of both results; NaN if both have zero variance
    """

    name: str
    first: float
    second: float
    deviations: float


def compare_results(
        first: ParameterSet, second: ParameterSet) -> tuple[Array, dict[str, float], tuple[ParameterChange, ...]]:
    """Compare two results for robots of equal links and joints.

    Returns
    -------
    distance : ndarray, shape (nb,)
        Geodesic distance of every body between the two results.
    torque_difference : dict of str to float
        Root mean square difference of each joint's predicted torque over random states, as a share of torque; empty on
        a free base.
    changes : tuple of ParameterChange
        All parameters common to both, the largest difference in standard deviations first.
    """
    bodies = [result.model.layout.bodies(result.parameters) for result in (first, second)]
    differences = {}
    if not first.model.free:
        states = sample_states(first.model)
        torque, other = (
            ForceEquations(result.model).predict(result.model.layout.without_compensation(result.parameters), states)
            for result in (first, second))
        change, size = (np.sqrt(np.mean(values**2, axis=0)) for values in (other - torque, torque))
        shares = change / _at_least_shown(size)
        differences = dict(zip(first.model.joint_names, shares.tolist(), strict=True))
    return geodesic_distance(*bodies), differences, _changes(first, second)


def _changes(first: ParameterSet, second: ParameterSet) -> tuple[ParameterChange, ...]:
    columns = {name: column for column, name in enumerate(second.model.layout.names)}
    variances, others = np.diagonal(first.covariance), np.diagonal(second.covariance)
    changes = []
    for column, name in enumerate(first.model.layout.names):
        if name in columns:
            before, after = float(first.parameters[column]), float(second.parameters[columns[name]])
            variance = float(variances[column] + others[columns[name]])
            deviations = (after - before) / np.sqrt(variance) if variance > 0 else np.nan
            changes.append(ParameterChange(name, before, after, float(deviations)))
    return tuple(sorted(changes, key=lambda change: -np.nan_to_num(abs(change.deviations))))


def _at_least_shown(torque: Array) -> Array:
    """Torque ``(n,)`` of joints, raised to at least a thousandth of the largest torque."""
    return np.maximum(torque, _MIN_SHOWN_SHARE * max(float(torque.max()), 1e-300))
