"""Recordings that arrive in numbered batches, and which of them are complete."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.blocks import Block, recording_from_blocks
from inertid_ros.data.recording import Recording


@dataclass(frozen=True)
class Batch:
    """Synchronised samples of a recording as receivers get them.

    Attributes
    ----------
    recording : str
        Name.
    sequence : int
        Number of the batch within the recording, from 0.
    last : bool
        Whether the recording is complete with it.
    block : Block
    gaps : ndarray of bool, shape (N,)
        Samples before which others were lost.
    """

    recording: str
    sequence: int
    last: bool
    block: Block
    gaps: NDArray[np.bool_]


@dataclass
class _Incoming:
    blocks: list[Block] = field(default_factory=list)
    next_sequence: int = 0
    lost: int = 0
    complete: bool = False


class ReceivedRecordings:
    """Batches by the name of their recording.

    Parameters
    ----------
    keep : int
        Number of recordings that are kept; the oldest go first.
    """

    def __init__(self, keep: int = 20) -> None:
        self._keep = keep
        self._incoming: dict[str, _Incoming] = {}

    def add(self, name: str, sequence: int, last: bool, block: Block) -> None:
        """Take one batch; sequence 0 begins a recording anew."""
        if sequence == 0:
            self._incoming.pop(name, None)
        incoming = self._incoming.setdefault(name, _Incoming())
        if sequence < incoming.next_sequence:
            return  # a duplicate
        incoming.lost += sequence - incoming.next_sequence
        incoming.next_sequence = sequence + 1
        incoming.complete |= last
        incoming.blocks.append(block)
        while len(self._incoming) > self._keep:
            self._incoming.pop(next(iter(self._incoming)))

    def clear(self) -> None:
        """Forget everything."""
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
        """A complete recording.

        Raises
        ------
        RecordingError
            Not received, not complete, batches were lost, or not usable.
        """
        incoming = self._incoming.get(name)
        if incoming is None:
            raise RecordingError(f"{name}: was not received; received and complete are {list(self.complete)}")
        if incoming.lost:
            raise RecordingError(f"{name}: {incoming.lost} batches were lost; identify from its bag instead")
        if not incoming.complete:
            raise RecordingError(f"{name}: is still being recorded; stop the recorder first")
        return recording_from_blocks(name, incoming.blocks)
