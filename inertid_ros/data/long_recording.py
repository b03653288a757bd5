"""Recordings in pieces: blocks of samples, numbered batches, and recordings that are too long for memory.

Some parts of a long recording stay in memory, the other parts are read one at a time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from inertid_ros.core.arrays import Array, IntArray, Mask
from inertid_ros.core.errors import NoticeLogger, RecordingError
from inertid_ros.data.messages import JOINT_CHANNELS
from inertid_ros.data.recording import LOST_SAMPLE_PERIODS, Recording, split_wrenches

KEPT_PARTS = 5
KEPT_CONTEXT_SAMPLES = 5_000
"""Samples of each neighbouring part that a kept part includes: at 1 kHz, the memory of a low-pass at 2.1 Hz."""
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
_log = NoticeLogger(__name__)


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


@dataclass(frozen=True)
class Block:
    """Synchronised samples, one per row, in the order of their stamps.

    Attributes
    ----------
    stamps_ns : int64 (N,), header stamps of the joint states [ns].
    channels : as :attr:`.Recording.channels`, without time.
    """

    joint_names: tuple[str, ...]
    stamps_ns: IntArray
    channels: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.stamps_ns)


def recording_from_blocks(name: str, blocks: Iterable[Block], notices: tuple[str, ...] = ()) -> Recording:
    """Join consecutive blocks to one recording; time counts from the first stamp, ``(ns - ns0) * 1e-9``.

    Joints without an effort interface (effort is NaN throughout) get a notice, unless the recording has wrenches or
    base motion, whose equations do not need effort. If the velocity of one joint is NaN throughout, the velocities of
    all joints are dropped, with a notice. Empty blocks are skipped. ``notices`` describe the origin of the recording,
    one line each.

    Raises RecordingError: blocks differ in joints or channels, all blocks are empty, or the joined samples are not
    usable; see :class:`Recording`.
    """
    blocks = [block for block in blocks if len(block)]
    if not blocks:
        raise RecordingError(f"{name}: holds no joint states; record the joint_states topic while the robot moves")
    first = blocks[0]
    if any(
        block.joint_names != first.joint_names or block.channels.keys() != first.channels.keys() for block in blocks):
        raise RecordingError(f"{name}: joints or channels change within the recording; start a new recording")
    stamps = np.concatenate([block.stamps_ns for block in blocks])
    channels = {key: np.concatenate([block.channels[key] for block in blocks]) for key in first.channels}
    silent = np.isnan(channels["effort"]).all(axis=0) & (channels.keys() <= set(JOINT_CHANNELS))
    if silent.all():
        raise RecordingError(f"{name}: effort is NaN for every joint; enable the effort state interface of the driver")
    if silent.any():
        lost = ", ".join(joint for joint, gone in zip(first.joint_names, silent, strict=True) if gone)
        notices = (*notices, f"effort is NaN throughout for {lost}")
    if "velocity" in channels and np.isnan(channels["velocity"]).all(axis=0).any():
        notices = (*notices, "velocity is NaN throughout for a joint and is not used")
        del channels["velocity"]
    for notice in notices:
        _log.warning("%s: %s", name, notice)
    channels["time"] = (stamps - stamps[0]) * 1e-9
    return Recording(first.joint_names, **split_wrenches(channels), name=name, notices=notices)


@dataclass(frozen=True)
class Batch:
    """Samples of a recording in one message."""

    recording: str  # name of the recording
    sequence: int  # index of the batch in the recording, from 0
    last: bool  # whether this batch completes the recording
    block: Block
    gaps: Mask  # (N,) flags of samples that follow lost samples


@dataclass
class _Incoming:
    blocks: list[Block] = field(default_factory=list)
    next_sequence: int = 0
    lost: int = 0
    complete: bool = False


class ReceivedRecordings:
    """Batches by the name of their recording; only the newest ``keep`` recordings stay."""

    def __init__(self, keep: int = 20) -> None:
        self._keep = keep
        self._incoming: dict[str, _Incoming] = {}

    def add(self, name: str, sequence: int, last: bool, block: Block) -> None:
        """Add one batch; sequence 0 discards all earlier batches of this recording."""
        if sequence == 0:
            self._incoming.pop(name, None)
        incoming = self._incoming.setdefault(name, _Incoming())
        if sequence < incoming.next_sequence:
            return  # duplicate
        incoming.lost += sequence - incoming.next_sequence
        incoming.next_sequence = sequence + 1
        incoming.complete |= last
        incoming.blocks.append(block)
        while len(self._incoming) > self._keep:
            self._incoming.pop(next(iter(self._incoming)))

    def clear(self) -> None:
        self._incoming.clear()

    def __contains__(self, name: str) -> bool:
        return name in self._incoming

    @property
    def complete(self) -> tuple[str, ...]:
        """Names of complete recordings, oldest first."""
        return tuple(name for name, incoming in self._incoming.items() if incoming.complete and not incoming.lost)

    @property
    def samples(self) -> int:
        """Samples of all recordings together."""
        return sum(len(block) for incoming in self._incoming.values() for block in incoming.blocks)

    def recording(self, name: str) -> Recording:
        """Return a complete recording.

        Raises RecordingError: the recording was not received, is not complete, lacks batches, or is not usable.
        """
        incoming = self._incoming.get(name)
        if incoming is None:
            raise RecordingError(f"{name}: was not received; complete recordings: {list(self.complete)}")
        if incoming.lost:
            raise RecordingError(f"{name}: batches were lost ({incoming.lost}); identify from its bag instead")
        if not incoming.complete:
            raise RecordingError(f"{name}: is still being recorded; stop the recorder first")
        return recording_from_blocks(name, incoming.blocks)
