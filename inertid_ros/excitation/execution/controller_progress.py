"""Whether the controller advances along the plan as the clock does, found from joint states. Times are given.

A controller whose speed is scaled (a teach pendant's slider) advances slower than the clock within each horizon, and
starts anew at the clock with the next one: every horizon is a jump then, as far as it had fallen behind. So a horizon
is sent only while the robot has kept up since the last one.
"""

from collections import deque
from statistics import median

import numpy as np

from inertid_ros.core.arrays import Array

from .drive_response import DriveResponse

_LEAST_SPEED = 1e-3  # rad/s or m/s; a robot that is commanded to stand advances anyhow
_HARMLESS = 5e-4  # rad or m
_AGAIN_S, _GROWING = 0.02, 0.3  # in this time, beside the growth until then
_DEVIATIONS, _ENOUGH = 6.0, 20  # of what was lost in horizons of before, and how many tell
_HORIZONS = 500  # of before that are remembered
_UNUSUAL, _UNUSUAL_SHARE = 5e-3, 0.1  # rad or m, and of the way; what is more was never usual


class ControllerProgress:
    """Watches how far the robot falls behind along its path within each horizon.

    The error that its drives have anyhow is learned from the horizons of before, see :class:`DriveResponse`, and so is
    by how much they deviate from it.

    Parameters
    ----------
    joints : int
        ``n``.
    tolerance : float
        Distance [rad or m] that the robot may fall behind within a horizon in any case.
    """

    def __init__(self, joints: int, tolerance: float = 0.0) -> None:
        self._response, self._given_tolerance = DriveResponse(joints), tolerance
        self._sent = float("nan")
        self._states: list[tuple[float, Array, Array, Array]] = []  # since the last horizon
        self._lost_before: deque[float] = deque(maxlen=_HORIZONS)  # sizes of what was lost within horizons of before
        self._usual = np.inf  # what deviations of these amount to

    def sent(self, now: float) -> None:
        """A horizon was sent: the controller's clock starts anew."""
        if self._states:
            self._lost_before.append(abs(self.lost))
            if len(self._lost_before) >= _ENOUGH:  # by the standard library: NumPy's first median imports for 0.1 s
                self._usual = _DEVIATIONS * 1.4826 * median(self._lost_before)
            time, error, velocity, acceleration = self._columns()
            self._response.learn(error, velocity, acceleration, time[-1] - self._sent)
        self._sent, self._states = now, []

    def update(self, time: float, error: Array, velocity: Array, acceleration: Array) -> None:
        """Take a joint state.

        Parameters
        ----------
        time : float
            When it was measured [s, steady clock].
        error : ndarray, shape (n,)
            Commanded minus measured position.
        velocity, acceleration : ndarray, shape (n,)
            Commanded.
        """
        if time > self._sent:
            self._states.append((time, error, velocity, acceleration))

    @property
    def lost(self) -> float:
        """Distance [rad or m] along the path that was lost since the last horizon, negative where it was gained.

        A horizon that were sent now would set the robot forward by it.
        """
        return _lost(self._behind()[0])

    @property
    def disagrees(self) -> bool:
        """Whether the robot has not kept up since the last horizon, so that another one would make it jump."""
        usual = min(max(_UNUSUAL, _UNUSUAL_SHARE * self._way()), self._usual)
        behind, speed = self._behind()
        lost = _lost(behind)
        if abs(lost) <= max(_HARMLESS, usual, self._given_tolerance):
            return False
        if abs(lost) > _UNUSUAL:
            return True
        # After a reversal, friction and play add to the error of a joint, and no more once it moves.
        time = np.array([state[0] for state in self._states])
        again = time[1:] >= time[-1] - _AGAIN_S
        lag = behind / speed
        steady = _GROWING * float(lost / speed[-1]) * _AGAIN_S / (time[-1] - self._sent)
        return bool(again.all()) or (lag[-1] - lag[again][0]) * np.sign(lost) > abs(steady)

    @property
    def explanation(self) -> str:
        """What a robot that does not keep up hints at."""
        rate = 1.0 - self.lost / max(self._way(), _HARMLESS)
        return (
            f"the robot moves at {100 * rate:.0f} % of the commanded speed; set the controller's speed scaling to 100 %"
            " and give speed_scale to move slower, check for a collision, or raise monitor.progress_tolerance where"
            " drives lag"
        )

    def _behind(self) -> tuple[Array, Array]:
        """How far the robot was behind along its path beside what is usual, and its speed; means of two states each."""
        if len(self._states) < 2:
            return np.zeros(1), np.ones(1)
        _, error, velocity, acceleration = self._columns()
        # Friction and play hide where a joint that reverses is; the others tell by how far they move at least.
        steady = np.where((velocity * velocity[-1] > 0).all(axis=0), np.abs(velocity).min(axis=0), 0.0)
        least = float(np.linalg.norm(steady))
        if least < _LEAST_SPEED:
            return np.zeros(1), np.ones(1)
        direction = np.sign(velocity[-1]) * steady / least
        behind = (error - self._response.expected(velocity, acceleration)) @ direction
        speed = velocity @ direction
        return 0.5 * (behind[1:] + behind[:-1]), 0.5 * (speed[1:] + speed[:-1])

    def _way(self) -> float:
        """Distance [rad or m] that is commanded since the last horizon, at the speed of the newest state."""
        if not self._states:
            return 0.0
        time, _, velocity, _ = self._states[-1]
        return float(np.linalg.norm(velocity)) * (time - self._sent)

    def _columns(self) -> tuple[Array, Array, Array, Array]:
        """Times ``(m,)``, errors, velocities and accelerations ``(m, n)`` since the last horizon."""
        time, error, velocity, acceleration = (np.array(column) for column in zip(*self._states, strict=True))
        return time, error, velocity, acceleration


def _lost(behind: Array) -> float:
    """Growth of what a robot is behind. It falls by late stamps as well, and counts only where it ends far ahead."""
    newest = float(behind[-1])
    lost, gained = newest - float(behind.min()), float(behind[0]) - newest
    return -gained if min(gained, -newest) > _UNUSUAL else lost
