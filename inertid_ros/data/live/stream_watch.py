"""StreamWatch: how the messages of a topic have come in the last seconds."""

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.data.screening.sensor_faults import saturated

_WINDOW_S = 2.0
_GAP_STEPS = 4.0  # a longer step is a gap [median steps]
_SILENT_S = 1.0
_WIDE = 20.0  # a range of fewer finest steps is noise, whose largest value is no limit of the sensor


@dataclass(frozen=True)
class StreamReport:
    """How the messages of a topic have come. What is not known is NaN.

    Attributes
    ----------
    messages : int
        Since the start.
    silent : bool
        Whether none has come for a second, or ever.
    rate_hz : float
        In the window.
    gaps : int
        Steps in the window of more than four median steps.
    longest_step_s : float
        Between two messages in the window.
    delay_s, longest_delay_s : float
        From stamp to receipt, in the median and at most.
    saturated : tuple of int
        Channels that stay at their largest or smallest value so far.
    """

    messages: int
    silent: bool
    rate_hz: float
    gaps: int
    longest_step_s: float
    delay_s: float
    longest_delay_s: float
    saturated: tuple[int, ...]


class StreamWatch:
    """Follows a topic message by message. All times are of the steady clock [s]."""

    def __init__(self) -> None:
        self._messages = 0
        self._receipts: deque[tuple[float, float]] = deque()  # receipt and delay
        self._values: deque[tuple[float, Array]] = deque()
        self._lowest = self._highest = self._finest = np.zeros(0)  # values and their smallest step so far

    def add(self, now: float, delay: float = math.nan) -> None:
        """Take the receipt of a message, and by how much it is later than its stamp [s]."""
        self._messages += 1
        self._receipts.append((now, delay))
        _forget(self._receipts, now)

    def add_values(self, now: float, values: Array) -> None:
        """Take measured values ``(n,)`` of a message, in any unit."""
        if self._values and self._values[-1][1].shape != values.shape:
            self._values.clear()
        if self._lowest.shape != values.shape:
            self._lowest = self._finest = np.full(values.shape, np.inf)
            self._highest = np.full(values.shape, -np.inf)
        self._values.append((now, values))
        _forget(self._values, now)

    def report(self, now: float) -> StreamReport:
        """Return how the messages have come until ``now``."""
        last = self._receipts[-1][0] if self._receipts else -math.inf
        for queue in (self._receipts, self._values):
            _forget(queue, now)
        receipts, delays = np.array(self._receipts).reshape(-1, 2).T
        steps, delays = np.diff(receipts), delays[np.isfinite(delays)]
        # Of the standard library: the first median of NumPy imports for a tenth of a second, and watchdogs wait.
        usual = median(steps.tolist()) if len(steps) else math.nan
        return StreamReport(
            messages=self._messages,
            silent=now - last > _SILENT_S,
            rate_hz=1.0 / float(steps.mean()) if steps.any() else math.nan,
            gaps=int((steps > _GAP_STEPS * usual).sum()),
            longest_step_s=float(steps.max()) if len(steps) else math.nan,
            delay_s=median(delays.tolist()) if len(delays) else math.nan,
            longest_delay_s=float(delays.max()) if len(delays) else math.nan,
            saturated=self._saturated(),
        )

    def _saturated(self) -> tuple[int, ...]:
        """Channels that stay at the largest or smallest value of all that was measured, not of the window only."""
        if not self._values:
            return ()
        values = np.nan_to_num(np.array([values for _, values in self._values]), posinf=0.0, neginf=0.0)
        steps = np.abs(np.diff(values, axis=0))
        finest = np.where(steps > 0, steps, np.inf).min(axis=0, initial=np.inf)
        self._finest = np.minimum(self._finest, finest)
        self._lowest = np.minimum(self._lowest, values.min(axis=0))
        self._highest = np.maximum(self._highest, values.max(axis=0))
        wide = self._highest - self._lowest > _WIDE * self._finest
        flags = saturated(values) & ((values == self._highest) | (values == self._lowest))
        return tuple(np.flatnonzero(flags.any(axis=0) & wide).tolist())


def _forget(queue: deque, now: float) -> None:
    while queue and queue[0][0] < now - _WINDOW_S:
        queue.popleft()
