"""ROS parameters from option dataclasses: one declaration gives default, type, description, range and reading back.

A field's description, ``minimum``, ``maximum``, ``choices``, ``read_only`` come from its dataclass metadata; where it
has no description, from the entry of that name under ``Attributes`` in the docstring of the class.
"""

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..errors import InertidError

Options = TypeVar("Options")
_ARRAYS = {
    float: Parameter.Type.DOUBLE_ARRAY,
    int: Parameter.Type.INTEGER_ARRAY,
    str: Parameter.Type.STRING_ARRAY,
    bool: Parameter.Type.BOOL_ARRAY,
}


def option(default: Any, description: str, **limits: Any) -> Any:
    """A dataclass field with what a parameter declaration needs.

    ``limits`` are ``minimum``, ``maximum``, ``choices`` and ``read_only`` (bool).
    """
    metadata = {"description": description, **limits}
    if isinstance(default, list | dict):
        raise TypeError("defaults must be immutable")
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class ParameterInfo:
    """A declared parameter: full name, default, and what its descriptor says."""

    name: str
    default: Any
    kind: Any
    description: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    read_only: bool


def list_parameters(options: Any, prefix: str = "") -> Iterator[ParameterInfo]:
    """Every parameter that :func:`declare` makes of an options object, nested ones with dots."""
    hints = typing.get_type_hints(type(options))
    documented = _documented(type(options))
    for field in dataclasses.fields(options):
        name, value, meta = f"{prefix}{field.name}", getattr(options, field.name), field.metadata
        if dataclasses.is_dataclass(value):
            yield from list_parameters(value, f"{name}.")
            continue
        kind = hints[field.name]
        choices = tuple(meta.get("choices", ()))
        if not choices and typing.get_origin(kind) is typing.Literal:
            choices = typing.get_args(kind)
        yield ParameterInfo(
            name=name,
            default=value,
            kind=kind,
            description=meta.get("description") or documented.get(field.name, ""),
            minimum=meta.get("minimum"),
            maximum=meta.get("maximum"),
            choices=tuple(str(choice) for choice in choices),
            read_only=bool(meta.get("read_only", False)),
        )


def declare(node: Node, options: Options, prefix: str = "") -> Options:
    """Declare every field of ``options`` as a parameter and return the options with the values that were given.

    Mappings of names to numbers (``locked_joints``) are declared with :func:`declare_mapping` once the names are known,
    and keep their default here.

    Raises
    ------
    InertidError: a value has the wrong type, lies outside its range, or the dataclass refuses it.
    """
    try:
        for info in list_parameters(options, prefix):
            if not isinstance(info.default, Mapping):
                node.declare_parameter(info.name, _to_parameter(info), _descriptor(info))
    except Exception as error:
        raise InertidError(f"{node.get_fully_qualified_name()}: {_one_line(error)}; correct the parameter file") from None
    return read(node, options, prefix)


def read(node: Node, options: Options, prefix: str = "") -> Options:
    """The options as the node's parameters are now.

    Raises
    ------
    InertidError: a choice is unknown, or the dataclass refuses a value.
    """
    values: dict[str, Any] = {}
    infos = {info.name: info for info in list_parameters(options, prefix)}
    for field in dataclasses.fields(typing.cast(Any, options)):
        name, value = f"{prefix}{field.name}", getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            values[field.name] = read(node, value, f"{name}.")
        elif not isinstance(value, Mapping):
            values[field.name] = _from_parameter(node, infos[name])
    return dataclasses.replace(typing.cast(Any, options), **values)


def declare_mapping(node: Node, prefix: str, names: tuple[str, ...], description: str) -> dict[str, float]:
    """Numbers given as ``<prefix>.<name>`` for any of ``names``; names that were not given are left out."""
    values = {}
    descriptor = ParameterDescriptor(description=description, read_only=True, dynamic_typing=True)
    for name in names:
        full = f"{prefix}.{name}"
        if not node.has_parameter(full):
            node.declare_parameter(full, None, descriptor)
        value = node.get_parameter(full).value
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InertidError(f"{node.get_fully_qualified_name()}: {full} is {value!r}; give a number")
        values[name] = float(value)
    return values


def reject_changes(node: Node, reason: "typing.Callable[[str], str]") -> None:
    """Refuse changes of parameters for which ``reason(name)`` gives a reason; an empty one accepts."""

    def on_set(parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            why = reason(parameter.name)
            if why:
                return SetParametersResult(successful=False, reason=f"{parameter.name}: {why}")
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(on_set)


def _documented(kind: type) -> dict[str, str]:
    """Field name to description from the ``Attributes`` section of a docstring."""
    text = kind.__doc__ or ""
    section = re.split(r"Attributes\n\s*-+\n", text)
    entries: dict[str, str] = {}
    current: list[str] = []
    indent = None
    for line in section[1].splitlines() if len(section) > 1 else []:
        match = re.match(r"(\s*)(\w+(?:, \w+)*): (.*)", line)
        if match and (indent is None or len(match[1]) <= indent):
            indent, current = len(match[1]), match[2].split(", ")
            entries.update(dict.fromkeys(current, match[3]))
        elif line.strip() and current:
            entries.update({name: f"{entries[name]} {line.strip()}" for name in current})
        elif not line.strip():
            current = []
    return entries


def _descriptor(info: ParameterInfo) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(description=info.description, read_only=info.read_only)
    if info.choices:
        descriptor.additional_constraints = "one of " + ", ".join(info.choices)
    low, high = info.minimum, info.maximum
    if low is None and high is None:
        return descriptor
    if info.kind is float:
        bounds = FloatingPointRange(from_value=-1e300 if low is None else float(low))
        bounds.to_value = 1e300 if high is None else float(high)
        descriptor.floating_point_range = [bounds]
    elif info.kind is int:
        integers = IntegerRange(from_value=-(2**62) if low is None else int(low), step=1)
        integers.to_value = 2**62 if high is None else int(high)
        descriptor.integer_range = [integers]
    return descriptor


def _element(kind: Any) -> Any:
    """Element type of a tuple annotation; None for scalars."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else None


def _to_parameter(info: ParameterInfo) -> Any:
    element = _element(info.kind)
    if element is None:
        return info.default
    # rclpy cannot tell the type of an empty array from its value.
    return list(info.default) if info.default else _ARRAYS[element]


def _from_parameter(node: Node, info: ParameterInfo) -> Any:
    try:
        value = node.get_parameter(info.name).value
    except ParameterUninitializedException:
        return info.default
    if info.choices and str(value) not in info.choices:
        raise InertidError(f"{node.get_fully_qualified_name()}: {info.name} is '{value}'; use one of {list(info.choices)}")
    if _element(info.kind) is not None:
        return tuple(value) if value is not None else ()
    return value


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or error.__class__.__name__
