"""Options as data: fields of attrs classes with a description, unit, range and choices.

Configuration files, command line, ROS parameters and the reference documentation all use these fields. attrs does
conversion and validation, because it has the rosdep key ``python3-attrs`` on every platform of ROS 2; pydantic is still
1.10 on Ubuntu 24.04, and cattrs has no rosdep key. Only features of attrs 22.2 are used.
"""

import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias, UnionType
from typing import Any, get_args

import attrs

from inertid_ros.core.errors import ConfigurationError

REQUIRED = attrs.NOTHING
TRIPLE, SIX = tuple[float, float, float], tuple[float, float, float, float, float, float]
EXPECTED = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


@attrs.frozen
class Option:
    """One option of a tree of option classes.

    Attributes
    ----------
    key : dotted path, such as ``prepare.cutoff_hz``; in keys of named elements, ``<name>`` stands for the name.
    scalar : bool, int, float or str; for a tuple, the type of its elements.
    is_list : whether the value is a tuple.
    default : default value, or REQUIRED.
    description : text with the unit in brackets.
    minimum, maximum : inclusive range of the value, or of each element of a tuple.
    choices : allowed values, also for each element of a tuple; empty allows all values.
    length : number of elements of a tuple, unless it is the default; None allows any number.
    names : key of the list of names, if the option belongs to a named element.
    lists : key of the mapping, if the option is the list of its names; only ROS parameters need lists of names.
    or_single : whether a single text counts as a list of one, because the option was a text before.
    """

    key: str
    scalar: type
    is_list: bool
    default: Any
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    length: int | None = None
    names: str = ""
    lists: str = ""
    or_single: bool = False

    @property
    def unit(self) -> str:
        """Unit in the description; empty for an option without a unit and for a list of names."""
        brackets = re.search(r"\[([^\]]+)\]", self.description)
        return brackets[1] if brackets and not self.lists else ""

    def of(self, name: str) -> "Option":
        """Replace ``<name>`` in the key."""
        return attrs.evolve(self, key=self.key.replace("<name>", name), names="")

    def converted(self, value: Any) -> Any:
        """Convert numbers to the option's type and lists to tuples; other values stay."""
        if not self.is_list:
            return _number(self.scalar, value)
        if self.or_single and isinstance(value, str):
            return (value,) if value else ()
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return tuple(_number(self.scalar, element) for element in value) if several else value

    def check(self, name: str, value: Any) -> None:
        """Raise ConfigurationError if a value is not allowed; the message begins with ``name``."""
        expected = EXPECTED[self.scalar]
        if self.is_list and not isinstance(value, tuple):
            raise ConfigurationError(f"{name} is {value!r}, expected a list of {expected}")
        if self.length is not None and len(value) != self.length and value != self.default:
            raise ConfigurationError(f"{name} has {len(value)} values; give {self.length}")
        low, high = self.minimum, self.maximum
        for element in value if self.is_list else (value,):
            fits = isinstance(element, self.scalar) and (self.scalar is bool or not isinstance(element, bool))
            if not fits:
                raise ConfigurationError(f"{name} is {element!r}, expected {expected}")
            # Comparisons with NaN are false, so this form refuses NaN.
            if not (low is None or element >= low) or not (high is None or element <= high):
                raise ConfigurationError(f"{name} is {element!r}; it must lie {_range(low, high)}")
            if self.choices and element not in self.choices:
                raise ConfigurationError(f"{name} is {element!r}; choose from {', '.join(self.choices)}")


def option(default: Any, description: str, minimum: float | None = None, maximum: float | None = None, *,
        choices: Sequence[str] = (), of: Any = None) -> Any:
    """Field for a number, a truth value, a text, or a tuple of these types.

    Parameters
    ----------
    description : one line with the unit in brackets, such as ``duration of every interval [s]``.
    minimum, maximum, choices : as in :class:`Option`.
    of : type of the value; by default the type of ``default``, and any length if that is a tuple. Needed for example
        for a required value, or for exactly two numbers: ``tuple[float, float]``. With ``str | tuple[str, ...]`` a
        single text counts as a list of one.
    """
    if of is None and isinstance(default, tuple):
        of = GenericAlias(tuple, (type(default[0]) if default else str, ...))
    or_single = isinstance(of, UnionType)
    scalar, is_list, length = _shape(get_args(of)[1] if or_single else of or type(default))
    single = Option(
        "", scalar, is_list, default, description, minimum, maximum, tuple(choices), length, or_single=or_single)

    def check(_instance: Any, attribute: Any, value: Any) -> None:
        single.check(attribute.name, value)

    return attrs.field(default=default, converter=single.converted, validator=check, metadata={"option": single})


