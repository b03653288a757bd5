"""The torque that joints have: what errors of predicted torque are measured by."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Channel, Information
from inertid_ros.regressors.equations import Equations
from inertid_ros.regressors.force_equations import ForceEquations
from inertid_ros.robot.bodies.layout import ParameterLayout

from .torque_confidence import sample_states

_LEAST_TORQUE = 0.01  # of the largest torque of a joint: less is lost in what couples into it, such as contact wrenches


@dataclass(frozen=True)
class TorqueScale:
    """Size of the torque of every channel; ``|`` takes the larger.

    Attributes
    ----------
    torque : ndarray, shape (c,)
        Root mean square [N m or N].
    variation : ndarray, shape (c,)
        The same about the mean: a constant is explained by an offset, whatever else is wrong.
    """

    torque: Array
    variation: Array

    def __or__(self, other: "TorqueScale") -> "TorqueScale":
        return TorqueScale(np.maximum(self.torque, other.torque), np.maximum(self.variation, other.variation))

    @classmethod
    def of_recordings(cls, recordings: Sequence[Samples]) -> "TorqueScale":
        """Of all that was measured and is usable; zero where nothing was."""
        valid = np.concatenate([samples.valid for samples in recordings])
        tau = np.where(valid, np.concatenate([samples.tau for samples in recordings]), 0.0)
        counts = np.maximum(valid.sum(axis=0), 1)
        square, mean = np.sum(tau**2, axis=0) / counts, np.sum(tau, axis=0) / counts
        return cls(np.sqrt(square), np.sqrt(np.maximum(square - mean**2, 0.0)))

    @classmethod
    def of_information(cls, information: Information) -> "TorqueScale":
        """Of what was fitted; a channel without an offset among its parameters shows no mean."""
        means = [_mean(channel, information) for channel in information.channels]
        square = information.rms_measured**2
        return cls(np.sqrt(square), np.sqrt(np.maximum(square - np.square(means), 0.0)))

    @classmethod
    def over_range(cls, equations: Equations, parameters: Array) -> "TorqueScale":
        """Of random states of a robot on a fixed base, by its parameters ``(p,)``; zero elsewhere.

        No variation: what a recording shows of a joint must be explained in that recording.
        """
        torque = variation = np.zeros(equations.count)
        if isinstance(equations, ForceEquations) and not equations.model.free:
            predicted = equations.predict(parameters, sample_states(equations.model))
            torque = np.sqrt(np.mean(predicted**2, axis=0))
        return cls(torque, variation)

    def of_measured(self, measured: Array, equations: Equations) -> "TorqueScale":
        """Zero where nothing was measured ``(c,)``, and no joint far below the others."""
        joints, sizes = equations.joint_channels, []
        for size in (self.torque, self.variation):
            size = size.copy()
            size[joints] = np.maximum(size[joints], _LEAST_TORQUE * self.torque[joints].max(initial=0.0))
            sizes.append(np.where(measured > 0, size, 0.0))
        return TorqueScale(*sizes)


def bodies_as_given(layout: ParameterLayout, given: Array, own: Array) -> Array:
    """``(p,)`` bodies of one parameter set with the drives of another.

    Friction is most of a wrist's torque and in no URDF; but bodies that came out far too heavy must not excuse the
    errors that they make.
    """
    return np.concatenate([given[: layout.inertial_size], own[layout.inertial_size :]])


def _mean(channel: Channel, information: Information) -> float:
    """Mean of a channel's measurement, by its equations' column of ones; 0 where it has none."""
    names = [information.layout.names[column] for column in channel.columns]
    offsets = [index for index, name in enumerate(names) if name.endswith(".offset")]
    if len(offsets) != 1:
        return 0.0
    ones, measured = channel.r_factor[:, offsets[0]], channel.r_factor[:, -1]
    return float(ones @ measured) / max(float(ones @ ones), 1e-300)
