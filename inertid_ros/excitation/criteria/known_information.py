"""What earlier recordings have said already, so that the next motion asks for what they left open (A 41-47)."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.identification.information.information import Information
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class KnownInformation:
    """Information of recordings, and how loudly a torque speaks on this robot.

    Attributes
    ----------
    root: ``(k, p)`` equations in the parameters of the model's layout, one unit of noise each; ``root^T root`` is their
        information.
    weights: ``(n,)`` root of the information per second in a unit of regressor, of each joint's torque: root of the
        independent samples per second over the residual's standard deviation.
    """

    root: Array
    weights: Array

    def __post_init__(self) -> None:
        joints = len(self.weights)
        if self.root.ndim != 2 or not np.isfinite(self.root).all():
            raise ExcitationError("known information: is not a finite matrix; identify again")
        if not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise ExcitationError(f"known information: weights of the {joints} joints must be positive; identify again")


def known_information(
    model: RobotModel, information: Information, deviation: Array, effective_counts: Array, seconds: float
) -> KnownInformation:
    """From the information of a fit.

    Parameters
    ----------
    information: of everything recorded.
    deviation: ``(c,)`` standard deviation of the residual per channel.
    effective_counts: ``(c,)`` independent samples that the recordings are worth.
    seconds: length of the recordings.

    Raises
    ------
    ExcitationError: it is of another robot or other parameters, or a joint has told nothing.
    """
    if information.layout != model.layout or not set(model.joint_names) <= set(information.names):
        raise ExcitationError(
            "known information: is of another robot, of other drive terms, or not of joint torques; identify again with"
            " the robot's options as they are now"
        )
    deviation, counts = np.asarray(deviation, dtype=float), np.asarray(effective_counts, dtype=float)
    shares = counts / np.maximum(information.counts, 1)
    root, _ = information.whitened(np.sqrt(shares) / deviation)
    joints = [information.names.index(joint) for joint in model.joint_names]
    return KnownInformation(root, np.sqrt(counts[joints] / seconds) / deviation[joints])
