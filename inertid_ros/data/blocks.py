"""Blocks of synchronised samples, recordings of consecutive blocks, and recordings that arrive in numbered batches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.notices import NoticeLogger

from .messages import JOINT_CHANNELS
from .recording import Recording, split_wrenches

_log = NoticeLogger(__name__)


@dataclass(frozen=True)
class Block:
    """Synchronised samples, one per row, in the order of their stamps.

    Attributes
    ----------
    stamps_ns : int64 (N,), header stamps of the joint states [ns].
    channels : as :attr:`.Recording.channels`, without time.
    """

    joint_names: tuple[str, ...]
    stamps_ns: NDArray[np.int64]
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
    gaps: NDArray[np.bool_]  # (N,) flags of samples that follow lost samples


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
