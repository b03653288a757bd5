"""Build option classes from parsed YAML or ROS parameters; errors about unknown keys suggest the closest key."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import Option, is_named, is_section, options

T = TypeVar("T")
_MIN_SIMILARITY = 0.85  # of difflib, between whole keys or keys of different sections
_MAX_KEYS_LISTED = 20  # longer lists of keys do not help in a message


def structure(tree: type[T], values: Mapping[Any, Any], where: str = "options", prefix: str = "",
        listed: bool = False) -> T:
    """Build an option class from nested mappings; absent keys keep their default.

    Raises ConfigurationError: a key is unknown, or a value does not fit. The message has place, key, value and
    expected value.

    Parameters
    ----------
    values : keys to values or nested mappings; a dotted key (``prepare.cutoff_hz``) stands for nested mappings.
    where : file or node, for messages.
    prefix : prefix of every key in messages, including the dot.
    listed : whether a list of names must have the names of all named elements, as for ROS parameters. The list may be
        empty or missing if each element is a single value.
    """
    fields = {field.name: field for field in attrs.fields(attrs.resolve_types(tree))}  # type: ignore[arg-type, type-var]
    known = [*fields, *(field.metadata["names"] for field in fields.values() if is_named(field))]
    grouped = _grouped(values, f"{where}: {prefix}")
    for key, value in grouped.items():
        if key not in known:
            whole, _ = next(flat({key: value}), (key, None))
            remedy = KnownKeys(options(tree)).remedy(key)
            raise ConfigurationError(f"{where}: {prefix}{whole} is not an option; {remedy}")
    arguments: dict[str, Any] = {}
    for name, field in fields.items():
        value, key = grouped.get(name), f"{prefix}{name}"
        if is_named(field):
            names = grouped.get(field.metadata["names"])
            if value is not None or names is not None:
                arguments[name] = _elements(field, value, names, where, prefix, listed)
        elif name not in grouped:
            if field.default is attrs.NOTHING:
                raise ConfigurationError(f"{where}: {key} is missing; give: {field.metadata['option'].description}")
        elif is_section(field):
            if not isinstance(value, Mapping):
                raise _misfit(value, where, key, ", ".join(_names(field.type)))
            arguments[name] = structure(field.type, value, where, f"{key}.", listed)
        else:
            # A ROS parameter file writes an empty list of text as [''].
            arguments[name] = [part for part in value if part != ""] if isinstance(value, list | tuple) else value
    try:
        return tree(**arguments)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {prefix}{error}") from None


def flow(value: object) -> str:
    """YAML on one line."""
    import yaml  # the help of the command line needs options, but no YAML

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False)
    return text.replace("\n...", "").strip()


def flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of nested mappings; names may contain dots (``joint1.coulomb``)."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _grouped(values: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Nest dotted keys by their first part."""
    grouped: dict[str, Any] = {}
    for key, value in values.items():
        first, dot, rest = str(key).partition(".")
        if dot:
            value = {rest: value}
        if isinstance(value, Mapping) and isinstance(grouped.get(first), Mapping):
            grouped[first] = {**grouped[first], **value}
        elif first in grouped:
            raise ConfigurationError(f"{where}{first} is given as a value and as a mapping; drop one")
        else:
            grouped[first] = value
    return grouped


def _elements(field: Any, value: object, names: Any, where: str, prefix: str, listed: bool) -> dict[str, Any]:
    """Named elements of a field: values or options by name; ``names`` is the list of names, None if not given."""
    key, element = f"{prefix}{field.name}", field.metadata["element"]
    if not isinstance(value, Mapping | None):
        inner = ", ".join(_names(element)) if attrs.has(element) else "its value"
        raise _misfit(value, where, key, f"names, each with {inner}")
    if not attrs.has(element):
        values = dict(flat(value or {}))
        unlisted = names is None or (isinstance(names, list | tuple) and not any(names))
        if not unlisted:  # otherwise the names of the values count as the list
            _agree(field, values, names, where, prefix)
        return values
    elements: dict[str, Any] = {}
    for name, content in (value or {}).items():
        if "." in str(name) and not isinstance(content, Mapping | None):
            name, _, inner = str(name).rpartition(".")
            content = {inner: content}
        if not isinstance(content, Mapping | None):
            raise ConfigurationError(
                f"{where}: {key}.{name} is {content!r}, expected a mapping with {', '.join(_names(element))}")
        elements[str(name)] = {**elements.get(str(name), {}), **(content or {})}
    if names is not None or (listed and elements):
        _agree(field, elements, names or (), where, prefix)
    return {name: structure(element, inner, where, f"{key}.{name}.", listed) for name, inner in elements.items()}


