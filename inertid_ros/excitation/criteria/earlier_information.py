"""Information of earlier recordings, which the next motion complements ([Ayusawa2017]_ eqs. 41-47)."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.identification.information.information import Information
from inertid_ros.robot.model import RobotModel


@dataclass(frozen=True)
class EarlierInformation:
    """Information of earlier recordings, and the weights of joint torques on this robot.

    Attributes
    ----------
    root : ndarray, shape (k, p)
        Equations in the parameters of the model's layout, whitened to unit noise; ``root^T root`` is the information
        matrix.
    weights : ndarray, shape (n,)
        Square root of the information per second that a unit of regressor gives in each joint's torque: root of the
        independent samples per second over the residual's standard deviation [1/(N m sqrt(s)) or 1/(N sqrt(s))].

    Raises
    ------
    ExcitationError
        The matrix is not finite or a weight is not positive.
    """

    root: Array
    weights: Array

    def __post_init__(self) -> None:
        joints = len(self.weights)
        if self.root.ndim != 2 or not np.isfinite(self.root).all():
            raise ExcitationError("earlier information: is not a finite matrix; identify again")
        if not (np.isfinite(self.weights).all() and (self.weights > 0).all()):
            raise ExcitationError(
                f"earlier information: weights of the {joints} joints must be positive; identify again"
            )


def earlier_information(
    model: RobotModel, information: Information, deviation: Array, effective_counts: Array, seconds: float
) -> EarlierInformation:
    """From the information of an identification.

    Parameters
    ----------
    model : RobotModel
        The robot to plan for.
    information : Information
        Of everything recorded.
    deviation : ndarray, shape (c,)
        Standard deviation of the residual per channel [N m or N].
    effective_counts : ndarray, shape (c,)
        Number of independent samples in the recordings, per channel.
    seconds : float
        Length of the recordings [s].

    Raises
    ------
    ExcitationError
        The information is of another robot or of other parameters, or a joint has none.
    """
    if information.layout != model.layout or not set(model.joint_names) <= set(information.names):
        raise ExcitationError(
            "earlier information: is of another robot, of other drive terms, or not of joint torques; identify again"
            " with the robot's options as they are now"
        )
    deviation, counts = np.asarray(deviation, dtype=float), np.asarray(effective_counts, dtype=float)
    shares = counts / np.maximum(information.counts, 1)
    root, _ = information.whitened(np.sqrt(shares) / deviation)
    joints = [information.names.index(joint) for joint in model.joint_names]
    return EarlierInformation(root, np.sqrt(counts[joints] / seconds) / deviation[joints])
