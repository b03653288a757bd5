"""Keys that no option has: refused by name, with what was probably meant."""

import difflib
import re
from collections.abc import Iterable, Sequence

from inertid_ros.core.errors import ConfigurationError

from .option_fields import Option

_ALIKE = 0.85  # of difflib, between keys of different sections
_SHOWN = 20  # more known keys than this are no help in a line


class KnownKeys:
    """Dotted keys of options, those of named elements with any name.

    Parameters
    ----------
    known : iterable of Option
    """

    def __init__(self, known: Iterable[Option]) -> None:
        keys = {key: None for entry in known for key in (entry.key, entry.lists) if key}
        self._keys = tuple(keys)
        self._pattern = re.compile("|".join(re.escape(key).replace("<name>", ".+") for key in keys))

    def __contains__(self, key: str) -> bool:
        return self._pattern.fullmatch(key) is not None

    def nearest(self, key: str) -> str:
        """The key that was probably meant by an unknown one; empty if there is none such."""
        given, known, depth, names = self._siblings(key)
        if depth == len(given):
            return ""
        last = {parts[-1]: parts for parts in reversed(known)}
        if len(given) == 1 and key in last:  # without its section
            return ".".join(last[key])
        if close := difflib.get_close_matches(given[depth], names, n=1):
            whole = ".".join([*given[:depth], close[0], *given[depth + 1 :]])
            return whole if whole in self else ".".join([*given[:depth], close[0]])
        close = difflib.get_close_matches(given[-1], last, n=1, cutoff=_ALIKE)
        return ".".join(last[close[0]]) if close else ""

    def remedy(self, key: str) -> str:
        """What to write in place of an unknown key: half a sentence."""
        if nearest := self.nearest(key):
            return f"did you mean {nearest}?"
        given, _, depth, names = self._siblings(key)
        if len(names) > _SHOWN:
            return "see docs/reference for those that there are"
        return f"known are {', '.join('.'.join([*given[:depth], name]) for name in names)}"

    def _siblings(self, key: str) -> tuple[list[str], list[list[str]], int, list[str]]:
        """Parts of a key and of all known ones, how many the key shares with any, and what may follow those."""
        given = key.split(".")
        known = [_of_the_same_name(text.split("."), given) for text in self._keys]
        depth = max((_common(parts, given) for parts in known), default=0)
        here = [parts for parts in known if parts[:depth] == given[:depth] and len(parts) > depth]
        return given, known, depth, list(dict.fromkeys(parts[depth] for parts in here))

    def check(self, keys: Iterable[str], where: str) -> None:
        """Raise ConfigurationError for the first key that no option has."""
        for key in keys:
            if key not in self:
                raise ConfigurationError(f"{where}: {key} is not an option; {self.remedy(key)}")


def _of_the_same_name(known: list[str], given: Sequence[str]) -> list[str]:
    """Parts of a known key with the name of the given one, where both belong to named elements."""
    return [given[at] if part == "<name>" and at < len(given) else part for at, part in enumerate(known)]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Number of parts at the beginning that two keys share."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
