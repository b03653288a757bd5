"""Options as data: fields of attrs classes with a description, unit, range and choices.

Configuration files, command line, ROS parameters and the reference of the documentation are made from these fields.
attrs does conversion and validation: it has the rosdep key ``python3-attrs`` on every platform of ROS 2, whereas
pydantic is still 1.10 on Ubuntu 24.04 and cattrs has no rosdep key. Only features of attrs 22.2 are used.
"""

import numbers
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import validators

from inertid_ros.core.errors import ConfigurationError

REQUIRED = attrs.NOTHING
EXPECTED = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_Validator = Callable[[Any, Any, Any], Any]


def option(
    default: Any,
    description: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    length: int | None = None,
    of: type | None = None,
    many: bool = False,
) -> Any:
    """A field that is a number, a truth value, a text, or a tuple of those.

    Parameters
    ----------
    default : bool, int, float, str, tuple or REQUIRED
        Value where nothing is given.
    description : str
        One line with the unit in brackets, such as ``of every interval [s]``.
    minimum, maximum : float, optional
        Inclusive range, of each element where it is a tuple.
    choices : sequence of str
        Allowed values, of each element where it is a tuple.
    length : int, optional
        Number of elements of a tuple.
    of : type, optional
        Type if the default does not show it: of a required value, and of an empty tuple that is not of text.
    many : bool
        Whether it is a tuple, if the default does not show it.
    """
    many = many or isinstance(default, tuple)
    scalar = of or (type(default[0]) if default else str) if isinstance(default, tuple) else of or type(default)
    metadata = _metadata(description, scalar, many, minimum, maximum, choices, length)
    convert, check = _rules(metadata)
    return attrs.field(default=default, converter=convert, validator=check, metadata=metadata)


