"""How far the execution of a motion has come."""

from dataclasses import dataclass
from enum import Enum

from inertid_ros.core.arrays import Array


class ExecutionStage(Enum):
    """What the robot does while a motion is executed."""

    APPROACHING = "approaching"
    MOVING = "moving"
    STOPPING = "stopping"
    WAITING = "waiting"  # at rest on the path; goes on by itself


@dataclass(frozen=True)
class ExecutionProgress:
    """How far the execution of a motion has come.

    Attributes
    ----------
    stage : ExecutionStage
    fraction : float
        Of the stage, 0 to 1.
    tracking_error : ndarray, shape (n,)
        Commanded minus measured position [rad or m].
    """

    stage: ExecutionStage
    fraction: float
    tracking_error: Array
