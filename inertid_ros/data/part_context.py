"""Parts of a recording with the ends of their neighbours, which filters remember."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .recording import Recording


def in_context(parts: Iterable[Recording], samples: int) -> Iterator[Recording]:
    """Each part with so many samples of the part before it and of the one after it, or all that these have.

    Parameters
    ----------
    parts : iterable of Recording
        Consecutive parts of one recording.
    samples : int
        0 leaves them as they are.

    Yields
    ------
    Recording
        One for each part; a neighbour with other joints or channels is none.
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
    channels: dict[str, Any] = {
        name: np.concatenate([getattr(own, name)[rows] for own, rows in pieces]) for name in part.arrays
    }
    wrenches = {
        frame: np.concatenate([own.wrenches[frame][rows] for own, rows in pieces]) for frame in part.wrenches
    }
    return replace(part, **channels, wrenches=wrenches, context=(ahead, behind))


def _joins(part: Recording, following: Recording) -> bool:
    """Whether the samples of two parts can be put one after the other."""
    return (
        part.joint_names == following.joint_names
        and part.arrays == following.arrays
        and set(part.wrenches) == set(following.wrenches)
        and bool(part.time[-1] < following.time[0])
    )
