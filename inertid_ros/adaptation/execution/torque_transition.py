"""Torque that begins where another one ended, and comes to its own smoothly. Times are given by the caller."""

import numpy as np

from inertid_ros.core.arrays import Array


class TorqueTransition:
    """Adds to a torque what it lacks to the one before, less and less.

    Parameters
    ----------
    duration : float
        Until nothing is added any more [s].
    """

    def __init__(self, duration: float) -> None:
        self._duration, self._begin = duration, -np.inf
        self._difference: Array | float = 0.0

    def begin(self, before: Array, torque: Array, now: float) -> None:
        """Begin a transition to ``torque (n,)`` from the one that was delivered before ``(n,)`` [N m or N]."""
        self._difference, self._begin = before - torque, now

    def ended(self, now: float) -> bool:
        """Return whether nothing is added any more."""
        return now >= self._begin + self._duration

    def smoothed(self, torque: Array, now: float) -> Array:
        """Return the torque ``(n,)`` with what is still added to it."""
        if self.ended(now):
            return torque
        share = (now - self._begin) / self._duration
        return np.asarray(torque + (1 - share**2 * (3 - 2 * share)) * self._difference)
