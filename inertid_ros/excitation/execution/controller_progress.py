"""Whether the controller advances along the plan as the clock does, found from joint states. Times are given.

A controller whose speed is scaled (a teach pendant's slider) advances slower than the clock within each horizon, and
starts anew at the clock with the next one: every horizon is a jump then, as far as it had fallen behind. So a horizon
is sent only while the robot has kept up since the last one.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

_ADOPTED_S = 0.006  # after sending; states from then on are those of the new horizon
_NEWEST, _REFERENCE = 2, 4  # states whose median counts at the end and at the beginning of a horizon
_FEW = 3  # horizons of before that tell what is usual
_LEAST_SPEED = 1e-3  # rad/s; a robot that is commanded to stand advances anyhow
_DISTANCE_ERROR = 2e-5  # rad or m; of position sensors at least
_UNKNOWN_ERROR = 5e-3  # rad or m; before the scatter is known
_HARMLESS = 3e-3  # rad or m; what friction at a reversal may add to the lag of a slow drive
_AGAIN_S = 0.02  # without further growth
_DEVIATIONS, _LEARNED, _REMEMBERED, _SUMMED = 6.0, 20, 100, 8
_LEAST_DIFFERENCE = 0.01  # of the speed
_LEAST_MEAN_DIFFERENCE = 0.03  # of the speed, over several horizons, in which errors that last add up


def time_lag(error: Array, velocity: Array, acceleration: Array) -> float:
    """Return the time [s] by which a robot is behind its command, NaN where that stands.

    Parameters
    ----------
    error : ndarray, shape (n,)
        Commanded minus measured position.
    velocity, acceleration : ndarray, shape (n,)
        Commanded.
    """
    lag = 0.0
    for _ in range(2):  # the second time with the velocity halfway back
        halfway = velocity - 0.5 * lag * acceleration
        square = float(halfway @ halfway)
        if square < _LEAST_SPEED**2:
            return float("nan")
        lag = float(error @ halfway) / square
    return lag


@dataclass(frozen=True)
class _State:
    """Of the robot within a horizon: when it was measured, lag [s], commanded speed and acceleration (norms)."""

    time: float
    lag: float
    speed: float
    acceleration: float


@dataclass(frozen=True)
class _Passed:
    """What a horizon of before has shown: distance by which the robot fell behind, distance travelled, lag [s]."""

    behind: float
    travelled: float
    lag: float


class ControllerProgress:
    """Compares the robot's progress within each horizon with the clock's.

    A constant lag of the drives cancels, since only its growth since the last horizon counts. How much growth is
    ordinary is learned from the scatter of earlier horizons of the same motion.

    Parameters
    ----------
    tolerance : float
        Distance [rad or m] that the robot may fall behind between two horizons in any case.
    """

    def __init__(self, tolerance: float = 0.0) -> None:
        self._given_tolerance = tolerance
        self._sent = float("nan")
        self._states: list[_State] = []  # since the last horizon
        self._passed: deque[_Passed] = deque(maxlen=_REMEMBERED)
        self._usual_lag, self._scatter = 0.0, float("nan")  # [s], and [rad or m] once it is known
        self._disagrees = False

    def sent(self, now: float) -> None:
        """A horizon was sent: the controller's clock starts anew."""
        if len(self._states) > _NEWEST:
            last = self._states[-1]
            self._passed.append(_Passed(self.jump, (last.time - self._sent) * last.speed, self._states[0].lag))
            self._usual_lag = float(np.median([passed.lag for passed in self._passed]))
            if len(self._passed) >= _LEARNED:
                behind = np.array([passed.behind for passed in self._passed])
                self._scatter = 1.4826 * float(np.median(np.abs(behind - np.median(behind))))
        self._sent, self._states, self._disagrees = now, [], False

    def update(self, time: float, error: Array, velocity: Array, acceleration: Array) -> None:
        """Take a joint state that was measured at ``time`` [s, steady clock]; see :func:`time_lag`."""
        state = _State(
            time,
            time_lag(error, velocity, acceleration),
            float(np.linalg.norm(velocity)),
            float(np.linalg.norm(acceleration)),
        )
        # About a reversal of all joints the path within the lag is too short and too bent to tell time by.
        straight = state.speed > 2 * abs(self._usual_lag) * state.acceleration
        if np.isfinite(state.lag) and straight and time >= self._sent + _ADOPTED_S:
            self._states.append(state)
            tolerance = self._tolerance(time - self._sent)
            self._disagrees = abs(self.jump) > tolerance and abs(self._beyond_usual) > tolerance

    @property
    def rate(self) -> float:
        """Progress along the plan per time since the last horizon; 1 where too little is known."""
        states = self._states
        if len(states) < 2:
            return 1.0
        newest = states[max(len(states) - _NEWEST, 1) :]
        reference = states[: max(min(_REFERENCE, len(states) - _NEWEST), 1)]
        return 1.0 - _growth(reference, newest)

    @property
    def jump(self) -> float:
        """Distance [rad or m] by which the robot would be set forward if a horizon were sent now."""
        if not self._states:
            return 0.0
        last = self._states[-1]
        return (1.0 - self.rate) * (last.time - self._sent) * last.speed

    @property
    def disagrees(self) -> bool:
        """Whether the robot has not kept up since the last horizon, so that another one would make it jump."""
        return self._disagrees and not (abs(self.jump) < _HARMLESS and self._keeps_up_again())

    def problem(self) -> str:
        """Why the motion must end by what earlier horizons have shown; empty where it may go on."""
        recent = list(self._passed)[-_SUMMED:]
        if len(recent) < _SUMMED or not self._states:
            return ""
        # The median, as states that were stamped late make single horizons look fast or slow.
        behind = _SUMMED * float(np.median([passed.behind for passed in recent]))
        travelled = sum(passed.travelled for passed in recent)
        ordinary = np.sqrt(_SUMMED) * self._tolerance(self._states[-1].time - self._sent)
        if abs(behind) > max(_SUMMED * self._given_tolerance, _LEAST_MEAN_DIFFERENCE * travelled, ordinary):
            return _explain(1.0 - behind / travelled)
        return ""

    @property
    def explanation(self) -> str:
        """What a robot that does not keep up hints at."""
        return _explain(1.0 - self._recent_growth())

    @property
    def _beyond_usual(self) -> float:
        """Distance [rad or m] by which the robot is behind what is usual; infinite before that is known.

        States at the begin of a horizon that were stamped late do not count here, nor does a lag that changes slowly in
        :attr:`jump`; a scaled speed shows in both.
        """
        if len(self._passed) < _FEW:
            return float("inf")
        return (_lag(self._states[-_NEWEST:]) - self._usual_lag) * self._states[-1].speed

    def _keeps_up_again(self) -> bool:
        """Whether the lag has stopped growing, as that of a drive does after a reversal."""
        return abs(self._recent_growth()) * _AGAIN_S * self._states[-1].speed <= self._tolerance(_AGAIN_S)

    def _recent_growth(self) -> float:
        """Growth of the lag per time over the last states; as since the last horizon where that is more recent."""
        last = self._states[-1]
        earlier = [state for state in self._states if state.time <= last.time - _AGAIN_S]
        return _growth(earlier[-1:], [last]) if earlier else 1.0 - self.rate

    def _tolerance(self, elapsed: float) -> float:
        """Distance [rad or m] by which a robot that keeps up may fall behind in a time [s]."""
        last = self._states[-1]
        # A drive of any order is behind by its lag, give or take the square of that times the acceleration.
        least = _DISTANCE_ERROR + _LEAST_DIFFERENCE * last.speed * elapsed + self._usual_lag**2 * last.acceleration
        learned = _UNKNOWN_ERROR if np.isnan(self._scatter) else _DEVIATIONS * self._scatter
        return max(least, learned, self._given_tolerance)


def _growth(before: Sequence[_State], after: Sequence[_State]) -> float:
    """Growth of the median lag per time from some states to others."""
    lag = _lag(after) - _lag(before)
    time = np.mean([state.time for state in after]) - np.mean([state.time for state in before])
    return float(lag / time)


def _lag(states: Sequence[_State]) -> float:
    """Median lag [s]: single states may have been stamped late."""
    return float(np.median([state.lag for state in states]))


def _explain(rate: float) -> str:
    return (
        f"the robot moves at {100 * rate:.0f} % of the commanded speed; set the controller's speed scaling to 100 % and"
        " give speed_scale to move slower, check for a collision, or raise monitor.progress_tolerance where drives lag"
    )
