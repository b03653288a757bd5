"""SimulatedTime: time of a simulator, by which a motion is sent and watched in place of the steady clock."""

from collections import deque

from inertid_ros.core.errors import ExcitationError

MIN_REAL_TIME_FACTOR = 0.1  # slower, a motion of half a minute takes longer than its client waits for anything
MAX_REAL_TIME_FACTOR = 2.0  # faster, ticks of 5 ms are too seldom for brakes that begin 20 ms after they are asked for
_WINDOW_S, _MIN_WINDOW_S = 2.0, 0.5  # of real time, over which the factor is measured
_MAX_BACK_S = 0.1  # more is a step of the clock, or a simulator that begins again
_MAX_AHEAD_S = 0.02  # by which stamps of states may be ahead of /clock, which is published less often


class SimulatedTime:
    """The newest of ``/clock`` and the stamps of joint states, and how fast it runs.

    Attributes
    ----------
    now : float
        [s]; never goes back.
    """

    def __init__(self) -> None:
        self.now = self._real = self._back = 0.0  # the last by how much /clock has gone back
        self._looks: deque[tuple[float, float]] = deque()  # real and simulated time

    def update(self, clock: float, real: float, stamp: float = 0.0) -> None:
        """Take the time of ``/clock``, the steady clock and the stamp of a joint state [s]."""
        if clock + self._back < self.now - _MAX_BACK_S:  # what moves is watched on by the real time since then
            self._back = self.now + (real - self._real) - clock
        time, self._real = clock + self._back, real
        self.now = max(self.now, time, min(stamp, time + _MAX_AHEAD_S))
        if not self._looks or real > self._looks[-1][0] + 0.05:
            self._looks.append((real, clock))
            while self._looks[0][0] < real - _WINDOW_S:
                self._looks.popleft()

    def restart(self) -> bool:
        """Follow ``/clock`` again that had gone back, as nothing moves; return whether it had."""
        had, self.now, self._back = self._back > 0, self.now - self._back, 0.0
        return had

    @property
    def factor(self) -> float:
        """Simulated seconds in a real one; NaN before they have been measured."""
        if not self._looks or self._looks[-1][0] - self._looks[0][0] < _MIN_WINDOW_S:
            return float("nan")
        (begin, first), (end, last) = self._looks[0], self._looks[-1]
        return (last - first) / (end - begin)

    def check(self) -> None:
        """Raise ExcitationError unless the simulator runs at a speed that a motion can be watched at."""
        if not MIN_REAL_TIME_FACTOR <= self.factor <= MAX_REAL_TIME_FACTOR:
            raise ExcitationError(
                f"simulated time runs at {self.factor:.2f} of real time, {MIN_REAL_TIME_FACTOR:g} to"
                f" {MAX_REAL_TIME_FACTOR:g} is needed; check that /clock is published, or change the simulator's speed"
            )
