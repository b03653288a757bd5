"""Options as data: a dataclass field that knows its description, range and choices.

Configuration files, command line, ROS parameters and documentation are all made from these fields.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from inertid_ros.core.errors import InertidError

T = TypeVar("T")
SCALARS: tuple[type, ...] = (bool, int, float, str)


class ConfigurationError(InertidError):
    """A configuration names an unknown key or holds an impossible value."""


def option(
    default: Any,
    description: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """A dataclass field with description, inclusive range and allowed values (of each element where it is a list)."""
    metadata = {"description": description, "minimum": minimum, "maximum": maximum, "choices": tuple(choices)}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Option:
    """One option of a tree of option dataclasses.

    Attributes
    ----------
    key: dotted path, such as ``prepare.cutoff_hz``.
    kind: bool, int, float or str; of the elements where ``is_list``.
    """

    key: str
    kind: type
    is_list: bool
    default: Any
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def convert(self, value: object, where: str) -> Any:
        """``value`` in this option's type.

        Raises
        ------
        ConfigurationError: wrong type, out of range, or not one of the choices.
        """
        if not self.is_list:
            return self._element(value, where)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigurationError(f"{where}: {self.key} is {value!r}, expected a list of {_NAMES[self.kind]}")
        # '' in a list of text is how a ROS parameter file writes that there is nothing in it.
        return tuple(self._element(element, where) for element in value if element != "")

    def _element(self, value: object, where: str) -> Any:
        accepted = isinstance(value, self.kind) and (self.kind is bool or not isinstance(value, bool))
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            accepted, value = True, float(value)
        if not accepted:
            raise ConfigurationError(f"{where}: {self.key} is {value!r}, expected {_NAMES[self.kind]}")
        if self.choices and value not in self.choices:
            raise ConfigurationError(f"{where}: {self.key} is {value!r}; choose from {', '.join(self.choices)}")
        below = self.minimum is not None and not value >= self.minimum  # type: ignore[operator]
        above = self.maximum is not None and not value <= self.maximum  # type: ignore[operator]
        if below or above:
            raise ConfigurationError(f"{where}: {self.key} is {value!r}; it must lie {self._range()}")
        return value

    def _range(self) -> str:
        if self.minimum is None or self.maximum is None:
            return f"at or above {self.minimum:g}" if self.maximum is None else f"at or below {self.maximum:g}"
        return f"between {self.minimum:g} and {self.maximum:g}"


_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def options(tree: type, prefix: str = "") -> Iterator[Option]:
    """Every option of a dataclass whose fields are options or again such dataclasses, in order of definition."""
    hints = get_type_hints(tree)
    for entry in fields(tree):
        key, hint = f"{prefix}{entry.name}", hints[entry.name]
        if is_dataclass(hint):
            yield from options(cast(type, hint), f"{key}.")
            continue
        is_list = get_origin(hint) is tuple
        kind = get_args(hint)[0] if is_list else hint
        if kind not in SCALARS:
            raise TypeError(f"{tree.__name__}.{entry.name}: {hint} cannot be an option")
        default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
        yield Option(key, kind, is_list, default, **_metadata(tree, entry.name, entry.metadata))


def build(tree: type[T], values: Mapping[str, object], where: str = "options", prefix: str = "") -> T:
    """An instance of an option dataclass from dotted keys to values; keys that are absent keep their default.

    Raises
    ------
    ConfigurationError: unknown key, or a value that does not fit; names ``where``.
    """
    known = {entry.key: entry for entry in options(tree, prefix)}
    for key in values:
        if key not in known:
            raise ConfigurationError(f"{where}: {key} is not an option; {_nearest(key, known)}")
    converted = {key: known[key].convert(value, where) for key, value in values.items()}
    try:
        return _construct(tree, converted, prefix)
    except InertidError as error:  # values that do not fit together
        raise ConfigurationError(f"{where}: {error}") from None


def flatten(tree: Mapping[Any, Any], prefix: str = "") -> dict[str, object]:
    """Nested mappings to dotted keys."""
    flat: dict[str, object] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _construct(tree: type[T], values: Mapping[str, object], prefix: str) -> T:
    hints, arguments = get_type_hints(tree), {}
    for entry in fields(tree):  # type: ignore[arg-type]
        key = f"{prefix}{entry.name}"
        if is_dataclass(hints[entry.name]):
            arguments[entry.name] = _construct(hints[entry.name], values, f"{key}.")
        elif key in values:
            arguments[entry.name] = values[key]
    return tree(**arguments)


def _metadata(tree: type, name: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    if "description" not in metadata:
        raise TypeError(f"{tree.__name__}.{name}: has no description; define it with option(...)")
    return {key: metadata[key] for key in ("description", "minimum", "maximum", "choices") if key in metadata}


def _nearest(key: str, known: Mapping[str, Option]) -> str:
    import difflib

    close = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