def named(
    element: type,
    description: str,
    names: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    length: int | None = None,
    many: bool = False,
    former: Callable[[Sequence[str]], Any] | None = None,
) -> Any:
    """A field that maps names to values or to option classes, such as ``plates: {left: {frame: left_foot}}``.

    Parameters
    ----------
    element : type
        Scalar type or option class of every value.
    description : str
        One line, with the unit of a scalar in brackets.
    names : str
        ROS parameter that lists the names, beside the mapping itself.
    minimum, maximum, choices, length
        Of every scalar, as of :func:`option`.
    many : bool
        Whether every value is a tuple of scalars.
    former : callable, optional
        From the list of strings that older configurations have to the mapping that replaces it.
    """
    metadata = _metadata(description, element, many, minimum, maximum, choices, length)
    metadata |= {"names": names, "former": former}
    convert, check = (None, validators.instance_of(element)) if attrs.has(element) else _rules(metadata)

    def converted(values: Any) -> Any:
        return {name: convert(value) if convert else value for name, value in dict(values).items()}

    def checked(instance: Any, attribute: Any, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            check(instance, attribute.evolve(name=f"{attribute.name}.{name}"), value)

    return attrs.field(factory=dict, converter=converted, validator=checked, metadata=metadata)


def section(model: type, former: Callable[[Sequence[str]], Any] | None = None) -> Any:
    """A field that is an option class of its own."""
    return attrs.field(factory=model, validator=validators.instance_of(model), metadata={"former": former})


@attrs.frozen
class Option:
    """One option of a tree of option classes.

    Attributes
    ----------
    key : str
        Dotted path, such as ``prepare.cutoff_hz``; with ``<name>`` for the name where it belongs to a named element.
    scalar : type
        bool, int, float or str; of the elements where ``is_list``.
    is_list : bool
        Whether it is a tuple.
    default : object
        Or REQUIRED.
    description : str
        With the unit in brackets.
    unit : str
        Empty where there is none.
    minimum, maximum : float or None
        Inclusive range.
    choices : tuple of str
        Allowed values; empty allows all.
    names : str
        Key of the list of names, where it belongs to a named element.
    lists : str
        Key of the mapping, where this is a list of names; such a list exists as ROS parameter only.
    """

    key: str
    scalar: type
    is_list: bool
    default: Any
    description: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    names: str = ""
    lists: str = ""

    def of(self, name: str) -> "Option":
        """The option of the element of this name."""
        return attrs.evolve(self, key=self.key.replace("<name>", name), names="")


def options(tree: type, prefix: str = "") -> Iterator[Option]:
    """Every option of an option class, in order of definition; a list of names before what it names.

    Raises
    ------
    TypeError
        A field was not made by :func:`option`, :func:`named` or :func:`section`.
    """
    for attribute in attrs.fields(attrs.resolve_types(tree)):
        key, about = f"{prefix}{attribute.name}", attribute.metadata
        if is_section(attribute):
            yield from options(attribute.type, f"{key}.")
        elif "description" not in about:
            raise TypeError(f"{tree.__name__}.{attribute.name}: has no description; define it with option(...)")
        elif is_named(attribute):
            names = f"{prefix}{about['names']}"
            yield Option(names, str, True, (), f"names of {attribute.name}: {about['description']}", lists=key)
            if attrs.has(about["element"]):
                for inner in options(about["element"], f"{key}.<name>."):
                    yield attrs.evolve(inner, names=names)
            else:
                yield _option(f"{key}.<name>", REQUIRED, about, names)
        else:
            yield _option(key, attribute.default, about)


def is_section(attribute: Any) -> bool:
    """Whether a field is an option class of its own."""
    return isinstance(attribute.type, type) and attrs.has(attribute.type)


def is_named(attribute: Any) -> bool:
    """Whether a field maps names to elements."""
    return "names" in attribute.metadata


def _option(key: str, default: Any, about: Mapping[str, Any], names: str = "") -> Option:
    limits = {name: about[name] for name in ("description", "unit", "minimum", "maximum", "choices")}
    return Option(key, about["element"], about["many"], default, **limits, names=names)


def _metadata(
    description: str,
    element: type,
    many: bool,
    minimum: float | None,
    maximum: float | None,
    choices: Sequence[str],
    length: int | None,
) -> dict[str, Any]:
    if element not in EXPECTED and not attrs.has(element):
        raise TypeError(f"option '{description}': {element} cannot be an option")
    found = re.search(r"\[([^\]]+)\]", description)
    return {
        "description": description, "unit": found[1] if found else "", "element": element, "many": many,
        "minimum": minimum, "maximum": maximum, "choices": tuple(choices), "length": length,
    }  # fmt: skip


def _rules(about: Mapping[str, Any]) -> tuple[Callable[[Any], Any], _Validator]:
    """Converter and validator of a scalar or of a tuple of scalars."""
    scalar, lowest, highest = about["element"], about["minimum"], about["maximum"]
    convert = {float: _real, int: _whole}.get(scalar, _same)
    checks = [_one_line(validators.instance_of(scalar), f", expected {EXPECTED[scalar]}")]
    if scalar is int:
        checks.append(_one_line(validators.not_(validators.instance_of(bool)), f", expected {EXPECTED[scalar]}"))
    bounds = [validators.ge(lowest)] * (lowest is not None) + [validators.le(highest)] * (highest is not None)
    if bounds:
        checks.append(_one_line(validators.and_(*bounds), f"; it must lie {_range(lowest, highest)}"))
    if about["choices"]:
        checks.append(_one_line(validators.in_(about["choices"]), f"; choose from {', '.join(about['choices'])}"))
    check = validators.and_(*checks)
    if not about["many"]:
        return convert, check
    whole = [_one_line(validators.instance_of(tuple), f", expected a list of {EXPECTED[scalar]}")]
    if about["length"] is not None:
        whole.append(_counted(about["length"]))

    def converted(value: Any) -> Any:
        several = isinstance(value, Sequence) and not isinstance(value, str)
        return tuple(convert(part) for part in value) if several else value

    return converted, validators.deep_iterable(check, validators.and_(*whole))


def _real(value: Any) -> Any:
    return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value


def _same(value: Any) -> Any:
    return value


def _one_line(check: _Validator, expected: str) -> _Validator:
    """A validator of attrs whose error is one line for users."""

    def checked(instance: Any, attribute: Any, value: Any) -> None:
        try:
            check(instance, attribute, value)
        except (TypeError, ValueError):
            raise ConfigurationError(f"{attribute.name} is {value!r}{expected}") from None

    return checked


def _counted(length: int) -> _Validator:
    def counted(instance: Any, attribute: Any, value: Sequence[Any]) -> None:
        if len(value) != length:
            raise ConfigurationError(f"{attribute.name} has {len(value)} values; give {length}")

    return counted


def _range(lowest: float | None, highest: float | None) -> str:
    if lowest is None or highest is None:
        return f"at or above {lowest:g}" if highest is None else f"at or below {highest:g}"
    return f"between {lowest:g} and {highest:g}"
