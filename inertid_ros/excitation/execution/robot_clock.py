"""The robot's clock, as the stamps of its states show it. Times are given by the caller."""

import math

_STEP = 0.05  # s; clocks that differ by more are different timelines


class RobotClock:
    """Checks stamps and estimates the robot's clock, whatever steps the clock of this machine makes.

    The offset of stamps to the steady clock is taken from this clock at the start and then kept: if only this clock
    steps, nothing changes. If the robot's stamps step, they are followed where this clock has made the same step, as it
    does on one machine, and are otherwise from the past or the future.

    Attributes
    ----------
    offset : float
        Robot's clock minus steady clock [s].
    is_lost : bool
        Whether the last stamp was neither of this clock nor of one that has stepped with this machine's.
    """

    def __init__(self, max_age: float, max_future: float) -> None:
        self._max_age, self._max_future = max_age, max_future
        self.offset = math.nan
        self.is_lost = False
        self._last = -math.inf

    def objection(self, stamp: float, clock: float, now: float) -> str:
        """Return why a state with this stamp [s] must be rejected, or an empty string; then it becomes the newest.

        ``clock`` is this machine's clock of stamps and ``now`` the steady clock, both at receipt.
        """
        if not math.isfinite(stamp) or stamp <= 0:
            return "stamp is not set"
        if math.isnan(self.offset):
            self.offset = clock - now
        reason = self._check_age(now + self.offset - stamp)
        if reason:
            stepped = abs(clock - now - self.offset) > _STEP
            self.is_lost = not stepped or bool(self._check_age(clock - stamp))
            if self.is_lost:
                return reason
            self.offset, self._last = clock - now, -math.inf
        self.is_lost = False
        if stamp <= self._last:
            return "stamp repeats or goes back"
        self._last = stamp
        return ""

    def _check_age(self, age: float) -> str:
        if age > self._max_age:
            return "stamp is too old"
        return "stamp is in the future" if age < -self._max_future else ""
