"""What is to be told of changes: a detector finds the same change with every block, for as long as it lasts."""

from inertid_ros.core.samples import Samples

from .change_detector import Change

_CALM_S = 2.0  # of motion without an alarm, after which the robot is as it was calibrated
_OTHERWISE_S = 1.0  # for which a settled change is explained otherwise; a window that holds its end explains it badly


class ChangeHistory:
    """Follows what a detector finds.

    A change is told when it is found first, when it is settled, and when it is then explained otherwise for a second;
    that the robot is as it was calibrated, with the first block that shows it, and two seconds of motion after the last
    alarm.

    Attributes
    ----------
    current : Change or None
        Told last; None while the robot is as it was calibrated.
    since : float
        When it was found first [s].
    time : float
        Of the newest sample when something was told last [s].
    """

    def __init__(self) -> None:
        self.current: Change | None = None
        self.since = self.time = 0.0
        self._calm_s, self._told = 0.0, False
        self._other: Change | None = None  # that explains the current one otherwise, when it was found first

    def add(self, found: Change | None, tested: bool, block: Samples) -> bool:
        """Take what a detector found with a block; whether :attr:`current` is to be told.

        Parameters
        ----------
        found : Change or None
            By the detector.
        tested : bool
            Whether its window held enough to find something.
        block : Samples
            The block.
        """
        told = self._calmed(block) if found is None and tested else found is not None and self._alarmed(found)
        if told:
            self.current, self.time, self._told = found, float(block.time[-1]), True
        return told

    def _calmed(self, block: Samples) -> bool:
        self._other = None
        self._calm_s += float(block.time[-1] - block.time[0])
        return not self._told or (self.current is not None and self._calm_s >= _CALM_S)

    def _alarmed(self, found: Change) -> bool:
        self._calm_s = 0.0
        current = self.current
        if current is None:
            self.since = found.time
            return True
        if found.settled != current.settled:
            return found.settled
        return found.settled and self._explained_otherwise(current, found)

    def _explained_otherwise(self, current: Change, found: Change) -> bool:
        if _same(current, found):
            self._other = None
        elif self._other is None or not _same(self._other, found):
            self._other = found
        return self._other is not None and found.time - self._other.time >= _OTHERWISE_S


def _same(one: Change, other: Change) -> bool:
    return (one.cause, one.subject) == (other.cause, other.subject)