def _agree(field: Any, elements: dict[str, Any], names: object, where: str, prefix: str) -> None:
    """Raise ConfigurationError unless the list has exactly the names of the elements; add elements of defaults only."""
    key, listing = f"{prefix}{field.name}", f"{prefix}{field.metadata['names']}"
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"{where}: {listing} is {names!r}, expected a list of text")
    names = [name for name in names if name]
    for name in elements:
        if name not in names:
            raise ConfigurationError(f"{where}: {key}.{name} is given, but {listing} does not list it; write"
                f" {field.metadata['names']}: {flow([*names, name])}")
    for name in names:
        if name not in elements and not attrs.has(field.metadata["element"]):
            raise ConfigurationError(f"{where}: {listing} lists {name}, but {key}.{name} is missing; give it")
        elements.setdefault(name, {})


def _misfit(value: object, where: str, key: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"{where}: {key} is {value!r}, expected a mapping of {expected}")


def _names(tree: type) -> list[str]:
    return [field.name for field in attrs.fields(tree)]


class KnownKeys:
    """Known dotted keys of options; keys of named elements match with any name."""

    def __init__(self, known: Iterable[Option]) -> None:
        self._keys = tuple({key: None for option in known for key in (option.key, option.lists) if key})
        self._pattern = re.compile("|".join(re.escape(key).replace("<name>", ".+") for key in self._keys))

    def __contains__(self, key: str) -> bool:
        return self._pattern.fullmatch(key) is not None

    def nearest(self, key: str) -> str:
        """Known key closest to an unknown key; empty if no key is close."""
        section, _, last = key.rpartition(".")
        keys = {known: known for known in self._named_like(key)}
        by_last = {known.rpartition(".")[2]: known for known in reversed(keys)}
        if self._below(key):
            return ""
        if not section and key in by_last:  # the key lacks its section
            return by_last[key]
        for word, candidates, similarity in ((last, self._below(section), 0.6), (key, keys, _MIN_SIMILARITY),
                (last, by_last, _MIN_SIMILARITY)):
            if close := difflib.get_close_matches(word, candidates, n=1, cutoff=similarity):
                return candidates[close[0]]
        return ""

    def remedy(self, key: str) -> str:
        """Remedy for an unknown key, as half a sentence."""
        if nearest := self.nearest(key):
            return f"did you mean {nearest}?"
        while not (below := self._below(key)):
            key = key.rpartition(".")[0]
        if len(below) > _MAX_KEYS_LISTED:
            return "see docs/reference for all keys"
        return f"choose from {', '.join(below.values())}"

    def check(self, key: str, where: str) -> None:
        """Raise ConfigurationError for an unknown key."""
        if key not in self:
            raise ConfigurationError(f"{where}: {key} is not an option; {self.remedy(key)}")

    def _below(self, section: str) -> dict[str, str]:
        """Keys directly below a section (at the top if ``section`` is empty), by the last part of the key."""
        prefix = f"{section}." if section else ""
        below = (key for key in self._named_like(section) if key.startswith(prefix))
        return {name: prefix + name for name in (key.removeprefix(prefix).partition(".")[0] for key in below)}

    def _named_like(self, key: str) -> Iterator[str]:
        """All known keys, with ``<name>`` replaced by the part of ``key`` at the same position."""
        parts = key.split(".")
        for known in self._keys:
            yield ".".join(parts[at] if part == "<name>" and at < len(parts) else part
                for at, part in enumerate(known.split(".")))
