"""Where a robot stands, and since when, by its joint states. Times are given by the caller."""

import numpy as np

from inertid_ros.core.arrays import Array

_STANDS = 5e-3  # rad or m; a robot that moves less stands
_FRESH_S = 0.1
_LAG_S = 0.3  # of a controller behind the last command, until its robot is at rest
_LONGEST_LAG_S = 5.0  # for which a robot that still moves is waited for


class Standstill:
    """Follows the position of a robot that comes to rest.

    Attributes
    ----------
    since : float
        When the robot came to where it stands [s]; minus infinity before the first state.
    position : ndarray, shape (n,)
        As measured last; empty before the first state.
    """

    def __init__(self) -> None:
        self.since = self._received = -np.inf
        self.position: Array = np.zeros(0)
        self._stands_at: Array = np.zeros(0)
        self._commanded, self._rested = -np.inf, np.nan  # when it was commanded to move last, and since when to rest

    def command(self, now: float) -> None:
        """It is commanded to move at ``now`` [s]."""
        self._commanded, self._rested = now, np.nan

    def has_settled(self, now: float, at_rest: bool) -> bool:
        """Return whether the robot has followed commands that have come to rest, or has been waited for long enough.

        Parameters
        ----------
        now : float
        at_rest : bool
            Whether all commands have come to rest.
        """
        if not at_rest:
            self.command(now)
            return False
        self._rested = now if np.isnan(self._rested) else self._rested
        moved = max(self._commanded, min(self.since, self._rested + _LONGEST_LAG_S))
        return now - max(moved, self._rested) >= _LAG_S

    def update(self, now: float, position: Array) -> None:
        """Take a position ``(n,)`` that was received at ``now`` [s]."""
        self.position, self._received = np.array(position, dtype=float), now
        if not len(self._stands_at) or np.abs(position - self._stands_at).max() > _STANDS:
            self._stands_at, self.since = self.position, now

    def distance(self, now: float, position: Array) -> float:
        """Return the largest distance of a joint to a position ``(n,)`` [rad or m]; infinite without a fresh state."""
        if now - self._received > _FRESH_S:
            return float("inf")
        return float(np.abs(self.position - position).max())
