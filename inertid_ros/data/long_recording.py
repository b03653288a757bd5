"""A recording that is too long for memory: some parts stay in memory, the other parts are read one at a time."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from inertid_ros.core.errors import RecordingError

from .recording import LOST_SAMPLE_PERIODS, Recording, split_wrenches

KEPT_PARTS = 5
KEPT_CONTEXT_SAMPLES = 5_000
"""Samples of each neighbouring part that a kept part includes: at 1 kHz, the memory of a low-pass at 2.1 Hz."""
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class LongRecording:
    """One recording in parts; some parts are kept in memory.

    Attributes
    ----------
    name : name in messages (a file).
    kept : parts in memory by their index among all parts, at even distances over the recording; each includes at most
        :data:`KEPT_CONTEXT_SAMPLES` samples of each neighbouring part.
    read : function that reads all parts in the order of time, without context.
    count : number of parts.
    samples : number of samples in all parts.
    duration : span of all stamps [s].
    period : mean step of the stamps, except steps over lost samples [s].
    """

    name: str
    kept: Mapping[int, Recording]
    read: Callable[[], Iterator[Recording]]
    count: int
    samples: int
    duration: float
    period: float

    @classmethod
    def from_parts(cls, read: Callable[[], Iterator[Recording]], most: int = KEPT_PARTS) -> "LongRecording":
        """Read all parts once, and keep ``most`` of them; during reading, memory holds up to twice as many."""
        parts: dict[int, Recording] = {}
        stride = 1
        samples, regular_steps, seconds = 0, 0, 0.0
        first = last = longest = np.nan
        for index, part in enumerate(in_context(read(), KEPT_CONTEXT_SAMPLES)):
            time = part.time[part.own_rows]
            steps = np.diff(time if index == 0 else np.concatenate([[last], time]))
            if index == 0:
                first, longest = float(time[0]), LOST_SAMPLE_PERIODS * float(np.median(steps))
            regular = steps[steps <= longest]
            regular_steps, seconds = regular_steps + len(regular), seconds + float(regular.sum())
            samples, last = samples + len(time), float(time[-1])
            if index % stride == 0:
                parts[index] = part
            if len(parts) > 2 * most:
                stride *= 2
                parts = {place: part for place, part in parts.items() if place % stride == 0}
        indices = list(parts)
        chosen = [indices[place] for place in np.linspace(0, len(parts) - 1, min(most, len(parts))).astype(int)]
        kept = {place: parts[place] for place in dict.fromkeys(chosen)}
        return cls(kept[0].name, kept, read, index + 1, samples, last - first, seconds / regular_steps)

    def __len__(self) -> int:
        return self.samples

    @property
    def notice(self) -> str:
        """Notice that figures which depend on every sample cover only the kept parts."""
        return f"read in {self.count} parts; figures that depend on every sample cover {len(self.kept)} of them"

    @property
    def parts(self) -> tuple[Recording, ...]:
        """Parts in memory."""
        return tuple(self.kept.values())

    def without_ends(self, skip_start: float, skip_end: float) -> "LongRecording":
        """Cut ``skip_start`` and ``skip_end`` [s] off the ends; RecordingError if fewer than two samples are left."""
        if not skip_start and not skip_end:
            return self
        start = float(self.kept[0].time[0])
        begin, end = start + skip_start, start + self.duration - skip_end

        def cut_parts() -> Iterator[Recording]:
            for part in self.read():
                rows = (part.time >= begin) & (part.time <= end)
                if rows.sum() >= 2:
                    yield part if rows.all() else part.select(rows)

        if next(cut_parts(), None) is None:
            raise RecordingError(
                f"{self.name}: time spans {self.duration:.2f} s, too short to skip {skip_start + skip_end:g} s of it;"
                " lower prepare.skip_start_s or prepare.skip_end_s, or record longer")
        return self.from_parts(cut_parts)

    def others(self, context_s: float = 0.0) -> Iterator[Recording]:
        """Read the parts that are not kept, one at a time, each with ``context_s`` [s] of both neighbouring parts."""
        parts = in_context(self.read(), int(np.ceil(context_s / self.period)))
        return (part for index, part in enumerate(parts) if index not in self.kept)


def all_parts(recording: Recording | LongRecording) -> Iterable[Recording]:
    """The recording itself, or all parts of a long recording, read one at a time."""
    return recording.read() if isinstance(recording, LongRecording) else (recording,)


def kept_parts(recordings: Iterable[Recording | LongRecording]) -> list[Recording]:
    """Recordings, in which each long recording is replaced by its parts in memory."""
    return [part for entry in recordings for part in (entry.parts if isinstance(entry, LongRecording) else [entry])]


def in_context(parts: Iterable[Recording], samples: int) -> Iterator[Recording]:
    """Yield consecutive parts of a recording, each extended by up to ``samples`` samples of both neighbouring parts.

    A neighbour with other joints or channels is not used.
    """
    before: Recording | None = None
    part: Recording | None = None
    for following in parts:
        if part is not None:
            yield _between(before, part, following, samples)
        before, part = part, following
    if part is not None:
        yield _between(before, part, None, samples)


def _between(before: Recording | None, part: Recording, following: Recording | None, samples: int) -> Recording:
    pieces = [(part, slice(None))]
    ahead = behind = 0
    if samples and before is not None and _joins(before, part):
        ahead = min(samples, len(before))
        pieces.insert(0, (before, slice(len(before) - ahead, None)))
    if samples and following is not None and _joins(part, following):
        behind = min(samples, len(following))
        pieces.append((following, slice(behind)))
    if len(pieces) == 1:
        return part
    channels = {key: np.concatenate([piece.channels[key][rows] for piece, rows in pieces]) for key in part.channels}
    return replace(part, **split_wrenches(channels), context=(ahead, behind))


def _joins(part: Recording, following: Recording) -> bool:
    return (
        part.joint_names == following.joint_names
        and part.channels.keys() == following.channels.keys()
        and bool(part.time[-1] < following.time[0]))


def ahead(function: Callable[[Item], Outcome], items: Iterable[Item], count: int) -> Iterator[Outcome]:
    """Yield results in the order of the items, while threads work on the next ``count`` items.

    Threads run in parallel while a library works on whole arrays (NumPy, SciPy, decompression). The caller's thread
    fetches the items one at a time; the items that threads work on stay in memory.
    """
    waiting: deque[Future[Outcome]] = deque()
    with ThreadPoolExecutor(count) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            del item  # otherwise this frame keeps the newest item in memory
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
