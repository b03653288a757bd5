"""WrenchWatch: recent measurements of live wrench topics, their zero, and whether they are under load."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

_FEWEST = 10  # samples that a zero is the mean of


@dataclass
class _Topic:
    zero: Array = field(default_factory=lambda: np.zeros(6))
    recent: deque[tuple[int, Array]] = field(default_factory=deque)
    loaded: bool = False


class WrenchWatch:
    """Follows wrench topics message by message.

    Parameters
    ----------
    window_s : float
        Duration of which a tare is the mean [s].
    limit_n : float
        Larger forces are not a zero but a load [N].
    on_n, off_n : float
        A topic carries load from where its force exceeds the first until it falls below the second [N].
    """

    def __init__(self, window_s: float, limit_n: float, on_n: float, off_n: float) -> None:
        self._window_ns, self._limit = round(window_s * 1e9), limit_n
        self._on, self._off = on_n, off_n
        self._topics: dict[str, _Topic] = {}

    def add(self, topic: str, stamp_ns: int, wrench: Array) -> Array:
        """Take a measured wrench ``(6,)`` [N, N m] and return it less its zero; one that is not finite is not kept."""
        state = self._topics.setdefault(topic, _Topic())
        if np.isfinite(wrench).all():
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
        """Topic to the zero ``(6,)`` that is subtracted, where one is."""
        return {topic: state.zero for topic, state in self._topics.items() if state.zero.any()}

    def tare(self, topics: list[str]) -> str:
        """Take the mean of the last window of every topic as its zero; nothing changes where one cannot be tared.

        Returns
        -------
        str
            One line with the size of every zero.

        Raises
        ------
        RecordingError
            A topic is silent, carries load, or is not steady.
        """
        means = {}
        newest = max((state.recent[-1][0] for state in self._topics.values() if state.recent), default=0)
        for topic in topics:
            recent = self._topics.get(topic, _Topic()).recent
            values = np.array([wrench for stamp, wrench in recent if stamp >= newest - self._window_ns])
            if len(values) < _FEWEST:
                raise RecordingError(f"{topic}: {len(values)} recent wrenches are too few to tare; check the sensor")
            mean, force = values.mean(axis=0), values[:, :3]
            size, deviation = float(np.linalg.norm(mean[:3])), float(np.linalg.norm(force.std(axis=0)))
            if size > self._limit:
                raise RecordingError(
                    f"{topic}: measures {size:.0f} N, which is a load and no zero; step off before taring, or raise"
                    f" tare_limit_n ({self._limit:g})"
                )
            if deviation > 0.2 * self._limit:
                raise RecordingError(f"{topic}: varies by {deviation:.1f} N; leave the sensor alone while it is tared")
            means[topic] = mean
        for topic, mean in means.items():
            self._topics[topic].zero = mean
        zeros = ", ".join(f"{topic} by {np.linalg.norm(mean[:3]):.2f} N" for topic, mean in means.items())
        return f"tared {zeros}" if zeros else "no wrench topics to tare"
