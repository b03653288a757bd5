"""Parts of recordings to be held out in turn."""

from collections.abc import Sequence

from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples


def split(recordings: Sequence[Samples], parts: int) -> tuple[Samples, ...]:
    """The recordings themselves, or contiguous parts of the only one: neighbouring samples are too alike to judge."""
    if len(recordings) > 1:
        return tuple(recordings)
    whole = recordings[0]
    if len(whole) < parts:
        raise IdentificationError(f"{whole.name}: {len(whole)} samples cannot be cut into {parts} parts; record more")
    bounds = [len(whole) * k // parts for k in range(parts + 1)]
    return tuple(whole.select(slice(a, b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True))