def vector(default: tuple[float, float, float], description: str, limit: float) -> Any:
    """Field for three numbers between plus and minus a limit."""
    return option(default, description, -limit, limit, of=TRIPLE)


def _shape(kind: Any) -> tuple[type, bool, int | None]:
    """Scalar type, whether the value is a tuple, and the number of its elements; None for any number."""
    elements = get_args(kind)
    if not elements:
        return kind, False, None
    return elements[0], True, None if elements[-1] is Ellipsis else len(elements)


def named(element: Any, description: str, names: str, **limits: Any) -> Any:
    """Field that maps names to values or options (named elements), such as ``plates: {left: {frame: left_foot}}``.

    Parameters
    ----------
    element : type of every value: a scalar, a tuple of scalars, or an option class.
    description : one line, with the unit of a scalar in brackets.
    names : additional ROS parameter that lists the names.
    **limits : ``minimum``, ``maximum`` and ``choices`` of every scalar, as in :class:`Option`.
    """
    metadata = {"element": element, "description": description, "names": names}
    if attrs.has(element):
        types = attrs.validators.deep_mapping(attrs.validators.instance_of(str), attrs.validators.instance_of(element))
        return attrs.field(factory=dict, converter=dict, validator=types, metadata=metadata)
    scalar, is_list, length = _shape(element)
    single = Option("", scalar, is_list, REQUIRED, description, length=length, **limits)

    def converted(values: Any) -> Any:
        return {name: single.converted(value) for name, value in dict(values).items()}

    def check(_instance: Any, attribute: Any, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            single.check(f"{attribute.name}.{name}", value)

    return attrs.field(factory=dict, converter=converted, validator=check, metadata=metadata | {"option": single})


def section(model: type) -> Any:
    """Field for a nested option class."""
    return attrs.field(factory=model, validator=attrs.validators.instance_of(model))


def options(tree: type, prefix: str = "") -> Iterator[Option]:
    """All options of an option class, in order of definition; a list of names precedes its named elements.

    TypeError: a field was not made by :func:`option`, :func:`named` or :func:`section`.
    """
    for attribute in attrs.fields(attrs.resolve_types(tree)):
        key, about = f"{prefix}{attribute.name}", attribute.metadata
        if is_section(attribute):
            yield from options(attribute.type, f"{key}.")
        elif is_named(attribute):
            names = f"{prefix}{about['names']}"
            yield Option(names, str, True, (), f"names of {attribute.name}: {about['description']}", lists=key)
            inside = [about["option"]] if "option" in about else options(about["element"], ".")
            for inner in inside:
                yield attrs.evolve(inner, key=f"{key}.<name>{inner.key}", names=names)
        elif "option" in about:
            yield attrs.evolve(about["option"], key=key)
        else:
            raise TypeError(f"{tree.__name__}.{attribute.name}: has no description; define it with option(...)")


def is_section(attribute: Any) -> bool:
    """True if a field is a nested option class."""
    return isinstance(attribute.type, type) and attrs.has(attribute.type)


def is_named(attribute: Any) -> bool:
    """True if a field maps names to elements."""
    return "names" in attribute.metadata


def _number(scalar: type, value: Any) -> Any:
    """Convert a number to the type of an option; other values stay."""
    wanted = {float: numbers.Real, int: numbers.Integral}.get(scalar, ())
    if not isinstance(value, wanted) or isinstance(value, bool):
        return value
    try:
        return scalar(value)
    except OverflowError:  # the integer is too large for a float
        return value


def _range(lowest: float | None, highest: float | None) -> str:
    if lowest is None or highest is None:
        return f"at or above {lowest:g}" if highest is None else f"at or below {highest:g}"
    return f"between {lowest:g} and {highest:g}"
