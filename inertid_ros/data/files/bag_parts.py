"""Parts of a long bag, one after the other, in memory that does not grow with its length."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from inertid_ros.config.recording_topics import RecordingTopics
from inertid_ros.data.bag_storage.bag_backends import bag_backend
from inertid_ros.data.blocks import Block, recording_from_blocks
from inertid_ros.data.columns.cdr_layout import UnsuitableError
from inertid_ros.data.columns.column_reading import BATCH, column_batches
from inertid_ros.data.recording import Recording
from inertid_ros.data.stamp_order import on_one_clock

from .bag_messages import assembler_for, with_arrival_jitter
from .bag_reading import closed_files, wanted_topics


def bag_parts(
    path: str | Path,
    topics: RecordingTopics | None = None,
    joints: Sequence[str] = (),
    stamps: str = "header",
    size: int = BATCH,
) -> Iterator[Recording]:
    """Consecutive parts of the recording of a bag; together they hold what :func:`.bag_reading.read_bag` reads.

    Time of all parts counts from the first stamp of the bag. All are named by its path.

    Parameters
    ----------
    path, topics, joints, stamps
        As for :func:`.bag_reading.read_bag`.
    size : int
        Samples of a part, about; the last one has up to twice as many.

    Raises
    ------
    UnsuitableError
        The bag can only be read as a whole, for its messages are not in order, or a tare counts for all of them.
    RecordingError
        A part holds nothing that was measured.
    """
    path, topics, arrival = Path(path), topics or RecordingTopics(), stamps == "arrival"
    files, wanted = closed_files(path), wanted_topics(topics)
    if not files:
        raise UnsuitableError
    assembler = assembler_for(str(path), topics, topics.joints, () if topics.joints else tuple(joints))
    ready: list[Block] = []
    following: list[Block] = []
    first_ns: int | None = None
    for _ in column_batches(assembler, bag_backend(), files, wanted, topics, arrival, size):
        block = assembler.take(patient=True)
        if block is None or not len(block):
            continue
        first_ns = int(block.stamps_ns[0]) if first_ns is None else first_ns
        following.append(block)
        if sum(map(len, following)) >= size:
            if ready:
                yield _part(str(path), ready, first_ns, arrival, last=False)
            ready, following = following, []
    block = assembler.take(final=True)
    blocks = [*ready, *following, *([block] if block is not None and len(block) else [])]
    if not blocks:
        raise UnsuitableError
    first_ns = int(blocks[0].stamps_ns[0]) if first_ns is None else first_ns
    part = _part(str(path), blocks, first_ns, arrival, last=True)
    yield replace(part, notices=(*part.notices, *assembler.notices))


def _part(name: str, blocks: Sequence[Block], first_ns: int, arrival: bool, last: bool) -> Recording:
    stamps = np.concatenate([block.stamps_ns for block in blocks])
    if not on_one_clock(stamps).all():
        raise UnsuitableError
    recording = recording_from_blocks(name, blocks)
    continued = (int(stamps[0]) > first_ns, not last)
    recording = replace(recording, time=(stamps - first_ns) * 1e-9, continued=continued)
    return with_arrival_jitter(recording) if arrival else recording
