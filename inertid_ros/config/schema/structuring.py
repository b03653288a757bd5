"""Option classes from parsed YAML or from ROS parameters, with errors of one line."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import is_named, is_section

T = TypeVar("T")


def structure(
    tree: type[T], values: Mapping[Any, Any], where: str = "options", prefix: str = "", listed: bool = False
) -> T:
    """An option class from nested mappings; keys that are absent keep their default.

    Parameters
    ----------
    values : mapping
        Keys to values or again mappings; a dotted key (``prepare.cutoff_hz``) stands for nested ones.
    where : str
        File or node, for messages.
    prefix : str
        Of every key in messages, with its dot.
    listed : bool
        Whether every name of a named element must stand in the list of names, as among ROS parameters. The list of
        what is a single value by name may be empty or missing.

    Raises
    ------
    ConfigurationError
        Unknown key, or a value that does not fit. The message holds where, key, value, and what is expected.
    """
    fields = {field.name: field for field in attrs.fields(attrs.resolve_types(tree))}  # type: ignore[arg-type, type-var]
    lists = {field.metadata["names"]: name for name, field in fields.items() if is_named(field)}
    given = _grouped(values, f"{where}: {prefix}")
    arguments: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields and key not in lists:
            raise ConfigurationError(f"{where}: {prefix}{_path(key, value)} is not an option; {_nearest(key, fields)}")
        field = fields.get(key)
        if field is None:
            continue
        if is_named(field):
            arguments[key] = _named(field, value, where, f"{prefix}{key}", listed)
        elif is_section(field):
            if not isinstance(value, Mapping):
                raise _misfit(field, value, where, f"{prefix}{key}", ", ".join(_names(field.type)))
            arguments[key] = structure(field.type, value, where, f"{prefix}{key}.", listed)
        else:
            # '' in a list of text is how a ROS parameter file writes that there is nothing in it.
            arguments[key] = [part for part in value if part != ""] if isinstance(value, list | tuple) else value
    for names, key in lists.items():
        of_values = not attrs.has(fields[key].metadata["element"])
        listing = given.get(names, ())
        if of_values and arguments.get(key) and isinstance(listing, list | tuple) and not any(listing):
            continue  # names with a value each say themselves which they are
        if names in given or (listed and arguments.get(key)):
            _agree(fields[key], arguments.setdefault(key, {}), listing, where, prefix)
        if attrs.has(fields[key].metadata["element"]) and key in arguments:
            element = fields[key].metadata["element"]
            arguments[key] = {
                name: structure(element, inner, where, f"{prefix}{key}.{name}.", listed)
                for name, inner in arguments[key].items()
            }
    for name, field in fields.items():
        if field.default is attrs.NOTHING and name not in arguments:
            wanted = field.metadata["option"].description
            raise ConfigurationError(f"{where}: {prefix}{name} is missing; give: {wanted}")
    try:
        return tree(**arguments)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {prefix}{error}") from None


def flow(value: object) -> str:
    """YAML on one line."""
    import yaml  # help of the command line needs options, and is quick without it

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False)
    return text.replace("\n...", "").strip()


def flat(values: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys of nested mappings to values; names may have dots themselves (``joint1.coulomb``)."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _grouped(values: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """First parts of dotted keys to nested mappings."""
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


def _named(field: Any, value: object, where: str, key: str, listed: bool) -> dict[str, Any]:
    """Name to what is given for it: a mapping of its fields, or a value."""
    element = field.metadata["element"]
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        inner = ", ".join(_names(element)) if attrs.has(element) else "its value"
        raise _misfit(field, value, where, key, f"names, each with {inner}", listed)
    if not attrs.has(element):
        return dict(flat(value))
    found: dict[str, Any] = {}
    for name, content in value.items():
        if "." in str(name) and not isinstance(content, Mapping | None):
            name, _, inner = str(name).rpartition(".")
            content = {inner: content}
        if not isinstance(content, Mapping | None):
            raise ConfigurationError(
                f"{where}: {key}.{name} is {content!r}, expected a mapping with {', '.join(_names(element))}"
            )
        found[str(name)] = {**found.get(str(name), {}), **(content or {})}
    return found


def _agree(field: Any, elements: dict[str, Any], names: object, where: str, prefix: str) -> None:
    """Raise unless the list of names holds exactly the names that are given; add those whose fields are all default."""
    key, listing = f"{prefix}{field.name}", f"{prefix}{field.metadata['names']}"
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"{where}: {listing} is {names!r}, expected a list of text")
    for name in elements:
        if name not in names:
            raise ConfigurationError(
                f"{where}: {key}.{name} is given, but {listing} does not list it; write"
                f" {field.metadata['names']}: {flow([*filter(None, names), name])}"
            )
    for name in filter(None, names):
        if name not in elements:
            if not attrs.has(field.metadata["element"]):
                raise ConfigurationError(f"{where}: {listing} lists {name}, but {key}.{name} is missing; give it")
            elements[name] = {}


def _misfit(
    field: Any, value: object, where: str, key: str, expected: str, listed: bool = False
) -> ConfigurationError:
    """Error of a value that is no mapping; of the form of older configurations it shows the form of now."""
    former, texts = field.metadata.get("former"), [value] if isinstance(value, str) else value
    if former and isinstance(texts, list | tuple) and texts and all(isinstance(text, str) for text in texts):
        try:
            new = former(texts)
            names = f"{field.metadata['names']}: {flow(list(new))}, " if listed else ""
            form_of_now = f"{names}{field.name}: {flow(new)}"
        except (ValueError, KeyError):
            form_of_now = f"a mapping of {expected}"
        old = ", ".join(f"'{text}'" for text in texts)
        form = "is the old form" if len(texts) == 1 else "are the old form"
        return ConfigurationError(f"{where}: {key}: {old} {form}; write {form_of_now}")
    return ConfigurationError(f"{where}: {key} is {value!r}, expected a mapping of {expected}")


def _names(tree: type) -> list[str]:
    return [field.name for field in attrs.fields(tree)]


def _path(key: str, value: object) -> str:
    """Dotted key of the first value inside."""
    while isinstance(value, Mapping) and value:
        inner, value = next(iter(value.items()))
        key = f"{key}.{inner}"
    return key


def _nearest(key: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
