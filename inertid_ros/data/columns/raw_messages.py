"""Serialised messages of one topic, in one piece of memory."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .cdr_layout import Bytes


@dataclass(frozen=True)
class RawMessages:
    """Serialised messages in the order in which they were recorded.

    Attributes
    ----------
    content : ndarray of uint8
        Memory that holds all of them.
    offsets, lengths : ndarray of int64, shape (N,)
        Where each begins, and its length [bytes].
    times : ndarray of int64, shape (N,)
        Times of recording [ns].
    """

    content: Bytes
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    times: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def one(self, index: int) -> bytes:
        """The message at an index."""
        start = self.offsets[index]
        return bytes(self.content[start : start + self.lengths[index]])

    def rows(self, chosen: NDArray[np.intp], length: int) -> Bytes:
        """Messages of one length at indices ``(K,)``, ``(K, length)``."""
        return np.asarray(windows(self.content, length)[self.offsets[chosen]])


def windows(content: Bytes, length: int) -> Bytes:
    """All pieces of a length, ``(len(content) - length + 1, length)``, without a copy."""
    return np.asarray(sliding_window_view(content, length))
