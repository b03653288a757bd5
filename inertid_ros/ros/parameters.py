"""ROS parameters from option dataclasses (:mod:`inertid_ros.config.options`): type, range and description."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter

from inertid_ros.config.options import ConfigurationError, Option, build, options
from inertid_ros.core.errors import InertidError

T = TypeVar("T")
_LISTS = {
    float: Parameter.Type.DOUBLE_ARRAY,
    int: Parameter.Type.INTEGER_ARRAY,
    str: Parameter.Type.STRING_ARRAY,
    bool: Parameter.Type.BOOL_ARRAY,
}
_UNBOUNDED = {float: math.inf, int: 2**62}


def declare(node: Node, tree: type[T], read_only: bool = True, prefix: str = "") -> T:
    """Declare every option of a tree as a parameter of ``node`` and return the tree with the values given.

    Parameters
    ----------
    read_only: whether the parameters are fixed once the node runs.
    prefix: before every key, with its dot.

    Raises
    ------
    ConfigurationError: a value has the wrong type, lies outside its range or is not one of the choices.
    """
    where = node.get_fully_qualified_name()
    for entry in options(tree, prefix):
        # rclpy cannot tell the type of an empty list from its value.
        default = _LISTS[entry.kind] if entry.is_list and not entry.default else entry.default
        value = list(default) if isinstance(default, tuple) else default
        try:
            node.declare_parameter(entry.key, value, descriptor(entry, read_only))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(f"{where}: {entry.key}: {reason}; correct the parameter") from None
    return read(node, tree, prefix)


def read(node: Node, tree: type[T], prefix: str = "") -> T:
    """The tree as the node's parameters are now.

    Raises
    ------
    ConfigurationError: a value is not allowed.
    """
    values: dict[str, object] = {}
    for entry in options(tree, prefix):
        value = _value(node, entry)
        if value is not None:
            values[entry.key] = value
    return build(tree, values, node.get_fully_qualified_name(), prefix)


def guard(node: Node, tree: type[Any], busy: Callable[[], str], prefix: str = "") -> None:
    """Refuse parameter changes while ``busy()`` gives a reason, and values that the tree does not allow at any time."""
    known = {entry.key: entry for entry in options(tree, prefix)}

    def on_set(parameters: list[Parameter]) -> SetParametersResult:
        reason = busy()
        try:
            if reason:
                raise ConfigurationError(reason)
            now = {key: value for key, entry in known.items() if (value := _value(node, entry)) is not None}
            changed = {parameter.name: parameter.value for parameter in parameters if parameter.name in known}
            build(tree, {**now, **changed}, node.get_fully_qualified_name(), prefix)
        except InertidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(on_set)


def descriptor(entry: Option, read_only: bool) -> ParameterDescriptor:
    """What ``ros2 param describe`` shows of an option."""
    result = ParameterDescriptor(description=entry.description, read_only=read_only)
    if entry.choices:
        result.additional_constraints = "one of " + ", ".join(entry.choices)
    if entry.is_list or (entry.minimum is None and entry.maximum is None) or entry.kind not in _UNBOUNDED:
        return result
    most = _UNBOUNDED[entry.kind]
    low = -most if entry.minimum is None else entry.minimum
    high = most if entry.maximum is None else entry.maximum
    if entry.kind is float:
        result.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
    else:
        result.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    return result


def _value(node: Node, entry: Option) -> object:
    """Value of a parameter; None where it was never set, which leaves the default."""
    try:
        value = node.get_parameter(entry.key).value
    except ParameterUninitializedException:
        return None
    if entry.is_list and value is not None:
        return [item for item in value if item != ""]  # a parameter file has no other way to write an empty list
    return value
