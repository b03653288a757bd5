"""Samples: prepared motion and torque of one experiment, ordered like the model, ready for a regressor."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RecordingError
from ..robot.parameters import Array


@dataclass(frozen=True)
class Samples:
    """Filtered, evenly spaced samples; columns in the order of the model's joints.

    Attributes
    ----------
    time: ``(N,)`` s.
    q, v, a: ``(N, n)`` position, velocity, acceleration (rad or m, per s, per s^2).
    tau: ``(N, n)`` joint torque or force (N m or N).
    mask: ``(N, n)`` bool; an equation enters the fit where it is true.
    name: the recording they come from.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    mask: NDArray[np.bool_]
    name: str = "recording"

    def __post_init__(self) -> None:
        for channel in ("v", "a", "tau", "mask"):
            if getattr(self, channel).shape != self.q.shape:
                raise RecordingError(
                    f"{self.name}: {channel} has shape {getattr(self, channel).shape}, expected {self.q.shape}"
                )
        if self.time.shape != self.q.shape[:1]:
            raise RecordingError(f"{self.name}: time has shape {self.time.shape}, expected {self.q.shape[:1]}")

    def __len__(self) -> int:
        return len(self.time)

    @property
    def joints(self) -> int:
        return self.q.shape[1]
