"""Records of an MCAP file, found without a step of Python for each.

A record tells its length, so that records are found one after another. A recorder writes topics in turn, so that
lengths repeat: what they predict is compared at once, and only where it fails the next ones are looked at one by one.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertid_ros.data.bag_storage.mcap_format import DATA_END, FOOTER

from .cdr_layout import Bytes, UnsuitableError
from .raw_messages import windows

HEAD = 9  # bytes of opcode and length
_HEAD = struct.Struct("<BQ")
_LONGEST_PERIOD = 16  # records after which lengths repeat
_FEWEST, _MOST = 32, 4096  # records that are looked at one by one, at a time
_PREDICTED, _MOST_PREDICTED = 256, 65536
_FARTHEST = 2**26  # bytes over which records are predicted: of every one the pages around its head come into memory


class Records(NamedTuple):
    """Consecutive records: opcodes, offsets of their content, and its lengths [bytes], each ``(N,)``."""

    opcodes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]


def scan(content: Bytes, start: int, end: int) -> Iterator[Records]:
    """All records from ``start``, to ``end`` or to the end of the data section.

    Raises
    ------
    UnsuitableError
        A record is longer than what is there.
    """
    position, count, predicted = start, _FEWEST, _PREDICTED
    while position < end:
        heads, position, over = _one_by_one(content, position, end, count)
        yield _as_records(heads)
        if over:
            return
        pattern = _repeating([(opcode, length) for opcode, _, length in heads])
        found = 0
        while pattern:
            records, whole = _predicted(content, position, end, pattern, predicted)
            found += len(records.offsets)
            if len(records.offsets):
                yield records
                position = int(records.offsets[-1] + records.lengths[-1])
            if not whole:
                break
            predicted = min(4 * predicted, _MOST_PREDICTED)
        if found < count:
            predicted = _PREDICTED
        count = _FEWEST if found >= count else min(2 * count, _MOST)


def _one_by_one(
    content: Bytes, position: int, end: int, count: int
) -> tuple[list[tuple[int, int, int]], int, bool]:
    """Up to ``count`` records, where the next begins, and whether the data section is over."""
    heads: list[tuple[int, int, int]] = []
    while position < end and len(heads) < count:
        if position + HEAD > end:
            raise UnsuitableError
        opcode, length = _HEAD.unpack_from(content.data, position)
        position += HEAD + length
        if position > end:
            raise UnsuitableError
        if opcode in (DATA_END, FOOTER):
            return heads, position, True
        heads.append((opcode, position - length, length))
    return heads, position, position >= end


def _as_records(heads: list[tuple[int, int, int]]) -> Records:
    columns = np.array(heads, dtype=np.int64).reshape(-1, 3)
    return Records(columns[:, 0].astype(np.uint8), columns[:, 1], columns[:, 2])


def _repeating(heads: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The shortest sequence that the last records are two of; empty where there is none."""
    for period in range(1, min(_LONGEST_PERIOD, len(heads) // 2) + 1):
        if heads[-period:] == heads[-2 * period : -period]:
            return heads[-period:]
    return []


def _predicted(
    content: Bytes, position: int, end: int, pattern: list[tuple[int, int]], most: int
) -> tuple[Records, bool]:
    """The next records as far as they repeat a pattern, and whether all that were predicted do."""
    lengths = np.array([length for _, length in pattern], dtype=np.int64)
    within = np.concatenate([[0], np.cumsum(HEAD + lengths)])
    farthest = min(end - position, max(_FARTHEST, int(within[-1])))
    rounds = min(farthest // int(within[-1]), max(most // len(pattern), 1))
    begins = (position + within[-1] * np.arange(rounds, dtype=np.int64)[:, None] + within[:-1]).ravel()
    heads = np.frombuffer(b"".join(_HEAD.pack(*head) for head in pattern), dtype=np.uint8).reshape(-1, HEAD)
    same = (windows(content, HEAD)[begins].reshape(rounds, len(pattern), HEAD) == heads).all(axis=2).ravel()
    found = len(same) if same.all() else int(np.argmin(same))
    opcodes = np.tile(np.array([opcode for opcode, _ in pattern], dtype=np.uint8), rounds)
    records = Records(opcodes[:found], begins[:found] + HEAD, np.tile(lengths, rounds)[:found])
    return records, 0 < found == len(same)
