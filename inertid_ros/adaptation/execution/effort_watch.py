"""Whether an arm under torque control moves, and is able to move, as it may. Times are given by the caller."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array

_BY_NOISE = 0.02  # rad/s or m/s; by which a measured velocity may exceed a limit


class EffortWatch:
    """Watches velocities and saturation.

    Parameters
    ----------
    joint_names : sequence of str
        ``n`` names.
    velocity, effort : ndarray, shape (n,)
        Limits of the robot, and of what is commanded.
    longest_s : float
        For which a joint may be at its effort limit [s].
    """

    def __init__(self, joint_names: Sequence[str], velocity: Array, effort: Array, longest_s: float) -> None:
        self._names, self._velocity, self._effort = tuple(joint_names), velocity, effort
        self._longest = longest_s
        self._since = np.full(len(self._names), np.inf)

    def saturate(self, now: float, saturated: NDArray[np.bool_]) -> None:
        """Take which joints ``(n,)`` were asked for more than their limit at ``now``."""
        self._since = np.where(saturated, np.minimum(self._since, now), np.inf)

    def check(self, now: float, velocity: Array) -> str:
        """Reason to stop at ``now`` with a measured velocity ``(n,)``; empty for none."""
        speed = np.abs(velocity) - self._velocity - _BY_NOISE
        joint = int(np.argmax(speed))
        if speed[joint] > 0:
            return (
                f"joint '{self._names[joint]}' moves at {abs(velocity[joint]):.3g} rad/s or m/s, its limit is"
                f" {self._velocity[joint]:.4g}; look for what moves it"
            )
        late = now - self._since
        joint = int(np.argmax(late))
        return f"the arm cannot follow for {late[joint]:.2f} s" if late[joint] > self._longest else ""

    def explained(self, problem: str) -> str:
        """Return a problem with what joints at their effort limits have to do with it."""
        joint = int(np.argmin(self._since))
        if not problem or np.isinf(self._since[joint]):
            return problem
        return (
            f"{problem}; joint '{self._names[joint]}' is at its effort limit {self._effort[joint]:.4g} N m or N: what"
            " the arm holds is heavier than it can hold there, or it is blocked; take it off"
        )
