"""Parts of recordings to be held out in turn."""

from collections.abc import Sequence
from dataclasses import fields, replace

from ..data.samples import Samples
from ..errors import IdentificationError


def split(recordings: Sequence[Samples], parts: int) -> tuple[Samples, ...]:
    """The recordings themselves, or contiguous parts of the only one: neighbouring samples are too alike to judge."""
    if len(recordings) > 1:
        return tuple(recordings)
    whole = recordings[0]
    if len(whole) < parts:
        raise IdentificationError(f"{whole.name}: {len(whole)} samples cannot be cut into {parts} parts; record more")
    bounds = [len(whole) * k // parts for k in range(parts + 1)]
    return tuple(_part(whole, slice(a, b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True))


def _part(samples: Samples, rows: slice) -> Samples:
    """Samples of some rows; every array that has one row per sample is cut."""
    cut = {
        field.name: getattr(samples, field.name)[rows]
        for field in fields(samples)
        if getattr(getattr(samples, field.name), "shape", ())[:1] == (len(samples),)
    }
    return replace(samples, **cut)
