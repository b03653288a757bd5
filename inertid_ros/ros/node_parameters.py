"""ROS parameters from option classes (:mod:`inertid_ros.config`): type, range and description.

Named elements are declared as in ros2_control: a list of names (``plate_names``), then the fields of each name in the
list (``plates.left.frame``). If each name has a single value (``locked_joints.finger``), the list may be left empty:
the node fills it from the given values.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter

from inertid_ros.config.configuration import check_effects
from inertid_ros.config.nodes import NODE_EFFECTS, NODES, declared
from inertid_ros.config.option_fields import REQUIRED, Option, options
from inertid_ros.config.structuring import structure
from inertid_ros.config.yaml_files import check_parameter, check_parameter_file
from inertid_ros.core.errors import ConfigurationError, FormatError, InertidError
from inertid_ros.core.formats import read_yaml

T = TypeVar("T")
_ITEM_TYPES: dict[Parameter.Type, Callable[[Any], Any]] = {
    Parameter.Type.DOUBLE_ARRAY: float, Parameter.Type.INTEGER_ARRAY: int, Parameter.Type.STRING_ARRAY: str,
    Parameter.Type.BOOL_ARRAY: bool,
}  # fmt: skip
_LARGEST_VALUES = {float: math.inf, int: 2**62}


def declare(node: Node, tree: type[T], read_only: bool = True, prefix: str = "") -> T:
    """Declare every option of a tree as a parameter of ``node`` and return the tree with the given values.

    ``read_only`` parameters are fixed while the node runs. Lists of names are always fixed, because the parameters of
    the named elements are declared only here. ``prefix``, including its dot, precedes every key. Raises
    ConfigurationError if a value has the wrong type, lies outside its range or is not a valid choice, or if a named
    element is not in its list of names.
    """
    _accept_dumped_values(node)
    where = node.get_fully_qualified_name()
    _list_single_values(node, tree, prefix)
    for entry in _parameters(node, tree, prefix):
        try:
            _declare(node, entry, read_only or bool(entry.lists))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(f"{where}: {entry.key}: {reason}; correct the parameter") from None
    elements = {f"{entry.lists}.": entry.key for entry in options(tree, prefix) if entry.lists}
    # rclpy has no public way to read the values given for undeclared parameters.
    for name, given in node._parameter_overrides.items():
        names = next((key for element, key in elements.items() if name.startswith(element)), "")
        if names and not node.has_parameter(name):
            listed = ", ".join(_value(node, names) or []) or "none"
            raise ConfigurationError(
                f"{where}: {name} is {given.value!r}, but {names} lists {listed}; list the name there, or correct the"
                " field")
    return read(node, tree, prefix)


def read(node: Node, tree: type[T], prefix: str = "") -> T:
    """Return the tree with the present values of the parameters; raise ConfigurationError for an invalid value."""
    return structure(tree, _values(node, tree, prefix), node.get_fully_qualified_name(), prefix, listed=True)


def guard(node: Node, tree: type[Any], busy: Callable[[], str], prefix: str = "") -> None:
    """Refuse changes of parameters while ``busy()`` returns a reason, and values that the tree does not allow."""

    def on_set(parameters: list[Parameter]) -> SetParametersResult:
        try:
            if reason := busy():
                raise ConfigurationError(reason)
            values = _values(node, tree, prefix)
            keys = {entry.key for entry in _parameters(node, tree, prefix)}
            values |= {new.name.removeprefix(prefix): new.value for new in parameters if new.name in keys}
            structure(tree, values, node.get_fully_qualified_name(), prefix, listed=True)
        except InertidError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(on_set)


def check_given_parameters(node: Node, arguments: Sequence[str] | None = None) -> None:
    """Refuse given parameters that the node would ignore; to be called after all declarations.

    A parameter for all nodes (``/**``) may belong to another node. A parameter below the node's name, or on the command
    line (``arguments``), must belong to this node. Raises ConfigurationError for an undeclared parameter, with a
    suggestion, and for a parameter that another parameter makes ineffective.
    """
    arguments = sys.argv if arguments is None else arguments
    where, keys = node.get_fully_qualified_name(), set(node._parameters)
    # The original name of a node of this package, even if it is renamed.
    kind = next((name for name in NODES if all(one.key in keys for one in declared(name) if not one.names)), "")
    for file in _values_of(("--params-file",), arguments):
        check_parameter_file(file)
    direct = {text.partition(":=")[0].rpartition(":")[2] for text in _values_of(("-p", "--param"), arguments)}
    for key in node._parameter_overrides:
        if not node.has_parameter(key):
            check_parameter(key, kind if key in direct else "", where)
    if not kind:
        return
    values = {name: _plain(entry.value) for name, entry in node._parameters.items() if entry.value is not None}
    check_effects(NODE_EFFECTS, values, declared(kind), where)


def _values_of(options: Sequence[str], arguments: Sequence[str]) -> Iterator[str]:
    return (value for option, value in zip(arguments, arguments[1:], strict=False) if option in options)


def _accept_dumped_values(node: Node) -> None:
    """Let ``ros2 param load`` accept a dumped file: read-only parameters may be set to their present value."""
    if "set_parameters_atomically" in vars(node):  # done already
        return
    set_all = node.set_parameters_atomically

    def set_changed(parameters: list[Parameter]) -> SetParametersResult:
        given = (_as_declared(node, parameter) for parameter in parameters)
        changed = [new for new in given
            if not node.has_parameter(new.name) or _value(node, new.name) != _plain(new.value)]
        return set_all(changed) if changed else SetParametersResult(successful=True)

    vars(node)["set_parameters_atomically"] = set_changed


def _as_declared(node: Node, parameter: Parameter) -> Parameter:
    """Return a parameter with the declared type, which `ros2 param load` loses.

    The command guesses types from text: an empty list becomes a list of bool. ``inf`` and ``1e-06``, which YAML 1.1
    does not define as numbers, become strings.
    """
    if not node.has_parameter(parameter.name):
        return parameter
    declared_type, value = Parameter.Type(node.describe_parameter(parameter.name).type), parameter.value
    if declared_type is parameter.type_:
        return parameter
    try:
        if declared_type in _ITEM_TYPES:
            items = read_yaml(value) if isinstance(value, str) else value
            value = [_ITEM_TYPES[declared_type](item) for item in items]
        elif declared_type is Parameter.Type.DOUBLE and isinstance(value, str):
            value = float(value)
        elif declared_type is Parameter.Type.STRING:
            value = str(value)
        return Parameter(parameter.name, declared_type, value)
    except (TypeError, ValueError, OverflowError, FormatError):  # rclpy reports the error
        return parameter


def descriptor(entry: Option, read_only: bool) -> ParameterDescriptor:
    """Return the description of an option for ``ros2 param describe``."""
    result = ParameterDescriptor(description=entry.description, read_only=read_only)
    if entry.choices:
        result.additional_constraints = "one of " + ", ".join(entry.choices)
    if entry.is_list or (entry.minimum is None and entry.maximum is None) or entry.scalar not in _LARGEST_VALUES:
        return result
    largest = _LARGEST_VALUES[entry.scalar]
    low = -largest if entry.minimum is None else entry.minimum
    high = largest if entry.maximum is None else entry.maximum
    if entry.scalar is float:
        result.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
    else:
        result.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    return result


def _list_single_values(node: Node, tree: type, prefix: str) -> None:
    """Fill each empty list of names with the names for which single values are given."""
    overrides = node._parameter_overrides
    for entry in options(tree, prefix):
        start, _, field = entry.key.partition("<name>")
        listed = overrides[entry.names].value if entry.names in overrides else ()
        if not entry.names or field or any(listed or ()):
            continue
        names = [name.removeprefix(start) for name in overrides if name.startswith(start)]
        if names:
            overrides[entry.names] = Parameter(entry.names, Parameter.Type.STRING_ARRAY, names)


def _parameters(node: Node, tree: type, prefix: str) -> Iterator[Option]:
    """Yield all options of a tree; an option of named elements is yielded once per name in the declared list."""
    for entry in options(tree, prefix):
        if entry.names:
            yield from (entry.of(name) for name in _value(node, entry.names) or () if name)
        else:
            yield entry


def _declare(node: Node, entry: Option, read_only: bool) -> None:
    default = list(entry.default) if isinstance(entry.default, tuple) else entry.default
    given = node._parameter_overrides.get(entry.key)
    if entry.or_single and given is not None and given.type_ == Parameter.Type.STRING:
        given = Parameter(entry.key, Parameter.Type.STRING_ARRAY, [given.value])
        node._parameter_overrides[entry.key] = given
    empty = entry.is_list and (default == [] if given is None else given.type_ == Parameter.Type.NOT_SET)
    example = entry.scalar()
    ros_type = Parameter.Type.from_parameter_value([example] if entry.is_list else example)
    typed = default is REQUIRED or default == [] or empty
    node.declare_parameter(entry.key, ros_type if typed else default, descriptor(entry, read_only and not empty))
    if not empty:
        return
    # rclpy cannot infer the type of an empty list: it does not accept one as default, and ignores one in a file.
    # Setting a declared parameter to an empty list works.
    result = node.set_parameters([Parameter(entry.key, ros_type, [])])[0]
    if not result.successful:
        raise ConfigurationError(result.reason)
    final = descriptor(entry, read_only)
    final.type = ros_type.value
    node.set_descriptor(entry.key, final)


def _values(node: Node, tree: type, prefix: str) -> dict[str, Any]:
    """Return a map from key without prefix to value, for all parameters that were given or have a default."""
    return {entry.key.removeprefix(prefix): value for entry in _parameters(node, tree, prefix)
        if (value := _value(node, entry.key)) is not None}


def _value(node: Node, key: str) -> Any:
    """Return the value of a parameter; None if it was never set, so that the default applies."""
    try:
        return _plain(node.get_parameter(key).value)
    except ParameterUninitializedException:
        return None


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | bool | int | float) else list(value)
