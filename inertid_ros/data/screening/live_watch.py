"""Live topics in the last seconds: rate, gaps, delay, saturation; zero and load of wrenches; difference of clocks."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

from .channel_faults import saturated

_WINDOW_S = 2.0
_GAP_STEPS = 4.0  # median steps; a longer step is a gap
_SILENT_S = 1.0
_MIN_RANGE_STEPS = 20.0  # finest steps; a smaller range is noise, whose largest value is not a limit of the sensor
_MIN_TARE_SAMPLES = 10  # a zero is the mean of at least this number of samples
_UNINTERRUPTED_S, _CLOCK_READS = 1e-4, 8


@dataclass(frozen=True)
class StreamReport:
    """Messages of a topic in the last seconds. Unknown figures are NaN."""

    messages: int  # since the start
    silent: bool  # whether the last second passed without a message
    rate_hz: float
    gaps: int  # steps of more than four median steps
    longest_step_s: float  # between two messages
    delay_s: float  # median from stamp to receipt
    longest_delay_s: float
    saturated: tuple[int, ...]  # channels that stay at their largest or smallest value so far


class StreamWatch:
    """Follow a topic message by message. All times are of the steady clock [s]."""

    def __init__(self) -> None:
        self._messages = 0
        self._receipts: deque[tuple[float, float]] = deque()  # receipt and delay
        self._values: deque[tuple[float, Array]] = deque()
        self._lowest = self._highest = self._finest = np.zeros(0)  # values and their smallest step so far

    def add(self, now: float, delay: float = np.nan) -> None:
        """Record when a message was received, and its delay from stamp to receipt [s]."""
        self._messages += 1
        self._receipts.append((now, delay))
        _forget(self._receipts, now)

    def add_values(self, now: float, values: Array) -> None:
        """Record the measured values ``(n,)`` of a message, in any unit."""
        if self._values and self._values[-1][1].shape != values.shape:
            self._values.clear()
        if self._lowest.shape != values.shape:
            self._lowest = self._finest = np.full(values.shape, np.inf)
            self._highest = np.full(values.shape, -np.inf)
        self._values.append((now, values))
        _forget(self._values, now)

    def report(self, now: float) -> StreamReport:
        """Report on the messages until ``now``."""
        last = self._receipts[-1][0] if self._receipts else -np.inf
        for queue in (self._receipts, self._values):
            _forget(queue, now)
        receipts, delays = np.array(self._receipts).reshape(-1, 2).T
        steps, delays = np.diff(receipts), delays[np.isfinite(delays)]
        # Median of the standard library: NumPy's first median spends a tenth of a second on imports; watchdogs wait.
        usual = median(steps.tolist()) if len(steps) else np.nan
        return StreamReport(messages=self._messages, silent=now - last > _SILENT_S,
            rate_hz=1.0 / float(steps.mean()) if steps.any() else np.nan,
            gaps=int((steps > _GAP_STEPS * usual).sum()), longest_step_s=float(steps.max()) if len(steps) else np.nan,
            delay_s=median(delays.tolist()) if len(delays) else np.nan,
            longest_delay_s=float(delays.max()) if len(delays) else np.nan, saturated=self._saturated())

    def _saturated(self) -> tuple[int, ...]:
        """Channels that stay at the largest or smallest value since the start, not only of the window."""
        if not self._values:
            return ()
        values = np.nan_to_num(np.array([values for _, values in self._values]), posinf=0.0, neginf=0.0)
        steps = np.abs(np.diff(values, axis=0))
        finest = np.where(steps > 0, steps, np.inf).min(axis=0, initial=np.inf)
        self._finest = np.minimum(self._finest, finest)
        self._lowest = np.minimum(self._lowest, values.min(axis=0))
        self._highest = np.maximum(self._highest, values.max(axis=0))
        wide = self._highest - self._lowest > _MIN_RANGE_STEPS * self._finest
        flags = saturated(values) & ((values == self._highest) | (values == self._lowest))
        return tuple(np.flatnonzero(flags.any(axis=0) & wide).tolist())


def _forget(queue: deque, now: float) -> None:
    while queue and queue[0][0] < now - _WINDOW_S:
        queue.popleft()


@dataclass
class _WrenchTopic:
    zero: Array = field(default_factory=lambda: np.zeros(6))
    recent: deque[tuple[int, Array]] = field(default_factory=deque)
    loaded: bool = False


class WrenchWatch:
    """Follow wrench topics message by message: recent measurements, zero, and load.

    Parameters
    ----------
    window_s : duration over which a tare averages [s].
    limit_n : larger forces are a load, not a zero [N].
    on_n, off_n : a topic carries load after its force exceeds ``on_n``, until the force falls below ``off_n`` [N].
    """

    def __init__(self, window_s: float, limit_n: float, on_n: float, off_n: float) -> None:
        self._window_ns, self._limit = round(window_s * 1e9), limit_n
        self._on, self._off = on_n, off_n
        self._topics: dict[str, _WrenchTopic] = {}

    def add(self, topic: str, stamp_ns: int, wrench: Array) -> Array:
        """Take a measured wrench ``(6,)`` [N, N m], and return it minus the topic's zero; store finite wrenches."""
        state = self._topics.setdefault(topic, _WrenchTopic())
        if np.isfinite(wrench).all():
            if state.recent and state.recent[-1][0] == stamp_ns:
                state.recent.pop()  # stamps that do not advance give no window
            state.recent.append((stamp_ns, wrench))
            while state.recent[0][0] < stamp_ns - self._window_ns or state.recent[0][0] > stamp_ns:
                state.recent.popleft()
            force = float(np.linalg.norm((wrench - state.zero)[:3]))
            state.loaded = force > (self._off if state.loaded else self._on)
        return wrench - state.zero

    @property
    def loaded(self) -> list[str]:
        """Topics under load."""
        return [topic for topic, state in self._topics.items() if state.loaded]

    @property
    def zeros(self) -> Mapping[str, Array]:
        """Map from topics to their subtracted zeros ``(6,)``; topics without a zero are left out."""
        return {topic: state.zero for topic, state in self._topics.items() if state.zero.any()}

    def tare(self, topics: list[str]) -> str:
        """Take the mean of the last window of every topic as its zero; return one line with the size of every zero.

        Raises RecordingError: a topic is silent, carries load, or is not steady; all zeros then stay unchanged.
        """
        means = {}
        newest = max((state.recent[-1][0] for state in self._topics.values() if state.recent), default=0)
        for topic in topics:
            recent = self._topics.get(topic, _WrenchTopic()).recent
            values = np.array([wrench for stamp, wrench in recent if stamp >= newest - self._window_ns])
            if len(values) < _MIN_TARE_SAMPLES:
                raise RecordingError(f"{topic}: {len(values)} recent wrenches are too few to tare; check the sensor")
            mean, force = values.mean(axis=0), values[:, :3]
            size, deviation = float(np.linalg.norm(mean[:3])), float(np.linalg.norm(force.std(axis=0)))
            if size > self._limit:
                raise RecordingError(
                    f"{topic}: measures {size:.0f} N, which is a load, not a zero; step off before taring, or raise"
                    f" tare_limit_n ({self._limit:g})")
            if deviation > 0.2 * self._limit:
                raise RecordingError(f"{topic}: varies by {deviation:.1f} N; leave the sensor alone while it is tared")
            means[topic] = mean
        for topic, mean in means.items():
            self._topics[topic].zero = mean
        zeros = ", ".join(f"{topic} by {np.linalg.norm(mean[:3]):.2f} N" for topic, mean in means.items())
        return f"tared {zeros}" if zeros else "no wrench topics to tare"


def ahead_of_steady(clock: Callable[[], float]) -> float:
    """Return the time [s] by which a clock is ahead of the steady clock; ``clock`` returns its time [s].

    A delay of the process between the readings of both clocks would appear as a step. So ``clock`` is read between two
    readings of the steady clock. If these two are far apart, all are read again, and the closest pair counts.
    """
    closest, difference = float("inf"), 0.0
    for _ in range(_CLOCK_READS):
        before, time_there, after = time.monotonic(), clock(), time.monotonic()
        if after - before < closest:
            closest, difference = after - before, time_there - 0.5 * (before + after)
        if closest < _UNINTERRUPTED_S:
            break
    return difference
