"""What a client asks of the excitation node, and what it is answered, without ROS."""

from dataclasses import dataclass
from enum import Enum


class Ending(Enum):
    """How a goal ended."""

    SUCCEEDED = "succeeded"
    CANCELED = "canceled"  # stopped on request
    REFUSED = "refused"  # nothing moved
    STOPPED = "stopped"  # a fault stopped the motion


@dataclass(frozen=True)
class ExcitationRequest:
    """What a client asks for; the fields are those of the action's goal."""

    plan_file: str = ""
    prior: str = ""
    motion: str = ""
    duration: float = 0.0
    seed: int = 0
    speed_scale: float = 0.0
    lease: bool = False
    plan_only: bool = False


@dataclass(frozen=True)
class GoalOutcome:
    """How a goal ended.

    Attributes
    ----------
    ending : Ending
    message : str
        One line: what happened, and the remedy.
    fault : str
        What stopped the motion; empty unless a fault did.
    condition_number : float
        Of the base regressor along the plan; NaN where none was made.
    duration : float
        Of the motion with its approach [s]; 0 where nothing moved.
    max_tracking_error : float
        Over all joints [rad or m]; NaN where nothing moved.
    """

    ending: Ending
    message: str
    fault: str = ""
    condition_number: float = float("nan")
    duration: float = 0.0
    max_tracking_error: float = float("nan")
