"""A recording that is too long for memory: some parts of it, and a way to read the others one at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .recording import Recording

KEPT_PARTS = 5  # parts that are kept


@dataclass(frozen=True)
class LongRecording:
    """Parts of one recording, some of which are kept.

    Attributes
    ----------
    name : str
        Name in messages (a file).
    kept : mapping of int to Recording
        Parts at even distances over the recording, by their place among all.
    read : callable
        All parts in the order of time, read again at every call.
    count, samples : int
        Of parts, and of samples in all of them.
    seconds : float
        Span of the stamps of all [s].
    """

    name: str
    kept: Mapping[int, Recording]
    read: Callable[[], Iterator[Recording]]
    count: int
    samples: int
    seconds: float

    @classmethod
    def of(cls, read: Callable[[], Iterator[Recording]], most: int = KEPT_PARTS) -> "LongRecording":
        """Read all parts once, and hold ``most`` of them; twice as many while their number is not known."""
        kept: dict[int, Recording] = {}
        count, samples, stride = 0, 0, 1
        for part in read():
            if count == 0:
                start = float(part.time[0])
            if count % stride == 0:
                kept[count] = part
            if len(kept) > 2 * most:
                stride *= 2
                kept = {index: own for index, own in kept.items() if index % stride == 0}
            count, samples, end = count + 1, samples + len(part), float(part.time[-1])
        indices = list(kept)
        chosen = {indices[place] for place in np.linspace(0, len(kept) - 1, min(most, len(kept))).astype(int)}
        kept = {index: own for index, own in kept.items() if index in chosen}
        return cls(kept[0].name, kept, read, count, samples, end - start)

    @property
    def parts(self) -> tuple[Recording, ...]:
        """Those that are kept."""
        return tuple(self.kept.values())

    def others(self) -> Iterator[Recording]:
        """Those that are not kept, one at a time."""
        return (part for index, part in enumerate(self.read()) if index not in self.kept)


def kept_parts(recordings: Iterable[Recording | LongRecording]) -> list[Recording]:
    """Recordings, and of long ones the parts that are kept."""
    return [part for each in recordings for part in (each.parts if isinstance(each, LongRecording) else (each,))]
