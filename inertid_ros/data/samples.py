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
    usable: ``(N,)`` bool; the sample can be trusted (no filter edge, no gap), however slow a joint is. Torque errors
        are reported over these.
    name: the recording they come from.
    direction: ``(N, n + couplings)`` direction of sliding from -1 to 1, filtered like the torque; ``None`` where the
        sign of the velocity will do.
    cutoff_hz: of the low-pass that they went through; 0 where none did.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    mask: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    name: str = "recording"
    direction: Array | None = None
    cutoff_hz: float = 0.0

    def __post_init__(self) -> None:
        for channel in ("v", "a", "tau", "mask"):
            if getattr(self, channel).shape != self.q.shape:
                raise RecordingError(
                    f"{self.name}: {channel} has shape {getattr(self, channel).shape}, expected {self.q.shape}"
                )
        for channel in ("time", "usable"):
            if getattr(self, channel).shape != self.q.shape[:1]:
                raise RecordingError(
                    f"{self.name}: {channel} has shape {getattr(self, channel).shape}, expected {self.q.shape[:1]}"
                )

    def __len__(self) -> int:
        return len(self.time)

    @property
    def joints(self) -> int:
        return self.q.shape[1]
