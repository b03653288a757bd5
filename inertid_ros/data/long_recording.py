"""A recording that is too long for memory: some parts of it, and a way to read the others one at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .part_context import in_context
from .recording import Recording

KEPT_PARTS = 5  # parts that are kept
KEPT_CONTEXT = 5_000
"""Samples of either neighbour that a part is kept with: at 1 kHz, what a low-pass of 2.1 Hz remembers."""
_LOST = 2.0  # periods: in a longer step samples were lost, as jitter of up to half a period to either side cannot


@dataclass(frozen=True)
class LongRecording:
    """Parts of one recording, some of which are kept.

    Attributes
    ----------
    name : str
        Name in messages (a file).
    kept : mapping of int to Recording
        Parts at even distances over the recording, by their place among all, with :data:`KEPT_CONTEXT` samples of their
        neighbours at most.
    read : callable
        All parts in the order of time, without any context, read again at every call.
    count, samples : int
        Of parts, and of samples in all of them.
    duration : float
        Span of the stamps of all [s].
    period : float
        Mean step of the stamps where none was lost [s].
    """

    name: str
    kept: Mapping[int, Recording]
    read: Callable[[], Iterator[Recording]]
    count: int
    samples: int
    duration: float
    period: float

    @classmethod
    def of(cls, read: Callable[[], Iterator[Recording]], most: int = KEPT_PARTS) -> "LongRecording":
        """Read all parts once, and hold ``most`` of them; twice as many while their number is not known."""
        kept: dict[int, Recording] = {}
        stride, steps = 1, _Steps()
        for index, part in enumerate(in_context(steps.counted(read()), KEPT_CONTEXT)):
            if index % stride == 0:
                kept[index] = part
            if len(kept) > 2 * most:
                stride *= 2
                kept = {place: own for place, own in kept.items() if place % stride == 0}
        indices = list(kept)
        chosen = {indices[place] for place in np.linspace(0, len(kept) - 1, min(most, len(kept))).astype(int)}
        kept = {place: own for place, own in kept.items() if place in chosen}
        return cls(kept[0].name, kept, read, index + 1, steps.samples, steps.last - steps.first, steps.mean)

    def __len__(self) -> int:
        return self.samples

    @property
    def notice(self) -> str:
        """What has to be known of a figure that depends on every sample."""
        return f"read in {self.count} parts; what depends on every sample is of {len(self.kept)} of them"

    @property
    def parts(self) -> tuple[Recording, ...]:
        """Those that are kept."""
        return tuple(self.kept.values())

    def others(self, context_s: float = 0.0) -> Iterator[Recording]:
        """Those that are not kept, one at a time, with what their neighbours hold within ``context_s`` of them [s]."""
        parts = in_context(self.read(), int(np.ceil(context_s / self.period)))
        return (part for index, part in enumerate(parts) if index not in self.kept)


def all_parts(recording: Recording | LongRecording) -> Iterable[Recording]:
    """A recording, or all parts of a long one, which are read one at a time."""
    return recording.read() if isinstance(recording, LongRecording) else (recording,)


def kept_parts(recordings: Iterable[Recording | LongRecording]) -> list[Recording]:
    """Recordings, and of long ones the parts that are kept."""
    return [part for each in recordings for part in (each.parts if isinstance(each, LongRecording) else (each,))]


class _Steps:
    """Steps of the stamps of parts that are read one after another."""

    def __init__(self) -> None:
        self.samples, self.first, self.last = 0, np.nan, np.nan
        self._regular, self._seconds, self._longest = 0, 0.0, np.inf

    def counted(self, parts: Iterator[Recording]) -> Iterator[Recording]:
        """The same parts, whose samples and steps count."""
        for part in parts:
            time = part.time if self.samples == 0 else np.concatenate([[self.last], part.time])
            steps = np.diff(time)
            if self.samples == 0:
                self.first, self._longest = float(time[0]), _LOST * float(np.median(steps))
            regular = steps[steps <= self._longest]
            self._regular, self._seconds = self._regular + len(regular), self._seconds + float(regular.sum())
            self.samples, self.last = self.samples + len(part), float(part.time[-1])
            yield part

    @property
    def mean(self) -> float:
        """Mean step where no sample was lost [s]."""
        return self._seconds / self._regular
