"""The robot's clock, as the stamps of its states show it. Times are given by the caller."""

import math

LATER_S, _EARLIER_S = 0.02, 0.005  # by so much the age of states may be above and below the least of before
_DRIFT = 1e-3  # by which clocks may run at different rates
_LEARNING_S = 0.1  # until the least age of states is known; a robot that begins from rest is slow until then
_STEP = 2e-3  # s; less is the time between two looks at clocks
_UNSTAMPED_S = 0.05  # states of another node have no stamps while those of the robot go on to come
_BEHIND, _OPEN_S = 0.05, 0.1  # s; how far a simulated clock may be read behind, and for how long that may turn out


class RobotClock:
    """Checks stamps and estimates the robot's clock, whatever steps the clock of this machine makes.

    The offset of stamps to the steady clock is taken from this machine's clock at the start and then kept: if only this
    clock steps, nothing changes. Where the robot's stamps have made the same step, as on one machine, they are
    followed. Which of both it was is seen by the age of the states, whose least value hardly changes otherwise. A state
    that is late while the clock is read behind, as a simulated one between two of its messages, looks like a small step
    of both; the next state is then too young, which lateness never explains, and the step is taken back.

    Parameters
    ----------
    max_age, max_future : float
        By how much stamps may be before and after the time of receipt [s].
    later : float
        By how much the age of states may grow [s].

    Attributes
    ----------
    offset : float
        Robot's clock minus steady clock [s]; NaN before the first stamp.
    objection : str
        Why the last state must be rejected; empty otherwise.
    is_lost : bool
        Whether the robot's clock may have stepped: no state has a stamp any more, or the last is younger, or older by
        more than is tolerated, than states were before. Nothing that depends on this clock should be sent then.
    """

    def __init__(self, max_age: float, max_future: float, later: float = LATER_S) -> None:
        self._max_age, self._max_future, self._later = max_age, max_future, later
        self.offset = self._begin = self._least = self._aged = math.nan
        self.objection, self.is_lost = "", False
        self._age = math.nan
        self._last = self._stamped = -math.inf  # newest stamp, and when it came
        self._before, self._followed = math.nan, -math.inf  # offset before a step was followed, and when it was

    def take(self, stamp: float, clock: float, now: float) -> float:
        """Take the stamp of a state.

        Parameters
        ----------
        stamp : float
            [s]
        clock, now : float
            This machine's clock of stamps, and the steady clock, at receipt [s].

        Returns
        -------
        float
            When the state was measured [s, steady clock]; ``now`` where the stamp does not tell.
        """
        if not math.isfinite(stamp) or stamp <= 0:
            self.objection = "stamp is not set"
            self.is_lost |= now - self._stamped > _UNSTAMPED_S
            return now
        self._stamped = now
        if math.isnan(self.offset):
            self.offset, self._begin = clock - now, now
            self._least, self._aged = now + self.offset - stamp, now
        age, step = now + self.offset - stamp, clock - now - self.offset
        if abs(step) > _STEP and abs(age + step - self._least) < abs(age - self._least):
            # This machine's clock and the robot's have stepped together.
            self._before, self._followed = self.offset, now
            age = self._set_offset(self.offset + step, age)
        elif self._was_late(age, now):
            age = self._set_offset(self._before, age)
        self._age = age
        self._judge(stamp, age, now)
        return stamp - self.offset

    @property
    def explanation(self) -> str:
        """What it hints at that the clock is lost."""
        older = 1e3 * (self._age - self._least)
        if older < 0:
            return f"joint states are {-older:.0f} ms younger than before by their stamps; the robot's clock stepped"
        return (
            f"joint states are {older:.0f} ms older than before by their stamps; the robot's clock stepped, or driver"
            " and network have become slower"
        )

    def _set_offset(self, offset: float, age: float) -> float:
        """Age by another offset, which is that of the clock from now on [s]."""
        age += offset - self.offset
        self.offset, self._last = offset, -math.inf
        return age

    def _was_late(self, age: float, now: float) -> bool:
        """Whether the step that was followed was that of a late state and a clock that was read behind."""
        back = self._before - self.offset
        return (
            0 < back <= _BEHIND
            and now - self._followed < _OPEN_S
            and age < self._least - _EARLIER_S
            and abs(age + back - self._least) <= _EARLIER_S
        )

    def _judge(self, stamp: float, age: float, now: float) -> None:
        least = self._least + _DRIFT * (now - self._aged)
        outside = "stamp is too old" if age > self._max_age else ""
        outside = "stamp is in the future" if age < -self._max_future else outside
        unusual = not self._least - _EARLIER_S <= age <= least + self._later
        self.objection = outside or ("stamp repeats or goes back" if stamp <= self._last else "")
        self.is_lost = bool(outside) or (unusual and now - self._begin > _LEARNING_S)
        if not self.is_lost:
            self._least, self._aged = min(age, least), now
        if not self.objection:
            self._last = stamp
