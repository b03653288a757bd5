"""Stamped values of one channel, interpolated at the stamps of another."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

from .stamp_order import place_of


class StampOrderError(RecordingError):
    """A header stamp repeats or goes back. Live recording counts and drops the message; a bag is refused."""

    def __init__(self, where: str, last_ns: int, stamp_ns: int) -> None:
        super().__init__(
            f"{where}: time goes back or repeats (header.stamp {last_ns} ns, then {stamp_ns} ns);"
            " check the publisher's clock, or cut the recording there"
        )


@dataclass
class ChannelStream:
    """Stamps and values of one channel.

    Attributes
    ----------
    width : int
        Number of values per stamp.
    stamps_ns : list of int
        Increasing header stamps [ns].
    values : list of ndarray, shape (width,)
        One per stamp.
    late : int
        Number of stamps that may come before one that they are after.
    """

    width: int
    stamps_ns: list[int] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    late: int = 0

    def extend(self, where: str, stamps_ns: NDArray[np.int64], values: Array) -> None:
        """Take the values ``(N, width)`` of increasing stamps ``(N,)``.

        Raises
        ------
        StampOrderError
            A stamp repeats, or is later than it may be; ``where`` names the channel in the message.
        """
        place = place_of(self.stamps_ns, stamps_ns, self.late)
        if place is None:
            raise StampOrderError(where, int(max([*self.stamps_ns[-1:], stamps_ns[0]])), int(stamps_ns[0]))
        self.stamps_ns[place:place] = stamps_ns.tolist()
        self.values[place:place] = list(values)

    def at(self, stamps: NDArray[np.int64], max_gap_ns: int) -> tuple[Array, NDArray[np.bool_]]:
        """Interpolated values, and where they are valid; see :func:`interpolate`."""
        times = np.array(self.stamps_ns, dtype=np.int64)
        return interpolate(stamps, times, np.array(self.values).reshape(len(times), self.width), max_gap_ns)

    def drop_before(self, stamp: np.int64) -> None:
        """Drop what lies before the last value at or before ``stamp`` [ns]; later stamps still need that one."""
        first = max(int(np.searchsorted(self.stamps_ns, stamp, side="right")) - 1, 0)
        del self.stamps_ns[:first]
        del self.values[:first]


def interpolate(
    stamps: NDArray[np.int64], times: NDArray[np.int64], values: Array, max_gap_ns: int
) -> tuple[Array, NDArray[np.bool_]]:
    """Values of a stream at other stamps, linearly, and whether they are valid.

    Valid means a value within ``max_gap_ns`` on both sides, or one with exactly the same stamp.

    Parameters
    ----------
    stamps : ndarray of int64, shape (N,)
        Stamps that are asked for [ns].
    times : ndarray of int64, shape (M,)
        Stamps of the stream [ns].
    values : ndarray, shape (M, k)
        Values of the stream.
    max_gap_ns : int
        Largest distance to a value on either side [ns].

    Returns
    -------
    values : ndarray, shape (N, k)
        Interpolated.
    valid : ndarray of bool, shape (N,)
        Where they can be used.
    """
    out, valid = np.zeros((len(stamps), values.shape[1])), np.zeros(len(stamps), dtype=bool)
    if len(times) == 0 or len(stamps) == 0:
        return out, valid
    after = np.searchsorted(times, stamps, side="left")
    exact = (after < len(times)) & (times[np.minimum(after, len(times) - 1)] == stamps)
    before = np.clip(np.where(exact, after, after - 1), 0, len(times) - 1)
    after = np.minimum(after, len(times) - 1)
    inside = (stamps >= times[before]) & (stamps <= times[after])
    valid = inside & (stamps - times[before] <= max_gap_ns) & (times[after] - stamps <= max_gap_ns)
    step = np.maximum(times[after] - times[before], 1)
    weight = ((stamps - times[before]) / step)[:, None]
    out = np.where(exact[:, None], values[before], values[before] + weight * (values[after] - values[before]))
    return out, valid
